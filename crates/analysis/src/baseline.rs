//! The figures of an accepted size's starts, and the rules for comparing them with today's starts.
//!
//! Owns the compared figures of a start, the stored form of a baseline, and when two hosts are of
//! the same kind. Figures of unlike hosts are never compared: each omission is reported with its
//! reason.

use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Configuration, MachineDescription, TrialPhase, TrialRecord, TrialVerdict};
use crate::search::floor;
use crate::verdict::was_disturbed;
use crate::wire;

pub const SCHEMA: u32 = 1;

/// Fewest good responses behind a start's CPU time per request. Fewer do not give a stable figure:
/// the same server at 10 requests in 0.2 s took 1.79 ms in three starts and 2.43 ms in the next
/// three, a minute later.
const LEAST_REQUESTS: u64 = 100;

/// What a service was like when it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// [`SCHEMA`] at the time of writing.
    pub schema: u32,
    /// loadline's version.
    pub loadline: String,
    /// The result that it is from.
    pub result: String,
    /// What the starts stood on.
    pub ground: MeasurementConditions,
    /// Each start.
    pub starts: Vec<StartFigures>,
}

/// The conditions under which figures were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementConditions {
    /// Kernel release.
    pub kernel: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs that loadline could use.
    pub cpus: u32,
    /// `v1`, `v2` or `hybrid`.
    pub cgroup: String,
    /// The machine's JDKs that were used; empty for an image, which brings its own JDK.
    pub jdks: Vec<String>,
    /// The load in words.
    pub load: String,
    /// The CPU limit.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt", default)]
    pub cpu: Option<loadline_sizing::Cpus>,
    /// The memory limit.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt", default)]
    pub memory: Option<Bytes>,
    /// Instances that shared the load.
    pub instances: u32,
}

impl MeasurementConditions {
    pub fn new(machine: &MachineDescription, configuration: &Configuration, load: String) -> Self {
        Self {
            kernel: machine.kernel.clone(),
            cpu_model: machine.cpu_model.clone(),
            cpus: machine.cpus,
            cgroup: machine.cgroup.clone(),
            jdks: match machine.image {
                Some(_) => Vec::new(),
                None => machine.jdks.clone(),
            },
            load,
            cpu: configuration.cpu,
            memory: configuration.memory,
            instances: configuration.instances,
        }
    }

    fn other_cpus(&self, now: &Self) -> Option<String> {
        let differs = |what: &str, was: &dyn std::fmt::Display, is: &dyn std::fmt::Display| {
            format!("the {what} was {was} and is {is}")
        };
        if self.cpu_model != now.cpu_model {
            return Some(differs("CPU", &self.cpu_model, &now.cpu_model));
        }
        if self.cpus != now.cpus {
            return Some(differs("number of CPUs", &self.cpus, &now.cpus));
        }
        let is_other = kernel_series(&self.kernel) != kernel_series(&now.kernel);
        is_other.then(|| differs("kernel", &self.kernel, &now.kernel))
    }

    fn other_service(&self, now: &Self) -> Option<String> {
        if self.load != now.load {
            return Some(format!("the load was {} and is {}", self.load, now.load));
        }
        let size = |g: &Self| {
            let cpu = g.cpu.map(|c| format!("{c} CPU"));
            let cpu = cpu.unwrap_or("no CPU limit".to_owned());
            let memory = g.memory.map(|m| m.to_string());
            let memory = memory.unwrap_or("no memory limit".to_owned());
            match g.instances {
                1 => format!("{cpu}, {memory}"),
                n => format!("{n} of {cpu}, {memory}"),
            }
        };
        if size(self) != size(now) {
            return Some(format!("the size was {} and is {}", size(self), size(now)));
        }
        if self.jdks != now.jdks {
            let names = |g: &Self| g.jdks.join(", ");
            return Some(format!("the JDK was {} and is {}", names(self), names(now)));
        }
        None
    }
}

