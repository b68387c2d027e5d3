//! The noise meter and the probe.

use std::path::Path;
use std::time::Duration;

use loadline_cgroup::{CheckStatus, ControlGroup, Noise, NoiseMeter};

use crate::{SOON, Scoped, layout};

const WINDOW: Duration = Duration::from_millis(500);

#[test]
fn noise_of_others_is_told_from_our_own() {
    let Some(layout) = layout("noise_of_others_is_told_from_our_own") else {
        return;
    };
    let group = Scoped::new(&layout);
    let mut spin = group.sh("while :; do :; done");
    let usage = || group.0.read().unwrap().cpu.usage.unwrap();
    // What the group used well inside each window.
    let once = |groups: &[&ControlGroup], children: &[u32]| {
        let meter = NoiseMeter::start_window(&layout, groups, children).unwrap();
        let before = usage();
        std::thread::sleep(WINDOW);
        let used = usage() - before;
        (meter.finish_window().unwrap(), used)
    };
    // A machine in user space that had no CPU for a while has lost ticks of its clock.
    let run = |groups: &[&ControlGroup], children: &[u32]| {
        let windows = std::iter::repeat_with(|| once(groups, children)).take(20);
        let mut whole = windows.filter(|(noise, _)| noise.wall < 2 * WINDOW);
        whole.next().expect("a window with the CPU")
    };
    let (listed, listed_used) = run(&[&group.0], &[]);
    let (as_child, child_used) = run(&[], &[spin.id()]);
    let (unlisted, unlisted_used) = run(&[], &[]);
    group.0.kill_processes(SOON).unwrap();
    spin.wait().unwrap();
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let cpus = stat.lines().filter(|l| l.starts_with("cpu")).count() - 1;
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
    let checks = loadline_cgroup::probe_cgroups(Path::new("/sys/fs/cgroup"), layout.proc_root());
    for check in &checks {
        println!(
            "{:<16} {:<8} {} {:?}",
            check.name, check.status, check.detail, check.fix
        );
    }
    assert!(checks.len() >= 10);
    assert!(
        checks.iter().all(|c| c.status != CheckStatus::Broken),
        "{checks:#?}"
    );
    // Others may probe at the same time.
    let own = format!("-{}-", std::process::id());
    let is_own = |name: &str| name.ends_with("-probe") && name.contains(&own);
    let left = loadline_cgroup::find_groups(&layout, is_own);
    assert!(left.unwrap().is_empty());
}
