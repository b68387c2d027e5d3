//! Prints what sampling a busy group costs, at each pace. Needs the right to make groups.
//!
//! The first row is a thread that wakes every millisecond and does nothing: what the machine
//! charges for 1000 wake-ups a second whoever asks for them. On a virtual machine it can be most
//! of the cost of the 1 ms row.
//!
//! `cargo run --release -p loadline-cgroup --example sampler_cost [SECONDS [CPUS]]`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use loadline_cgroup::{
    CgroupLayout, CgroupLimits, CgroupSampler, ControlGroup, GroupName, SamplerOptions,
};
use loadline_sizing::Cpus;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let seconds = words
        .next()
        .map_or(Ok(5), |s| s.to_string_lossy().parse())?;
    let cpus = words
        .next()
        .map_or("500m".parse(), |s| s.to_string_lossy().parse())?;
    let layout = CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"))?;
    let name = GroupName::new(Path::new("/proc"), "sampler-cost")?;
    let group = ControlGroup::create_group(&layout, &name.to_string())?;
    let measured = measure(&group, cpus, Duration::from_secs(seconds));
    group.kill_processes(Duration::from_secs(5))?;
    group.remove_dirs(Duration::from_secs(5))?;
    measured
}

fn measure(group: &ControlGroup, cpus: Cpus, length: Duration) -> Result<(), Box<dyn Error>> {
    let limits = CgroupLimits {
        cpu_quota: Some(cpus),
        ..CgroupLimits::default()
    };
    group.apply_limits(&limits)?;
    let mut script = String::new();
    for file in group.join_files() {
        script += &format!("echo 0 > {} && ", file.display());
    }
    script += "{ while :; do :; done & while :; do :; done; }";
    let mut spin = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .spawn()?;
    println!(
        "pace           samples  CPU of a core  per sample  gaps  longest gap  phase known to"
    );
    println!(
        "nothing, 1 ms          {:>13.3}%",
        100.0 * idle_share(length)
    );
    for (label, options) in [
        ("1 s", SamplerOptions::every(Duration::from_secs(1))),
        ("100 ms", SamplerOptions::every(Duration::from_millis(100))),
        ("1 ms", SamplerOptions::every(Duration::from_millis(1))),
        (
            "phase-locked",
            SamplerOptions::phase_locked(limits.cpu_period),
        ),
    ] {
        let sampler = CgroupSampler::start_sampling(group, options, |_| {})?;
        std::thread::sleep(length);
        let report = sampler.stop_sampling();
        let per_sample = report.cpu / u32::try_from(report.samples.max(1))?;
        let lock = report
            .phase_lock
            .map_or("-".to_owned(), |lock| format!("{:?}", lock.uncertainty));
        println!(
            "{label:<13} {:>8} {:>13.3}% {:>11.1?} {:>5} {:>12.1?}  {lock}",
            report.samples,
            100.0 * report.cpu_share(),
            per_sample,
            report.gap_count,
            report.longest_gap,
        );
    }
    group.kill_processes(length)?;
    spin.wait()?;
    Ok(())
}

/// CPU share of a thread that wakes every millisecond and does nothing.
fn idle_share(length: Duration) -> f64 {
    let run = move || {
        let clock = rustix::time::ClockId::ThreadCPUTime;
        let before = rustix::time::clock_gettime(clock);
        let end = std::time::Instant::now() + length;
        while std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let after = rustix::time::clock_gettime(clock);
        let nanos = (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec;
        nanos as f64 / length.as_nanos() as f64
    };
    std::thread::spawn(run).join().unwrap_or(f64::NAN)
}
