//! Was a dependency the bottleneck? Then the trial says nothing about the application's size.
//!
//! Owns the rule and its sentence. A trial that kept its SLO all the same stands: a slow database
//! can only make an application look worse.

use std::time::Duration;

use loadline_sizing::Cpus;

use crate::record::{CpuNeighbours, DependencyEvidence, Evidence, TrialPhase};
use crate::text;

const SATURATED: f64 = 0.9;

/// Share of periods, of all in the window, that may be throttled, in [0, 1]: what happens in one of
/// a hundred is what a p99 shows.
const THROTTLED: f64 = 0.01;

/// Share of its limit from which on a working set has reached it, in [0, 1].
const FULL: f64 = 0.98;
const PERIOD: Duration = Duration::from_millis(100);

/// The resources of dependencies that were at their limit, and dependencies that ended, with the
/// numbers.
pub fn find_bottlenecks(evidence: &Evidence) -> Vec<String> {
    let of = |dependency: &DependencyEvidence| {
        let limits = reached_limits(dependency, evidence);
        let (name, all) = (&dependency.name, limits.join(", "));
        (!limits.is_empty()).then(|| format!("the dependency {name} was at its limit: {all}"))
    };
    evidence.dependencies.iter().filter_map(of).collect()
}

fn reached_limits(dependency: &DependencyEvidence, evidence: &Evidence) -> Vec<String> {
    let ended = dependency.ended.as_ref();
    let ended = ended.map(|how| format!("it ended before the trial did ({how})"));
    let parts = [
        ended,
        memory_bottleneck(dependency),
        throttling_bottleneck(dependency),
        cpu_bottleneck(dependency, evidence),
    ];
    parts.into_iter().flatten().collect()
}

fn memory_bottleneck(dependency: &DependencyEvidence) -> Option<String> {
    let limit = dependency.memory_limit?;
    if dependency.oom_kills.is_some_and(|kills| kills > 0) {
        return Some(format!(
            "the kernel killed in it for memory (limit {limit})"
        ));
    }
    let peak = dependency.peak_working_set?;
    let is_full = peak.as_bytes() as f64 >= FULL * limit.as_bytes() as f64;
    is_full.then(|| format!("its working set reached its memory limit ({peak} of {limit})"))
}

fn throttling_bottleneck(dependency: &DependencyEvidence) -> Option<String> {
    let (limit, window) = (dependency.cpu_limit?, dependency.window?);
    let throttled = dependency.nr_throttled?;
    let periods = window.as_secs_f64() / PERIOD.as_secs_f64();
    let share = throttled as f64 / periods.max(1.0);
    (share > THROTTLED).then(|| {
        let share = text::short_percent(share.min(1.0));
        format!("it was throttled in {share} of the time's periods (limit {limit} CPU)")
    })
}

fn cpu_bottleneck(dependency: &DependencyEvidence, evidence: &Evidence) -> Option<String> {
    let share = busy_share(dependency, evidence)?;
    (share >= SATURATED).then(|| {
        let (share, cpus) = (text::short_percent(share.min(1.0)), &dependency.cpus);
        let had = match (dependency.cpu_limit, dependency.beside) {
            (Some(limit), _) => format!("its limit of {limit} CPU gives"),
            (None, CpuNeighbours::Nobody) => format!("it could of CPUs {cpus}"),
            (None, CpuNeighbours::Generator) => format!("the load generator left of CPUs {cpus}"),
            (None, CpuNeighbours::Application) => format!("the application left of CPUs {cpus}"),
        };
        format!("it used {share} of what {had}")
    })
}

/// Share of the CPU time that it could have had, in [0, 1] but for errors of reading: of its limit,
/// or of what others left of its CPUs. `None` without a window.
pub fn busy_share(dependency: &DependencyEvidence, evidence: &Evidence) -> Option<f64> {
    let (window, used) = (dependency.window?, dependency.cpu?);
    let cpus = f64::from(dependency.cpu_count.max(1)) * window.as_secs_f64();
    let others = cpu_of_others(dependency, evidence).as_secs_f64();
    let used = used.as_secs_f64();
    // What it used it could have: others' figures are of slightly other windows.
    let left = (cpus - others).max(used);
    let limit = dependency.cpu_limit.map_or(f64::INFINITY, Cpus::as_f64);
    let could = left.min(limit * window.as_secs_f64());
    Some(used / could.max(f64::MIN_POSITIVE))
}

