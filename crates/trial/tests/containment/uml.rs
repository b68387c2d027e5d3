//! The other tests of this binary, run again on real cgroup v2: in user-mode Linux.

use std::path::Path;
use std::process::Command;

use crate::runner::{Case, IN_GUEST};

const MOST_OF_IT: &str = "uml::on_cgroup_v2";
const HOSTILE: &str = "uml::hostile_kinds_on_cgroup_v2";
pub const SQUEEZES: &str = "uml::squeezes_on_cgroup_v2";

pub const CASES: [Case; 3] = [
    (MOST_OF_IT, on_cgroup_v2),
    (HOSTILE, hostile_kinds_on_cgroup_v2),
    (SQUEEZES, squeezes_on_cgroup_v2),
];

/// Many trials in the guest, each of which needs seconds on its slow CPU.
struct LongForm {
    test: &'static str,
    /// Its variable has the number of trials.
    variable: &'static str,
    /// Seconds for each trial, on a machine with much else to do.
    most_of_a_trial: u64,
    /// For JDKs: file pages of the guest's root directory are charged to no group.
    has_disk: bool,
}

/// Seconds until the guest is killed.
const MOST: u64 = 1500;

fn hostile_kinds_on_cgroup_v2() {
    run_long_form(&LongForm {
        test: HOSTILE,
        variable: "LOADLINE_HOSTILE_V2",
        most_of_a_trial: 40,
        has_disk: false,
    });
}

fn squeezes_on_cgroup_v2() {
    run_long_form(&LongForm {
        test: SQUEEZES,
        variable: "LOADLINE_SQUEEZES_V2",
        most_of_a_trial: 150,
        has_disk: true,
    });
}

fn run_long_form(form: &LongForm) {
    let LongForm { test, variable, .. } = form;
    let Ok(count) = std::env::var(variable) else {
        println!("SKIP {test}: long; {variable}=COUNT runs COUNT trials");
        return;
    };
    let seconds = MOST + form.most_of_a_trial * count.parse::<u64>().expect("a number of trials");
    let arguments = [IN_GUEST, test, count.as_str()];
    let disk = tempfile::NamedTempFile::new().expect("a file");
    disk.as_file().set_len(4 << 30).expect("its length");
    let disk = form.has_disk.then_some(disk.path());
    let Some(text) = in_guest(test, &arguments, seconds, disk) else {
        return;
    };
    for line in text.lines().filter(|line| {
        line.starts_with('|') || line.contains(" trials of ") || line.contains(" squeezes, ")
    }) {
        println!("{line}");
    }
}

/// The guest is one slow CPU: most cases, not all. `killed` repeats much the same many times, a
/// thread dump needs a JVM that starts within seconds, and v1 is not mounted.
fn on_cgroup_v2() {
    let Some(text) = in_guest(MOST_OF_IT, &[IN_GUEST], MOST, None) else {
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
fn in_guest(test: &str, arguments: &[&str], seconds: u64, disk: Option<&Path>) -> Option<String> {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/uml/run.sh");
    let output = Command::new(run)
        .arg(std::env::current_exe().expect("this program"))
        .args(arguments)
        .env("LOADLINE_UML_TIMEOUT", seconds.to_string())
        .envs(disk.map(|path| ("LOADLINE_UML_DISKS", path)))
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
