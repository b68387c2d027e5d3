//! What the commands that measure print with `--json`, against the schema of results.
//!
//! The forms of the other commands are checked in `tests/json`.

use crate::lab::Lab;
use crate::runner::{Case, Outcome};

#[path = "../json/schema.rs"]
mod schema;

pub const CASES: [Case; 1] = [(
    "what_is_measured_has_the_form_of_the_reference",
    what_is_measured_has_the_form_of_the_reference,
)];

#[track_caller]
pub fn assert_result(printed: &str) {
    assert_form(printed, "result");
}

/// The same of another form.
#[track_caller]
pub fn assert_form(printed: &str, form: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    let path = format!("{folder}/{form}.schema.json");
    let text = std::fs::read_to_string(path).expect("the reference is there");
    let wanted = serde_json::from_str(&text).expect("the reference is JSON");
    let faults = schema::faults_of(&wanted, printed.as_bytes());
    assert!(faults.is_empty(), "{faults:#?}");
}

fn what_is_measured_has_the_form_of_the_reference() -> Outcome {
    let lab = Lab::new();
    let serve = ["serve", "heap_mib=34"];
    let run = lab.measure("run").arg("--json").zoo(&lab, &serve);
    assert_result(&run.into_end().expect_code(0).stdout);
    assert_result(&lab.size_with(&["--json"]).into_end().expect_code(0).stdout);
    // A result that is done is printed again.
    let resume = lab.call("resume").args(&["--wait", "--json"]);
    assert_result(&resume.into_end().stdout);
    let judge = lab
        .measure("judge")
        .args(&["--json", "--starts=1", "--memory=64Mi"]);
    // A rule that refuses is left out; the others run.
    let judge = judge.args(&["--advice=defaults", "--advice=paketo"]);
    let judge = judge.zoo(&lab, &["serve"]).into_end();
    let judge = judge.says(&["left out: paketo gives no answer", "hint: "]);
    assert_result(&judge.stdout);
    None
}
