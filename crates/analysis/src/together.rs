//! Several instances of one trial as one: which figures add up, and which come from the worst.
//!
//! Owns the totals that a record shows next to its instances. Memory, CPU time and counters add up;
//! the start is the last instance's; the end and the last output come from the first failed
//! instance, else from the first. A figure that one instance lacks has no sum.

use std::time::Duration;

use loadline_sizing::Bytes;

use crate::record::{
    CgroupEvidence, Evidence, ExitEvidence, GcEvidence, InstanceEvidence, SecondEvidence,
    StartEvidence,
};

/// Seconds of two instances that end at most so far apart are the same second, ns.
const HALF_SECOND: u64 = 500_000_000;

/// The evidence of all instances as one; `parts` in the order of the instances. Load and phases
/// stay empty: the trial knows them. Spans of pauses are not merged: no thread of one instance
/// waits for the collector of another.
pub fn merge_instances(mut parts: Vec<Evidence>) -> Evidence {
    let instances: Vec<InstanceEvidence> = (1..).zip(&parts).map(instance_evidence).collect();
    let speaker = instances.iter().position(InstanceEvidence::has_failed);
    let gc = all_present(instances.iter().map(|i| i.gc.clone())).map(|logs| merge_gc_logs(&logs));
    let starts: Vec<StartEvidence> = instances.iter().map(|i| i.start.clone()).collect();
    let groups: Vec<CgroupEvidence> = instances.iter().map(|i| i.cgroup.clone()).collect();
    let exits: Vec<&ExitEvidence> = instances.iter().map(|i| &i.exit).collect();
    let speaker = speaker.unwrap_or(0);
    let seconds = parts.iter_mut().map(|p| std::mem::take(&mut p.seconds));
    Evidence {
        seconds: seconds.reduce(seconds_of_two).unwrap_or_default(),
        start: merge_starts(&starts),
        cgroup: sum_cgroups(&groups),
        gc,
        exit: merge_exits(&exits, speaker),
        warnings: merge_warnings(&parts),
        failure: parts.iter_mut().find_map(|p| p.failure.take()),
        last_output: take_lines(&mut parts, speaker, |p| &mut p.last_output),
        thread_dump: take_lines(&mut parts, speaker, |p| &mut p.thread_dump),
        instances,
        ..Evidence::default()
    }
}

fn take_lines(
    parts: &mut [Evidence],
    speaker: usize,
    field: impl Fn(&mut Evidence) -> &mut Vec<String>,
) -> Vec<String> {
    let part = parts.get_mut(speaker);
    part.map(|p| std::mem::take(field(p))).unwrap_or_default()
}

fn instance_evidence((number, part): (u32, &Evidence)) -> InstanceEvidence {
    InstanceEvidence {
        instance: number,
        start: part.start.clone(),
        cgroup: part.cgroup.clone(),
        gc: part.gc.as_ref().map(|gc| GcEvidence {
            heaps_after: Vec::new(),
            pause_spans_ns: Vec::new(),
            ..gc.clone()
        }),
        exit: part.exit.clone(),
    }
}

/// The start of all: ready when the last one is, with the sums of what they used. Shared pages
/// count fully in each instance's PSS that was taken before the next one was there.
pub fn merge_starts(starts: &[StartEvidence]) -> StartEvidence {
    let time = |s: &&StartEvidence| s.ready.unwrap_or(Duration::MAX);
    let slowest = starts.iter().max_by_key(time);
    StartEvidence {
        ready: longest_of(starts, |s| s.ready),
        deadline: starts.iter().map(|s| s.deadline).max().unwrap_or_default(),
        cpu: sum_of(starts, |s| s.cpu),
        throttled: sum_of(starts, |s| s.throttled),
        last_probe: slowest.map_or_else(String::new, |s| s.last_probe.clone()),
        log_line: longest_of(starts, |s| s.log_line),
        classes: sum_of(starts, |s| s.classes),
        classes_archived: sum_of(starts, |s| s.classes_archived),
        rss: sum_of(starts, |s| s.rss),
        pss: sum_of(starts, |s| s.pss),
        hugetlb: sum_of(starts, |s| s.hugetlb),
    }
}