fn cpu_of_others(dependency: &DependencyEvidence, evidence: &Evidence) -> Duration {
    let measured = evidence.load_in(TrialPhase::Measure);
    let generator: Duration = measured.filter_map(|load| load.generator_cpu).sum();
    let proxy = evidence.proxy.as_ref().map_or(Duration::ZERO, |p| p.cpu);
    // The proxy runs where the generator does.
    let generator = generator + proxy;
    let siblings = evidence.dependencies.iter();
    let siblings = siblings.filter(|d| d.name != dependency.name && d.cpus == dependency.cpus);
    let siblings: Duration = siblings.filter_map(|d| d.cpu).sum();
    let application = evidence.cgroup.measure_cpu.unwrap_or_default();
    match dependency.beside {
        CpuNeighbours::Nobody => siblings,
        CpuNeighbours::Generator => siblings + generator,
        CpuNeighbours::Application => siblings + generator + application,
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::Bytes;

    use super::*;
    use crate::fixture;

    /// A database that used a tenth of a CPU for ten seconds.
    fn idle() -> DependencyEvidence {
        DependencyEvidence {
            name: "db".to_owned(),
            cpus: "1".to_owned(),
            cpu_count: 1,
            window: Some(Duration::from_secs(10)),
            cpu: Some(Duration::from_secs(1)),
            nr_throttled: Some(0),
            ..DependencyEvidence::default()
        }
    }

    fn said(dependency: DependencyEvidence) -> String {
        let evidence = Evidence {
            dependencies: vec![dependency],
            ..fixture::passing_evidence()
        };
        find_bottlenecks(&evidence).join("\n")
    }

    #[test]
    fn each_way_to_be_the_bottleneck_is_named_with_its_numbers() {
        let limited = DependencyEvidence {
            cpu_limit: Some(Cpus::from_millis(50)),
            memory_limit: Some(Bytes::from_mib(64)),
            cpu: Some(Duration::from_millis(100)),
            ..idle()
        };
        let lines = [
            said(DependencyEvidence {
                cpu: Some(Duration::from_millis(9_500)),
                ..idle()
            }),
            said(DependencyEvidence {
                cpu: Some(Duration::from_millis(8_800)),
                beside: CpuNeighbours::Generator,
                ..idle()
            }),
            said(DependencyEvidence {
                nr_throttled: Some(2),
                ..limited.clone()
            }),
            said(DependencyEvidence {
                cpu: Some(Duration::from_millis(490)),
                ..limited.clone()
            }),
            said(DependencyEvidence {
                oom_kills: Some(1),
                ..limited.clone()
            }),
            said(DependencyEvidence {
                peak_working_set: Some(Bytes::from_mib(63)),
                ..limited
            }),
            said(DependencyEvidence {
                ended: Some("signal 9".to_owned()),
                ..idle()
            }),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        the dependency db was at its limit: it used 95 % of what it could of CPUs 1
        the dependency db was at its limit: it used 91.7 % of what the load generator left of CPUs 1
        the dependency db was at its limit: it was throttled in 2 % of the time's periods (limit 50m CPU)
        the dependency db was at its limit: it used 98 % of what its limit of 50m CPU gives
        the dependency db was at its limit: the kernel killed in it for memory (limit 64Mi)
        the dependency db was at its limit: its working set reached its memory limit (63Mi of 64Mi)
        the dependency db was at its limit: it ended before the trial did (signal 9)
        ");
    }

    #[test]
    fn one_with_room_is_no_bottleneck() {
        assert_eq!(said(idle()), "");
        let limited = DependencyEvidence {
            cpu_limit: Some(Cpus::from_millis(200)),
            memory_limit: Some(Bytes::from_mib(64)),
            // Full of page cache: the kernel gives that back.
            peak_memory: Some(Bytes::from_mib(64)),
            peak_working_set: Some(Bytes::from_mib(40)),
            nr_throttled: Some(1),
            ..idle()
        };
        assert_eq!(said(limited), "", "one period of a hundred");
        let unknown = DependencyEvidence {
            window: None,
            ..idle()
        };
        assert_eq!(said(unknown), "");
    }

    #[test]
    fn what_dependencies_share_is_no_room_for_either() {
        let half = DependencyEvidence {
            cpu: Some(Duration::from_millis(4_800)),
            ..idle()
        };
        let other = DependencyEvidence {
            name: "broker".to_owned(),
            ..half.clone()
        };
        let evidence = Evidence {
            dependencies: vec![half, other],
            ..fixture::passing_evidence()
        };
        assert_eq!(find_bottlenecks(&evidence).len(), 2);
    }
}
