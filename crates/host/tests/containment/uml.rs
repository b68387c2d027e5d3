//! The other tests of this binary, run again on real cgroup v2: in user-mode Linux.

use std::path::Path;
use std::process::Command;

use crate::runner::Case;

pub const CASES: [Case; 1] = [("on_cgroup_v2", on_cgroup_v2)];

/// The guest is one slow CPU: most cases, not all. `killed` and `hundred` repeat much the same
/// many times, a thread dump needs a JVM that starts within seconds, and v1 is not mounted.
fn on_cgroup_v2() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/uml/run.sh");
    let output = Command::new(run)
        .arg(std::env::current_exe().expect("this program"))
        .arg("in-guest")
        .env("LOADLINE_UML_TIMEOUT", "1500")
        .output()
        .expect("the script is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        println!("SKIP on_cgroup_v2: {}", said.trim().replace('\n', " "));
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // The guest's own lines would be counted again.
    let nested = nested(&output.stdout);
    assert!(output.status.success(), "{nested}{said}");
    assert!(text.contains("cgroup v2"), "it was another one: {nested}");
    let is_ok = |line: &&str| line.starts_with("test ") && line.contains(" ... ok");
    let passed = text.lines().filter(is_ok).count();
    assert!(passed >= crate::cases::CASES.len(), "{nested}");
    let has_java = crate::java::java().is_some();
    assert!(!has_java || !text.contains("SKIP"), "{nested}");
    let seen = text.lines().filter(|line| line.contains("sees "));
    for line in seen {
        println!("on_cgroup_v2: {line}");
    }
    println!("on_cgroup_v2: {passed} tests passed");
}

/// Lines of tests that run inside a test: not to be counted as that one's own.
pub fn nested(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .map(|line| format!("inside: {line}\n"))
        .collect()
}
