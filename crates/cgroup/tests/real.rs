//! The crate against the kernel of this machine: v1, v2 or hybrid, whatever it is. Needs the
//! right to make groups; without it every test prints a SKIP line. The same binary runs on real
//! cgroup v2 inside user-mode Linux, see tests/v2_uml.rs.

// Helpers of tests, too, may fail by a panic and say SKIP.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadline_cgroup::host::Host;
use loadline_cgroup::{
    CgroupError, Controller, CpuSet, Group, GroupName, Layout, Limits, Mode, Noise, NoiseMeter,
    Sample, Sampler, SamplerOptions, Status,
};
use loadline_sizing::{Bytes, Cpus};

const SOON: Duration = Duration::from_secs(10);

/// The layout, or a SKIP line and nothing.
fn layout(test: &str) -> Option<Layout> {
    let found = Layout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"))
        .and_then(|layout| layout.check_permission().map(|()| layout));
    match found {
        Ok(layout) => Some(layout),
        Err(error) => {
            println!("SKIP {test}: {}", error.to_string().replace('\n', " "));
            None
        }
    }
}

/// A group that is killed and removed when the test ends, also by a panic.
struct Scoped(Group);

impl Scoped {
    fn new(layout: &Layout) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let trial = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let name = GroupName::new(Path::new("/proc"), &trial).unwrap();
        Self(Group::create(layout, &name.to_string()).unwrap())
    }

    /// Starts a shell in the group.
    fn sh(&self, script: &str) -> Child {
        let mut join = String::new();
        for file in self.0.join_files() {
            join += &format!("echo 0 > {} || exit 99\n", file.display());
        }
        Command::new("sh")
            .args(["-c", &(join + script)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        let ended = self.0.kill(SOON).and_then(|_| self.0.remove(SOON));
        if !std::thread::panicking() {
            ended.unwrap();
            assert!(!self.0.exists(), "{} is left", self.0.name());
        }
    }
}

/// Waits until `condition` holds.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < SOON, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn limits_are_taken_changed_and_taken_away() {
    let Some(layout) = layout("limits_are_taken_changed_and_taken_away") else {
        return;
    };
    let group = Scoped::new(&layout);
    let first_cpu: CpuSet = "0".parse().unwrap();
    let full = Limits {
        cpu_quota: Some(Cpus::from_millis(500)),
        cpu_period: Duration::from_millis(20),
        cpu_burst: None,
        cpu_shares: Some(2048),
        cpuset: layout.place(Controller::Cpuset).map(|_| first_cpu),
        memory: Some(Bytes::from_bytes(100_000_001)),
        pids: Some(50),
    };
    let smaller = Limits {
        cpu_quota: Some(Cpus::from_millis(250)),
        memory: Some(Bytes::from_mib(32)),
        ..full.clone()
    };
    for limits in [
        &full,
        &smaller,
        &full,
        &Limits::default(),
        &Limits::default(),
    ] {
        group.0.apply(limits).unwrap();
    }
}

#[test]
fn a_burst_is_taken_and_a_smaller_quota_after_it() {
    let test = "a_burst_is_taken_and_a_smaller_quota_after_it";
    let Some(layout) = layout(test) else { return };
    let group = Scoped::new(&layout);
    let (_, dir) = group.0.dir(Controller::Cpu).unwrap();
    if !["cpu.cfs_burst_us", "cpu.max.burst"]
        .iter()
        .any(|f| dir.join(f).exists())
    {
        println!("SKIP {test}: this kernel has no CPU burst (Linux 5.14)");
        return;
    }
    for (cpu, burst) in [(1000, Some(80)), (250, Some(20)), (250, None)] {
        let limits = Limits {
            cpu_quota: Some(Cpus::from_millis(cpu)),
            cpu_burst: burst.map(Duration::from_millis),
            ..Limits::default()
        };
        group.0.apply(&limits).unwrap();
    }
}

#[test]
fn a_quota_throttles_and_the_counters_say_so() {
    let Some(layout) = layout("a_quota_throttles_and_the_counters_say_so") else {
        return;
    };
    let group = Scoped::new(&layout);
    let limits = Limits {
        cpu_quota: Some(Cpus::from_millis(200)),
        ..Limits::default()
    };
    group.0.apply(&limits).unwrap();
    let mut spin = group.sh("while :; do :; done");
    wait_until("throttling", || {
        group.0.read().unwrap().cpu.nr_throttled >= Some(3)
    });
    let sample = group.0.read().unwrap();
    group.0.kill(SOON).unwrap();
    spin.wait().unwrap();
    assert!(sample.cpu.throttled_time.unwrap() > Duration::ZERO);
    assert!(sample.cpu.nr_periods >= sample.cpu.nr_throttled);
    assert!(sample.cpu.usage.unwrap() > Duration::from_millis(40));
    assert!(sample.cpu.user.is_some() && sample.cpu.system.is_some());
    assert!(sample.memory.unwrap().working_set().is_some());
    assert!(sample.pids_current >= Some(1));
    if layout.mode() == Mode::Hybrid && Path::new("/proc/pressure/cpu").exists() {
        assert!(sample.pressure.unwrap().cpu.unwrap().some > Duration::ZERO);
    }
}

