//! How a trial's cgroup is watched, and where it stood throttled.
//!
//! Owns the choice of pace and estimator, and the way from samples to spans of a record. Sampling
//! is `loadline_cgroup`'s, the estimators are `loadline_analysis::estimate`'s.

use std::time::Duration;

use loadline_analysis::estimate::{
    self, FlatlineRule, PeriodBoundaries, phase_locked_spans, ran_spans, throttled_spans,
};
use loadline_analysis::pauses::{KEPT, PauseEvidence, SamplerEvidence, no_room};
use loadline_analysis::record::Configuration;
use loadline_analysis::span::{TimeSpan, TimeSpans};
use loadline_cgroup::{Pace, SamplerOptions, SamplerReport};

use loadline_protocol::SamplingRate;

/// Distance of samples where nothing can be throttled, and of memory and PSI always.
const INTERVAL: Duration = Duration::from_millis(100);

/// Flatlines in samples further apart than this say little (10 ms: mean error of 8 to 9 ms a
/// pause, 100 ms: 19 to 22).
const FLATLINE_UP_TO: Duration = Duration::from_millis(20);

/// Distance for periods so long that one sample each would be too rare for memory and seconds.
const FINE: Duration = Duration::from_millis(10);

const FLATLINE_PER_CPU: &str = "flatline-per-cpu";

pub(crate) fn sampling_pace(
    sampling: SamplingRate,
    configuration: &Configuration,
    is_never_throttled: bool,
) -> Pace {
    let period = configuration.cpu_period;
    let is_free = is_never_throttled || configuration.cpu.is_none();
    match sampling {
        SamplingRate::Every(distance) => Pace::Every(distance),
        SamplingRate::Period if is_free => Pace::Every(INTERVAL),
        SamplingRate::Period if period > INTERVAL => Pace::Every(FINE),
        SamplingRate::Period => Pace::PhaseLocked(period),
    }
}

pub(crate) fn sampler_options(pace: Pace) -> SamplerOptions {
    SamplerOptions {
        pace,
        ..SamplerOptions::every(INTERVAL)
    }
}

/// Evidence and cost of watching, with warnings. `counters` reads the samples from the first on,
/// each time it is called; `cpus` is the number of CPUs the application may run on, `measure` the
/// measure phase on CLOCK_MONOTONIC.
pub(crate) fn pause_evidence<C: Iterator<Item = estimate::CounterSample>>(
    counters: impl Fn() -> C,
    report: &SamplerReport,
    pace: Pace,
    cpus: usize,
    measure: Option<(u64, u64)>,
) -> (PauseEvidence, Vec<String>) {
    let measure = measure.map(|(from, to)| TimeSpan::new(from, to));
    let (estimator, interval, throttled) = place_throttling(&counters, report, pace, cpus);
    let lock = report.phase_lock;
    let partly = match estimator {
        FLATLINE_PER_CPU => ran_spans(counters(), FlatlineRule::default(), &throttled),
        _ => TimeSpans::default(),
    };
    let (throttled_ns, lost) = kept_spans(&throttled, measure);
    let (partly_throttled_ns, partly_lost) = kept_spans(&partly, measure);
    let partly_lost = ("partly throttled spans", partly_lost);
    let lists = [("throttled spans", lost), partly_lost];
    let unplaced = unplaced_warning(counters(), report, pace, measure);
    let warnings = no_room(&lists).into_iter().chain(unplaced).collect();
    let evidence = PauseEvidence {
        sampler: SamplerEvidence {
            estimator: estimator.to_owned(),
            interval,
            samples: report.samples,
            wall: report.wall,
            cpu: report.cpu,
            is_realtime: report.is_realtime,
            gaps: report.gap_count,
            longest_gap: report.longest_gap,
            gaps_ns: report.gaps.iter().map(|g| (g.from_ns, g.to_ns)).collect(),
            boundary_ns: lock.map(|lock| lock.boundary_ns),
            boundary_uncertainty: lock.map(|lock| lock.uncertainty),
        },
        throttled_ns,
        partly_throttled_ns,
        ..PauseEvidence::default()
    };
    (evidence, warnings)
}

