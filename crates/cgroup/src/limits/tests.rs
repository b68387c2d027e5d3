use super::*;
use crate::fake::{FakeCgroupTree, ROOT};

const NAME: &str = "loadline-x";

fn all() -> CgroupLimits {
    CgroupLimits {
        cpu_quota: Some(Cpus::from_millis(1500)),
        cpu_period: Duration::from_millis(50),
        cpu_burst: Some(Duration::from_millis(10)),
        cpu_shares: Some(2048),
        cpuset: Some("0-1".parse().unwrap()),
        memory: Some(Bytes::from_mib(256)),
        pids: Some(100),
    }
}

/// A v1 machine with a group that has the files of Linux 6.18, as regular files.
fn v1() -> FakeCgroupTree {
    let fake = FakeCgroupTree::from_captured("hybrid");
    fake.add_group("unified", &[("cgroup.controllers", "")]);
    fake.add_group(
        "cpu/loadline-x",
        &[
            ("cpu.cfs_quota_us", "-1"),
            ("cpu.cfs_period_us", "100000"),
            ("cpu.cfs_burst_us", "0"),
            ("cpu.shares", "1024"),
        ],
    );
    fake.add_group("cpuset", &[("cpuset.cpus", "0-3\n")]);
    fake.add_group("cpuset/loadline-x", &[("cpuset.cpus", "0-3\n")]);
    fake.add_group(
        "memory/loadline-x",
        &[
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.memsw.limit_in_bytes", "9223372036854771712\n"),
            ("memory.swappiness", "60\n"),
        ],
    );
    fake.add_group("pids/loadline-x", &[("pids.max", "max\n")]);
    fake
}

fn v2() -> FakeCgroupTree {
    let fake = FakeCgroupTree::from_captured("v2");
    fake.add_group("", &[("cgroup.controllers", "cpuset cpu io memory pids\n")]);
    fake.add_group(
        NAME,
        &[
            ("cpu.max", "max 100000\n"),
            ("cpu.max.burst", "0\n"),
            ("cpu.weight", "100\n"),
            ("cpuset.cpus", "\n"),
            ("cpuset.cpus.effective", "0-1\n"),
            ("memory.max", "max\n"),
            ("memory.swap.max", "max\n"),
            ("memory.oom.group", "0\n"),
            ("pids.max", "max\n"),
        ],
    );
    fake
}

fn apply(fake: &FakeCgroupTree, limits: &CgroupLimits) -> Result<(), CgroupError> {
    ControlGroup::open_existing(&fake.detected_layout(ROOT), NAME)?.apply_limits(limits)
}

#[test]
fn v1_files_get_microseconds_bytes_and_shares() {
    let fake = v1();
    apply(&fake, &all()).unwrap();
    for (file, text) in [
        ("cpu/loadline-x/cpu.cfs_quota_us", "75000"),
        ("cpu/loadline-x/cpu.cfs_period_us", "50000"),
        ("cpu/loadline-x/cpu.cfs_burst_us", "10000"),
        ("cpu/loadline-x/cpu.shares", "2048"),
        ("cpuset/loadline-x/cpuset.cpus", "0-1"),
        ("memory/loadline-x/memory.limit_in_bytes", "268435456"),
        ("memory/loadline-x/memory.memsw.limit_in_bytes", "268435456"),
        ("memory/loadline-x/memory.swappiness", "0"),
        ("pids/loadline-x/pids.max", "100"),
    ] {
        assert_eq!(fake.read_text(file), text, "{file}");
    }
}