#[test]
fn an_oom_kill_is_counted_in_the_leaf() {
    let Some(layout) = layout("an_oom_kill_is_counted_in_the_leaf") else {
        return;
    };
    let group = Scoped::new(&layout);
    let limits = Limits {
        memory: Some(Bytes::from_mib(16)),
        ..Limits::default()
    };
    group.0.apply(&limits).unwrap();
    // One block of 64 MiB, in dd's own memory.
    let status = group
        .sh("exec dd if=/dev/zero of=/dev/null bs=64M count=1")
        .wait()
        .unwrap();
    assert!(!status.success());
    let memory = group.0.read().unwrap().memory.unwrap();
    assert!(memory.oom_kill >= Some(1), "{memory:?}");
    assert!(memory.peak.is_none_or(|peak| peak <= Bytes::from_mib(16)));
    if group.0.reset_peak().unwrap() {
        assert!(group.0.read().unwrap().memory.unwrap().peak < memory.peak);
    }
}

#[test]
fn a_tree_that_keeps_forking_is_killed() {
    let Some(layout) = layout("a_tree_that_keeps_forking_is_killed") else {
        return;
    };
    let group = Scoped::new(&layout);
    let limits = Limits {
        pids: Some(60),
        ..Limits::default()
    };
    group.0.apply(&limits).unwrap();
    let mut root = group.sh("b() { (trap '' TERM HUP; while :; do (b) & sleep 0.01; done); }; b");
    wait_until("the tree", || group.0.processes().unwrap().len() > 20);
    assert!(group.0.kill(SOON).unwrap() > 20);
    assert_eq!(group.0.processes().unwrap(), []);
    root.wait().unwrap();
}

#[test]
fn a_group_with_a_process_and_a_sub_group_is_not_removed_but_swept() {
    let Some(layout) = layout("a_group_with_a_process_and_a_sub_group_is_not_removed_but_swept")
    else {
        return;
    };
    let group = Scoped::new(&layout);
    for dir in group.0.dirs() {
        std::fs::create_dir(dir.join("inner")).unwrap();
    }
    let mut sleeper = group.sh("exec sleep 1000");
    wait_until("the process", || !group.0.processes().unwrap().is_empty());
    let refused = group.0.remove(Duration::from_millis(50)).unwrap_err();
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
    let name = group.0.name();
    let kept = loadline_cgroup::sweep(&layout, |_| false, SOON).unwrap();
    assert!(kept.removed.is_empty() && group.0.exists());
    let swept = loadline_cgroup::sweep(&layout, |n| n == name, SOON).unwrap();
    assert_eq!((swept.removed, swept.killed), (vec![name.to_owned()], 1));
    assert!(!group.0.exists());
    sleeper.wait().unwrap();
}

#[test]
fn a_second_group_of_the_same_name_is_refused_and_the_first_stays() {
    let Some(layout) = layout("a_second_group_of_the_same_name_is_refused_and_the_first_stays")
    else {
        return;
    };
    let group = Scoped::new(&layout);
    Group::create(&layout, group.0.name()).unwrap_err();
    assert!(group.0.dirs().all(Path::exists));
}

/// Samples a group that spins under a small quota, for so long and until it was throttled: on a
/// busy machine it may wait for a CPU instead.
fn sampled(
    layout: &Layout,
    options: SamplerOptions,
    length: Duration,
) -> (Vec<Sample>, loadline_cgroup::SamplerReport) {
    let group = Scoped::new(layout);
    let limits = Limits {
        cpu_quota: Some(Cpus::from_millis(100)),
        ..Limits::default()
    };
    group.0.apply(&limits).unwrap();
    let mut spin = group.sh("while :; do :; done");
    let (send, receive) = std::sync::mpsc::channel();
    let sampler = Sampler::start(&group.0, options, move |sample| {
        let _ = send.send(sample.clone());
    })
    .unwrap();
    std::thread::sleep(length);
    wait_until("throttling", || {
        group.0.read().unwrap().cpu.throttled_time > Some(Duration::ZERO)
    });
    std::thread::sleep(Duration::from_millis(20));
    let report = sampler.stop();
    group.0.kill(SOON).unwrap();
    spin.wait().unwrap();
    (receive.iter().collect(), report)
}

