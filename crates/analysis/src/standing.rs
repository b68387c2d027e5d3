//! How long a trial stood throttled in each period, measured and by the model of CFS bandwidth.
//!
//! Owns the comparison. The model is [`crate::throttle`]'s; it knows the limit and how many threads
//! always have work, nothing else: where the two are far apart the application idles, or the
//! kernel does something the model leaves out.

use std::time::Duration;

use crate::record::{Configuration, TrialRecord};
use crate::span::TimeSpan;
use crate::throttle::{PeriodStart, QuotaLimit, ThreadWork, simulate};

/// Periods in the model: the initially empty one does not count.
const PERIODS: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanStanding {
    pub limit: QuotaLimit,
    pub demand: f64,
    pub threads: u32,
    pub model: Duration,
    pub measured: Duration,
}

impl MeanStanding {
    /// Of a trial over a window; `None` without a CPU limit, or where throttling was not placed.
    pub fn for_window(record: &TrialRecord, window: TimeSpan) -> Option<Self> {
        let limit = configured_limit(&record.configuration)?;
        let demand = demand(record, window)?;
        let threads = demand.ceil().max(1.0) as u32;
        let busy = ThreadWork {
            threads,
            // Long enough whatever the quota: the model ends when the work does.
            cpu: (limit.quota * PERIODS).min(limit.period * PERIODS * threads),
        };
        let course = simulate(limit, &[busy], PeriodStart::default())?;
        let stood: Duration = course.stops.iter().map(|(from, to)| *to - *from).sum();
        let stood = stood + course.wait_after;
        let all = record.evidence.pauses.as_ref()?.sources().throttled;
        let periods = window.length_ns() as f64 / limit.period.as_nanos() as f64;
        let measured = Duration::from_nanos(all.within(window).len_ns());
        Some(Self {
            limit,
            demand,
            threads,
            model: stood / PERIODS,
            measured: measured.div_f64(periods.max(f64::MIN_POSITIVE)),
        })
    }
}

pub fn configured_limit(configuration: &Configuration) -> Option<QuotaLimit> {
    let cpu = configuration.cpu?;
    Some(QuotaLimit {
        period: configuration.cpu_period,
        quota: configuration.cpu_period.mul_f64(cpu.as_f64()),
        burst: configuration.cpu_burst.unwrap_or_default(),
    })
}

/// CPUs in use while the group was not standing: what it would take without a limit. `None` where
/// nothing says when it stood.
pub fn demand(record: &TrialRecord, window: TimeSpan) -> Option<f64> {
    let cpu = record.evidence.cgroup.measure_cpu?.as_secs_f64();
    let pauses = record.evidence.pauses.as_ref()?;
    let stood = pauses.sources().throttled.within(window).len_ns();
    let ran = window.length_ns().checked_sub(stood).filter(|ns| *ns > 0)? as f64 / 1e9;
    Some(cpu / ran)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::pauses::PauseEvidence;
    use crate::record::{TrialPurpose, TrialVerdict};

    const MS: u64 = 1_000_000;

    /// Ten seconds at half a core: two threads run 25 ms of each 100.
    #[test]
    fn two_busy_threads_stand_as_the_model_says() {
        let mut record = fixture::trial_record("t", TrialPurpose::Matrix, 64, TrialVerdict::Pass);
        record.configuration.cpu = Some("500m".parse().unwrap());
        record.configuration.cpu_period = Duration::from_millis(100);
        record.evidence.cgroup.measure_cpu = Some(Duration::from_secs(5));
        let window = TimeSpan::new(0, 10_000 * MS);
        assert_eq!(MeanStanding::for_window(&record, window), None);
        record.evidence.pauses = Some(PauseEvidence {
            throttled_ns: (0..100)
                .map(|n| ((100 * n + 25) * MS, 100 * (n + 1) * MS))
                .collect(),
            ..PauseEvidence::default()
        });
        let got = MeanStanding::for_window(&record, window).unwrap();
        assert_eq!((got.threads, got.demand), (2, 2.0));
        assert_eq!(got.model, Duration::from_millis(75));
        assert_eq!(got.measured, Duration::from_millis(75));
        // More quota than the threads can use: no stops.
        record.configuration.cpu = Some("2".parse().unwrap());
        let got = MeanStanding::for_window(&record, window).unwrap();
        assert_eq!(got.model, Duration::ZERO);
        record.configuration.cpu_burst = Some(Duration::from_millis(100));
        let with_burst = configured_limit(&record.configuration).map(|limit| limit.burst);
        assert_eq!(with_burst, Some(Duration::from_millis(100)));
        record.configuration.cpu = None;
        assert_eq!(MeanStanding::for_window(&record, window), None);
    }
}
