//! Stories of a shipped size that is started again.

use std::time::Duration;

use loadline_sizing::Bytes;

use super::{MISS, NOISE, PASS, ids, play, record_of_ask};
use crate::baseline::{Baseline, MeasurementConditions, SCHEMA, StartFigures};
use crate::fixture;
use crate::record::{MachineDescription, TrialVerdict};
use crate::search::TrialAsk;
use crate::search::verify::{FIRST, VerifySearch};

fn example_conditions(kernel: &str) -> MeasurementConditions {
    let mut ground = MeasurementConditions::new(
        &MachineDescription::default(),
        &fixture::configuration(256),
        "GET /".into(),
    );
    ground.kernel = kernel.to_owned();
    ground
}

/// 20 starts of a baseline that needed 2 ms a request and 200 MiB, a little more each time.
fn baseline(requests: u64) -> Baseline {
    let start = |n: u64| StartFigures {
        kept: true,
        requests,
        cpu_per_request: Some(Duration::from_micros(2000 + 2 * n)),
        memory: Some(Bytes::from_mib(200 + n % 5)),
        cpus_used: Some(0.6),
        rate_per_second: Some(300.0),
    };
    Baseline {
        schema: SCHEMA,
        loadline: String::new(),
        result: String::new(),
        ground: example_conditions("6.1"),
        starts: (0..20).map(start).collect(),
    }
}

fn example_verify(baseline: Option<Baseline>) -> VerifySearch {
    VerifySearch {
        configuration: fixture::configuration(256),
        start_deadline: Duration::from_secs(60),
        ground: example_conditions("6.1"),
        baseline,
        at_least: 0,
    }
}

/// `world` gives verdict, CPU time of ten seconds of load, and MiB of the n-th start.
fn story(search: &VerifySearch, world: impl Fn(u32) -> (TrialVerdict, f64, u64)) -> String {
    let (story, verified) = play(search, |ask: &TrialAsk| {
        let (verdict, cpu, needs) = world(ask.repeat);
        let mut record = record_of_ask(ask, verdict, Bytes::from_mib(needs));
        record.evidence.cgroup.measure_cpu = Some(Duration::from_secs_f64(cpu));
        record
    });
    let (holds, has_risen) = (verified.holds(), verified.has_risen());
    let unlike = (&verified.unlike.cpu, &verified.unlike.memory);
    let of = |shift: &Option<crate::shift::FigureShift>| shift.map(|s| s.standing);
    let shifts = (of(&verified.cpu), of(&verified.memory));
    let (starts, ids) = (verified.starts.len(), ids(&verified.trials));
    format!(
        "{story}= {:?}, holds {holds}, rose {has_risen}: {shifts:?} {unlike:?}, {starts} of {ids}\n",
        verified.slo
    )
}

#[test]
fn without_a_baseline_four_starts_hold() {
    insta::assert_snapshot!(story(&example_verify(None), |_| (PASS, 6.0, 200)));
}

#[test]
fn the_starts_of_a_baseline_are_all_wanted() {
    let search = VerifySearch {
        at_least: FIRST,
        ..example_verify(None)
    };
    insta::assert_snapshot!(story(&search, |n| (PASS, 6.0 + f64::from(n) / 100.0, 200)));
}

#[test]
fn what_is_as_it_was_holds() {
    let search = example_verify(Some(baseline(3000)));
    insta::assert_snapshot!(story(&search, |n| (
        PASS,
        6.0 + f64::from(n % 7) / 50.0,
        200
    )));
}

#[test]
fn memory_that_rose_is_found_and_so_is_cpu() {
    let search = example_verify(Some(baseline(3000)));
    insta::assert_snapshot!(story(&search, |n| (PASS, 6.05, 260 + u64::from(n % 3))));
    insta::assert_snapshot!(story(&search, |n| (
        PASS,
        8.0 + f64::from(n % 3) / 50.0,
        201
    )));
}

#[test]
fn what_rose_is_said_when_all_the_starts_of_the_next_baseline_ran() {
    let search = VerifySearch {
        at_least: 6,
        ..example_verify(Some(baseline(3000)))
    };
    insta::assert_snapshot!(story(&search, |n| (PASS, 6.05, 260 + u64::from(n % 3))));
}

#[test]
fn misses_break_it_and_one_of_twenty_does_not() {
    let search = example_verify(None);
    insta::assert_snapshot!(story(&search, |n| (
        if n < 3 { MISS } else { PASS },
        6.0,
        200
    )));
    insta::assert_snapshot!(story(&search, |n| (
        if n == 1 { MISS } else { PASS },
        6.0,
        200
    )));
    insta::assert_snapshot!(story(&search, |n| (
        if n % 5 == 1 { MISS } else { PASS },
        6.0,
        200
    )));
}

#[test]
fn what_cannot_be_measured_is_asked_again_and_then_given_up() {
    let search = example_verify(None);
    insta::assert_snapshot!(story(&search, |_| (NOISE, 6.0, 200)));
    insta::assert_snapshot!(story(&search, |n| (
        if n % 2 == 0 { NOISE } else { PASS },
        6.0,
        200
    )));
}

#[test]
fn another_machine_and_too_few_requests_are_not_compared() {
    let mut search = example_verify(Some(baseline(3000)));
    search.ground = example_conditions("6.2");
    insta::assert_snapshot!(story(&search, |_| (PASS, 8.0, 260)));
    let search = example_verify(Some(baseline(30)));
    insta::assert_snapshot!(story(&search, |_| (PASS, 8.0, 200)));
}