#[test]
fn a_sampler_gives_growing_counters_and_its_own_cost() {
    let Some(layout) = layout("a_sampler_gives_growing_counters_and_its_own_cost") else {
        return;
    };
    let options = SamplerOptions::every(Duration::from_millis(1));
    let (samples, report) = sampled(&layout, options, Duration::from_millis(600));
    assert!(report.failure.is_none());
    assert_eq!(report.samples, samples.len() as u64);
    assert!(report.cpu > Duration::ZERO && report.cpu < report.wall);
    assert!(
        samples
            .windows(2)
            .all(|w| w[0].at_ns < w[1].at_ns && w[0].cpu.usage <= w[1].cpu.usage)
    );
    assert!(samples.last().unwrap().cpu.throttled_time > samples[0].cpu.throttled_time);
    // Slow parts: at the first sample, then not more often than every 100 ms, a tenth early.
    let with_memory: Vec<_> = samples.iter().filter(|s| s.memory.is_some()).collect();
    assert!(samples[0].memory.is_some() && with_memory.len() > 1);
    assert!(
        with_memory
            .windows(2)
            .all(|w| w[1].at_ns - w[0].at_ns >= 90_000_000)
    );
}

#[test]
fn a_phase_locked_sampler_finds_the_boundary() {
    let Some(layout) = layout("a_phase_locked_sampler_finds_the_boundary") else {
        return;
    };
    let options = SamplerOptions::phase_locked(Duration::from_millis(100));
    let (samples, report) = sampled(&layout, options, Duration::from_secs(3));
    let lock = report.phase_lock.expect("an active group has a phase");
    assert!(lock.uncertainty <= Duration::from_millis(2));
    let periods = samples.last().unwrap().cpu.nr_periods.unwrap();
    assert!(periods >= 10, "{periods}");
}

#[test]
fn a_sampler_ends_when_its_group_goes() {
    let Some(layout) = layout("a_sampler_ends_when_its_group_goes") else {
        return;
    };
    let group = Scoped::new(&layout);
    let sampler = Sampler::start(
        &group.0,
        SamplerOptions::every(Duration::from_millis(1)),
        |_| {},
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(20));
    group.0.remove(SOON).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let report = sampler.stop();
    assert!(report.failure.is_some_and(|e| e.is_gone()));
}

#[test]
fn a_sampler_stops_in_the_middle_of_a_long_sleep() {
    let Some(layout) = layout("a_sampler_stops_in_the_middle_of_a_long_sleep") else {
        return;
    };
    let group = Scoped::new(&layout);
    let sampler = Sampler::start(
        &group.0,
        SamplerOptions::every(Duration::from_secs(3600)),
        |_| {},
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let stopping = Instant::now();
    assert_eq!(sampler.stop().samples, 1);
    assert!(stopping.elapsed() < SOON);
}

#[test]
fn noise_of_others_is_told_from_our_own() {
    let Some(layout) = layout("noise_of_others_is_told_from_our_own") else {
        return;
    };
    let group = Scoped::new(&layout);
    let mut spin = group.sh("while :; do :; done");
    let usage = || group.0.read().unwrap().cpu.usage.unwrap();
    // What the group used well inside each window.
    let run = |groups: &[&Group], children: &[u32]| {
        let meter = NoiseMeter::start(&layout, groups, children).unwrap();
        let before = usage();
        std::thread::sleep(Duration::from_millis(500));
        let used = usage() - before;
        (meter.finish().unwrap(), used)
    };
    let (listed, listed_used) = run(&[&group.0], &[]);
    let (as_child, child_used) = run(&[], &[spin.id()]);
    let (unlisted, unlisted_used) = run(&[], &[]);
    group.0.kill(SOON).unwrap();
    spin.wait().unwrap();
    let cpus = Host::read(layout.proc_root()).unwrap().cpus_online.len();
    let foreign = |n: &Noise| n.wall.mul_f64(n.foreign_cpu.unwrap() * cpus as f64);
    // /proc/stat and /proc/PID/stat count ticks of 10 ms.
    let ticks = Duration::from_millis(50);
    assert!(
        foreign(&unlisted) + ticks >= unlisted_used,
        "{unlisted:?} {unlisted_used:?}"
    );
    for (noise, used) in [(&listed, listed_used), (&as_child, child_used)] {
        let most = noise.wall * cpus as u32;
        assert!(foreign(noise) + used <= most + ticks, "{noise:?} {used:?}");
        assert!(noise.steal.is_some(), "{noise:?}");
    }
    assert!(unlisted.contention.is_none());
    if Path::new("/proc/pressure/cpu").exists() {
        assert!(listed.host_cpu_pressure.is_some(), "{listed:?}");
    }
}

#[test]
fn the_probe_finds_that_everything_needed_works() {
    let Some(layout) = layout("the_probe_finds_that_everything_needed_works") else {
        return;
    };
    let checks = loadline_cgroup::probe(Path::new("/sys/fs/cgroup"), layout.proc_root());
    for check in &checks {
        println!(
            "{:<16} {:<8} {} {:?}",
            check.name, check.status, check.detail, check.fix
        );
    }
    assert!(checks.len() >= 10);
    assert!(
        checks.iter().all(|c| c.status != Status::Broken),
        "{checks:#?}"
    );
    let left = loadline_cgroup::find_groups(&layout, |name| name.ends_with("-probe"));
    assert!(left.unwrap().is_empty());
}