#[test]
fn v2_files_get_weight_no_swap_and_a_group_kill() {
    let fake = v2();
    apply(&fake, &all()).unwrap();
    for (file, text) in [
        ("cpu.max", "75000 50000"),
        ("cpu.max.burst", "10000"),
        ("cpu.weight", "200"),
        ("cpuset.cpus", "0-1"),
        ("memory.max", "268435456"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("pids.max", "100"),
    ] {
        assert_eq!(fake.read_text(&format!("{NAME}/{file}")), text, "{file}");
    }
}

#[test]
fn no_limit_takes_the_old_one_away_on_v2() {
    let fake = v2();
    apply(&fake, &all()).unwrap();
    apply(&fake, &CgroupLimits::default()).unwrap();
    for (file, text) in [
        ("cpu.max", "max 100000"),
        ("cpu.max.burst", "0"),
        ("cpu.weight", "100"),
        ("cpuset.cpus", "\n"),
        ("memory.max", "max"),
        ("memory.swap.max", "max"),
        ("memory.oom.group", "0"),
        ("pids.max", "max"),
    ] {
        assert_eq!(fake.read_text(&format!("{NAME}/{file}")), text, "{file}");
    }
}

#[test]
fn a_value_that_the_kernel_changed_is_an_error_with_file_wanted_and_got() {
    let fake = v2();
    fake.put_file("cgroup/loadline-x/cpuset.cpus.effective", "0\n");
    let error = apply(&fake, &all()).unwrap_err().to_string();
    let error = error.replace(&fake.cgroup_root().display().to_string(), "ROOT");
    insta::assert_snapshot!(error, @"ROOT/loadline-x/cpuset.cpus.effective was set to `0-1`, but the kernel has `0`");
}

#[test]
fn a_missing_controller_is_named_only_when_its_limit_is_asked_for() {
    let fake = FakeCgroupTree::from_captured("v2");
    fake.add_group("", &[("cgroup.controllers", "memory\n")]);
    fake.add_group(NAME, &[("memory.max", "max\n")]);
    let memory_only = CgroupLimits {
        memory: Some(Bytes::from_mib(64)),
        ..CgroupLimits::default()
    };
    apply(&fake, &memory_only).unwrap();
    for (limits, controller) in [
        (
            CgroupLimits {
                cpu_quota: Some(Cpus::from_whole(1)),
                ..memory_only.clone()
            },
            "cpu",
        ),
        (
            CgroupLimits {
                cpu_shares: Some(512),
                ..memory_only.clone()
            },
            "cpu",
        ),
        (
            CgroupLimits {
                cpuset: Some("0".parse().unwrap()),
                ..memory_only.clone()
            },
            "cpuset",
        ),
        (
            CgroupLimits {
                pids: Some(9),
                ..memory_only.clone()
            },
            "pids",
        ),
    ] {
        let error = apply(&fake, &limits).unwrap_err().to_string();
        assert!(
            error.contains(&format!("no `{controller}` controller")),
            "{error}"
        );
    }
}

#[test]
fn what_no_kernel_takes_is_refused_before_anything_is_written() {
    let fake = v2();
    let base = CgroupLimits::default();
    let micros = Duration::from_micros;
    for (limits, what) in [
        (
            CgroupLimits {
                cpu_period: micros(999),
                ..base.clone()
            },
            "cpu period = 999µs",
        ),
        (
            CgroupLimits {
                cpu_period: micros(1_000_001),
                ..base.clone()
            },
            "cpu period = 1.000001s",
        ),
        (
            CgroupLimits {
                cpu_period: Duration::from_nanos(1_500_001),
                ..base.clone()
            },
            "cpu period",
        ),
        (
            CgroupLimits {
                cpu_quota: Some(Cpus::from_millis(9)),
                ..base.clone()
            },
            "cpu = 9m",
        ),
        (
            CgroupLimits {
                cpu_quota: Some(Cpus::from_millis(0)),
                ..base.clone()
            },
            "cpu = 0",
        ),
        (
            CgroupLimits {
                cpu_burst: Some(micros(1)),
                ..base.clone()
            },
            "cpu burst",
        ),
        (
            CgroupLimits {
                cpu_shares: Some(1),
                ..base.clone()
            },
            "cpu shares = 1",
        ),
        (
            CgroupLimits {
                cpuset: Some(CpuSet::default()),
                ..base.clone()
            },
            "cpuset",
        ),
        (
            CgroupLimits {
                memory: Some(Bytes::from_bytes(0)),
                ..base.clone()
            },
            "memory = 0",
        ),
        (
            CgroupLimits {
                memory: Some(Bytes::from_bytes(u64::MAX)),
                ..base.clone()
            },
            "memory",
        ),
        (
            CgroupLimits {
                pids: Some(0),
                ..base.clone()
            },
            "pids = 0",
        ),
    ] {
        let error = apply(&fake, &limits).unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
        assert!(error.contains("out of range: "), "{error}");
    }
    assert_eq!(fake.read_text(&format!("{NAME}/cpu.max")), "max 100000\n");
}

#[test]
fn weights_keep_the_ratio_of_shares() {
    for (shares, weight) in [
        (1024, 100),
        (2048, 200),
        (512, 50),
        (2, 1),
        (262_144, 10_000),
    ] {
        assert_eq!(weight_from_shares(shares), weight);
    }
}

#[test]
fn rounding_to_pages_is_accepted_and_nothing_else() {
    let page = page_size();
    assert!(is_page_rounded(10 * page + 5, 10 * page));
    assert!(is_page_rounded(10 * page, 10 * page));
    assert!(!is_page_rounded(10 * page + 5, 11 * page));
    assert!(!is_page_rounded(10 * page, 9 * page));
}

#[test]
fn a_living_group_gets_another_memory_limit_and_nothing_else() {
    let fake = v1();
    let group = ControlGroup::open_existing(&fake.detected_layout(ROOT), NAME).unwrap();
    for mib in [256, 512, 128] {
        let limit = Bytes::from_mib(mib);
        assert_eq!(group.set_memory_limit(limit).unwrap(), LimitChange::Taken);
        for file in ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] {
            let text = fake.read_text(&format!("memory/{NAME}/{file}"));
            assert_eq!(text, limit.as_bytes().to_string(), "{file}");
        }
    }
    assert_eq!(fake.read_text("cpu/loadline-x/cpu.cfs_quota_us"), "-1");
    let busy = std::io::Error::from(rustix::io::Errno::BUSY);
    let busy = CgroupError::for_file("write", Path::new("memory.limit_in_bytes"), busy);
    assert_eq!(unless_busy(Err(busy)).unwrap(), LimitChange::Busy);
}

