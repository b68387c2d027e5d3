//! Limits, counters, killing, removing, sweeping.

use std::path::Path;
use std::time::Duration;

use loadline_cgroup::{CgroupError, CgroupLimits, ControlGroup, Controller, HierarchyMode};
use loadline_sizing::CpuSet;
use loadline_sizing::{Bytes, Cpus};

use crate::{SOON, Scoped, layout, wait_until};

#[test]
fn limits_are_taken_changed_and_taken_away() {
    let Some(layout) = layout("limits_are_taken_changed_and_taken_away") else {
        return;
    };
    let group = Scoped::new(&layout);
    let first_cpu: CpuSet = "0".parse().unwrap();
    let full = CgroupLimits {
        cpu_quota: Some(Cpus::from_millis(500)),
        cpu_period: Duration::from_millis(20),
        cpu_burst: None,
        cpu_shares: Some(2048),
        cpuset: layout.hierarchy_of(Controller::Cpuset).map(|_| first_cpu),
        memory: Some(Bytes::from_bytes(100_000_001)),
        pids: Some(50),
    };
    let smaller = CgroupLimits {
        cpu_quota: Some(Cpus::from_millis(250)),
        memory: Some(Bytes::from_mib(32)),
        ..full.clone()
    };
    for limits in [
        &full,
        &smaller,
        &full,
        &CgroupLimits::default(),
        &CgroupLimits::default(),
    ] {
        group.0.apply_limits(limits).unwrap();
    }
}

#[test]
fn a_burst_is_taken_and_a_smaller_quota_after_it() {
    let test = "a_burst_is_taken_and_a_smaller_quota_after_it";
    let Some(layout) = layout(test) else { return };
    let group = Scoped::new(&layout);
    let (_, dir) = group.0.controller_dir(Controller::Cpu).unwrap();
    if !["cpu.cfs_burst_us", "cpu.max.burst"]
        .iter()
        .any(|f| dir.join(f).exists())
    {
        println!("SKIP {test}: this kernel has no CPU burst (Linux 5.14)");
        return;
    }
    for (cpu, burst) in [(1000, Some(80)), (250, Some(20)), (250, None)] {
        let limits = CgroupLimits {
            cpu_quota: Some(Cpus::from_millis(cpu)),
            cpu_burst: burst.map(Duration::from_millis),
            ..CgroupLimits::default()
        };
        group.0.apply_limits(&limits).unwrap();
    }
}

#[test]
fn a_quota_throttles_and_the_counters_say_so() {
    let Some(layout) = layout("a_quota_throttles_and_the_counters_say_so") else {
        return;
    };
    let group = Scoped::new(&layout);
    let limits = CgroupLimits {
        cpu_quota: Some(Cpus::from_millis(200)),
        ..CgroupLimits::default()
    };
    group.0.apply_limits(&limits).unwrap();
    let mut spin = group.sh("while :; do :; done");
    wait_until("throttling", || {
        let cpu = group.0.read().unwrap().cpu;
        // The kernel counts a period when it begins to throttle, its time when that ends.
        cpu.nr_throttled >= Some(3) && cpu.throttled_time > Some(Duration::ZERO)
    });
    let sample = group.0.read().unwrap();
    group.0.kill_processes(SOON).unwrap();
    spin.wait().unwrap();
    assert!(sample.cpu.throttled_time.unwrap() > Duration::ZERO);
    assert!(sample.cpu.nr_periods >= sample.cpu.nr_throttled);
    assert!(sample.cpu.usage.unwrap() > Duration::from_millis(40));
    assert!(sample.cpu.user.is_some() && sample.cpu.system.is_some());
    assert!(sample.memory.unwrap().working_set().is_some());
    assert!(sample.pids_current >= Some(1));
    if layout.mode() == HierarchyMode::Hybrid && Path::new("/proc/pressure/cpu").exists() {
        assert!(sample.pressure.unwrap().cpu.unwrap().some > Duration::ZERO);
    }
}

#[test]
fn an_oom_kill_is_counted_in_the_leaf() {
    let Some(layout) = layout("an_oom_kill_is_counted_in_the_leaf") else {
        return;
    };
    let group = Scoped::new(&layout);
    let limits = CgroupLimits {
        memory: Some(Bytes::from_mib(16)),
        ..CgroupLimits::default()
    };
    group.0.apply_limits(&limits).unwrap();
    // One block of 64 MiB, in dd's own memory.
    let status = group
        .sh("exec dd if=/dev/zero of=/dev/null bs=64M count=1")
        .wait()
        .unwrap();
    assert!(!status.success());
    let memory = group.0.read().unwrap().memory.unwrap();
    assert!(memory.oom_kill >= Some(1), "{memory:?}");
    assert!(memory.peak.is_none_or(|peak| peak <= Bytes::from_mib(16)));
}

