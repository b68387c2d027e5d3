//! Several instances on one machine: how throughput and memory change with their number.
//!
//! Owns the study of counts: which trials belong together, the fit of the Universal Scalability Law
//! with its interval, the knee, and the memory of each further instance. Trials belong together if
//! all instances of a trial have the same resources in total ([liberty]: one machine cut into more
//! and smaller JVMs), or else if each instance has the same. Sources: [`crate::usl`]; residual
//! bootstrap as in Efron and Tibshirani 1993, §9.4, residuals scaled for three parameters.
//!
//! [liberty]: docs/sources.md

use std::collections::BTreeSet;

use loadline_sizing::Bytes;

use crate::interval::{Bootstrap, ConfidenceInterval, median};
use crate::random::RandomStream;
use crate::record::{Configuration, JvmOption, TrialRecord, TrialVerdict};
use crate::sli::Sli;
use crate::usl::{self, Residuals, ScalingModel, ScalingPoint};

/// Throughput this close to the peak is as good: the fewest instances that have it are the knee.
pub const KNEE: f64 = 0.9;
pub const RESAMPLES: u32 = 400;

/// Totals that differ by at most one part in this many are equal: a seventh of a CPU is written as
/// 142m, a fifth of 768Mi as 153Mi.
const ROUNDING: u64 = 50;

/// Parameters of the model: residuals of a fit are smaller than the errors by their number.
const PARAMETERS: f64 = 3.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedTrial {
    pub instances: u32,
    pub throughput: f64,
    pub is_kept: bool,
    pub is_closed: bool,
    pub rss: Option<Bytes>,
    pub pss: Option<Bytes>,
}

