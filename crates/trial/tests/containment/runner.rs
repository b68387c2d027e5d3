//! Runs the tests in order, one at a time: each looks at the whole machine.

use std::panic::catch_unwind;
use std::process::ExitCode;

use loadline_trial::{Site, SiteOptions};

use crate::wanted::Wanted;
use crate::{cases, generator, hostile, java, killed, squeezes, tool, uml, way};

/// The first argument in the guest of `uml`.
pub const IN_GUEST: &str = "in-guest";

/// A test: its name, and a function that panics when it fails.
pub type Case = (&'static str, fn());

/// Runs the tests that are wanted.
pub fn run(wanted: &Wanted) -> ExitCode {
    let all = cases::CASES
        .iter()
        .chain(&java::CASES)
        .chain(&killed::CASES)
        .chain(&generator::CASES)
        .chain(&tool::CASES)
        .chain(&way::CASES)
        .chain(&hostile::CASES)
        .chain(&squeezes::CASES)
        .chain(&uml::CASES);
    let wanted = |case: &&Case| wanted.has(case.0);
    run_these(&all.filter(wanted).copied().collect::<Vec<Case>>())
}

/// Whether this is the guest of `uml`.
pub fn is_guest() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == IN_GUEST)
}

/// Runs the tests that `uml` needs in its guest: a long form with its count, or most of the others.
pub fn run_in_guest(long_form: Option<(String, String)>) -> ExitCode {
    if let Ok(site) = Site::detect_site(SiteOptions::default()) {
        println!("cgroup {}", site.describe_machine().cgroup);
    }
    if let Some((form, count)) = long_form {
        let count = count.parse().expect("a count");
        match form.as_str() {
            uml::SQUEEZES => squeezes::squeeze_starts(count, &squeezes::GUEST),
            _ => hostile::trials(count, &hostile::GUEST),
        }
        return ExitCode::SUCCESS;
    }
    let not_there = [java::HANGS, java::V1_ALONE, java::PARTS, java::ZGC];
    let of_java = java::CASES
        .iter()
        .filter(|case| !not_there.contains(&case.0));
    run_these(
        &cases::CASES
            .iter()
            .chain(&generator::CASES)
            .chain(&way::CASES)
            .chain(of_java)
            .copied()
            .collect::<Vec<Case>>(),
    )
}

fn run_these(cases: &[Case]) -> ExitCode {
    println!("running {} tests", cases.len());
    let missing = missing();
    let without_java = java::java().is_none();
    let mut failed = 0;
    for case in cases {
        if let Some(reason) = &missing {
            println!("SKIP {}: {reason}", case.0);
        } else if without_java && case.0.starts_with("jvm_") {
            println!("SKIP {}: no JDK with javac in PATH", case.0);
        } else if !passes(case) {
            failed += 1;
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let passed = cases.len() - failed;
    // Skipped tests count as passed, as libtest has it: whoever counts takes the SKIP lines off.
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored");
    ExitCode::from(u8::from(failed > 0))
}

fn passes((name, test): &Case) -> bool {
    let begin = std::time::Instant::now();
    // A panic has already printed its message.
    let passed = catch_unwind(test).is_ok();
    let word = if passed { "ok" } else { "FAILED" };
    println!(
        "test {name} ... {word} ({:.1} s)",
        begin.elapsed().as_secs_f64()
    );
    passed
}

/// Why trials cannot run here, if they cannot.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    Site::detect_site(SiteOptions::default())
        .err()
        .map(|error| error.to_string().replace('\n', "; "))
}
