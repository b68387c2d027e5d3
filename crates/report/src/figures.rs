//! The figures of one trial that tables and charts show.
//!
//! Owns no formula: reads them off the record. Everything a section shows about a trial comes from
//! here, so that two sections cannot disagree.

use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::Histogram;
use loadline_analysis::record::{Invalid, LoadEvidence, Phase, TrialRecord, Verdict};
use loadline_analysis::slo::Quantile;
use loadline_sizing::Bytes;

use crate::table::Tone;

/// Quantiles of the latency table and of the percentile chart's table.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// The judged load phase, when the trial came that far.
pub fn measured(trial: &TrialRecord) -> Option<&LoadEvidence> {
    trial
        .evidence
        .load
        .iter()
        .rev()
        .find(|l| l.phase == Phase::Measure)
}

/// The latencies of the judged phase. A request that failed has none: quantiles that lie in the
/// failed requests are missing.
pub struct Latencies {
    histogram: Histogram<u64>,
    scheduled: u64,
}

impl Latencies {
    /// Reads them; `None` when nothing was measured or the record is damaged.
    pub fn of(trial: &TrialRecord) -> Option<Self> {
        let load = measured(trial)?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(&load.latency)
            .ok()?;
        let histogram = hdrhistogram::serialization::Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .ok()?;
        Some(Self {
            histogram,
            scheduled: load.scheduled,
        })
    }

    /// The latency that this share of all scheduled requests stayed within.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let wanted = (quantile * self.scheduled as f64).ceil().max(1.0);
        let ok = self.histogram.len() as f64;
        if ok == 0.0 || wanted > ok {
            return None;
        }
        Some(Duration::from_nanos(
            self.histogram.value_at_quantile(wanted / ok),
        ))
    }

    /// Requests that were scheduled.
    pub fn scheduled(&self) -> u64 {
        self.scheduled
    }
}

/// A verdict in a word or two, as in tables.
pub fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Pass => "PASS".to_owned(),
        Verdict::SloMiss => "SLO MISS".to_owned(),
        Verdict::AppKo(cause) => format!("KO {}", cause.name().replace('_', " ")),
        Verdict::Invalid(cause) => format!("INVALID {}", cause.name().replace('_', " ")),
        Verdict::Interrupted => "INTERRUPTED".to_owned(),
    }
}

/// What a verdict means for a reader.
pub fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Pass => Tone::Good,
        Verdict::SloMiss | Verdict::AppKo(_) => Tone::Bad,
        Verdict::Invalid(_) | Verdict::Interrupted => Tone::Muted,
    }
}

/// Why an INVALID trial says nothing, in words.
pub fn invalid_reason(cause: Invalid) -> &'static str {
    match cause {
        Invalid::Noise => "something else used the machine",
        Invalid::GeneratorSaturated => "the load generator could not keep its schedule",
        Invalid::PortExhausted => "the load generator ran out of ports or descriptors",
        Invalid::ClockJump => "a clock jumped or the machine was suspended",
        Invalid::OuterThrottle => "a limit around loadline throttled it",
        Invalid::DiskFull => "the disk was full",
        Invalid::RuntimeLost => "the container runtime went away",
        Invalid::Evicted => "the orchestrator took the pod away",
        Invalid::ToolError => "loadline itself failed",
    }
}

/// The quantile people look at first: the highest latency quantile of the SLO, else p99.
pub fn headline_quantile(objectives: &[loadline_analysis::slo::Objective]) -> Quantile {
    use loadline_analysis::slo::Objective;
    let latency = objectives.iter().filter_map(|o| match o {
        Objective::Latency { quantile, .. } => Some(*quantile),
        _ => None,
    });
    latency
        .max_by(|a, b| a.as_fraction().total_cmp(&b.as_fraction()))
        .or_else(|| Quantile::from_fraction(0.99))
        .expect("0.99 is a fraction")
}

/// The figures of one trial; `None` where the record has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// Latency at the headline quantile.
    pub headline: Option<Duration>,
    /// Good responses a second.
    pub achieved: Option<f64>,
    /// Share of scheduled requests that did not succeed.
    pub errors: Option<f64>,
    /// Exec to first good response.
    pub start: Option<Duration>,
    /// CPUs used while measured.
    pub cpus: Option<f64>,
    /// Share of CFS periods that were throttled while measured.
    pub throttled_periods: Option<f64>,
    /// Longest stop-the-world pause while measured.
    pub gc_longest: Option<Duration>,
    /// Share of the measured time in stop-the-world pauses.
    pub gc_share: Option<f64>,
    /// Highest memory usage, page cache included.
    pub peak: Option<Bytes>,
    /// Highest working set.
    pub working_set: Option<Bytes>,
    /// Highest anonymous memory.
    pub anon: Option<Bytes>,
    /// Largest heap after a collection.
    pub heap_after: Option<Bytes>,
}

impl Figures {
    /// Reads them off a record.
    pub fn of(trial: &TrialRecord, headline: Quantile) -> Self {
        let load = measured(trial);
        let cgroup = &trial.evidence.cgroup;
        let gc = trial.evidence.gc.as_ref();
        let seconds = load.map(|l| l.duration.as_secs_f64()).filter(|s| *s > 0.0);
        let latencies = Latencies::of(trial);
        Self {
            headline: latencies.and_then(|l| l.quantile(headline.as_fraction())),
            achieved: load.map(|l| l.achieved_rate),
            errors: load
                .filter(|l| l.scheduled > 0)
                .map(|l| l.scheduled.saturating_sub(l.ok) as f64 / l.scheduled as f64),
            start: trial.evidence.start.ready,
            cpus: share(cgroup.measure_cpu.map(|c| c.as_secs_f64()), seconds),
            throttled_periods: share(
                cgroup.measure_nr_throttled.map(|n| n as f64),
                cgroup
                    .measure_nr_periods
                    .filter(|n| *n > 0)
                    .map(|n| n as f64),
            ),
            gc_longest: gc.map(|g| g.measure_pause_max),
            gc_share: share(gc.map(|g| g.measure_pause_sum.as_secs_f64()), seconds),
            peak: cgroup.peak_memory,
            working_set: cgroup.peak_working_set,
            anon: cgroup.peak_anon,
            heap_after: gc.and_then(|g| g.heap_after_max),
        }
    }
}

fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    Some(part? / whole?)
}

/// The middle value and the extremes: what repeated trials gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread<T> {
    /// Smallest.
    pub low: T,
    /// Median; the lower one of two.
    pub median: T,
    /// Largest.
    pub high: T,
    /// How many.
    pub n: usize,
}

/// The spread of the values there are; `None` when there are none.
pub fn spread<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<Spread<T>> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Some(Spread {
        low: *values.first()?,
        median: values[(values.len() - 1) / 2],
        high: *values.last()?,
        n: values.len(),
    })
}

impl<T: Copy + PartialEq> Spread<T> {
    /// `41.2 ms (38.0 ms to 47.0 ms)`; one value alone stands without brackets.
    pub fn show(&self, print: impl Fn(T) -> String) -> String {
        if self.n == 1 || self.low == self.high {
            return print(self.median);
        }
        format!(
            "{} ({} to {})",
            print(self.median),
            print(self.low),
            print(self.high)
        )
    }
}