fn sum_cgroups(groups: &[CgroupEvidence]) -> CgroupEvidence {
    CgroupEvidence {
        // They share the CPUs of the plan, unless each has its own.
        cpus: groups.iter().filter_map(|g| g.cpus).max(),
        peak_memory: sum_of(groups, |g| g.peak_memory),
        peak_working_set: sum_of(groups, |g| g.peak_working_set),
        peak_anon: sum_of(groups, |g| g.peak_anon),
        peak_anon_huge: sum_of(groups, |g| g.peak_anon_huge),
        peak_rss: sum_of(groups, |g| g.peak_rss),
        loaded_rss: sum_of(groups, |g| g.loaded_rss),
        loaded_pss: sum_of(groups, |g| g.loaded_pss),
        oom_kills: sum_of(groups, |g| g.oom_kills),
        file_refaults: sum_of(groups, |g| g.file_refaults),
        major_faults: sum_of(groups, |g| g.major_faults),
        cpu: sum_of(groups, |g| g.cpu),
        measure_cpu: sum_of(groups, |g| g.measure_cpu),
        // Each has its own quota, which the sum does not reflect.
        measure_nr_periods: sum_of(groups, |g| g.measure_nr_periods),
        measure_nr_throttled: sum_of(groups, |g| g.measure_nr_throttled),
        measure_throttled: sum_of(groups, |g| g.measure_throttled),
    }
}

fn merge_gc_logs(logs: &[GcEvidence]) -> GcEvidence {
    let total = |of: fn(&GcEvidence) -> u64| logs.iter().map(of).sum();
    let time = |of: fn(&GcEvidence) -> Duration| logs.iter().map(of).sum();
    let first = logs.first();
    GcEvidence {
        collector: first.map_or_else(String::new, |gc| gc.collector.clone()),
        jdk: first.and_then(|gc| gc.jdk.clone()),
        pauses: total(|gc| gc.pauses),
        pause_sum: time(|gc| gc.pause_sum),
        pause_max: longest_of(logs, |gc| Some(gc.pause_max)).unwrap_or_default(),
        full_gcs: total(|gc| gc.full_gcs),
        gc_cpu: sum_of(logs, |gc| gc.gc_cpu),
        measure_gc_cpu: sum_of(logs, |gc| gc.measure_gc_cpu),
        measure_pauses: sum_of(logs, |gc| gc.measure_pauses),
        measure_pause_sum: sum_of(logs, |gc| gc.measure_pause_sum),
        measure_pause_max: longest_of(logs, |gc| gc.measure_pause_max),
        parallel_workers: first.and_then(|gc| gc.parallel_workers),
        heap_after_max: sum_of(logs, |gc| gc.heap_after_max),
        heap_max: sum_of(logs, |gc| gc.heap_max),
        allocated: sum_of(logs, |gc| gc.allocated),
        promoted: sum_of(logs, |gc| gc.promoted),
        heaps_after: Vec::new(),
        pause_spans_ns: Vec::new(),
    }
}

fn merge_exits(exits: &[&ExitEvidence], speaker: usize) -> ExitEvidence {
    let own = exits.get(speaker).copied().cloned().unwrap_or_default();
    ExitEvidence {
        unclean_stop: exits.iter().any(|e| e.unclean_stop),
        leftover_processes: exits.iter().map(|e| e.leftover_processes).sum(),
        ..own
    }
}