/// `Linux 6.1.0-27` is of the series `Linux 6.1`: patches change neither scheduler nor accounting.
fn kernel_series(kernel: &str) -> &str {
    let dots = kernel.match_indices('.').nth(1);
    dots.map_or(kernel, |(at, _)| &kernel[..at])
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComparisonGaps {
    pub cpu: Option<String>,
    pub memory: Option<String>,
}

pub fn find_comparison_gaps(
    was: &MeasurementConditions,
    now: &MeasurementConditions,
) -> ComparisonGaps {
    if let Some(why) = was.other_service(now) {
        return ComparisonGaps {
            cpu: Some(why.clone()),
            memory: Some(why),
        };
    }
    let accounting = (was.cgroup != now.cgroup)
        .then(|| format!("cgroups were {} and are {}", was.cgroup, now.cgroup));
    // Without a CPU limit a JVM sizes its pools by the machine.
    let pools = (was.cpu.is_none() && was.cpus != now.cpus).then(|| {
        format!(
            "without a CPU limit the JVM goes by the machine's CPUs: {} then, {} now",
            was.cpus, now.cpus
        )
    });
    ComparisonGaps {
        cpu: was.other_cpus(now).or_else(|| accounting.clone()),
        memory: accounting.or(pools),
    }
}

/// The figures of one start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StartFigures {
    /// Whether it kept the SLO.
    pub kept: bool,
    /// Good responses in the measure phase that the CPU time was spent on; 0 where it is not known.
    #[serde(default)]
    pub requests: u64,
    /// CPU time of a good response in the measure phase.
    #[serde(rename = "cpu_per_request_ns", with = "wire::nanos_opt", default)]
    pub cpu_per_request: Option<Duration>,
    /// Memory that it cannot do without: anonymous memory and half of the files in use.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt", default)]
    pub memory: Option<Bytes>,
    /// CPUs in use in the measure phase, on average.
    #[serde(default)]
    pub cpus_used: Option<f64>,
    /// Good responses a second.
    #[serde(default)]
    pub rate_per_second: Option<f64>,
}

impl StartFigures {
    /// Figures of a start that could be measured. A start that was cut short only says how it
    /// ended.
    pub fn for_start(record: &TrialRecord) -> Option<Self> {
        if !record.verdict.is_evidence() {
            return None;
        }
        let (verdict, evidence) = (record.verdict, &record.evidence);
        let is_whole = evidence.ended_early.is_none()
            && matches!(verdict, TrialVerdict::Pass | TrialVerdict::SloMiss);
        // Other programs make a request dearer.
        let is_quiet = is_whole && !was_disturbed(evidence);
        let cpu = evidence.cgroup.measure_cpu.filter(|_| is_quiet);
        let measured: Vec<_> = evidence.load_in(TrialPhase::Measure).collect();
        let good: u64 = measured.iter().map(|l| l.ok).sum();
        let length = measured.iter().map(|l| l.duration).max();
        let seconds = length.map_or(0.0, |l| l.as_secs_f64());
        let rate = || measured.iter().map(|l| l.achieved_rate).sum::<f64>();
        let each = |cpu: Duration| Duration::from_secs_f64(cpu.as_secs_f64() / good as f64);
        let used = |cpu: Duration| cpu.as_secs_f64() / seconds;
        let memory = floor(evidence).filter(|_| is_whole);
        Some(Self {
            kept: verdict == TrialVerdict::Pass,
            requests: cpu.map_or(0, |_| good),
            cpu_per_request: cpu.filter(|_| good > 0).map(each),
            memory: memory.map(|expected| expected.size),
            cpus_used: cpu.filter(|_| seconds > 0.0).map(used),
            rate_per_second: (is_whole && seconds > 0.0).then(rate),
        })
    }
}

/// Why the CPU time per request of these starts is not compared: too few requests.
pub fn too_few_requests(starts: &[StartFigures]) -> Option<String> {
    let whole = starts.iter().filter(|f| f.cpu_per_request.is_some());
    let fewest = whole.map(|f| f.requests).min()?;
    (fewest < LEAST_REQUESTS).then(|| {
        format!(
            "a start measured {fewest} requests, and it takes {LEAST_REQUESTS}: measure for longer"
        )
    })
}

/// CPU time per request, in seconds.
pub fn cpu_per_request(starts: &[StartFigures]) -> Vec<f64> {
    let seconds = |f: &StartFigures| f.cpu_per_request.map(|c| c.as_secs_f64());
    starts.iter().filter_map(seconds).collect()
}

