//! What a start costs: caches compared in pairs, and start time over the CPU limit.
//!
//! Owns the pairing (trials of one repeat ran next to each other, so drift of the machine cancels),
//! the model t = A + B / cpu with its check on limits it was not fitted to, and what follows for a
//! pod: probes, and what more CPU during the start buys. Pure functions of records.

use std::time::Duration;

use loadline_sizing::Cpus;
use loadline_sizing::cache::CacheKind;

use crate::interval::{Bootstrap, ConfidenceInterval, Statistic, median, ratio_interval};
use crate::record::{Configuration, TrialPhase, TrialRecord};
use crate::steady;

const OFF: [&str; 2] = ["-Xshare:off", "-Xshareclasses:none"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassSharing {
    /// `-Xshare:off`, of OpenJ9 `-Xshareclasses:none`: no archive at all.
    Off,
    /// The JDK's own archive, which a JVM uses by default; an OpenJ9 fills one with its own
    /// classes.
    Default,
    /// A cache of the application, trained with this many requests.
    Cache(CacheKind, u64),
}

impl ClassSharing {
    pub fn for_configuration(configuration: &Configuration) -> Self {
        let options = &configuration.jvm_options;
        match configuration.cache {
            Some(cache) => Self::Cache(cache.kind, cache.requests),
            None if options.iter().any(|o| OFF.contains(&o.text.as_str())) => Self::Off,
            None => Self::Default,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ConfigurationStarts<'a> {
    pub configuration: &'a Configuration,
    pub trials: Vec<&'a TrialRecord>,
}

pub fn group_starts(records: &[TrialRecord]) -> Vec<ConfigurationStarts<'_>> {
    let mut groups: Vec<ConfigurationStarts<'_>> = Vec::new();
    let counts = |r: &&TrialRecord| r.verdict.is_evidence() && r.evidence.start.ready.is_some();
    for record in records.iter().filter(counts) {
        let mut known = groups.iter_mut();
        match known.find(|group| *group.configuration == record.configuration) {
            Some(group) => group.trials.push(record),
            None => groups.push(ConfigurationStarts {
                configuration: &record.configuration,
                trials: vec![record],
            }),
        }
    }
    groups
}

impl ConfigurationStarts<'_> {
    pub fn median(&self, figure: impl Fn(&TrialRecord) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.trials.iter().filter_map(|t| figure(t)).collect();
        median(&values)
    }

    pub fn largest(&self, figure: impl Fn(&TrialRecord) -> Option<f64>) -> Option<f64> {
        let values = self.trials.iter().filter_map(|t| figure(t));
        values.reduce(f64::max)
    }
}

pub fn ready_seconds(record: &TrialRecord) -> Option<f64> {
    record.evidence.start.ready.map(|d| d.as_secs_f64())
}

pub fn start_cpu_seconds(record: &TrialRecord) -> Option<f64> {
    record.evidence.start.cpu.map(|d| d.as_secs_f64())
}

/// Memory at ready as the study \[openj9\] counts it, bytes: RSS and the huge pages that RSS leaves out.
pub fn footprint(record: &TrialRecord) -> Option<f64> {
    let start = &record.evidence.start;
    let huge = start.hugetlb.map_or(0, |b| b.as_bytes());
    start.rss.map(|rss| (rss.as_bytes() + huge) as f64)
}

/// Share of the classes that came from an archive, in [0, 1].
pub fn archived_share(record: &TrialRecord) -> Option<f64> {
    let start = &record.evidence.start;
    let all = start.classes.filter(|n| *n > 0)?;
    Some(start.classes_archived? as f64 / all as f64)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedComparison {
    pub pairs: usize,
    /// Median of the ratios figure / reference figure, with its interval.
    pub ratio: ConfidenceInterval,
}

/// Compares a figure of two configurations; `None` without a pair.
///
/// Source of pairing: trials of one repeat run within the same minutes, see `Plan`; the interval is
/// a percentile bootstrap over pairs.
pub fn compare_paired(
    of: &ConfigurationStarts<'_>,
    reference: &ConfigurationStarts<'_>,
    figure: impl Fn(&TrialRecord) -> Option<f64>,
    bootstrap: Bootstrap,
) -> Option<PairedComparison> {
    let partner = |repeat: u32| reference.trials.iter().find(|t| t.repeat == repeat);
    let ratio = |trial: &&TrialRecord| {
        let other = figure(partner(trial.repeat)?).filter(|value| *value > 0.0)?;
        Some(vec![figure(trial)? / other])
    };
    let ratios: Vec<Vec<f64>> = of.trials.iter().filter_map(ratio).collect();
    let ratio = ratio_interval(&ratios, &[vec![1.0]], Statistic::Median, bootstrap)?;
    let pairs = ratios.len();
    Some(PairedComparison { pairs, ratio })
}

pub fn is_same_but_sharing(one: &Configuration, other: &Configuration) -> bool {
    let is_sharing = |text: &str| text.starts_with("-Xshare:") || OFF.contains(&text);
    let plain = |configuration: &Configuration| {
        let mut plain = configuration.clone();
        plain.label.clear();
        plain.cache = None;
        plain.jvm_options.retain(|o| !is_sharing(&o.text));
        plain
    };
    plain(one) == plain(other)
}

/// Start time over the CPU limit: t = A + B / cpu.
///
/// B is CPU time that the limit stretches, A what it does not: waiting, and the work of a start
/// that more CPUs do not shorten. Holds where the limit binds, so not far above the number of
/// threads that a start keeps busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StartModel {
    pub fixed: f64,
    /// B, seconds times CPUs.
    pub cpu: f64,
}

impl StartModel {
    /// Fits it to (CPUs, seconds), each weighted by 1/t² so that every point counts by its relative
    /// error; neither parameter is negative. `None` for fewer than two different limits.
    pub fn fit_starts(points: &[(f64, f64)]) -> Option<Self> {
        let usable = |(cpu, t): &&(f64, f64)| *cpu > 0.0 && *t > 0.0 && (cpu * t).is_finite();
        let points = points.iter().filter(usable);
        let points: Vec<(f64, f64)> = points.map(|(c, t)| (1.0 / c, *t)).collect();
        let (first, rest) = points.split_first()?;
        if rest.iter().all(|(x, _)| x == &first.0) {
            return None;
        }
        // Weighted normal equations of t = A + B x.
        let sum =
            |f: fn(f64, f64) -> f64| points.iter().map(|(x, t)| f(*x, *t) / (t * t)).sum::<f64>();
        let (s, sx, sxx) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|x, _| x * x));
        let (st, sxt) = (sum(|_, t| t), sum(|x, t| x * t));
        let determinant = s * sxx - sx * sx;
        let fixed = (st * sxx - sx * sxt) / determinant;
        let cpu = (s * sxt - sx * st) / determinant;
        let (fixed, cpu) = match (fixed < 0.0, cpu < 0.0) {
            (true, _) => (0.0, sxt / sxx),
            (_, true) => (st / s, 0.0),
            _ => (fixed, cpu),
        };
        (fixed.is_finite() && cpu.is_finite()).then_some(Self { fixed, cpu })
    }

    pub fn seconds_at(&self, cpus: f64) -> f64 {
        self.fixed + self.cpu / cpus
    }
}

