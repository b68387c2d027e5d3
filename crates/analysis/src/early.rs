//! Whether a trial can still pass, judged before its end.
//!
//! Owns the rules. The SLO rules are arithmetic: more requests have already failed or are late than
//! the SLO allows over the whole phase, or the start has taken longer than it allows. The thrash
//! rule is experience: an application that keeps re-reading its own code for longer than its start
//! takes with room becomes ready too late or never (METHODOLOGY, "A trial that ends early"). No
//! rule lets a trial pass that would not, and its record is judged like any other.

use std::time::Duration;

use crate::record::SecondEvidence;
use crate::slo::{Objective, Quantile, RunObjective, Slo};
use crate::text;
use crate::verdict::VerdictThresholds;

/// Share of the time that a start may take, after which thrash ends it. A search allows four times
/// the start with room: this is 1.6 times.
const SHARE_OF_DEADLINE: f64 = 0.4;
const LOOKS: usize = 3;
pub const LOOK: Duration = Duration::from_secs(1);

/// File pages read again in a second that leave a start no way on: 40 MiB of code and jars. A start
/// that thrashed but got ready read less, or not as long.
const REFAULTS: f64 = 10_000.0;

/// A histogram's three digits: a percentile so close to the bound may lie below it.
const PRECISION: f64 = 1.01;

/// Readiness is reported at most this long after it is reached.
const TOLD: Duration = Duration::from_millis(500);

/// Why a start under way will not be ready in time; `None` while it may be. `waited` counts as the start
/// time does, from when the application was executed. `refaults` are the file pages read again so far,
/// one look after the other, [`LOOK`] apart; none where that is not counted.
pub fn why_start_fails(
    slo: &Slo,
    deadline: Duration,
    waited: Duration,
    refaults: &[u64],
) -> Option<String> {
    let is_over = |objective: &&Objective| matches!(objective, Objective::Start { bound } if waited >= *bound + TOLD);
    if let Some(objective) = slo.objectives.iter().find(is_over) {
        let waited = text::short_duration(waited);
        return Some(format!(
            "it was not ready after {waited}: {objective} could not be kept any more"
        ));
    }
    why_thrashing(deadline, waited, refaults)
}

/// Why a run under way has used too much CPU time, however it ends; `None` while it may pass. `usual` is
/// the CPU time of the run that it is compared with. Wall time is not judged here: the deadline is the
/// bound of `time`, and other programs can make a run seem slower.
pub fn why_run_fails(slo: &Slo, used: Duration, usual: Option<Duration>) -> Option<String> {
    let is_over = |objective: &RunObjective| match *objective {
        RunObjective::Cpu { bound } => used >= bound,
        RunObjective::Slower { bound } => usual.is_some_and(|cpu| used >= cpu.mul_f64(1.0 + bound)),
        RunObjective::Time { .. } | RunObjective::Exit { .. } => false,
    };
    let objective = slo.run_objectives().find(is_over)?;
    Some(format!(
        "it had used {} of CPU time: {objective} could not be kept any more",
        text::short_duration(used)
    ))
}

fn why_thrashing(deadline: Duration, waited: Duration, refaults: &[u64]) -> Option<String> {
    let last = refaults.get(refaults.len().checked_sub(LOOKS + 1)?..)?;
    let least = REFAULTS * LOOK.as_secs_f64();
    let thrashes = |pair: &[u64]| pair[1].saturating_sub(pair[0]) as f64 >= least;
    let is_hopeless = waited >= deadline.mul_f64(SHARE_OF_DEADLINE);
    (is_hopeless && last.windows(2).all(thrashes)).then(|| {
        let grown = last.last()?.saturating_sub(*last.first()?);
        let rate = text::short_count((grown as f64 / LOOKS as f64) as u64);
        let waited = text::short_duration(waited);
        Some(format!(
            "{waited} after its start it read {rate} file pages a second again"
        ))
    })?
}

/// Why a measure phase under way cannot keep the SLO any more; `None` while it may. `most` is the
/// largest number of requests that the phase may have, `generators` the seconds of each generator so
/// far.
pub fn why_load_fails(slo: &Slo, most: u64, generators: &[&[SecondEvidence]]) -> Option<String> {
    if may_answer_again(generators) {
        return None;
    }
    let failed: u64 = generators.iter().map(|s| failed_requests(s)).sum();
    let too_late = |bound: Duration, allowed: u64| {
        let late: u64 = generators.iter().map(|s| late_requests(s, bound)).sum();
        let said = format!("{} requests failed or took longer", text::short_count(late));
        (late > allowed).then_some(said)
    };
    let broken = |objective: &Objective| match *objective {
        Objective::Errors { bound } => {
            let share = failed as f64 / most.max(1) as f64;
            (share >= bound).then(|| format!("{} requests failed", text::short_count(failed)))
        }
        Objective::Latency { quantile, bound } => {
            too_late(bound, most - quantile_rank(quantile, most))
        }
        Objective::MaxLatency { bound } => too_late(bound, 0),
        _ => None,
    };
    let first = slo.objectives.iter().find_map(|o| Some((o, broken(o)?)));
    first.map(|(objective, said)| {
        let most = text::short_count(most);
        format!("{said} of the {most} that were planned: {objective} could not be kept any more")
    })
}