pub fn memory_needs(starts: &[StartFigures]) -> Vec<f64> {
    let bytes = |f: &StartFigures| f.memory.map(|m| m.as_bytes() as f64);
    starts.iter().filter_map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{AppKo, EarlyEnd, InvalidReason, TrialPurpose};

    fn ground() -> MeasurementConditions {
        let machine = MachineDescription {
            kernel: "Linux 6.1.0-27-amd64".to_owned(),
            cpu_model: "A".to_owned(),
            cpus: 4,
            cgroup: "v2".to_owned(),
            jdks: vec!["17 debian 17.0.15".to_owned()],
            ..MachineDescription::default()
        };
        MeasurementConditions::new(&machine, &fixture::configuration(256), "GET /".to_owned())
    }

    fn changed(change: impl FnOnce(&mut MeasurementConditions)) -> ComparisonGaps {
        let mut now = ground();
        change(&mut now);
        find_comparison_gaps(&ground(), &now)
    }

    #[test]
    fn what_does_not_carry_over_is_named_with_why() {
        assert_eq!(
            find_comparison_gaps(&ground(), &ground()),
            ComparisonGaps::default()
        );
        let patch = changed(|g| g.kernel = "Linux 6.1.0-28-amd64".to_owned());
        assert_eq!(
            patch,
            ComparisonGaps::default(),
            "a patch of the same kernel"
        );
        let kernel = changed(|g| g.kernel = "Linux 6.8.0-1-azure".to_owned());
        assert!(
            kernel.cpu.is_some() && kernel.memory.is_none(),
            "{kernel:?}"
        );
        let cpu = changed(|g| g.cpu_model = "B".to_owned());
        assert_eq!(cpu.cpu.as_deref(), Some("the CPU was A and is B"));
        assert_eq!(cpu.memory, None, "memory carries over");
        let cgroup = changed(|g| g.cgroup = "v1".to_owned());
        assert!(cgroup.cpu.is_some() && cgroup.memory.is_some());
        for both in [
            changed(|g| g.jdks = vec!["21".to_owned()]),
            changed(|g| g.load = "GET /x".to_owned()),
            changed(|g| g.memory = Some(Bytes::from_mib(512))),
        ] {
            assert!(both.cpu.is_some() && both.cpu == both.memory, "{both:?}");
        }
        let mut free = ground();
        free.cpu = None;
        let fewer = MeasurementConditions {
            cpus: 2,
            ..free.clone()
        };
        assert!(
            find_comparison_gaps(&free, &fewer).memory.is_some(),
            "the JVM goes by the machine"
        );
    }

    #[test]
    fn cpu_time_that_rests_on_few_requests_is_not_compared() {
        let start = |requests| StartFigures {
            requests,
            cpu_per_request: Some(Duration::from_millis(2)),
            ..StartFigures::default()
        };
        assert_eq!(too_few_requests(&[start(100), start(4_000)]), None);
        assert_eq!(
            too_few_requests(&[StartFigures::default()]),
            None,
            "cut short"
        );
        let why = too_few_requests(&[start(100), start(99)]).expect("too few");
        assert!(why.starts_with("a start measured 99 requests"), "{why}");
    }

    #[test]
    fn a_start_that_was_not_whole_has_no_figures() {
        let of = |verdict| fixture::trial_record("t", TrialPurpose::Prove, 256, verdict);
        let mut whole = of(TrialVerdict::Pass);
        whole.evidence.cgroup.peak_anon = Some(Bytes::from_mib(100));
        whole.evidence.cgroup.peak_working_set = Some(Bytes::from_mib(140));
        let figures = StartFigures::for_start(&whole).expect("figures");
        assert!(figures.kept);
        assert_eq!(figures.cpu_per_request, Some(Duration::from_millis(2)));
        assert_eq!(figures.memory, Some(Bytes::from_mib(120)));
        assert_eq!(
            StartFigures::for_start(&of(TrialVerdict::Invalid(InvalidReason::Noise))),
            None
        );
        let killed = StartFigures::for_start(&of(TrialVerdict::AppKo(AppKo::CgroupOom)));
        assert_eq!(killed, Some(StartFigures::default()));
        whole.evidence.ended_early = Some(EarlyEnd {
            phase: TrialPhase::Measure,
            reason: String::new(),
        });
        let cut = StartFigures::for_start(&whole).expect("figures");
        assert_eq!(cut.cpu_per_request, None);
    }
}
