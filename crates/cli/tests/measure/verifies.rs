//! `verify`: what is as it was holds, what needs more is found, and the search begins at the old size.

use std::fs;

use crate::forms::assert_form;
use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 2] = [
    (
        "a_release_that_needs_more_is_found",
        a_release_that_needs_more_is_found,
    ),
    ("wrong_verifies_are_refused", wrong_verifies_are_refused),
];

/// The experiment of a service that holds so much.
fn write(lab: &Lab, heap_mib: u32) {
    let heap = format!("heap_mib={heap_mib}");
    let command = lab.application(&["serve", &heap]);
    let text = format!(
        "slo = \"errors<99%\"\n\
         [app]\ncommand = {command:?}\n\
         [load]\nurl = \"http://localhost:8080/\"\nrate = \"50/s\"\nwarm-up = \"0s\"\nmeasure = \"200ms\"\n\
         [limits]\nmemory = \"96Mi\"\n\
         [run]\naccept-noise = true\n\
         [search]\nmin-memory = \"8Mi\"\nstep = \"8Mi\"\nconfirm = 1\nprove = 2\n"
    );
    fs::write(lab.path().join("loadline.toml"), text).expect("a file");
}

fn a_release_that_needs_more_is_found() -> Outcome {
    let lab = Lab::new();
    write(&lab, 34);
    let verify = || lab.call("verify").arg("--wait");
    let first = verify().arg("--accept").into_end().expect_code(0);
    first.says(&["accepted for the first time: loadline.baseline.json"]);
    let accepted = fs::read_to_string(lab.path().join("loadline.baseline.json")).expect("it");
    assert_eq!(accepted.matches("\"kept\": true").count(), 20, "{accepted}");
    let same = verify().arg("--json").into_end().expect_code(0);
    assert_form(&same.stdout, "verify");
    let same = same.json();
    assert_eq!(same["answer"], "holds", "{same:#}");
    assert_eq!(same["holds_too_well"], true, "{same:#}");
    assert!(same["starts"].as_u64() <= Some(20), "{same:#}");
    write(&lab, 50);
    let more = verify().arg("--tune").into_end().expect_code(1);
    let more = more.prints(&[
        "costs more: the memory it needs rose by +",
        "a start measured 10 requests, and it takes 100",
    ]);
    more.says(&[
        "searching from the shipped size on",
        "loadline verify --accept",
    ]);
    let searched = lab.result("last");
    let first = &searched["trials"][0]["configuration"]["memory_bytes"];
    assert_eq!(first.as_u64(), Some(96 << 20), "the shipped size");
    let again = fs::read_to_string(lab.path().join("loadline.baseline.json")).expect("it");
    assert_eq!(again, accepted, "nobody accepted it");
    None
}

fn wrong_verifies_are_refused() -> Outcome {
    let lab = Lab::new();
    let none = lab.call("verify").into_end().expect_code(2);
    none.says(&["there is no loadline.toml", "loadline init"]);
    write(&lab, 34);
    let two = lab.call("verify").args(&["--cpu", "1,2"]).into_end();
    two.expect_code(2)
        .says(&["2 configurations, and one is shipped"]);
    fs::write(lab.path().join("loadline.baseline.json"), "{}").expect("a file");
    let broken = lab.call("verify").arg("--wait").into_end().expect_code(2);
    broken.says(&["the baseline loadline.baseline.json", "--accept"]);
    None
}
