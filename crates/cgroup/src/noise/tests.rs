use super::*;
use crate::fake::{FakeCgroupTree, ROOT};
use crate::sample::Pressure;

fn group(usage_ms: &[u64], throttled_ms: u64, full_ms: u64) -> (CpuSample, PressureSample) {
    let cpu = CpuSample {
        usage: Some(Duration::from_millis(usage_ms.iter().sum())),
        usage_percpu: usage_ms.iter().map(|m| Duration::from_millis(*m)).collect(),
        throttled_time: Some(Duration::from_millis(throttled_ms)),
        ..CpuSample::default()
    };
    let full = Some(Duration::from_millis(full_ms));
    let pressure = Pressure {
        some: Duration::ZERO,
        full,
    };
    let pressure = PressureSample {
        cpu: Some(pressure),
        ..PressureSample::default()
    };
    (cpu, pressure)
}

#[test]
fn throttling_alone_is_no_contention() {
    let wall = Duration::from_secs(1);
    let start = group(&[0, 0], 0, 0);
    for (end, wanted) in [
        (group(&[500, 0], 500, 500), 0.0),
        (group(&[250, 250], 1500, 750), 0.0),
        (group(&[500, 0], 310, 500), 0.19),
        (group(&[900, 900], 0, 100), 0.1),
        (group(&[100, 0], 900, 500), 0.0),
    ] {
        let got = cpu_contention(Some(&start), Some(&end), Duration::ZERO, wall).unwrap();
        assert!((got - wanted).abs() < 1e-9, "{end:?}: {got}");
    }
}

#[test]
fn a_child_that_ended_is_not_foreign() {
    let second = Duration::from_secs(1);
    let start = NoiseReading {
        machine_usage: Some(100 * second),
        own: 10 * second,
        processes: vec![Some(2 * second), Some(second)],
        groups: vec![group(&[1000], 0, 0)],
        ..NoiseReading::default()
    };
    // Own 1 s, the child that ended 3 s more (5 in all), the other child 1 s, the group 4 s.
    let end = NoiseReading {
        machine_usage: Some(112 * second),
        own: 16 * second,
        processes: vec![None, Some(2 * second)],
        groups: vec![group(&[5000], 0, 0)],
        ..NoiseReading::default()
    };
    assert_eq!(foreign_time(&start, &end), 3 * second);
}

/// A hybrid machine with two CPUs, 100 ticks a second, and one group; all counters are numbers of
/// seconds since boot times a share, so that a window of one second has round results.
fn machine(fake: &FakeCgroupTree, seconds: u64) {
    let ticks = seconds * rustix::param::clock_ticks_per_second();
    let nanos = seconds * 1_000_000_000;
    // Of two CPUs: 5/10 busy, 4/10 idle, 1/10 stolen.
    fake.put_file(
        "proc/stat",
        &format!(
            "cpu  {} 0 0 {} 0 0 0 {} 0 0\n",
            ticks,
            ticks * 8 / 10,
            ticks * 2 / 10
        ),
    );
    fake.put_file(
        "proc/vmstat",
        &format!("pswpin {}\npswpout 7\n", seconds * 3),
    );
    fake.put_file(
        "proc/pressure/cpu",
        &format!("some avg10=0.00 total={}\n", nanos / 4000),
    );
    let stat = |ticks: u64| format!("7 (x) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 55");
    fake.put_file("proc/self/stat", &stat(ticks / 10));
    fake.put_file("proc/42/stat", &stat(ticks / 5));
    // Exactly what all tasks used: 1 CPU.
    fake.add_group(
        "cpuacct",
        &[
            ("cgroup.sane_behavior", "0\n"),
            ("cpuacct.usage", &format!("{nanos}\n")),
        ],
    );
    let usage = [("cpuacct.usage_percpu", &*format!("{} 0 \n", nanos * 4 / 10))];
    fake.add_group("cpuacct/loadline-x", &usage);
    let throttled = |share: u64| {
        format!(
            "nr_periods 10\nnr_throttled 3\nthrottled_time {}\n",
            nanos * share / 10
        )
    };
    fake.add_group("cpu/loadline-x", &[("cpu.stat", &throttled(3))]);
    fake.add_group("cpu", &[("cpu.stat", &throttled(1))]);
    fake.add_group("unified", &[("cgroup.controllers", "")]);
    let micros = nanos / 1000;
    let full = format!("some total={}\nfull total={}\n", micros, micros * 4 / 10);
    fake.add_group("unified/loadline-x", &[("cpu.pressure", &full)]);
}

