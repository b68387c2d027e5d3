//! `verify`: an unchanged service holds, a higher need is found, and a new size is searched.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

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

/// Makes the experiment a commit; `None` where git is not installed.
fn commit(lab: &Lab) -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let said = git.args(arguments).current_dir(lab.path()).output().ok()?;
        assert!(said.status.success(), "{arguments:?}: {said:?}");
        Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    git(&["init", "-q"])?;
    git(&["add", "loadline.toml"])?;
    git(&["commit", "-qm", "first"])?;
    git(&["rev-parse", "HEAD"])
}

/// The result has the version; shown it is in words.
fn assert_version(lab: &Lab, version: &Value, words: &str) {
    assert_eq!(lab.result("last")["machine"]["version"], *version);
    let shown = lab.call("show").arg("--full").into_end().expect_code(0);
    shown.prints(&[words]);
}

fn a_release_that_needs_more_is_found() -> Outcome {
    let lab = Lab::new();
    write(&lab, 34);
    let Some(commit) = commit(&lab) else {
        return Some("git is not installed".to_owned());
    };
    let short = &commit[..7];
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
    let clean = json!({ "commit": { "id": commit, "dirty": false } });
    assert_version(&lab, &clean, &format!("version {short}"));
    write(&lab, 50);
    let more = verify().args(&["--tune", "--app-version", "1.4.2"]);
    let more = more.into_end().expect_code(1);
    let more = more.prints(&[
        "costs more: the memory it needs rose by +",
        "a start measured 10 requests, and it takes 100",
    ]);
    more.says(&[
        "searching for the size that it needs now",
        "loadline verify --accept",
    ]);
    let dirty = json!({ "name": "1.4.2", "commit": { "id": commit, "dirty": true } });
    assert_version(&lab, &dirty, &format!("1.4.2, commit {short}-dirty"));
    let searched = lab.result("last");
    assert_eq!(searched["trials"][0]["purpose"], "room", "a new search");
    let again = fs::read_to_string(lab.path().join("loadline.baseline.json")).expect("it");
    assert_eq!(again, accepted, "it was not accepted");
    None
}

fn wrong_verifies_are_refused() -> Outcome {
    let lab = Lab::new();
    let none = lab.call("verify").into_end().expect_code(2);
    none.says(&["there is no loadline.toml", "loadline init"]);
    write(&lab, 34);
    let two = lab.call("verify").args(&["--cpu", "1,2"]).into_end();
    two.expect_code(2)
        .says(&["2 configurations, but only one is shipped"]);
    let nameless = lab.call("verify").arg("--app-version=").into_end();
    let nameless = nameless.expect_code(2);
    nameless.says(&["--app-version", "not a version", "1.4.2"]);
    fs::write(lab.path().join("loadline.baseline.json"), "{}").expect("a file");
    let broken = lab.call("verify").arg("--wait").into_end().expect_code(2);
    broken.says(&["the baseline loadline.baseline.json", "--accept"]);
    None
}