#[test]
fn kills_are_forbidden_on_v1_alone() {
    let fake = v1();
    let group = ControlGroup::open_existing(&fake.detected_layout(ROOT), NAME).unwrap();
    fake.put_file("cgroup/memory/loadline-x/memory.oom_control", "");
    assert!(group.forbid_oom_kill(true).unwrap());
    assert_eq!(fake.read_text("memory/loadline-x/memory.oom_control"), "1");
    let waits = "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n";
    fake.put_file("cgroup/memory/loadline-x/memory.oom_control", waits);
    assert!(group.is_under_oom());
    assert!(group.forbid_oom_kill(false).unwrap());
    assert_eq!(fake.read_text("memory/loadline-x/memory.oom_control"), "0");
    let other = ControlGroup::open_existing(&v2().detected_layout(ROOT), NAME).unwrap();
    assert!(!other.forbid_oom_kill(true).unwrap() && !other.is_under_oom());
}

#[test]
fn v2_is_pressed_by_the_soft_limit_and_never_limited_below_what_is_in_use() {
    let fake = v2();
    let group = ControlGroup::open_existing(&fake.detected_layout(ROOT), NAME).unwrap();
    let mib = |n: u64| (n << 20).to_string();
    let put = |name: &str, text: &str| fake.put_file(&format!("cgroup/{NAME}/{name}"), text);
    let get = |name: &str| fake.read_text(&format!("{NAME}/{name}"));
    put("memory.max", &mib(512));
    put("memory.high", "max");
    put("memory.current", &mib(200));
    let pressed = |n| group.press_memory(Bytes::from_mib(n)).unwrap();
    assert_eq!(pressed(210), LimitChange::Taken);
    assert_eq!(
        (get("memory.high"), get("memory.max")),
        (mib(210), mib(512))
    );
    assert_eq!(pressed(198), LimitChange::Taken, "a batch of charges");
    assert_eq!(pressed(150), LimitChange::Busy);
    let set = |n| group.set_memory_limit(Bytes::from_mib(n)).unwrap();
    assert_eq!(set(190), LimitChange::Busy);
    assert_eq!(
        (get("memory.high"), get("memory.max")),
        ("max".to_owned(), mib(512))
    );
    assert_eq!(set(256), LimitChange::Taken);
    assert_eq!(
        (get("memory.high"), get("memory.max")),
        ("max".to_owned(), mib(256))
    );
    // Above what it was nothing can be killed, whatever is in use.
    put("memory.current", &mib(700));
    assert_eq!(set(600), LimitChange::Taken);
    assert_eq!(get("memory.max"), mib(600));
}

#[test]
fn a_living_group_gets_another_quota_and_nothing_else() {
    let limits = CgroupLimits {
        cpu_quota: Some(Cpus::from_millis(500)),
        ..CgroupLimits::default()
    };
    let fake = v1();
    apply(&fake, &all()).unwrap();
    let group = ControlGroup::open_existing(&fake.detected_layout(ROOT), NAME).unwrap();
    group.set_cpu_quota(&limits).unwrap();
    let read = |file: &str| fake.read_text(file);
    assert_eq!(read("cpu/loadline-x/cpu.cfs_quota_us"), "50000");
    assert_eq!(read("cpu/loadline-x/cpu.cfs_period_us"), "100000");
    assert_eq!(read("cpu/loadline-x/cpu.shares"), "2048");
    assert_eq!(read("memory/loadline-x/memory.limit_in_bytes"), "268435456");
    let fake = v2();
    let group = ControlGroup::open_existing(&fake.detected_layout(ROOT), NAME).unwrap();
    group.set_cpu_quota(&limits).unwrap();
    assert_eq!(fake.read_text(&format!("{NAME}/cpu.max")), "50000 100000");
}