/// Whether it has stopped answering, but not yet for so long that it hangs: a hang is to be told from
/// an SLO that was missed, so it is waited for.
fn may_answer_again(generators: &[&[SecondEvidence]]) -> bool {
    let is_silent =
        |s: &&SecondEvidence| s.offered.unwrap_or(0) > 0 && s.achieved.unwrap_or(0) == 0;
    let silent = |seconds: &&[SecondEvidence]| seconds.iter().rev().take_while(is_silent).count();
    let silent = generators.iter().map(silent).min().unwrap_or(0);
    silent > 0 && Duration::from_secs(silent as u64) < VerdictThresholds::default().hang_after
}

/// As [`Latency::quantile`](crate::latency::Latency::quantile) ranks.
fn quantile_rank(quantile: Quantile, scheduled: u64) -> u64 {
    let rank = (quantile.as_fraction() * scheduled as f64).ceil() as u64;
    rank.clamp(1, scheduled.max(1)).min(scheduled)
}

fn failed_requests(seconds: &[SecondEvidence]) -> u64 {
    seconds.iter().filter_map(|s| s.errors).sum()
}

/// Whether at least this many requests have failed, took longer than `bound`, or are still waiting
/// after it.
fn late_requests(seconds: &[SecondEvidence], bound: Duration) -> u64 {
    let Some(now) = seconds.iter().map(|s| s.at_ns).max() else {
        return 0;
    };
    let failed = failed_requests(seconds);
    let ended = failed + seconds.iter().filter_map(|s| s.achieved).sum::<u64>();
    let is_old = |s: &&SecondEvidence| Duration::from_nanos(now - s.at_ns) > bound;
    let old = seconds.iter().filter(is_old);
    let old: u64 = old.filter_map(|s| s.offered).sum();
    failed + old.saturating_sub(ended) + seconds.iter().map(|s| slow_answers(s, bound)).sum::<u64>()
}

