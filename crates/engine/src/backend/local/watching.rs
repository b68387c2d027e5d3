//! How a trial's cgroup is watched, and where it stood throttled.
//!
//! Owns the choice of pace and estimator, and the way from samples to spans of a record. Sampling
//! is `loadline_cgroup`'s, the estimators are `loadline_analysis::estimate`'s.

use std::time::Duration;

use loadline_analysis::estimate::{
    self, Boundaries, Flatline, phase_locked_spans, throttled_spans,
};
use loadline_analysis::pauses::{KEPT, PauseEvidence, SamplerEvidence};
use loadline_analysis::record::Configuration;
use loadline_analysis::span::Spans;
use loadline_cgroup::{CpuSample, Pace, Sample, SamplerOptions, SamplerReport};

use crate::backend::Sampling;

/// Distance of samples where nothing can be throttled, and of memory and PSI always.
const INTERVAL: Duration = Duration::from_millis(100);

/// Flatlines in samples further apart than this say little (10 ms: mean error of 8 to 9 ms a
/// pause, 100 ms: 19 to 22).
const FLATLINE_UP_TO: Duration = Duration::from_millis(20);

/// Distance for periods so long that one sample each would be too rare for memory and seconds.
const LONG_PERIOD: Duration = Duration::from_millis(10);

/// When the counters are read.
pub(super) fn options(sampling: Sampling, configuration: &Configuration) -> SamplerOptions {
    let period = configuration.cpu_period;
    let pace = match sampling {
        Sampling::Every(distance) => Pace::Every(distance),
        Sampling::Period if configuration.cpu.is_none() => Pace::Every(INTERVAL),
        Sampling::Period if period > INTERVAL => Pace::Every(LONG_PERIOD),
        Sampling::Period => Pace::PhaseLocked(period),
    };
    SamplerOptions {
        pace,
        ..SamplerOptions::every(INTERVAL)
    }
}

/// The counters that the estimators read; `None` where the kernel has no quota to account for.
pub(super) fn counters(sample: &Sample) -> Option<estimate::Sample> {
    let cpu: &CpuSample = &sample.cpu;
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    Some(estimate::Sample {
        at: sample.at_ns,
        usage: nanos(cpu.usage?),
        per_cpu: cpu.usage_percpu.iter().copied().map(nanos).collect(),
        throttled: nanos(cpu.throttled_time?),
    })
}

/// What watching gave and cost. `cpus` is how many the application may run on.
pub(super) fn evidence(
    counters: &[estimate::Sample],
    report: &SamplerReport,
    options: SamplerOptions,
    cpus: usize,
) -> PauseEvidence {
    let (estimator, interval, throttled) = place(counters, report, options.pace, cpus);
    let lock = report.phase_lock;
    PauseEvidence {
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
        throttled_ns: throttled
            .as_slice()
            .iter()
            .take(KEPT)
            .map(|s| (s.start, s.end))
            .collect(),
        ..PauseEvidence::default()
    }
}

fn place(
    counters: &[estimate::Sample],
    report: &SamplerReport,
    pace: Pace,
    cpus: usize,
) -> (&'static str, Duration, Spans) {
    let has_cpus = counters.first().is_some_and(|c| !c.per_cpu.is_empty());
    let flatline = if has_cpus {
        "flatline-per-cpu"
    } else {
        "flatline"
    };
    match (pace, report.phase_lock) {
        (_, _) if counters.is_empty() => ("none", INTERVAL, Spans::default()),
        (Pace::Every(distance), _) if distance > FLATLINE_UP_TO => {
            ("none", distance, Spans::default())
        }
        (Pace::Every(distance), _) => {
            let spans = throttled_spans(counters, Flatline::default());
            (flatline, distance, spans)
        }
        (Pace::PhaseLocked(period), Some(lock)) => {
            let boundaries = Boundaries {
                at: lock.boundary_ns,
                period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            };
            let spans = phase_locked_spans(counters, boundaries, cpus);
            ("phase-locked", period, spans)
        }
        // Never found: the group was not busy for a whole period, so it was not throttled.
        (Pace::PhaseLocked(period), None) => ("none", period, Spans::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(cpu: Option<&str>, period: u64) -> Configuration {
        Configuration {
            label: String::new(),
            cpu: cpu.map(|c| c.parse().expect("CPUs")),
            cpu_period: Duration::from_millis(period),
            cpuset: None,
            cpu_burst: None,
            neighbour_threads: None,
            rate: None,
            cache: None,
            cpu_shares: None,
            memory: None,
            pids: None,
            jdk: None,
            jvm_options: Vec::new(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn the_pace_follows_the_period_unless_one_is_asked_for() {
        let pace = |sampling, cpu, period| options(sampling, &configuration(cpu, period)).pace;
        let ms = Duration::from_millis;
        let period = Sampling::Period;
        assert_eq!(pace(period, None, 100), Pace::Every(ms(100)));
        assert_eq!(pace(period, Some("1"), 100), Pace::PhaseLocked(ms(100)));
        assert_eq!(pace(period, Some("1"), 20), Pace::PhaseLocked(ms(20)));
        assert_eq!(pace(period, Some("1"), 500), Pace::Every(ms(10)));
        let every = Sampling::Every(ms(1));
        assert_eq!(pace(every, Some("1"), 100), Pace::Every(ms(1)));
    }

    #[test]
    fn samples_far_apart_place_nothing() {
        let counters = [0, 1_000_000_000].map(|at| estimate::Sample {
            at,
            throttled: at,
            ..estimate::Sample::default()
        });
        let report = SamplerReport::default();
        let slow = SamplerOptions::every(INTERVAL);
        let none = evidence(&counters, &report, slow, 2);
        assert_eq!(
            (none.sampler.estimator.as_str(), none.throttled_ns.len()),
            ("none", 0)
        );
        let fast = SamplerOptions::every(Duration::from_millis(1));
        let some = evidence(&counters, &report, fast, 2);
        assert_eq!(some.sampler.estimator, "flatline");
        assert_eq!(some.throttled_ns, [(0, 1_000_000_000)]);
    }
}
