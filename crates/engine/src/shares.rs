//! Trials at once on one machine: which CPUs each has, and what cannot run beside another.
//!
//! Owns both as pure functions. Trials share no core, so a machine is divided by cores; each has its
//! own network, or two applications would want one port. Whether trials at once tell what one alone
//! tells is measured first (`loadline_analysis::abreast`). Facts:
//! /sys/devices/system/cpu/cpuN/topology/thread_siblings_list.

use std::fs;
use std::path::Path;

use loadline_analysis::record::Configuration;
use loadline_protocol::{NetworkMode, RunRefusal};
use loadline_sizing::{Bytes, Cpus};

use crate::experiment::{Experiment, FIRST_MEMORY};

/// Sorted CPUs in groups, each the CPUs of some cores, for so many trials at once; a CPU that is left
/// over is nobody's. `core` is the first CPU of a CPU's core.
pub fn divide_cpus(cpus: &[u32], slots: usize, core: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
    let mut cores: Vec<(u32, Vec<u32>)> = Vec::new();
    for &cpu in cpus {
        let first = core(cpu);
        match cores.iter_mut().find(|(known, _)| *known == first) {
            Some((_, members)) => members.push(cpu),
            None => cores.push((first, vec![cpu])),
        }
    }
    let each = cores.len() / slots.max(1);
    let groups = (0..slots).map(|slot| &cores[slot * each..(slot + 1) * each]);
    let share = |group: &[(u32, Vec<u32>)]| {
        let mut share: Vec<u32> = group.iter().flat_map(|(_, cpus)| cpus.clone()).collect();
        share.sort_unstable();
        share
    };
    groups.map(share).collect()
}

/// The first CPU of the core that a CPU is of, by the kernel; itself where it does not say.
pub fn core_of_cpu(cpu: u32) -> u32 {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let text = fs::read_to_string(Path::new(&path)).unwrap_or_default();
    let siblings = text.parse::<loadline_sizing::CpuSet>().ok();
    siblings.and_then(|set| set.iter().next()).unwrap_or(cpu)
}

/// Why trials of an experiment cannot run beside each other; `None` where they can. `memory` is what
/// the machine has in all.
pub fn refuse_parallel_trials(
    experiment: &Experiment,
    shares: &[Vec<u32>],
    cpus: usize,
    memory: Option<Bytes>,
) -> Option<RunRefusal> {
    let alone = "leave --slots out: one trial after the other";
    if experiment.app.network != NetworkMode::Own {
        let why = "the application is on the host's network, where both would want one port";
        return parallel_refusal(shares, why.to_owned(), alone);
    }
    if !experiment.dependencies.is_empty() {
        let why = "what the application depends on is made for one trial at a time";
        return parallel_refusal(shares, why.to_owned(), alone);
    }
    let searched = experiment.search.max_memory.unwrap_or(FIRST_MEMORY);
    let all = experiment.configurations().into_iter();
    let mut all = all.map(|configuration| Configuration {
        memory: configuration.memory.or(Some(searched)),
        ..configuration
    });
    all.find_map(|configuration| too_large(&configuration, shares, cpus, memory))
}

fn parallel_refusal(shares: &[Vec<u32>], why: String, hint: &str) -> Option<RunRefusal> {
    let what = format!("running {} trials at once", shares.len());
    Some(RunRefusal::new(what, why, hint))
}

fn too_large(
    configuration: &Configuration,
    shares: &[Vec<u32>],
    cpus: usize,
    memory: Option<Bytes>,
) -> Option<RunRefusal> {
    let slots = shares.len();
    let refused = |why: String, hint: &str| parallel_refusal(shares, why, hint);
    if configuration.cpuset.is_some() {
        let why = "the configuration names its CPUs, and both would run there";
        return refused(why.to_owned(), "leave cpuset or --slots out");
    }
    let Some(limit) = configuration.cpu else {
        let why = "without a CPU limit the application takes all CPUs that it sees, a part of the machine instead of the whole";
        return refused(
            why.to_owned(),
            "give it a CPU limit (--cpu 1), or leave --slots out",
        );
    };
    let all = Cpus::from_millis(limit.as_millis().saturating_mul(configuration.instances));
    let (needed, has) = (all.ceil() as usize + 1, shares.iter().map(Vec::len).min()?);
    if needed > has {
        let why = format!(
            "each needs {needed} CPUs of its own, for an application with {all} and its load generator, and of the {cpus} CPUs here each would have {has}"
        );
        let hint = format!(
            "leave --slots out, or measure on a machine with {} cores or more",
            needed * slots
        );
        return refused(why, &hint);
    }
    let wanted = configuration
        .memory?
        .mul_ratio(u64::from(configuration.instances), 1);
    let wanted = wanted.mul_ratio(slots as u64, 1);
    if wanted > memory? {
        let why = format!(
            "together they may take {wanted}, and the machine has {}",
            memory?
        );
        return refused(
            why,
            "leave --slots out, or try smaller sizes (--max-memory)",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_share_no_core() {
        let cpus: Vec<u32> = (0..8).collect();
        let alone = |cpu| cpu;
        assert_eq!(divide_cpus(&cpus, 2, alone), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        // As on most machines: CPU n + 4 is the other thread of core n.
        let threads = |cpu| cpu % 4;
        assert_eq!(divide_cpus(&cpus, 2, threads), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(divide_cpus(&cpus, 3, threads), [[0, 4], [1, 5], [2, 6]]);
        assert_eq!(
            divide_cpus(&[0, 1], 2, |_| 0),
            [Vec::<u32>::new(), Vec::new()],
            "one core"
        );
        assert_eq!(divide_cpus(&[2, 5], 1, alone), [[2, 5]]);
    }

    const EXPERIMENT: &str = "slo = \"p99<50ms\"\n[app]\ncommand = [\"java\"]\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"100/s\"\n";

    /// Why not, of an experiment with these limits and more, on a machine of 2 GiB.
    fn why(limits: &str, cpus: u32) -> Option<String> {
        let text = format!("{EXPERIMENT}[limits]\n{limits}\n");
        let experiment = Experiment::from_file_text(&text, Path::new("e.toml"), Path::new("/"));
        let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
        let all: Vec<u32> = (0..cpus).collect();
        let shares = divide_cpus(&all, 2, |cpu| cpu);
        let memory = Some(Bytes::from_gib(2));
        refuse_parallel_trials(&experiment, &shares, all.len(), memory).map(|refusal| refusal.why)
    }

    #[test]
    fn what_cannot_run_beside_another_is_refused_with_the_reason() {
        assert_eq!(why("cpu = \"1\"", 4), None);
        assert_eq!(why("cpu = \"250m\"", 4), None);
        insta::assert_snapshot!(why("cpu = \"250m\"", 2).unwrap_or_default(), @"each needs 2 CPUs of its own, for an application with 250m and its load generator, and of the 2 CPUs here each would have 1");
        let several = "cpu = \"1\"\ninstances = 3";
        insta::assert_snapshot!(why(several, 6).unwrap_or_default(), @"each needs 4 CPUs of its own, for an application with 3 and its load generator, and of the 6 CPUs here each would have 3");
        for (limits, wanted) in [
            ("memory = \"256Mi\"", "without a CPU limit"),
            ("cpu = \"1\"\ncpuset = \"0-1\"", "names its CPUs"),
            (
                "cpu = \"1\"\nmemory = \"1100Mi\"",
                "together they may take 2200Mi",
            ),
        ] {
            let said = why(limits, 8).unwrap_or_default();
            assert!(said.contains(wanted), "{limits}: {said}");
        }
    }
}