/// Good answers of a second that took longer than the bound, as far as its percentiles show: its
/// failed requests lie above every percentile.
fn slow_answers(second: &SecondEvidence, bound: Duration) -> u64 {
    let (good, failed) = (second.achieved.unwrap_or(0), second.errors.unwrap_or(0));
    let is_over = |at: Option<Duration>| at.is_some_and(|at| at > bound.mul_f64(PRECISION));
    let share = match (is_over(second.p50), is_over(second.p99)) {
        (true, _) => 0.5,
        (false, true) => 0.01,
        (false, false) => return 0,
    };
    let above = (share * (good + failed) as f64) as u64;
    above.saturating_sub(failed).min(good)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn second(n: u64, offered: u64, achieved: u64, errors: u64) -> SecondEvidence {
        SecondEvidence {
            at_ns: n * 1_000_000_000,
            offered: Some(offered),
            achieved: Some(achieved),
            errors: Some(errors),
            ..SecondEvidence::default()
        }
    }

    fn slo(text: &str) -> Slo {
        text.parse().expect("an SLO")
    }

    #[test]
    fn a_load_goes_on_while_the_rest_may_make_up_for_it() {
        let of =
            |text: &str, seconds: &[SecondEvidence]| why_load_fails(&slo(text), 400, &[seconds]);
        let text = "p99<250ms,errors<1%";
        assert_eq!(of(text, &[]), None);
        assert_eq!(of(text, &[second(1, 100, 97, 3)]), None);
        let stands = [second(1, 100, 0, 0)];
        assert_eq!(of(text, &stands), None, "they may be a millisecond old");
        insta::assert_snapshot!(of(text, &[second(1, 100, 96, 4)]).unwrap_or_default(), @"4 requests failed of the 400 that were planned: errors<1% could not be kept any more");
        let slows = [second(1, 100, 50, 0), second(2, 100, 40, 0)];
        insta::assert_snapshot!(of(text, &slows).unwrap_or_default(), @"10 requests failed or took longer of the 400 that were planned: p99<250ms could not be kept any more");
        let slow = SecondEvidence {
            p50: Some(Duration::from_millis(400)),
            ..second(1, 100, 100, 0)
        };
        insta::assert_snapshot!(of(text, std::slice::from_ref(&slow)).unwrap_or_default(), @"50 requests failed or took longer of the 400 that were planned: p99<250ms could not be kept any more");
        assert_eq!(of("p50<250ms", std::slice::from_ref(&slow)), None);
        assert!(of("max<250ms", &[slow]).is_some());
    }

    #[test]
    fn what_stops_answering_is_waited_for_until_it_hangs() {
        let silent = |seconds: u64| {
            let begin = [second(1, 100, 90, 0)];
            let silence = (2..2 + seconds).map(|n| second(n, 100, 0, 20));
            begin.into_iter().chain(silence).collect::<Vec<_>>()
        };
        let is_over = |seconds: &[SecondEvidence], beside: &[SecondEvidence]| {
            why_load_fails(&slo("p99<250ms"), 1_000, &[seconds, beside]).is_some()
        };
        assert!(!is_over(&silent(4), &silent(4)), "it may answer again");
        assert!(is_over(&silent(5), &silent(5)), "it hangs");
        assert!(
            is_over(&silent(4), &[second(1, 100, 90, 0)]),
            "another answers"
        );
    }

    #[test]
    fn a_start_that_takes_longer_than_the_slo_allows_is_over() {
        let of = |text: &str, waited| {
            let waited = Duration::from_millis(waited);
            why_start_fails(&slo(text), Duration::from_secs(60), waited, &[])
        };
        let text = "p99<250ms,start<8s";
        assert_eq!(of(text, 7_900), None);
        assert_eq!(of(text, 8_100), None, "that it is ready may be on its way");
        insta::assert_snapshot!(of(text, 8_600).unwrap_or_default(), @"it was not ready after 8.60s: start<8s could not be kept any more");
        assert_eq!(of("p99<250ms", 50_000), None);
    }

    #[test]
    fn a_run_that_has_used_more_cpu_than_it_may_is_over() {
        let usual = Some(Duration::from_secs(100));
        let of = |text: &str, used| why_run_fails(&slo(text), Duration::from_secs(used), usual);
        assert_eq!(of("cpu<300s", 299), None);
        insta::assert_snapshot!(of("cpu<300s", 301).unwrap_or_default(), @"it had used 301s of CPU time: cpu<5m could not be kept any more");
        assert_eq!(of("slower<10%", 109), None);
        insta::assert_snapshot!(of("slower<10%", 111).unwrap_or_default(), @"it had used 111s of CPU time: slower<10% could not be kept any more");
        assert_eq!(of("time<60s", 1_000), None, "its deadline ends it");
        assert_eq!(why_run_fails(&slo("slower<10%"), Duration::MAX, None), None);
    }

    #[test]
    fn a_start_that_thrashes_for_long_is_over() {
        let of = |waited, looks: &[u64]| {
            let (deadline, waited) = (Duration::from_secs(32), Duration::from_secs(waited));
            why_start_fails(&slo("p99<250ms"), deadline, waited, looks)
        };
        let thrash = [0, 100_000, 200_000, 300_000];
        assert_eq!(of(12, &thrash), None, "too soon");
        assert_eq!(of(20, &thrash[..3]), None);
        assert_eq!(of(20, &[0, 100_000, 100_500, 300_000]), None, "it got on");
        insta::assert_snapshot!(of(13, &thrash).unwrap_or_default(), @"13s after its start it read 100 k file pages a second again");
    }

    proptest! {
        /// Whatever comes after it is given up, the whole phase breaks the SLO.
        #[test]
        fn nothing_is_given_up_that_could_pass(
            latencies in prop::collection::vec(prop::option::weighted(0.97, 1_u64..3_000), 1..400),
            rate in 20_u64..120,
            bound in 100_u64..2_000,
        ) {
            let slo = slo(&format!("p95<{bound}ms,errors<3%"));
            let requests = latencies.len() as u64;
            // Request i is due at i / rate and ends its latency later; one without fails after 2 s.
            let due = |i: usize| i as u64 * 1_000 / rate;
            let end = |i: usize| due(i) + latencies[i].unwrap_or(2_000);
            let seconds = |until: u64| -> Vec<SecondEvidence> {
                (1..=until).map(|n| {
                    let within = |ms: u64| (n - 1) * 1_000 <= ms && ms < n * 1_000;
                    let all = 0..latencies.len();
                    let ended = all.clone().filter(|i| within(end(*i)));
                    let errors = ended.clone().filter(|i| latencies[*i].is_none()).count() as u64;
                    let mut good: Vec<u64> = ended.filter_map(|i| latencies[i]).collect();
                    good.sort_unstable();
                    let total = good.len() as u64 + errors;
                    let at = |share: f64| {
                        let rank = ((share * total as f64).ceil() as usize).max(1);
                        good.get(rank - 1).map(|ms| Duration::from_millis(*ms))
                    };
                    SecondEvidence {
                        p50: at(0.5),
                        p99: at(0.99),
                        ..second(n, all.filter(|i| within(due(*i))).count() as u64, good.len() as u64, errors)
                    }
                }).collect()
            };
            let late = latencies.iter().filter(|l| l.is_none_or(|ms| ms >= bound)).count() as u64;
            let failed = latencies.iter().filter(|l| l.is_none()).count() as f64;
            let quantile = Quantile::from_fraction(0.95).expect("a quantile");
            let passes = late <= requests - quantile_rank(quantile, requests)
                && failed / (requests as f64) < 0.03;
            for until in 1..10 {
                let given_up = why_load_fails(&slo, requests, &[&seconds(until)]);
                prop_assert!(given_up.is_none() || !passes, "{given_up:?}");
            }
        }
    }
}
