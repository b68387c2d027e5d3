//! Runs the tests in order, one at a time: each looks at the whole machine.

use std::panic::catch_unwind;
use std::process::ExitCode;

use loadline_engine::backend::local::{LocalBackend, Options};

use crate::{cases, hundred, java, killed};

/// A test: its name, and a function that panics when it fails.
pub type Case = (&'static str, fn());

pub fn run(filter: Option<&str>) -> ExitCode {
    let all: Vec<Case> = cases::CASES
        .iter()
        .chain(&java::CASES)
        .chain(&killed::CASES)
        .chain(&hundred::CASES)
        .copied()
        .collect();
    let wanted = |case: &&Case| filter.is_none_or(|filter| case.0.contains(filter));
    let cases: Vec<Case> = all.iter().filter(wanted).copied().collect();
    println!("running {} tests", cases.len());
    if let Some(reason) = missing() {
        for (name, _) in &cases {
            println!("SKIP {name}: {reason}");
        }
        println!(
            "test result: ok. 0 passed; 0 failed; {} ignored",
            cases.len()
        );
        return ExitCode::SUCCESS;
    }
    let without_java = java::java().is_none();
    let (skipped, cases): (Vec<Case>, Vec<Case>) = cases
        .into_iter()
        .partition(|(name, _)| without_java && name.starts_with("jvm_"));
    for (name, _) in &skipped {
        println!("SKIP {name}: no JDK with javac in PATH");
    }
    let failed = cases.iter().filter(|case| !passes(case)).count();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let (passed, skipped) = (cases.len() - failed, skipped.len());
    println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored");
    ExitCode::from(u8::from(failed > 0))
}

fn passes((name, test): &Case) -> bool {
    let begin = std::time::Instant::now();
    // A panic has printed its message by itself.
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
    LocalBackend::new(Options::default())
        .err()
        .map(|error| error.to_string().replace('\n', "; "))
}
