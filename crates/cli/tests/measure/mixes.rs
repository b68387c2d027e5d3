//! A trial under a mix with a login: each request is counted and judged by its name, and nothing
//! that is kept holds the credential.

use std::fs;

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 1] = [(
    "a_mix_is_judged_by_request_and_keeps_its_login_to_itself",
    a_mix_is_judged_by_request_and_keeps_its_login_to_itself,
)];

const SECRET: &str = "hunter2-of-this-test";

fn a_mix_is_judged_by_request_and_keeps_its_login_to_itself() -> Outcome {
    let lab = Lab::new();
    let command = lab.application(&["serve"]);
    let file = format!(
        r#"
slo = "POST /orders: p99<20s, POST /orders: errors<99%, errors<99%"
[app]
command = {command:?}
[load]
url = "http://localhost:8080/"
rate = "200/s"
warm-up = "0s"
duration = "500ms"
bearer = "@token"
[[load.request]]
weight = 3
path = "/owners"
[[load.request]]
name = "POST /orders"
weight = 1
method = "POST"
path = "/orders"
body = '{{"id": "{{uuid}}"}}'
[run]
accept-noise = true
"#
    );
    fs::write(lab.path().join("mix.toml"), file).expect("a file");
    fs::write(lab.path().join("token"), SECRET).expect("a file");
    let ended = lab
        .call("run")
        .args(&["--wait", "--full", "mix.toml"])
        .into_end();
    ended
        .expect_code(0)
        .prints(&["POST /orders: p99<20s", "Each request", "GET /owners"]);
    let result = lab.result("last");
    let trial = &result["trials"][0];
    let of_load = trial["evidence"]["load"][0]["by_request"].as_array();
    let names: Vec<_> = of_load.into_iter().flatten().map(|r| &r["name"]).collect();
    assert_eq!(names, ["GET /owners", "POST /orders"], "{trial}");
    assert_eq!(trial["objectives"][1]["request"], "POST /orders", "{trial}");
    for file in lab.files() {
        let bytes = fs::read(&file).expect("a file of the store");
        let holds = bytes
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes());
        assert!(!holds, "{} holds the credential", file.display());
    }
    None
}
