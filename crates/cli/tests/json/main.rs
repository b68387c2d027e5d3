//! What `--json` prints is what the schema in docs/reference says.

mod explained;
mod logs;
mod schema;

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

/// Asserts that a command prints JSON, one document a line, that follows a schema.
#[track_caller]
fn assert_follows(output: &Output, name: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout.clone()).expect("JSON is text");
    assert!(!text.trim().is_empty(), "nothing was printed: {said}");
    let schema = reference(name);
    for line in text.lines() {
        let document = serde_json::from_str(line).expect("each line is JSON");
        let faults = schema::faults(&schema, &document);
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
}

/// The parser's own test data.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../jvm/tests/data/gclog")
        .join(name)
}
