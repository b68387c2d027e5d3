//! The other tests of this binary, run again on real cgroup v2: in user-mode Linux.

use std::path::Path;
use std::process::Command;

use crate::runner::Case;

const MOST_OF_IT: &str = "uml::on_cgroup_v2";
const HOSTILE: &str = "uml::hostile_kinds_on_cgroup_v2";

pub const CASES: [Case; 2] = [
    (MOST_OF_IT, on_cgroup_v2),
    (HOSTILE, hostile_kinds_on_cgroup_v2),
];

/// How many hostile trials in the guest: in the machine's own groups every kind is tested.
const TRIALS: &str = "LOADLINE_HOSTILE_V2";

/// Seconds until the guest is killed.
const MOST: u64 = 1500;

/// The same for each hostile trial: a dozen on a machine with much else to do.
const MOST_OF_A_TRIAL: u64 = 40;

/// Each kind needs seconds on the guest's slow CPU, so running all kinds is a long form.
fn hostile_kinds_on_cgroup_v2() {
    let Ok(count) = std::env::var(TRIALS) else {
        println!("SKIP {HOSTILE}: long; {TRIALS}=COUNT runs COUNT trials");
        return;
    };
    let seconds = MOST + MOST_OF_A_TRIAL * count.parse::<u64>().expect("a number of trials");
    let arguments = ["in-guest", count.as_str()];
    let Some(text) = in_guest(HOSTILE, &arguments, seconds) else {
        return;
    };
    for line in text
        .lines()
        .filter(|line| line.starts_with('|') || line.contains(" trials of "))
    {
        println!("{line}");
    }
}

/// The guest is one slow CPU: most cases, not all. `killed` repeats much the same many times, a
/// thread dump needs a JVM that starts within seconds, and v1 is not mounted.
fn on_cgroup_v2() {
    let Some(text) = in_guest(MOST_OF_IT, &["in-guest"], MOST) else {
        return;
    };
    let is_ok = |line: &&str| line.starts_with("test ") && line.contains(" ... ok");
    let passed = text.lines().filter(is_ok).count();
    let nested = nested(text.as_bytes());
    assert!(passed >= crate::cases::CASES.len(), "{nested}");
    let has_java = crate::java::java().is_some();
    // The guest's kernel has no IPv6; that test runs in the machine's own groups.
    let is_unwanted = |line: &str| line.contains("SKIP") && !line.contains("no IPv6");
    assert!(!has_java || !text.lines().any(is_unwanted), "{nested}");
    let seen = text.lines().filter(|line| line.contains("sees "));
    for line in seen {
        println!("{MOST_OF_IT}: {line}");
    }
    println!("{MOST_OF_IT}: {passed} tests passed");
}

/// The output of this binary there, if all went well; `None` without such a guest.
fn in_guest(test: &str, arguments: &[&str], seconds: u64) -> Option<String> {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/uml/run.sh");
    let output = Command::new(run)
        .arg(std::env::current_exe().expect("this program"))
        .args(arguments)
        .env("LOADLINE_UML_TIMEOUT", seconds.to_string())
        .output()
        .expect("the script is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        println!("SKIP {test}: {}", said.trim().replace('\n', " "));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // The guest's own lines would be counted again.
    let nested = nested(&output.stdout);
    assert!(output.status.success(), "{nested}{said}");
    assert!(text.contains("cgroup v2"), "it was another one: {nested}");
    Some(text.into_owned())
}

/// Lines of tests that run inside a test: not to be counted as that one's own.
pub fn nested(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .map(|line| format!("inside: {line}\n"))
        .collect()
}
