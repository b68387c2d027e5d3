//! What `--json` prints is what the schema in docs/reference says.

mod explained;
mod forms;
mod logs;
mod schema;
#[path = "../server/mod.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs loadline.
fn loadline(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// A file of the reference.
fn reference(name: &str) -> serde_json::Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let text = std::fs::read_to_string(folder.join(name)).expect("the reference is there");
    serde_json::from_str(&text).expect("the reference is JSON")
}

/// The exit code of a measurement that others on the machine disturbed.
const INVALID: i32 = 4;

/// Asserts that a command ends well and prints JSON that follows a schema.
#[track_caller]
fn assert_follows(output: &Output, name: &str) {
    assert!(output.status.success(), "{}", said(output));
    assert_form(output, name);
}

/// The same of a command that measures: on a busy machine it may call its result invalid, and
/// prints it all the same.
#[track_caller]
fn assert_measured(output: &Output, name: &str) {
    let is_disturbed = output.status.code() == Some(INVALID);
    assert!(output.status.success() || is_disturbed, "{}", said(output));
    assert_form(output, name);
}

fn said(output: &Output) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn assert_form(output: &Output, name: &str) {
    let faults = schema::faults_of(&reference(name), &output.stdout);
    assert!(faults.is_empty(), "{name}: {faults:#?}\n{}", said(output));
}

/// The parser's own test data.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../jvm/tests/data/gclog")
        .join(name)
}
