//! A trial under a mix with a login: each request is counted and judged by its name, and nothing
//! that is kept holds the credential. Users sign in, and stay signed in from phase to phase.

use std::fs;
use std::path::Path;

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 3] = [
    (
        "a_peak_is_driven_behind_the_judged_load",
        a_peak_is_driven_behind_the_judged_load,
    ),
    (
        "a_mix_is_judged_by_request_and_keeps_its_login_to_itself",
        a_mix_is_judged_by_request_and_keeps_its_login_to_itself,
    ),
    (
        "users_who_signed_in_in_the_warm_up_stay_in_the_judged_part",
        users_who_signed_in_in_the_warm_up_stay_in_the_judged_part,
    ),
];

const SECRET: &str = "hunter2-of-this-test";

fn a_peak_is_driven_behind_the_judged_load() -> Outcome {
    let lab = Lab::new();
    let ended = lab
        .call("run")
        .args(&["--wait", "--accept-noise", "--full", "--rate", "100/s"])
        .args(&["--url", "http://localhost:8080/", "--peak", "2x:1s"])
        .args(&["--slo", "errors<99%,peak max<20s,peak errors<99%"])
        .args(&["--warm-up", "0s", "--duration", "500ms"])
        .zoo(&lab, &["serve"])
        .into_end();
    ended
        .expect_code(0)
        .prints(&["At 200/s for 1s", "What does the peak show?"]);
    let trial = &lab.trial();
    let load = trial["evidence"]["load"].as_array().expect("two phases");
    let scheduled: Vec<_> = load
        .iter()
        .map(|l| (&l["phase"], &l["scheduled"]))
        .collect();
    assert_eq!(
        serde_json::json!(scheduled),
        serde_json::json!([["measure", 50], ["peak", 200]])
    );
    let judged = trial["objectives"].as_array().expect("three objectives");
    let is_peak: Vec<_> = judged.iter().map(|o| o["is_peak"] == true).collect();
    assert_eq!(is_peak, [false, true, true]);
    None
}

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

fn users_who_signed_in_in_the_warm_up_stay_in_the_judged_part() -> Outcome {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/tomcat.jar");
    if !built.is_file() {
        return Some("build/workloads/tomcat.jar is not there; `make workloads` builds it".into());
    }
    let lab = Lab::new();
    let jar = lab.path().join("tomcat.jar");
    fs::copy(built, &jar).expect("a copy");
    let jar = jar.display().to_string();
    let file = format!(
        r#"
slo = "GET /cart: p99<20s, errors<1%"
[app]
command = ["java", "-jar", {jar:?}]
ready = {{ http = "/health" }}
[load]
url = "http://localhost:8080/"
rate = "100/s"
session = 10
think = "1s..2s"
warm-up = "4s"
duration = "2s"
[[load.request]]
weight = 1
path = "/login"
first = true
[[load.request]]
weight = 1
path = "/cart"
[run]
accept-noise = true
"#
    );
    fs::write(lab.path().join("users.toml"), file).expect("a file");
    let ended = lab.call("run").args(&["--wait", "users.toml"]).into_end();
    ended.expect_code(0).says(&["PASS"]);
    let result = lab.result("last");
    let said = result["load"].to_string();
    assert!(
        said.contains("sessions of 10 requests, 375 connections"),
        "{said}"
    );
    let judged = &result["trials"][0]["evidence"]["load"][1];
    // A cart is for those who are signed in: whoever forgets a cookie is refused.
    assert_eq!(judged["ok"], judged["scheduled"], "{judged}");
    let of_each = judged["by_request"].as_array().expect("each request");
    let ok = |nth: usize| of_each[nth]["ok"].as_u64().unwrap_or_default();
    // Had the users of the warm-up gone with it, all of the first second would sign in.
    assert!(ok(0) > 0 && ok(0) * 3 < ok(1), "{judged}");
    None
}
