//! Soaks: a leak that is known is named with its rate; what a soak has seen outlives its end.

use std::time::Duration;

use rustix::process::Signal;

use crate::applications::workload;
use crate::lab::Lab;
use crate::process::Running;
use crate::runner::{Case, Outcome};
use crate::traces::assert_nothing_left;

pub const CASES: [Case; 3] = [
    ("a_soak_that_is_cut_is_judged", a_soak_that_is_cut_is_judged),
    ("wrong_soaks_are_refused", wrong_soaks_are_refused),
    (
        "a_leak_is_named_with_its_rate",
        a_leak_is_named_with_its_rate,
    ),
];

/// Bytes that each request loses: more in a cycle than the compiler takes in the first minute.
const LOST: f64 = 49_152.0;

fn a_leak_is_named_with_its_rate() -> Outcome {
    let jar = match workload("leak") {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    // Room for what the burst of the first starts loses.
    let search = ["--max-memory=4Gi", "--confirm=1", "--prove=1"];
    let sizing = lab
        .measure("size")
        .args(&search)
        .args(&["--soak=60s", "--full"]);
    let sized = sizing
        .args(&[
            "--",
            "java",
            "-XX:+UseSerialGC",
            "-XX:MaxDirectMemorySize=1g",
            // Its ageing ends after 5,000 requests, so that no burst fills the limit.
            "-XX:TieredStopAtLevel=1",
            "-jar",
        ])
        .arg(&jar)
        .arg(format!("--direct={LOST}"))
        .into_end();
    let sized = sized
        .expect_code(0)
        .prints(&["and it grows: direct buffers"]);
    sized.prints(&["What grows over time", "MaxDirectMemorySize"]);
    let result = lab.result("last");
    let trials = result["trials"].as_array().cloned().unwrap_or_default();
    let soak = trials
        .iter()
        .find(|t| t["purpose"] == "soak")
        .expect("a soak");
    let looks = &soak["evidence"]["soak"]["looks"];
    assert_eq!(looks.as_array().map(Vec::len), Some(3), "{looks:#}");
    let grown = |name: &str| number(&looks[2][name]) - number(&looks[1][name]);
    let lost = (grown("malloc_bytes") + grown("jvm_bytes")) / grown("requests");
    // Mappings do not tell a buffer from a compiler's arena, and in this minute compilers work.
    let is_near = (0.85..1.4).contains(&(lost / LOST));
    assert!(is_near, "{lost} of {LOST} bytes a request");
    let buffers = grown("direct_buffers") / grown("requests");
    assert!((buffers - 1.0).abs() < 0.15, "{buffers} a request");
    let points = soak["evidence"]["soak"]["points"]
        .as_array()
        .map_or(0, Vec::len);
    assert!(points > 40, "{points}");
    let options = soak["configuration"]["jvm_options"].to_string();
    assert!(!options.contains("NativeMemoryTracking"), "{options}");
    None
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// A soak of hours of an answer, seen to measure.
fn soaking(lab: &Lab, answer: &str) -> Running {
    let flags = ["--wait", "--full", "--for=3h"];
    let mut soaking = lab.call("soak").arg(answer).args(&flags).start();
    soaking.until_it_measures();
    std::thread::sleep(Duration::from_secs(12));
    soaking
}

fn points(result: &serde_json::Value) -> usize {
    let soak = &result["trials"][0]["evidence"]["soak"];
    soak["points"].as_array().map_or(0, Vec::len)
}

/// Stopped by the user, and then killed with `kill -9`.
fn a_soak_that_is_cut_is_judged() -> Outcome {
    let lab = Lab::new();
    lab.size().into_end().expect_code(0);
    let listed = lab.results();
    let answer = listed[0]["id"].as_str().expect("an id");
    for length in ["10s", "soon"] {
        let call = lab.call("soak").args(&[answer, "--for", length]);
        let ended = call.into_end().expect_code(2);
        ended.says(&[length, "--for", "hint: "]);
    }
    assert_eq!(lab.results().len(), 1, "nothing was stored");

    let stopped = soaking(&lab, answer);
    stopped.signal(Signal::INT);
    stopped
        .end()
        .expect_code(4)
        .says(&["kept and judged", "too short to tell", "hint: "])
        .prints(&["Too short to tell after", "it was stopped"]);
    let result = lab.result("last");
    assert!(points(&result) >= 2, "{result:#}");
    assert_eq!(lab.results()[0]["kind"], "soak");
    assert_nothing_left(&lab, &[], &Default::default());

    let mut killed = soaking(&lab, answer);
    killed.kill();
    killed.end();
    let resume = lab.call("resume").args(&["--wait", "--full"]);
    let ended = resume.into_end().expect_code(4);
    ended
        .says(&["the soak was killed: its data so far are kept and judged"])
        .prints(&["it was killed"]);
    assert!(points(&lab.result("last")) >= 2);
    None
}

fn wrong_soaks_are_refused() -> Outcome {
    let lab = Lab::new();
    let soak = |arguments: &[&str]| lab.call("soak").args(arguments).into_end();
    soak(&["nosuch"])
        .expect_code(2)
        .says(&["there is no result `nosuch`", "hint: "]);
    lab.measure("run")
        .zoo(&lab, &["serve"])
        .into_end()
        .expect_code(0);
    soak(&["last"])
        .expect_code(2)
        .says(&["has no answer to soak", "hint: "]);
    assert_eq!(lab.results().len(), 1, "nothing was stored");
    None
}