fn kept_spans(spans: &TimeSpans, measure: Option<TimeSpan>) -> (Vec<(u64, u64)>, u64) {
    let is_inside =
        |s: &TimeSpan| measure.is_none_or(|measure| measure.start < s.end && s.start < measure.end);
    let (mut all, rest): (Vec<TimeSpan>, Vec<TimeSpan>) =
        spans.as_slice().iter().copied().partition(is_inside);
    let lost = all.len().saturating_sub(KEPT) as u64;
    all.extend(rest);
    all.truncate(KEPT);
    all.sort_unstable_by_key(|s| s.start);
    (all.into_iter().map(|s| (s.start, s.end)).collect(), lost)
}

/// Why it is not known when it was throttled, although it was: the samples found no boundary of the
/// period, because the group did not use whole periods up or because they came late.
fn unplaced_warning(
    counters: impl Iterator<Item = estimate::CounterSample>,
    report: &SamplerReport,
    pace: Pace,
    measure: Option<TimeSpan>,
) -> Option<String> {
    if !matches!(pace, Pace::PhaseLocked(_)) || report.phase_lock.is_some() {
        return None;
    }
    let (from, to) = measure.map_or((0, u64::MAX), |m| (m.start, m.end));
    // The last counters before each end; the first of all if there is none before.
    let (mut begin, mut end) = (None, None);
    for counter in counters {
        if counter.at <= from || begin.is_none() {
            begin = Some(counter.throttled);
        }
        if counter.at <= to || end.is_none() {
            end = Some(counter.throttled);
        }
    }
    let throttled = end?.saturating_sub(begin?);
    (throttled > 0).then(|| {
        format!(
            "it was throttled for {:.1} ms, summed over its CPUs, but it is not known when: the samples did not find the boundary of the CFS period, so no pause counts as throttled; samples = \"1ms\" finds such spans without it",
            throttled as f64 / 1e6
        )
    })
}