#[test]
fn a_window_gives_shares_of_the_machine() {
    let fake = FakeCgroupTree::from_captured("hybrid");
    machine(&fake, 1000);
    let layout = fake.detected_layout(ROOT);
    let group = ControlGroup::open_existing(&layout, "loadline-x").unwrap();
    let mut meter = NoiseMeter::start_window(&layout, &[&group], &[42]).unwrap();
    machine(&fake, 1001);
    // The clock is real, the counters are not: a window of one second.
    meter.start.at_ns = monotonic_ns() - 1_000_000_000;
    let noise = meter.finish_window().unwrap();
    let near = |got: Option<f64>, wanted: f64| {
        assert!((got.unwrap() - wanted).abs() < 0.01, "{wanted}: {noise:?}");
    };
    near(noise.steal, 0.1);
    // 1 CPU in use, less 0.4 of the group, 0.1 of loadline, 0.2 of its child, of 2 CPUs.
    near(noise.foreign_cpu, 0.15);
    near(noise.host_cpu_pressure, 0.25);
    near(noise.contention, 0.1);
    assert_eq!(noise.swap_in_pages, Some(3));
    assert_eq!(noise.outer_throttled, Some(Duration::from_millis(100)));
}

/// The kernel's threads before and after a window, in which the group read some pages again.
fn window(pages: u64, before: &[(u32, u64)], after: &[(u32, u64)]) -> Duration {
    let reading = |refaults, threads: &[(u32, u64)]| NoiseReading {
        refaults,
        kernel: threads
            .iter()
            .map(|(pid, ms)| (*pid, Duration::from_millis(*ms)))
            .collect(),
        ..NoiseReading::default()
    };
    refault_work(&reading(7, before), &reading(7 + pages, after))
}

#[test]
fn kernel_threads_serve_the_group_for_the_pages_it_read_again_and_no_longer() {
    let ms = Duration::from_millis;
    assert_eq!(window(1_000_000, &[(9, 100)], &[(9, 500)]), ms(400));
    assert_eq!(window(1000, &[(9, 100)], &[(9, 500)]), ms(1));
    assert_eq!(window(0, &[(9, 100)], &[(9, 500)]), ms(0));
    assert_eq!(
        window(1_000_000, &[(8, 90), (9, 1)], &[(9, 2), (10, 3)]),
        ms(4)
    );
}

#[test]
fn a_window_of_a_group_that_reads_dropped_pages_again() {
    let fake = FakeCgroupTree::from_captured("hybrid");
    let thread = |ms: u64| {
        fake.put_file("proc/9/stat", "9 (kworker/0:1H) I 2 0 0 0 -1 69238880 0 0");
        fake.put_file("proc/9/schedstat", &format!("{} 55 7\n", ms * 1_000_000));
        // No thread of the kernel, whatever it calls itself.
        fake.put_file("proc/10/stat", "10 ((kworker)) R 2 0 0 0 -1 4194304 0 0");
        fake.put_file("proc/10/schedstat", &format!("{} 5 7\n", ms * 9_000_000));
    };
    let pages = |count: u64| {
        let stat = format!("total_workingset_refault_file {count}\n");
        fake.add_group("memory/loadline-x", &[("memory.stat", &stat)]);
    };
    machine(&fake, 1000);
    thread(500);
    pages(0);
    let layout = fake.detected_layout(ROOT);
    let group = ControlGroup::open_existing(&layout, "loadline-x").unwrap();
    let mut meter = NoiseMeter::start_window(&layout, &[&group], &[42]).unwrap();
    machine(&fake, 1001);
    thread(580);
    pages(1_000_000);
    meter.start.at_ns = monotonic_ns() - 1_000_000_000;
    let noise = meter.finish_window().unwrap();
    let near = |got: Option<f64>, wanted: f64| {
        assert!((got.unwrap() - wanted).abs() < 0.01, "{wanted}: {noise:?}");
    };
    // As above, less 80 ms: out of two CPUs, and out of the single one that the group used.
    near(noise.foreign_cpu, 0.11);
    near(noise.contention, 0.02);
}