impl ObservedTrial {
    fn from_record(record: &TrialRecord) -> Option<Self> {
        let sli = Sli::from_record(record).ok()?;
        Some(Self {
            instances: record.configuration.instances,
            throughput: sli.achieved_rate?,
            is_kept: record.verdict == TrialVerdict::Pass,
            is_closed: sli.offered_rate.is_none(),
            rss: record.evidence.cgroup.loaded_rss,
            pss: record.evidence.cgroup.loaded_pss,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceCount {
    pub instances: u32,
    pub trials: usize,
    pub kept: usize,
    /// Good responses a second.
    pub throughput: f64,
    pub rss: Option<f64>,
    pub pss: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ThroughputScaling {
    pub model: ScalingModel,
    /// The number at which the model peaks, with its 95 % interval; `None` when it does not peak
    /// between one instance and the most that were measured.
    pub peak: Option<ConfidenceInterval>,
    /// Fewest instances within a tenth of the most throughput in the measured range.
    pub knee: u32,
    pub left_out: Vec<Option<f64>>,
}

impl ThroughputScaling {
    /// Largest error among inner counts: beyond the outermost ones the law extrapolates.
    pub fn inner_error(&self) -> Option<f64> {
        let inner = self.left_out.len().saturating_sub(2);
        let errors = self.left_out.iter().skip(1).take(inner);
        let errors: Option<Vec<f64>> = errors.map(|e| e.map(f64::abs)).collect();
        errors?.into_iter().reduce(f64::max)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryLine {
    pub fixed: f64,
    pub each: f64,
    /// Share of the variance that the line explains, in [0, 1].
    pub r_squared: f64,
}

impl MemoryLine {
    /// Least squares through the points; `None` for fewer than two different numbers.
    pub fn fit_points(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let xx = sum(&|p| (p.0 - x).powi(2));
        let (xy, yy) = (sum(&|p| (p.0 - x) * (p.1 - y)), sum(&|p| (p.1 - y).powi(2)));
        let line = Self {
            each: xy / xx,
            fixed: y - xy / xx * x,
            r_squared: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 },
        };
        line.each.is_finite().then_some(line)
    }

    pub fn bytes_for(&self, instances: f64) -> f64 {
        self.fixed + self.each * instances
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct InstanceStudy {
    pub counts: Vec<InstanceCount>,
    pub is_closed: bool,
    /// `None` with fewer than six counts, and for an open load, which shows the offered throughput,
    /// not the possible one.
    pub scaling: Option<ThroughputScaling>,
    pub rss: Option<MemoryLine>,
    pub pss: Option<MemoryLine>,
}

impl InstanceStudy {
    pub fn from_observed(observed: &[ObservedTrial], seed: u64) -> Option<Self> {
        let numbers: BTreeSet<u32> = observed.iter().map(|o| o.instances).collect();
        if numbers.len() < 2 {
            return None;
        }
        let counts = numbers.iter().filter_map(|n| summarise_count(*n, observed));
        let counts: Vec<InstanceCount> = counts.collect();
        let is_closed = observed.iter().all(|o| o.is_closed);
        let line = |of: fn(&InstanceCount) -> Option<f64>| {
            let point = |c: &InstanceCount| Some((f64::from(c.instances), of(c)?));
            MemoryLine::fit_points(&counts.iter().filter_map(point).collect::<Vec<_>>())
        };
        let scaling = || fit_scaling(&counts, observed, seed);
        Some(Self {
            scaling: is_closed.then(scaling).flatten(),
            rss: line(|c| c.rss),
            pss: line(|c| c.pss),
            is_closed,
            counts,
        })
    }

    pub fn all_studies(records: &[TrialRecord], seed: u64) -> Vec<(Configuration, Self)> {
        let total = families(records, in_total);
        let studies = if total.iter().any(|f| has_counts(f)) {
            total
        } else {
            families(records, |a, b| resources_of_each(a) == resources_of_each(b))
        };
        let study = |family: Vec<&TrialRecord>| {
            let observed = family.iter().filter_map(|r| ObservedTrial::from_record(r));
            let observed: Vec<ObservedTrial> = observed.collect();
            let first = family.first()?.configuration.clone();
            Some((first, Self::from_observed(&observed, seed)?))
        };
        studies.into_iter().filter_map(study).collect()
    }
}

fn summarise_count(instances: u32, observed: &[ObservedTrial]) -> Option<InstanceCount> {
    let own = observed.iter().filter(|o| o.instances == instances);
    let own: Vec<&ObservedTrial> = own.collect();
    let middle = |of: fn(&ObservedTrial) -> Option<f64>| {
        median(&own.iter().filter_map(|o| of(o)).collect::<Vec<_>>())
    };
    Some(InstanceCount {
        instances,
        trials: own.len(),
        kept: own.iter().filter(|o| o.is_kept).count(),
        throughput: middle(|o| Some(o.throughput))?,
        rss: middle(|o| o.rss.map(|b| b.as_bytes() as f64)),
        pss: middle(|o| o.pss.map(|b| b.as_bytes() as f64)),
    })
}

fn fit_scaling(
    counts: &[InstanceCount],
    observed: &[ObservedTrial],
    seed: u64,
) -> Option<ThroughputScaling> {
    let point = |c: &InstanceCount| scaling_point(c.instances, c.throughput);
    let points: Vec<ScalingPoint> = counts.iter().map(point).collect();
    let model = ScalingModel::fit_model(&points, Residuals::Log)?;
    let most = points.last()?.n;
    Some(ThroughputScaling {
        peak: peak_interval(&model, most, observed, seed),
        knee: throughput_knee(&model, most),
        left_out: usl::leave_one_out(&points, Residuals::Log),
        model,
    })
}

fn scaling_point(instances: u32, throughput: f64) -> ScalingPoint {
    ScalingPoint {
        n: f64::from(instances),
        throughput,
    }
}

fn throughput_knee(model: &ScalingModel, most: f64) -> u32 {
    let most = most.round().max(1.0) as u32;
    let at = |n: u32| model.throughput(f64::from(n));
    let best = (1..=most).map(at).fold(0.0, f64::max);
    (1..=most).find(|n| at(*n) >= KNEE * best).unwrap_or(most)
}

fn peak_interval(
    model: &ScalingModel,
    most: f64,
    observed: &[ObservedTrial],
    seed: u64,
) -> Option<ConfidenceInterval> {
    let estimate = model.peak().filter(|n| (1.0..=most).contains(n))?;
    let bootstrap = Bootstrap {
        resamples: RESAMPLES,
        seed,
        ..Bootstrap::default()
    };
    let modelled = |o: &ObservedTrial| model.throughput(f64::from(o.instances));
    let scale = (observed.len() as f64 / (observed.len() as f64 - PARAMETERS).max(1.0)).sqrt();
    let residual = |o: &ObservedTrial| (o.throughput / modelled(o)).ln() * scale;
    let residuals: Vec<f64> = observed.iter().map(residual).collect();
    let mut random = RandomStream::from_seed(bootstrap.seed);
    let mut drawn = |o: &ObservedTrial| {
        let error = residuals[random.uniform_below(residuals.len())];
        scaling_point(o.instances, modelled(o) * error.exp())
    };
    let peaks = (0..bootstrap.resamples).filter_map(|_| {
        let points: Vec<ScalingPoint> = observed.iter().map(&mut drawn).collect();
        let model = ScalingModel::fit_model(&points, Residuals::Log)?;
        // Without a peak it lies at an end of the measured range.
        let grows = model.throughput(most) > model.throughput(1.0);
        let end = if grows { most } else { 1.0 };
        Some(model.peak().unwrap_or(end).clamp(1.0, most))
    });
    ConfidenceInterval::of_resamples(estimate, peaks.collect(), bootstrap.confidence)
}

fn families(
    records: &[TrialRecord],
    are_one: fn(&Configuration, &Configuration) -> bool,
) -> Vec<Vec<&TrialRecord>> {
    let mut families: Vec<Vec<&TrialRecord>> = Vec::new();
    for record in records.iter().filter(|r| r.verdict.is_evidence()) {
        let is_of = |family: &&mut Vec<&TrialRecord>| {
            let first = family.first();
            first.is_some_and(|first| are_one(&first.configuration, &record.configuration))
        };
        match families.iter_mut().find(is_of) {
            Some(family) => family.push(record),
            None => families.push(vec![record]),
        }
    }
    families
}

fn has_counts(family: &[&TrialRecord]) -> bool {
    let number = |r: &&TrialRecord| r.configuration.instances;
    let first = family.first().map(number);
    family.iter().any(|r| Some(number(r)) != first)
}

fn in_total(one: &Configuration, other: &Configuration) -> bool {
    let all = |own: u64, c: &Configuration| own.saturating_mul(u64::from(c.instances));
    let cpu = |c: &Configuration| c.cpu.map(|cpu| all(u64::from(cpu.as_millis()), c));
    let memory = |c: &Configuration| c.memory.map(|memory| all(memory.as_bytes(), c));
    is_about(cpu(one), cpu(other))
        && is_about(memory(one), memory(other))
        && without_resources(one) == without_resources(other)
}

fn without_resources(configuration: &Configuration) -> Configuration {
    let names = ["-Xms", "-Xmx", "-Xmn"];
    let is_heap = |o: &JvmOption| names.iter().any(|name| o.text.starts_with(name));
    let mut plain = resources_of_each(configuration);
    (plain.cpu, plain.memory) = (None, None);
    // A heap that is cut goes with the memory that is cut.
    plain.jvm_options.retain(|o| !is_heap(o));
    plain
}

fn is_about(one: Option<u64>, other: Option<u64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other) <= one.max(other) / ROUNDING,
        (one, other) => one == other,
    }
}

fn resources_of_each(configuration: &Configuration) -> Configuration {
    Configuration {
        label: String::new(),
        instances: 1,
        cpuset: None,
        ..configuration.clone()
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::Cpus;

    use super::*;
    use crate::fixture;
    use crate::record::{TrialPurpose, ValueProvenance};

    /// The table of \[liberty\]: 24 cores and 1536 MB of heap cut into 1 to 12 JVMs.
    fn liberty() -> Vec<ObservedTrial> {
        let text = include_str!("../tests/data/usl-liberty.csv");
        let observed = |line: &str| {
            let field = |i: usize| line.split(',').nth(i).unwrap();
            ObservedTrial {
                instances: field(0).parse().unwrap(),
                throughput: field(3).parse().unwrap(),
                is_kept: true,
                is_closed: true,
                rss: Some(Bytes::from_mib(field(4).parse().unwrap())),
                pss: None,
            }
        };
        text.lines().skip(1).map(observed).collect()
    }

    #[test]
    fn the_liberty_study_comes_to_its_own_conclusions() {
        let study = InstanceStudy::from_observed(&liberty(), 1).unwrap();
        let scaling = study.scaling.as_ref().unwrap();
        let peak = scaling.peak.unwrap();
        assert!((5.0..=7.0).contains(&peak.estimate.round()), "{peak:?}");
        assert!(
            peak.contains(peak.estimate) && peak.low > 4.0 && peak.high < 9.0,
            "{peak:?}"
        );
        assert_eq!(scaling.knee, 4, "4 JVMs are the study's own advice");
        assert!(scaling.inner_error().unwrap() <= 0.10, "{scaling:?}");
        let rss = study.rss.unwrap();
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        assert!((mib(rss.each) - 96.48).abs() < 0.01, "{rss:?}");
        assert!((mib(rss.fixed) - 50.9).abs() < 0.1, "{rss:?}");
        assert!(rss.r_squared > 0.999, "{rss:?}");
        assert_eq!(study.pss, None);
    }

    #[test]
    fn an_open_load_says_nothing_about_what_could_be_carried() {
        let mut open = liberty();
        open[0].is_closed = false;
        assert_eq!(
            InstanceStudy::from_observed(&open, 1).unwrap().scaling,
            None
        );
        assert_eq!(
            InstanceStudy::from_observed(&open[..5], 1).unwrap().scaling,
            None
        );
        assert_eq!(InstanceStudy::from_observed(&open[..1], 1), None);
    }

    #[test]
    fn growth_without_end_has_no_peak() {
        let observed: Vec<ObservedTrial> = (1..=8)
            .map(|n| ObservedTrial {
                instances: n,
                throughput: 100.0 * f64::from(n),
                is_kept: true,
                is_closed: true,
                rss: None,
                pss: None,
            })
            .collect();
        let scaling = InstanceStudy::from_observed(&observed, 1)
            .unwrap()
            .scaling
            .unwrap();
        assert_eq!((scaling.peak, scaling.knee), (None, 8));
    }

    #[test]
    fn trials_belong_together_by_what_all_instances_have() {
        let cut = |n: u32, heap: &str, mebibytes: u64| {
            let mut trial =
                fixture::trial_record("t", TrialPurpose::Matrix, mebibytes, TrialVerdict::Pass);
            trial.configuration.instances = n;
            trial.configuration.label = format!("{n}");
            trial.configuration.jvm_options = vec![JvmOption {
                text: format!("-Xmx{heap}"),
                provenance: ValueProvenance::User,
            }];
            let cpu = trial.configuration.cpu.map_or(1000, |c| c.as_millis());
            trial.configuration.cpu = Some(Cpus::from_millis(cpu / n));
            trial
        };
        let mut other = cut(4, "64m", 120);
        other.configuration.jdk = Some("other".to_owned());
        let records = [
            cut(1, "256m", 480),
            cut(2, "128m", 240),
            cut(3, "85m", 160),
            other,
        ];
        let studies = InstanceStudy::all_studies(&records, 1);
        assert_eq!(studies.len(), 1, "one count of another JDK is no study");
        let counts: Vec<u32> = studies[0].1.counts.iter().map(|c| c.instances).collect();
        assert_eq!(counts, [1, 2, 3], "a third of a CPU is 333m");
        // A seventh of a CPU, a fifth of 768 MiB.
        assert!(is_about(Some(7 * 142), Some(1000)) && is_about(Some(768), Some(5 * 153)));
        assert!(!is_about(Some(500), Some(512)) && !is_about(None, Some(1)));
    }
}