/// Lines of processes, each of which starts its successor and exits: always new ids, and always at
/// least one process per line. A growing tree would reach some limit of tasks, and a shell that
/// cannot fork exits.
#[test]
fn lines_that_keep_forking_are_killed() {
    let Some(layout) = layout("lines_that_keep_forking_are_killed") else {
        return;
    };
    let group = Scoped::new(&layout);
    let mut root = group.sh("line() { trap '' TERM HUP; sleep 0.01; line & }; \
         for i in $(seq 30); do line & done");
    assert!(root.wait().unwrap().success());
    let first = group.0.process_ids().unwrap();
    wait_until("successors of all", || {
        let now = group.0.process_ids().unwrap();
        first.iter().all(|pid| !now.contains(pid))
    });
    assert!(group.0.kill_processes(SOON).unwrap() >= 30);
    assert_eq!(group.0.process_ids().unwrap(), []);
}

#[test]
fn a_group_with_a_process_and_a_sub_group_is_not_removed_but_swept() {
    let Some(layout) = layout("a_group_with_a_process_and_a_sub_group_is_not_removed_but_swept")
    else {
        return;
    };
    let group = Scoped::new(&layout);
    for dir in group.0.hierarchy_dirs() {
        std::fs::create_dir(dir.join("inner")).unwrap();
    }
    let mut sleeper = group.sh("exec sleep 1000");
    wait_until("the process", || !group.0.process_ids().unwrap().is_empty());
    let refused = group.0.remove_dirs(Duration::from_millis(50)).unwrap_err();
    assert!(
        matches!(
            refused,
            CgroupError::File {
                action: "remove",
                ..
            }
        ),
        "{refused}"
    );
    let name = group.0.group_name();
    let kept = loadline_cgroup::sweep_cgroups(&layout, |_| false, SOON).unwrap();
    assert!(kept.removed.is_empty() && group.0.exists());
    let swept = loadline_cgroup::sweep_cgroups(&layout, |n| n == name, SOON).unwrap();
    assert_eq!((swept.removed, swept.killed), (vec![name.to_owned()], 1));
    assert!(!group.0.exists());
    sleeper.wait().unwrap();
}

#[test]
fn a_group_below_another_counts_by_itself_and_goes_with_it() {
    let Some(layout) = layout("a_group_below_another_counts_by_itself_and_goes_with_it") else {
        return;
    };
    let group = Scoped::new(&layout);
    for wrong in ["", "a/b", ".."] {
        assert!(matches!(
            group.0.create_child(wrong),
            Err(CgroupError::BadName { .. })
        ));
    }
    let below = group.0.create_child("libpod-00ff").unwrap();
    below
        .apply_limits(&CgroupLimits {
            memory: Some(Bytes::from_mib(32)),
            ..CgroupLimits::default()
        })
        .unwrap();
    let join: Vec<String> = below
        .join_files()
        .iter()
        .map(|file| format!("echo 0 > {} || exit 99;", file.display()))
        .collect();
    let mut sleeper = std::process::Command::new("sh")
        .args(["-c", &(join.concat() + "exec sleep 1000")])
        .spawn()
        .unwrap();
    // What it had before it joined stays charged where it came from: its own memory here begins with
    // what it touches next, which may be after it is in the list of processes.
    wait_until("own memory", || {
        let memory = below.read().unwrap().memory;
        memory.is_some_and(|m| m.usage > Some(Bytes::from_bytes(0)))
    });
    assert_eq!(below.process_ids().unwrap().len(), 1);
    assert_eq!(group.0.kill_processes(SOON).unwrap(), 1);
    group.0.remove_dirs(SOON).unwrap();
    assert!(!below.exists());
    sleeper.wait().unwrap();
}

#[test]
fn a_second_group_of_the_same_name_is_refused_and_the_first_stays() {
    let Some(layout) = layout("a_second_group_of_the_same_name_is_refused_and_the_first_stays")
    else {
        return;
    };
    let group = Scoped::new(&layout);
    ControlGroup::create_group(&layout, group.0.group_name()).unwrap_err();
    assert!(group.0.hierarchy_dirs().all(Path::exists));
}

/// An engine removes its groups one hierarchy after the other.
#[test]
fn a_group_that_is_half_removed_has_no_oom_kills() {
    let Some(layout) = layout("a_group_that_is_half_removed_has_no_oom_kills") else {
        return;
    };
    let group = Scoped::new(&layout);
    assert!(group.0.read().unwrap().has_oom_kills());
    let (_, memory) = group.0.controller_dir(Controller::Memory).unwrap();
    std::fs::remove_dir(memory).unwrap();
    // Where one hierarchy holds all controllers, nothing is left to read.
    if let Ok(sample) = group.0.read() {
        assert!(!sample.has_oom_kills());
    }
}