fn place_throttling<C: Iterator<Item = estimate::CounterSample>>(
    counters: impl Fn() -> C,
    report: &SamplerReport,
    pace: Pace,
    cpus: usize,
) -> (&'static str, Duration, TimeSpans) {
    let first = counters().next();
    let has_cpus = first.as_ref().is_some_and(|c| !c.per_cpu.is_empty());
    let flatline = if has_cpus {
        FLATLINE_PER_CPU
    } else {
        "flatline"
    };
    match (pace, report.phase_lock) {
        (_, _) if first.is_none() => ("none", INTERVAL, TimeSpans::default()),
        (Pace::Every(distance), _) if distance > FLATLINE_UP_TO => {
            ("none", distance, TimeSpans::default())
        }
        (Pace::Every(distance), _) => {
            let spans = throttled_spans(counters(), FlatlineRule::default());
            (flatline, distance, spans)
        }
        (Pace::PhaseLocked(period), Some(lock)) => {
            let boundaries = PeriodBoundaries {
                at: lock.boundary_ns,
                period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            };
            let spans = phase_locked_spans(counters(), boundaries, cpus);
            ("phase-locked", period, spans)
        }
        // Never found: the group was not busy for a whole period, or the samples came late.
        (Pace::PhaseLocked(period), None) => ("none", period, TimeSpans::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(cpu: Option<&str>, period: u64) -> Configuration {
        Configuration {
            cpu: cpu.map(|c| c.parse().expect("CPUs")),
            cpu_period: Duration::from_millis(period),
            ..Configuration::default()
        }
    }

    #[test]
    fn the_pace_follows_the_period_unless_one_is_asked_for() {
        let pace =
            |sampling, cpu, period| sampling_pace(sampling, &configuration(cpu, period), false);
        let free = |sampling, cpu| sampling_pace(sampling, &configuration(cpu, 100), true);
        let ms = Duration::from_millis;
        let period = SamplingRate::Period;
        assert_eq!(pace(period, None, 100), Pace::Every(ms(100)));
        assert_eq!(pace(period, Some("1"), 100), Pace::PhaseLocked(ms(100)));
        assert_eq!(pace(period, Some("1"), 20), Pace::PhaseLocked(ms(20)));
        assert_eq!(pace(period, Some("1"), 500), Pace::Every(ms(10)));
        assert_eq!(free(period, Some("1")), Pace::Every(ms(100)));
        let every = SamplingRate::Every(ms(1));
        assert_eq!(free(every, Some("1")), Pace::Every(ms(1)));
        assert_eq!(pace(every, Some("1"), 100), Pace::Every(ms(1)));
    }

    #[test]
    fn samples_far_apart_place_nothing() {
        let counters = [0, 1_000_000_000].map(|at| estimate::CounterSample {
            at,
            throttled: at,
            ..estimate::CounterSample::default()
        });
        let report = SamplerReport::default();
        let slow = Pace::Every(INTERVAL);
        let read = || counters.iter().cloned();
        let none = pause_evidence(read, &report, slow, 2, None).0;
        assert_eq!(
            (none.sampler.estimator.as_str(), none.throttled_ns.len()),
            ("none", 0)
        );
        let fast = Pace::Every(Duration::from_millis(1));
        let some = pause_evidence(read, &report, fast, 2, None).0;
        assert_eq!(some.sampler.estimator, "flatline");
        assert_eq!(some.throttled_ns, [(0, 1_000_000_000)]);
    }

    #[test]
    fn throttling_without_a_boundary_is_said_and_not_called_nothing() {
        let second = 1_000_000_000;
        let counters: Vec<estimate::CounterSample> = (0..10)
            .map(|n: u64| estimate::CounterSample {
                at: n * second,
                // It stood in its start and at second 6.
                throttled: match n {
                    0 => 0,
                    1..6 => 900,
                    _ => 40_000_900,
                },
                ..estimate::CounterSample::default()
            })
            .collect();
        let told = |pace, measure: Option<(u64, u64)>| {
            let report = SamplerReport::default();
            let measure = measure.map(|(from, to)| (from * second, to * second));
            let (seen, warnings) =
                pause_evidence(|| counters.iter().cloned(), &report, pace, 2, measure);
            assert_eq!(seen.throttled_ns, []);
            warnings.join("\n")
        };
        let locked = Pace::PhaseLocked(Duration::from_millis(100));
        let all = told(locked, None);
        assert!(all.starts_with("it was throttled for 40.0 ms"), "{all}");
        assert!(all.contains("it is not known when"), "{all}");
        assert_eq!(told(locked, Some((5, 9))), all);
        assert_eq!(told(locked, Some((2, 5))), "", "not in the measure phase");
        assert_eq!(told(Pace::Every(INTERVAL), None), "");
    }

    #[test]
    fn of_too_many_spans_those_of_the_measure_phase_are_kept() {
        let span = |n: u64| TimeSpan::new(10 * n, 10 * n + 5);
        let all: TimeSpans = (0..KEPT as u64 + 500).map(span).collect();
        let from = |n: u64| Some(TimeSpan::new(10 * n, u64::MAX));
        let (spans, lost) = kept_spans(&all, from(600));
        assert_eq!((spans.len(), lost), (KEPT, 0));
        assert_eq!((spans[99], spans[100]), ((990, 995), (6000, 6005)));
        let (spans, lost) = kept_spans(&all, from(100));
        assert_eq!((spans[0], lost), ((1000, 1005), 400));
        let (spans, lost) = kept_spans(&all, None);
        assert_eq!((spans[0], lost), ((0, 5), 500));
    }
}
