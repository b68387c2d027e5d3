//! What a test run printed, counted.
//!
//! Reads libtest's lines (`test NAME ... ignored, REASON`, `test result: ok. 3 passed; ...`) and
//! the project's own `SKIP NAME: REASON`, which a test prints when the machine lacks what it
//! needs. libtest counts such a test as passed; here it counts as skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skips: BTreeMap<String, String>,
    pub failures: Vec<String>,
    /// Names of tests that failed next to the others and passed alone; counted as passed, and named
    /// at the end: a measurement next to a busy neighbour may do that, a race too.
    pub unsteady: Vec<String>,
}

impl Counts {
    pub fn one_passed() -> Self {
        Self {
            passed: 1,
            ..Self::default()
        }
    }

    pub fn one_failed(name: &str) -> Self {
        Self {
            failed: 1,
            failures: vec![name.to_owned()],
            ..Self::default()
        }
    }

    pub fn one_skipped(name: &str, reason: &str) -> Self {
        Self {
            skips: BTreeMap::from([(name.to_owned(), reason.to_owned())]),
            ..Self::default()
        }
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.unsteady.extend(other.unsteady);
        for (name, reason) in other.skips {
            self.skip(name, reason);
        }
    }

    /// Whether each failure has a unique name, so that each can be run again.
    pub fn are_all_named(&self) -> bool {
        let names: BTreeSet<&String> = self.failures.iter().collect();
        self.failed > 0 && names.len() == self.failed
    }

    /// The failures passed when they ran again: they count as passed, and stay named.
    pub fn passed_alone(mut self) -> Self {
        self.passed += std::mem::take(&mut self.failed);
        self.unsteady.append(&mut self.failures);
        self
    }

    /// Adds a skip; a name that is taken gets a number, so that the count stays true.
    fn skip(&mut self, name: String, reason: String) {
        let mut unique = name.clone();
        let mut number = 2;
        while self.skips.contains_key(&unique) {
            unique = format!("{name} ({number})");
            number += 1;
        }
        self.skips.insert(unique, reason);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed) = (self.passed, self.failed);
        let skipped = self.skips.len();
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

pub fn count(text: &str) -> Counts {
    let mut total = Counts::default();
    // Skips of the test binary being read; libtest counts each as passed.
    let mut here = BTreeMap::new();
    let mut is_running = false;
    for line in text.lines() {
        if starts_binary(line) {
            if std::mem::take(&mut is_running) {
                total.add(Counts::one_failed(ENDED_EARLY));
            }
        } else if starts_tests(line) {
            is_running = true;
        } else if let Some((name, reason)) = skip(line) {
            here.insert(name.to_owned(), reason.to_owned());
        } else if let Some((name, reason)) = ignored(line) {
            total.skip(name.to_owned(), reason.to_owned());
        } else if let Some(name) = failed(line) {
            total.failures.push(name.to_owned());
        } else if let Some((passed, failed)) = result(line) {
            is_running = false;
            total.passed += passed.saturating_sub(here.len());
            total.failed += failed;
            for (name, reason) in std::mem::take(&mut here) {
                total.skip(name, reason);
            }
        }
    }
    if is_running {
        total.add(Counts::one_failed(ENDED_EARLY));
    }
    // Skips of a binary that died before its result line.
    for (name, reason) in here {
        total.skip(name, reason);
    }
    total
}

/// The failure of a test binary that began and gave no result. No test has this name.
const ENDED_EARLY: &str = "a test binary ended early";

fn starts_binary(line: &str) -> bool {
    line.starts_with("     Running ") || line.starts_with("   Doc-tests ")
}

fn starts_tests(line: &str) -> bool {
    line.starts_with("running ") && line.trim_end_matches('s').ends_with(" test")
}

/// The parts of an output that explain a failure: what failed tests printed, compiler errors,
/// panics outside tests; without them, the last lines.
pub fn explain(text: &str) -> String {
    let mut kept = Vec::new();
    let mut is_failure = false;
    for line in text.lines() {
        if line == "failures:" || line.starts_with("error") || line.contains("panicked at") {
            is_failure = true;
        } else if line == "successes:" || line.trim_start().starts_with("Running ") {
            is_failure = false;
        }
        if is_failure {
            kept.push(line);
        }
        if line.starts_with("test result:") {
            is_failure = false;
        }
    }
    if kept.is_empty() {
        kept = text.lines().collect();
    }
    const MOST: usize = 200;
    let start = kept.len().saturating_sub(MOST);
    kept[start..].join("\n")
}

fn skip(line: &str) -> Option<(&str, &str)> {
    line.trim_start().strip_prefix("SKIP ")?.split_once(": ")
}

/// `test NAME ... ignored` with or without `, REASON`. Ignored examples in documents are no tests.
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = outcome.strip_prefix("ignored")?;
    if name.contains(" (line ") {
        return None;
    }
    let reason = reason.trim_start_matches(", ");
    Some((name, if reason.is_empty() { "ignored" } else { reason }))
}

