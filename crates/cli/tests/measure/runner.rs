//! Runs the tests in order, one at a time.

use std::panic::catch_unwind;
use std::process::ExitCode;

use crate::lab::Lab;
use crate::wanted::Wanted;
use crate::{
    answers, apart, applications, caches, calls, compose, denied, dependencies, disk, forms,
    hostile_images, images, instances, interrupted, jobs, killed, levels, load_commands, metrics,
    mixes, notified, openj9, ports, postgresql, refused, scripts, serving, shared_classes,
    shared_dependencies, soaks, starts, tls, tutorial, uml, verifies,
};

/// A test: its name, and a function that panics when it fails and gives the reason when this
/// machine cannot run it.
pub type Case = (&'static str, fn() -> Outcome);

/// `Some(reason)` for a test that was skipped.
pub type Outcome = Option<String>;

/// Their trials are judged by what happens and by no time, so that others may use the machine
/// meanwhile. Their names begin with [`BESIDE`].
const OF_NO_TIME: [&[Case]; 23] = [
    &refused::CASES,
    &answers::CASES,
    &applications::CASES,
    &caches::CASES,
    &calls::CASES,
    &dependencies::CASES,
    &shared_dependencies::CASES,
    &ports::CASES,
    &forms::CASES,
    &jobs::CASES,
    &load_commands::CASES,
    &instances::CASES,
    &interrupted::CASES,
    &killed::CASES,
    &metrics::CASES,
    &mixes::CASES,
    &notified::CASES,
    &openj9::CASES,
    &scripts::CASES,
    &serving::CASES,
    &soaks::CASES,
    &verifies::CASES,
    &tls::CASES,
];

/// The same, with images: they share podman's and docker's.
const OF_ENGINES: [&[Case]; 9] = [
    &apart::CASES,
    &compose::CASES,
    &denied::CASES,
    &disk::CASES,
    &hostile_images::CASES,
    &images::CASES,
    &levels::CASES,
    &shared_classes::CASES,
    &starts::CASES,
];

/// The same with PostgreSQL: a Spring Boot service and a server start for each trial.
const OF_DATABASES: [&[Case]; 1] = [&postgresql::CASES];

/// What the names of these begin with: whoever has these words skips the others, or these.
const BESIDE: &str = "beside::";
const ENGINES: &str = "engines::";
const DATABASES: &str = "databases::";

/// A separate machine, or tests that a busy machine would fail.
const OF_TIME: [&[Case]; 5] = [
    &answers::TIMED,
    &dependencies::TIMED,
    &postgresql::TIMED,
    &tutorial::TIMED,
    &uml::CASES,
];

/// A test with its whole name.
type Named = (String, fn() -> Outcome);

/// Runs the tests that are wanted.
pub fn run(wanted: &Wanted) -> ExitCode {
    let named =
        |path: &'static str| move |(name, test): Case| -> Named { (format!("{path}{name}"), test) };
    let beside = OF_NO_TIME.concat().into_iter().map(named(BESIDE));
    let engines = OF_ENGINES.concat().into_iter().map(named(ENGINES));
    let databases = OF_DATABASES.concat().into_iter().map(named(DATABASES));
    let of_time = OF_TIME.concat().into_iter().map(named(""));
    let untimed = beside.chain(engines).chain(databases);
    let mut cases: Vec<Named> = untimed.chain(of_time).collect();
    cases.retain(|case| wanted.has(&case.0));
    println!("running {} tests", cases.len());
    let missing = missing();
    let (mut failed, mut skipped) = (0, 0);
    for case in &cases {
        match outcome(case, missing.as_deref()) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                println!("SKIP {}: {reason}", case.0);
                skipped += 1;
            }
            Err(()) => failed += 1,
        }
    }
    let passed = cases.len() - failed - skipped;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    // Skipped tests count as passed, as libtest has it: whoever counts takes the SKIP lines off.
    println!(
        "test result: {word}. {} passed; {failed} failed; 0 ignored",
        passed + skipped
    );
    ExitCode::from(u8::from(failed > 0))
}

fn outcome((name, test): &Named, missing: Option<&str>) -> Result<Outcome, ()> {
    if let Some(reason) = missing {
        return Ok(Some(reason.to_owned()));
    }
    let begin = std::time::Instant::now();
    // A panic has already printed its message.
    let outcome = catch_unwind(test).map_err(|_| ());
    let word = match &outcome {
        Ok(None) => "ok",
        Ok(Some(_)) => return outcome,
        Err(()) => "FAILED",
    };
    println!(
        "test {name} ... {word} ({:.1} s)",
        begin.elapsed().as_secs_f64()
    );
    outcome
}

/// Why trials cannot run here, if they cannot.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    let lab = Lab::new();
    let cleaned = lab.call("clean").into_end();
    // The machine's fault; any other failure is for the tests to find.
    (cleaned.code == Some(3)).then(|| cleaned.stderr.trim().replace('\n', "; "))
}