/// What every instance says is said once; what some say, with their numbers.
fn merge_warnings(parts: &[Evidence]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (number, part) in (1..).zip(parts) {
        for warning in &part.warnings {
            let is_common = parts.iter().all(|p| p.warnings.contains(warning));
            let line = if is_common {
                warning.clone()
            } else {
                format!("instance {number}: {warning}")
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// The seconds of two series as one: counters and gauges add up, latencies are the larger ones.
pub fn seconds_of_two(
    mut sum: Vec<SecondEvidence>,
    other: Vec<SecondEvidence>,
) -> Vec<SecondEvidence> {
    for second in other {
        let at = sum.partition_point(|s| s.at_ns + HALF_SECOND < second.at_ns);
        match sum.get_mut(at) {
            Some(slot) if slot.at_ns.abs_diff(second.at_ns) <= HALF_SECOND => {
                add_second(slot, second)
            }
            _ => sum.insert(at, second),
        }
    }
    sum
}

fn add_second(slot: &mut SecondEvidence, other: SecondEvidence) {
    *slot = SecondEvidence {
        at_ns: slot.at_ns,
        offered: sum_known(slot.offered, other.offered),
        achieved: sum_known(slot.achieved, other.achieved),
        errors: sum_known(slot.errors, other.errors),
        p50: slot.p50.max(other.p50),
        p99: slot.p99.max(other.p99),
        max: slot.max.max(other.max),
        cpu: sum_known(slot.cpu, other.cpu),
        nr_throttled: sum_known(slot.nr_throttled, other.nr_throttled),
        throttled: sum_known(slot.throttled, other.throttled),
        memory: sum_known(slot.memory, other.memory),
        working_set: sum_known(slot.working_set, other.working_set),
        anon: sum_known(slot.anon, other.anon),
        gc_pause: sum_known(slot.gc_pause, other.gc_pause),
        threads: sum_known(slot.threads, other.threads),
        sockets: sum_known(slot.sockets, other.sockets),
        heap_committed: sum_known(slot.heap_committed, other.heap_committed),
        heap_after: sum_known(slot.heap_after, other.heap_after),
    };
}

/// What is known of the two.
fn sum_known<V: SummableValue>(one: Option<V>, other: Option<V>) -> Option<V> {
    one.into_iter().chain(other).reduce(V::plus)
}

fn all_present<T>(values: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let values: Option<Vec<T>> = values.collect();
    values.filter(|all| !all.is_empty())
}

fn longest_of<T>(parts: &[T], of: impl Fn(&T) -> Option<Duration>) -> Option<Duration> {
    all_present(parts.iter().map(of)).and_then(|times| times.into_iter().max())
}

fn sum_of<T, V: SummableValue>(parts: &[T], of: impl Fn(&T) -> Option<V>) -> Option<V> {
    all_present(parts.iter().map(of)).and_then(|values| values.into_iter().reduce(V::plus))
}

trait SummableValue: Sized {
    fn plus(self, other: Self) -> Self;
}

impl SummableValue for u64 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl SummableValue for Duration {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl SummableValue for Bytes {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(ready: Option<u64>, mib: u64, kills: u64) -> Evidence {
        Evidence {
            start: StartEvidence {
                ready: ready.map(Duration::from_secs),
                ..StartEvidence::default()
            },
            cgroup: CgroupEvidence {
                peak_memory: Some(Bytes::from_mib(mib)),
                loaded_pss: ready.map(|_| Bytes::from_mib(mib / 2)),
                oom_kills: Some(kills),
                ..CgroupEvidence::default()
            },
            exit: ExitEvidence {
                before_stop: kills > 0,
                signal: (kills > 0).then_some(9),
                ..ExitEvidence::default()
            },
            last_output: vec![format!("{mib}")],
            warnings: vec!["shared".to_owned(), format!("own {mib}")],
            ..Evidence::default()
        }
    }

    #[test]
    fn memory_adds_up_and_the_last_one_ready_is_the_start() {
        let sum = merge_instances(vec![part(Some(3), 100, 0), part(Some(5), 60, 0)]);
        assert_eq!(sum.start.ready, Some(Duration::from_secs(5)));
        assert_eq!(sum.cgroup.peak_memory, Some(Bytes::from_mib(160)));
        assert_eq!(sum.cgroup.loaded_pss, Some(Bytes::from_mib(80)));
        assert_eq!(sum.instances.len(), 2);
        assert!(!sum.exit.before_stop);
        assert_eq!(
            sum.warnings,
            ["shared", "instance 1: own 100", "instance 2: own 60"]
        );
    }

    #[test]
    fn one_that_was_killed_speaks_for_all() {
        let sum = merge_instances(vec![part(Some(3), 100, 0), part(None, 60, 1)]);
        assert_eq!(sum.start.ready, None);
        assert_eq!(sum.cgroup.loaded_pss, None, "one has none");
        assert_eq!((sum.cgroup.oom_kills, sum.exit.signal), (Some(1), Some(9)));
        assert!(sum.exit.before_stop);
        assert_eq!(sum.last_output, ["60"]);
    }

    #[test]
    fn seconds_that_end_together_are_one_second() {
        let second = |at_ns, achieved, p99| SecondEvidence {
            at_ns,
            achieved,
            p99: Some(Duration::from_millis(p99)),
            ..SecondEvidence::default()
        };
        let one = vec![
            second(1_000_000_000, Some(10), 5),
            second(2_000_000_000, Some(11), 5),
        ];
        let other = vec![
            second(2_100_000_000, Some(20), 9),
            second(3_100_000_000, None, 1),
        ];
        let sum = seconds_of_two(one, other);
        let seen: Vec<_> = sum.iter().map(|s| (s.at_ns, s.achieved)).collect();
        assert_eq!(
            seen,
            [
                (1_000_000_000, Some(10)),
                (2_000_000_000, Some(31)),
                (3_100_000_000, None)
            ]
        );
        assert_eq!(sum[1].p99, Some(Duration::from_millis(9)));
    }
}