/// One limit: the measured start, and the prediction from the other limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    pub limit: Cpus,
    pub measured: f64,
    /// Predicted by a model fitted without this limit, seconds; `None` with fewer than three.
    pub predicted: Option<f64>,
}

impl HeldOut {
    pub fn error(&self) -> Option<f64> {
        self.predicted.map(|p| p / self.measured - 1.0)
    }

    pub fn is_between(&self, all: &[Self]) -> bool {
        all.iter().any(|other| other.limit < self.limit)
            && all.iter().any(|other| other.limit > self.limit)
    }
}

/// Start time over the limits of one family of configurations: model and check.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuStudy {
    pub model: StartModel,
    pub limits: Vec<HeldOut>,
}

pub fn cpu_study(groups: &[&ConfigurationStarts<'_>]) -> Option<CpuStudy> {
    let mut points: Vec<(Cpus, f64)> = groups
        .iter()
        .filter(|group| group.configuration.start_cpu.is_none())
        .filter_map(|group| Some((group.configuration.cpu?, group.median(ready_seconds)?)))
        .collect();
    points.sort_by_key(|(limit, _)| *limit);
    let plain = |skip: Option<Cpus>| -> Vec<(f64, f64)> {
        let kept = points.iter().filter(|(limit, _)| Some(*limit) != skip);
        kept.map(|(limit, t)| (limit.as_f64(), *t)).collect()
    };
    let predicted = |limit: Cpus| {
        let model = StartModel::fit_starts(&plain(Some(limit)))?;
        Some(model.seconds_at(limit.as_f64()))
    };
    let limits = points.iter().map(|(limit, measured)| HeldOut {
        limit: *limit,
        measured: *measured,
        predicted: predicted(*limit),
    });
    Some(CpuStudy {
        limits: limits.collect(),
        model: StartModel::fit_starts(&plain(None))?,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSettings {
    /// startupProbe: seconds between two attempts; a start takes half a period longer on average.
    pub startup_period: u64,
    pub startup_failures: u64,
    /// readinessProbe: seconds between two attempts.
    pub readiness_period: u64,
    pub readiness_failures: u64,
    pub timeout: u64,
}

/// A start may take this many times the slowest one seen: a container that is killed while it
/// starts starts again on the same busy node.
pub const START_MARGIN: f64 = 3.0;

pub fn suggest_probes(slowest: f64) -> ProbeSettings {
    // A tenth of the start: the wait for the next attempt stays below 5 %.
    let period = (slowest / 10.0).round().clamp(1.0, 10.0);
    ProbeSettings {
        startup_period: period as u64,
        startup_failures: (slowest * START_MARGIN / period).ceil().max(3.0) as u64,
        // A pod that is only slow under its load must not leave the others with it at once.
        readiness_period: 5,
        readiness_failures: 3,
        timeout: 2,
    }
}

/// Seconds saved by a start with `boosted` CPUs instead of `limit`.
pub fn boost(model: &StartModel, limit: f64, boosted: f64) -> f64 {
    model.seconds_at(limit) - model.seconds_at(boosted)
}

/// Exec until the p50 of the responses stays within 5 % of its last level; `None` when the load was
/// too short to tell or the run never got steady.
pub fn time_to_performance(record: &TrialRecord) -> Option<Duration> {
    let evidence = &record.evidence;
    let start = evidence.span_of(TrialPhase::Start)?;
    let peak = evidence.span_of(TrialPhase::Peak);
    let until = peak.map_or(evidence.judged_until(), |peak| peak.start);
    let seconds = evidence.seconds.iter().filter(|s| s.at_ns <= until);
    let seconds = seconds.filter_map(|second| Some((second.at_ns, second.p50?.as_secs_f64())));
    let seconds: Vec<(u64, f64)> = seconds.collect();
    let values: Vec<f64> = seconds.iter().map(|(_, p50)| *p50).collect();
    let steady = steady::judge_steadiness(&values, &steady::SteadinessRule::default());
    let steady = steady.filter(|s| s.is_steady)?;
    // The entry is the second's end.
    let begin = seconds.get(steady.from)?.0.saturating_sub(1_000_000_000);
    Some(Duration::from_nanos(begin.saturating_sub(start.start)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture;
    use crate::random::RandomStream;
    use crate::record::{
        JvmOption, PhaseSpan, SecondEvidence, StartCache, TrialPurpose, TrialVerdict,
        ValueProvenance,
    };

    fn trial(repeat: u32, seconds: f64, change: impl Fn(&mut Configuration)) -> TrialRecord {
        let mut record = fixture::trial_record("x", TrialPurpose::Matrix, 512, TrialVerdict::Pass);
        record.repeat = repeat;
        record.evidence.start.ready = Some(Duration::from_secs_f64(seconds));
        change(&mut record.configuration);
        record
    }

    fn cached(configuration: &mut Configuration) {
        configuration.cache = Some(StartCache {
            kind: CacheKind::Aot,
            requests: 20,
        });
    }

    #[test]
    fn pairs_cancel_what_drifts() {
        // The machine gets slower by 10 % from repeat to repeat; the cache always saves 40 %.
        let records: Vec<TrialRecord> = (1..=10)
            .flat_map(|n| {
                let t = 4.0 * 1.1_f64.powi(i32::try_from(n).unwrap());
                [trial(n, t, |_| {}), trial(n, 0.6 * t, cached)]
            })
            .collect();
        let groups = group_starts(&records);
        assert_eq!(groups.len(), 2);
        let compared =
            compare_paired(&groups[1], &groups[0], ready_seconds, Bootstrap::default()).unwrap();
        assert_eq!(compared.pairs, 10);
        assert!((compared.ratio.high - 0.6).abs() < 1e-9, "{compared:?}");
        assert!((compared.ratio.low - 0.6).abs() < 1e-9, "{compared:?}");
    }

    #[test]
    fn noise_widens_the_interval_and_the_truth_stays_in_it() {
        let mut random = RandomStream::from_seed(7);
        let mut noisy = |t: f64| t * (1.0 + 0.05 * random.normal());
        let records: Vec<TrialRecord> = (1..=12)
            .flat_map(|n| [trial(n, noisy(2.0), |_| {}), trial(n, noisy(1.2), cached)])
            .collect();
        let groups = group_starts(&records);
        let ratio = compare_paired(&groups[1], &groups[0], ready_seconds, Bootstrap::default())
            .unwrap()
            .ratio;
        assert!(
            ratio.contains(0.6) && ratio.high - ratio.low > 0.01,
            "{ratio:?}"
        );
    }

    #[test]
    fn a_reference_differs_in_sharing_only() {
        let base = fixture::configuration(512);
        let mut off = base.clone();
        off.jvm_options.push(JvmOption {
            text: "-Xshare:off".to_owned(),
            provenance: ValueProvenance::User,
        });
        off.label = "none".to_owned();
        let mut with = base.clone();
        cached(&mut with);
        assert!(is_same_but_sharing(&base, &off) && is_same_but_sharing(&with, &off));
        assert!(!is_same_but_sharing(&base, &fixture::configuration(256)));
        let mut openj9 = off.clone();
        openj9.jvm_options[0].text = "-Xshareclasses:none".to_owned();
        assert!(is_same_but_sharing(&base, &openj9));
        assert_eq!(ClassSharing::for_configuration(&openj9), ClassSharing::Off);
        let all = [&off, &base, &with].map(ClassSharing::for_configuration);
        assert_eq!(
            all,
            [
                ClassSharing::Off,
                ClassSharing::Default,
                ClassSharing::Cache(CacheKind::Aot, 20)
            ]
        );
    }

    #[test]
    fn a_limit_that_was_left_out_is_predicted() {
        let truth = StartModel {
            fixed: 0.4,
            cpu: 5.2,
        };
        let records: Vec<TrialRecord> = [250, 500, 1000, 2000]
            .into_iter()
            .map(|millis| {
                let limit = Cpus::from_millis(millis);
                trial(1, truth.seconds_at(limit.as_f64()), |c| c.cpu = Some(limit))
            })
            .collect();
        let groups = group_starts(&records);
        let study = cpu_study(&groups.iter().collect::<Vec<_>>()).unwrap();
        assert!((study.model.fixed - 0.4).abs() < 1e-9 && (study.model.cpu - 5.2).abs() < 1e-9);
        for limit in &study.limits {
            assert!(limit.error().unwrap().abs() < 1e-9, "{limit:?}");
        }
        let between: Vec<bool> = study
            .limits
            .iter()
            .map(|l| l.is_between(&study.limits))
            .collect();
        assert_eq!(between, [false, true, true, false]);
        // One CPU more during the start saves what the model says.
        assert!((boost(&study.model, 0.5, 1.0) - 5.2).abs() < 1e-9);
    }

    #[test]
    fn nothing_negative_and_nothing_from_one_limit() {
        assert_eq!(StartModel::fit_starts(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(StartModel::fit_starts(&[]), None);
        // Faster than 1/cpu: CPU time alone.
        let model = StartModel::fit_starts(&[(0.25, 20.0), (0.5, 8.0), (1.0, 3.0)]).unwrap();
        assert_eq!(model.fixed, 0.0);
        // Slower with more CPUs: no CPU time at all.
        let model = StartModel::fit_starts(&[(1.0, 2.0), (2.0, 3.0)]).unwrap();
        assert_eq!(model.cpu, 0.0);
    }

    #[test]
    fn probes_leave_a_slow_start_room() {
        let quick = suggest_probes(0.4);
        assert_eq!((quick.startup_period, quick.startup_failures), (1, 3));
        let slow = suggest_probes(31.0);
        assert_eq!((slow.startup_period, slow.startup_failures), (3, 31));
    }

    #[test]
    fn time_to_performance_ends_where_the_last_level_begins() {
        let mut record = fixture::trial_record("x", TrialPurpose::Matrix, 512, TrialVerdict::Pass);
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Start,
            start: 1_000_000_000,
            end: 4_000_000_000,
        }];
        let mut random = RandomStream::from_seed(3);
        let second = |n: u64, p50: f64| SecondEvidence {
            at_ns: (5 + n) * 1_000_000_000,
            p50: Some(Duration::from_secs_f64(p50)),
            ..SecondEvidence::default()
        };
        let seconds = (0..100).map(|n| {
            let level = if n < 20 { 0.02 } else { 0.01 };
            second(n, level * (1.0 + 0.01 * random.normal()))
        });
        record.evidence.seconds = seconds.collect();
        // 20 s of slow answers after a start of 3 s.
        assert_eq!(time_to_performance(&record), Some(Duration::from_secs(23)));
        record.evidence.seconds.truncate(12);
        assert_eq!(time_to_performance(&record), None);
    }

    proptest! {
        #[test]
        fn a_fit_never_panics_and_is_never_negative(
            points in prop::collection::vec((0.01_f64..64.0, 0.001_f64..1000.0), 0..8)
        ) {
            if let Some(model) = StartModel::fit_starts(&points) {
                prop_assert!(model.fixed >= 0.0 && model.cpu >= 0.0);
            }
        }
    }
}
