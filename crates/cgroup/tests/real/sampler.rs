//! The sampler on a group that is throttled, idle, or gone.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use loadline_cgroup::{
    CgroupLayout, CgroupLimits, CgroupSample, CgroupSampler, SamplerOptions, SamplerReport,
};
use loadline_sizing::Cpus;

use crate::{SOON, Scoped, layout, wait_until};

/// Samples a group that spins under a small quota, for a given time and until it was throttled: on
/// a busy machine it may wait for a CPU instead.
fn sampled(
    layout: &CgroupLayout,
    options: SamplerOptions,
    length: Duration,
) -> (Vec<CgroupSample>, SamplerReport) {
    let group = Scoped::new(layout);
    let limits = CgroupLimits {
        cpu_quota: Some(Cpus::from_millis(100)),
        ..CgroupLimits::default()
    };
    group.0.apply_limits(&limits).unwrap();
    let mut spin = group.sh("while :; do :; done");
    let (send, receive) = std::sync::mpsc::channel();
    let sampler = CgroupSampler::start_sampling(&group.0, options, move |sample| {
        let _ = send.send(sample.clone());
    })
    .unwrap();
    std::thread::sleep(length);
    wait_until("throttling", || {
        group.0.read().unwrap().cpu.throttled_time > Some(Duration::ZERO)
    });
    std::thread::sleep(Duration::from_millis(20));
    let report = sampler.stop_sampling();
    group.0.kill_processes(SOON).unwrap();
    spin.wait().unwrap();
    (receive.iter().collect(), report)
}

/// A sampler that tells of each sample.
fn told(group: &Scoped, interval: Duration) -> (CgroupSampler, Receiver<()>) {
    let (send, receive) = std::sync::mpsc::channel();
    let tell = move |_: &CgroupSample| {
        let _ = send.send(());
    };
    let sampler =
        CgroupSampler::start_sampling(&group.0, SamplerOptions::every(interval), tell).unwrap();
    (sampler, receive)
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
    assert!(report.cpu < report.wall);
    // User-mode Linux books CPU time in whole ticks, and this may be none.
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    assert!(report.cpu > Duration::ZERO || cpuinfo.contains("User Mode Linux"));
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
    // A slow guest may not look often enough around any boundary within three seconds.
    let locked = (0..10).find_map(|_| {
        let options = SamplerOptions::phase_locked(Duration::from_millis(100));
        let (samples, report) = sampled(&layout, options, Duration::from_secs(3));
        report.phase_lock.map(|_| samples)
    });
    let samples = locked.expect("an active group has a phase");
    let periods = samples.last().unwrap().cpu.nr_periods.unwrap();
    assert!(periods >= 10, "{periods}");
}

#[test]
fn a_sampler_ends_when_its_group_goes() {
    let Some(layout) = layout("a_sampler_ends_when_its_group_goes") else {
        return;
    };
    let group = Scoped::new(&layout);
    let (sampler, samples) = told(&group, Duration::from_millis(1));
    samples.recv_timeout(SOON).unwrap();
    group.0.remove_dirs(SOON).unwrap();
    // Its end drops the channel.
    while samples.recv_timeout(SOON).is_ok() {}
    assert_eq!(samples.try_recv(), Err(TryRecvError::Disconnected));
    let report = sampler.stop_sampling();
    assert!(report.failure.is_some_and(|e| e.is_gone()));
}

#[test]
fn a_sampler_stops_in_the_middle_of_a_long_sleep() {
    let Some(layout) = layout("a_sampler_stops_in_the_middle_of_a_long_sleep") else {
        return;
    };
    let group = Scoped::new(&layout);
    let (sampler, samples) = told(&group, Duration::from_secs(3600));
    samples.recv_timeout(SOON).unwrap();
    let stopping = Instant::now();
    assert_eq!(sampler.stop_sampling().samples, 1);
    assert!(stopping.elapsed() < SOON);
}