/// `test NAME ... FAILED`, with or without the time that the project's own runners add.
fn failed(line: &str) -> Option<&str> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    (outcome.split(' ').next() == Some("FAILED")).then_some(name)
}

/// `test result: ok. 3 passed; 1 failed; ...`: passed and failed.
fn result(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        let part = counts
            .split(';')
            .find(|part| part.trim_end().ends_with(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some((number(" passed")?, number(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
     Running unittests src/lib.rs (target/debug/deps/a-1)

running 4 tests
test one ... ok
test slow ... ignored, takes an hour
test two ... ok
test three ... FAILED

successes:

---- two stdout ----
SKIP two: linux.uml is not installed

failures:

---- three stdout ----
thread 'three' panicked at src/lib.rs:9:5:
boom

failures:
    three

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s

     Running tests/b.rs (target/debug/deps/b-1)

running 1 test
test four ... ok

successes:

---- four stdout ----
much ado

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_run_is_counted_and_a_skip_is_no_pass() {
        let counts = count(RUN);
        assert_eq!(counts.to_string(), "2 passed, 1 failed, 2 skipped");
        assert_eq!(counts.failures, ["three"]);
        assert_eq!(counts.skips["two"], "linux.uml is not installed");
        assert_eq!(counts.skips["slow"], "takes an hour");
    }

    #[test]
    fn what_passed_alone_counts_as_passed_and_stays_named() {
        let run =
            "test a ... ok\ntest b ... FAILED (1.5 s)\ntest result: FAILED. 1 passed; 1 failed\n";
        let counts = count(run);
        assert!(counts.are_all_named());
        let alone = counts.passed_alone();
        assert_eq!(alone.to_string(), "2 passed, 0 failed, 0 skipped");
        assert_eq!(alone.unsteady, ["b"]);
        // A second failure without a name, and no failure at all: nothing to run again.
        assert!(
            !count("test b ... FAILED\ntest result: FAILED. 0 passed; 2 failed\n").are_all_named()
        );
        assert!(!count("test result: ok. 3 passed; 0 failed\n").are_all_named());
    }

    #[test]
    fn an_explanation_has_the_failures_and_not_the_rest() {
        let text = explain(RUN);
        assert!(text.contains("boom"), "{text}");
        assert!(!text.contains("much ado"), "{text}");
        assert!(!text.contains("SKIP two"), "{text}");
        assert_eq!(
            explain("a\nerror[E0308]: mismatched\n --> x\n"),
            "error[E0308]: mismatched\n --> x"
        );
        assert_eq!(explain("nothing known\n"), "nothing known");
    }

    #[test]
    fn a_binary_that_died_keeps_its_skips_and_equal_names_stay_two() {
        assert_eq!(
            count("SKIP a: no root\n").to_string(),
            "0 passed, 0 failed, 1 skipped"
        );
        let mut total = count("SKIP a: no root\n");
        total.add(count("SKIP a: no root\n"));
        assert_eq!(total.to_string(), "0 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn a_binary_without_a_result_is_a_failure_beside_those_that_it_named() {
        let died = "     Running a\n\nrunning 2 tests\ntest one ... ok\n     Running b\n\n\
                    running 1 test\ntest two ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed\n";
        let counts = count(died);
        assert_eq!(counts.failures, ["a test binary ended early", "two"]);
        assert_eq!(counts.failed, 2);
        assert_eq!(count("running 1 test\n").failed, 1);
    }

    #[test]
    fn other_lines_count_for_nothing() {
        let text = "test src/lib.rs - f (line 3) ... ignored\ntest result: odd\nSKIP\nskip a: b\n";
        assert_eq!(count(text), Counts::default());
    }
}
