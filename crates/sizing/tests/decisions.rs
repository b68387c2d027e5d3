//! Limits, sight and decisions over made-up containers: no file system, no JVM.

use std::collections::BTreeMap;

use loadline_sizing::decision::{self, DecisionInput, LaunchDecision};
use loadline_sizing::hotspot::CollectorKind;
use loadline_sizing::limits::{self, ContainerLimits, FileSource, SystemCallFacts, UnreadableFile};
use loadline_sizing::openj9;
use loadline_sizing::profile::AppProfile;
use loadline_sizing::regions::SizeProvenance;
use loadline_sizing::sight::{self, PerceivedMachine};
use loadline_sizing::{Bytes, Cpus, JdkRelease, JvmOptionSet};

/// Files by path. `None` is a file that refuses to be read.
#[derive(Default)]
struct Fake(BTreeMap<String, Option<String>>);

impl FileSource for Fake {
    fn read(&self, path: &str) -> Result<String, UnreadableFile> {
        match self.0.get(path) {
            Some(Some(text)) => Ok(text.clone()),
            Some(None) => Err(UnreadableFile::Refused),
            None => Err(UnreadableFile::Missing),
        }
    }
}

impl Fake {
    fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.to_owned(), Some(text.to_owned()));
        self
    }

    /// A unified tree, own group /pod/app, an old or new kernel's /proc/cgroups.
    fn v2(kernel: &str) -> Self {
        let mut controllers = vec!["cpu", "cpuacct", "blkio", "devices", "freezer"];
        if kernel == "old" {
            controllers.extend(["cpuset", "memory", "pids"]);
        }
        let rows: String = controllers
            .iter()
            .map(|name| format!("{name}\t0\t1\t1\n"))
            .collect();
        Self::default()
            .with(
                "/proc/self/mountinfo",
                "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .with("/proc/self/cgroup", "0::/pod/app\n")
            .with(
                "/proc/cgroups",
                &format!("#subsys_name\thierarchy\tnum_cgroups\tenabled\n{rows}"),
            )
            .with("/sys/fs/cgroup/pod/app/memory.max", "max\n")
            .with("/sys/fs/cgroup/pod/app/cpu.max", "max 100000\n")
    }

    fn limited(self, group: &str, memory: &str, cpu: &str) -> Self {
        self.with(&format!("/sys/fs/cgroup{group}/memory.max"), memory)
            .with(&format!("/sys/fs/cgroup{group}/cpu.max"), cpu)
    }
}

const HOST: SystemCallFacts = SystemCallFacts {
    memory: Bytes::from_gib(64),
    affinity: 16,
    address_space: None,
    processes: None,
};

fn jdk(text: &str) -> JdkRelease {
    JdkRelease::for_hotspot(text.parse().expect("a version"))
}

/// Limits, sight and decision, as the launcher makes them.
fn decide(
    files: &Fake,
    jdk: JdkRelease,
    options: &str,
    profile: Option<&AppProfile>,
) -> (ContainerLimits, PerceivedMachine, LaunchDecision) {
    let limits = limits::discover(files, HOST);
    let options = JvmOptionSet::from_words(options.split_whitespace());
    let sight = sight::predict(jdk, files, &limits, &options);
    let decision = decision::decide_launch(&DecisionInput {
        jdk,
        limits: &limits,
        sight: &sight,
        options: &options,
        profile,
    });
    (limits, sight, decision)
}

fn texts(decision: &LaunchDecision) -> Vec<&str> {
    decision
        .options
        .iter()
        .map(|chosen| chosen.option.as_str())
        .collect()
}

fn has(decision: &LaunchDecision, prefix: &str) -> bool {
    texts(decision)
        .iter()
        .any(|option| option.starts_with(prefix))
}

/// Whether the JVM runs with this collector: by an option, or by its own choice.
fn takes(decision: &LaunchDecision, collector: CollectorKind) -> bool {
    let ergonomics = decision.ergonomics.as_ref();
    ergonomics.is_some_and(|ergonomics| ergonomics.collector == collector)
}

#[test]
fn the_tightest_limit_of_the_path_counts_with_its_file() {
    let files = Fake::v2("old").limited("/pod", "536870912\n", "150000 100000\n");
    let limits = limits::discover(&files, HOST);
    assert_eq!(
        limits.usable_memory().to_string(),
        "512Mi (/sys/fs/cgroup/pod/memory.max)"
    );
    assert_eq!(limits.usable_cpus().value, Cpus::from_millis(1500));
    assert_eq!(limits.true_processor_count(), 2);
}

#[test]
fn memory_high_pids_cpuset_and_weight_are_read() {
    let files = Fake::v2("old")
        .limited("/pod/app", "1073741824", "max")
        .with("/sys/fs/cgroup/pod/app/memory.high", "805306368")
        .with("/sys/fs/cgroup/pod/app/memory.swap.max", "0")
        .with("/sys/fs/cgroup/pod/pids.max", "100")
        .with("/sys/fs/cgroup/pod/app/cpuset.cpus.effective", "0-3")
        .with("/sys/fs/cgroup/pod/app/cpu.weight", "39");
    let limits = limits::discover(&files, HOST);
    assert_eq!(limits.usable_memory().value, Bytes::from_mib(768));
    assert_eq!(
        limits.swap.as_ref().map(|swap| swap.value),
        Some(Bytes::default())
    );
    assert_eq!(limits.pids.as_ref().map(|pids| pids.value), Some(100));
    assert_eq!(limits.usable_processors().value, 4);
    let requested = limits
        .requested_cpus()
        .expect("a weight that is not the default");
    assert_eq!(requested.value.as_millis(), 975);
}

#[test]
fn nonsense_in_files_is_a_note_and_no_limit() {
    let mut files = Fake::v2("old")
        .limited("/pod/app", "a lot", "\u{0}")
        .limited("/pod", "0", "0 100000");
    files.0.insert("/sys/fs/cgroup/memory.max".to_owned(), None);
    let limits = limits::discover(&files, HOST);
    assert_eq!(limits.usable_memory().value, HOST.memory);
    assert_eq!(limits.quota, None);
    assert_eq!(limits.notes.len(), 3, "{:?}", limits.notes);
    assert_eq!(limits::discover(&Fake::default(), HOST).notes.len(), 2);
}

#[test]
fn a_jvm_blind_on_a_new_kernel_gets_explicit_values() {
    let files = |kernel| Fake::v2(kernel).limited("/pod/app", "536870912", "150000 100000");
    let (_, sight, decision) = decide(&files("new"), jdk("17.0.15"), "", None);
    assert_eq!((sight.memory, sight.cpus), (HOST.memory, 16));
    assert!(
        sight.blindness[0].contains("`cpuset`"),
        "{:?}",
        sight.blindness
    );
    assert!(has(&decision, "-XX:ActiveProcessorCount=2"), "{decision:?}");
    assert!(has(&decision, "-Xmx"), "{decision:?}");
    for (kernel, version) in [("old", "17.0.15"), ("new", "25.0.3"), ("old", "25.0.3")] {
        let (_, sight, decision) = decide(&files(kernel), jdk(version), "", None);
        assert_eq!(
            (sight.memory, sight.cpus),
            (Bytes::from_mib(512), 2),
            "{kernel} {version}"
        );
        assert!(
            !has(&decision, "-XX:ActiveProcessorCount"),
            "{kernel} {version}"
        );
    }
}

#[test]
fn only_25_sees_the_limits_of_ancestors_on_v2() {
    let files = Fake::v2("old").limited("/pod", "536870912", "150000 100000");
    let (_, sight, _) = decide(&files, jdk("17.0.15"), "", None);
    assert_eq!((sight.memory, sight.cpus), (HOST.memory, 16));
    let (_, sight, _) = decide(&files, jdk("25.0.3"), "", None);
    assert_eq!((sight.memory, sight.cpus), (Bytes::from_mib(512), 2));
    let (_, sight, _) = decide(&files, jdk("11.0.15"), "", None);
    assert!(
        sight.blindness[0].contains("cgroup v2"),
        "{:?}",
        sight.blindness
    );
}

#[test]
fn a_percentage_of_a_blind_jvm_is_made_explicit() {
    let files = Fake::v2("new").limited("/pod/app", "1073741824", "max");
    let (_, _, decision) = decide(&files, jdk("17.0.15"), "-XX:MaxRAMPercentage=75", None);
    assert!(has(&decision, "-Xmx768m"), "{decision:?}");
    let (_, _, decision) = decide(&files, jdk("25.0.3"), "-XX:MaxRAMPercentage=75", None);
    assert!(!has(&decision, "-Xmx"), "{decision:?}");
    assert_eq!(decision.heap, Some(Bytes::from_mib(768)));
}

#[test]
fn small_containers_follow_the_study() {
    let files = |memory: &str| Fake::v2("old").limited("/pod/app", memory, "100000 100000");
    let (_, _, decision) = decide(&files("157286400"), jdk("17.0.15"), "", None);
    assert_eq!(
        texts(&decision),
        [
            "-Djava.util.concurrent.ForkJoinPool.common.parallelism=2",
            "-XX:TieredStopAtLevel=1",
            "-Xmx40m",
            "-XX:MinHeapFreeRatio=20",
            "-XX:MaxHeapFreeRatio=40",
            "-XX:+ExitOnOutOfMemoryError",
        ]
    );
    let (_, _, tiny) = decide(&files("67108864"), jdk("25.0.3"), "", None);
    assert_eq!(tiny.minimum, Some(Bytes::from_mib(126)));
    assert!(
        tiny.warnings[0].contains("at least 126Mi"),
        "{:?}",
        tiny.warnings
    );
}

#[test]
fn each_user_option_freezes_its_own_dimension() {
    let files = Fake::v2("old").limited("/pod/app", "209715200", "100000 100000");
    for (option, gone) in [
        ("-Xmx99m", "-Xmx"),
        ("-XX:MaxRAMPercentage=50", "-Xmx"),
        ("-XX:-TieredCompilation", "-XX:TieredStopAtLevel"),
        ("-XX:MaxHeapFreeRatio=50", "-XX:MinHeapFreeRatio"),
        (
            "-XX:+CrashOnOutOfMemoryError",
            "-XX:+ExitOnOutOfMemoryError",
        ),
        (
            "-Djava.util.concurrent.ForkJoinPool.common.parallelism=9",
            "-Djava.util",
        ),
    ] {
        let (_, _, without) = decide(&files, jdk("17.0.15"), "", None);
        let (_, _, with) = decide(&files, jdk("17.0.15"), option, None);
        assert!(
            has(&without, gone) && !has(&with, gone),
            "{option}: {:?}",
            texts(&with)
        );
        assert_eq!(with.kept.len(), 1, "{option}");
        assert!(texts(&with).len() >= 4, "{option}: {:?}", texts(&with));
    }
}

#[test]
fn a_large_initial_heap_does_not_make_the_jvm_refuse() {
    let files = Fake::v2("old").limited("/pod/app", "268435456", "max");
    let (_, _, decision) = decide(&files, jdk("17.0.15"), "-Xms200m", None);
    assert!(has(&decision, "-Xmx200m"), "{decision:?}");
    assert!(decision.ergonomics.is_some());
    // What the JVM refuses anyway is not made worse.
    let (_, _, decision) = decide(&files, jdk("17.0.15"), "-XX:+UseG1GC -XX:+UseZGC", None);
    assert!(decision.options.is_empty() && decision.ergonomics.is_none());
}

#[test]
fn a_pod_with_a_request_and_no_limit_is_not_the_whole_node() {
    let files = Fake::v2("old").with("/sys/fs/cgroup/pod/app/cpu.weight", "39");
    let (_, _, decision) = decide(&files, jdk("25.0.3"), "", None);
    assert!(has(&decision, "-XX:ActiveProcessorCount=2"), "{decision:?}");
    let (_, _, decision) = decide(&Fake::v2("old"), jdk("25.0.3"), "", None);
    assert!(!has(&decision, "-XX:ActiveProcessorCount"), "{decision:?}");
}

#[test]
fn a_fraction_of_a_cpu_is_no_collector_thread() {
    let files = Fake::v2("old").limited("/pod/app", "4294967296", "250000 100000");
    let (_, _, decision) = decide(&files, jdk("25.0.3"), "", None);
    assert!(
        takes(&decision, CollectorKind::G1) && has(&decision, "-XX:ParallelGCThreads=2"),
        "{decision:?}"
    );
    let (_, _, decision) = decide(&files, jdk("25.0.3"), "-XX:ConcGCThreads=1", None);
    assert!(!has(&decision, "-XX:ParallelGCThreads"), "{decision:?}");
}

fn profile() -> AppProfile {
    AppProfile {
        metaspace: Some(Bytes::from_mib(70)),
        code_cache: Some(Bytes::from_mib(30)),
        threads: Some(40),
        thread_stack: Some(Bytes::from_kib(100)),
        direct: Some(Bytes::from_mib(2)),
        jit: Some(Bytes::from_mib(20)),
        cds: Some(Bytes::from_mib(12)),
        files: Some(Bytes::from_mib(0)),
        malloc: Some(Bytes::from_mib(8)),
        live_heap: Some(Bytes::from_mib(60)),
        ..AppProfile::default()
    }
}

#[test]
fn a_profile_replaces_constants_and_things_give_way_in_order() {
    let files =
        |mib: u64| Fake::v2("old").limited("/pod/app", &(mib << 20).to_string(), "200000 100000");
    let profile = profile();
    let decide = |mib| decide(&files(mib), jdk("25.0.3"), "", Some(&profile)).2;
    let roomy = decide(2048);
    assert!(
        takes(&roomy, CollectorKind::G1) && !has(&roomy, "-XX:TieredStopAtLevel"),
        "{roomy:?}"
    );
    let budget = roomy.budget.as_ref().expect("a limit");
    assert!(
        budget
            .fixed
            .iter()
            .filter(|r| r.provenance == SizeProvenance::Measured)
            .count()
            >= 6
    );
    let tight = decide(225);
    assert!(
        has(&tight, "-XX:TieredStopAtLevel=1") && tight.minimum.is_none(),
        "{tight:?}"
    );
    let hopeless = decide(150);
    assert!(has(&hopeless, "-Xmx75m"), "{hopeless:?}");
    let minimum = hopeless.minimum.expect("it does not fit");
    // What it says would fit does.
    assert!(
        decide(minimum.as_bytes() >> 20).minimum.is_none(),
        "{minimum}"
    );
}

/// What gave way at a limit, in the order of the documentation of `decision::memory`.
fn given_way(decision: &LaunchDecision) -> [bool; 4] {
    let budget = decision.budget.as_ref().expect("a limit");
    let full = budget
        .limit
        .percent_share(loadline_sizing::regions::RESERVE_PERCENT);
    [
        takes(decision, CollectorKind::Serial),
        has(decision, "-XX:TieredStopAtLevel=1"),
        budget.reserve < full,
        decision.minimum.is_some(),
    ]
}

#[test]
fn collector_then_compilers_then_reserve_then_a_warning() {
    let large = AppProfile {
        collector: Some(CollectorKind::G1),
        live_heap: Some(Bytes::from_mib(800)),
        ..profile()
    };
    let mut seen = Vec::new();
    for mib in (900..1400).rev() {
        let files = Fake::v2("old").limited("/pod/app", &(mib << 20).to_string(), "400000 100000");
        let (_, _, decision) = decide(&files, jdk("17.0.15"), "", Some(&large));
        let now = given_way(&decision);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        assert!(
            has(&decision, "-Xmx"),
            "it is started whatever the limit: {mib}"
        );
    }
    assert_eq!(
        seen,
        [
            [false, false, false, false],
            [true, false, false, false],
            [true, true, false, false],
            [true, true, true, false],
            [true, true, true, true],
        ]
    );
}

#[test]
fn what_the_user_chose_does_not_give_way() {
    let files = Fake::v2("old").limited("/pod/app", &(230 << 20).to_string(), "200000 100000");
    let profile = profile();
    let own = "-XX:+UseG1GC -XX:TieredStopAtLevel=4";
    let (_, _, decision) = decide(&files, jdk("17.0.15"), own, Some(&profile));
    assert!(takes(&decision, CollectorKind::G1), "{decision:?}");
    assert!(!has(&decision, "-XX:TieredStopAtLevel"), "{decision:?}");
    assert!(
        decision.minimum > Some(Bytes::from_mib(230)),
        "{decision:?}"
    );
}

#[test]
fn regions_never_exceed_the_limit_when_they_are_said_to_fit() {
    let profile = profile();
    for mib in (64..6000).step_by(37) {
        for cpus in [
            "25000 100000",
            "100000 100000",
            "190000 100000",
            "1600000 100000",
        ] {
            for version in ["11.0.20", "17.0.15", "21.0.3", "25.0.3"] {
                for known in [None, Some(&profile)] {
                    let files = Fake::v2("old").limited("/pod/app", &(mib << 20).to_string(), cpus);
                    let (_, _, decision) = decide(&files, jdk(version), "", known);
                    let heap = decision.heap.expect("a limit");
                    let budget = decision.budget.as_ref().expect("a limit");
                    let is_planned = known.is_some() && decision.minimum.is_none();
                    let cell = format!("{mib} {cpus} {version}");
                    assert!(
                        decision.ergonomics.is_some(),
                        "{cell}: {:?}",
                        decision.warnings
                    );
                    assert!(
                        !is_planned || budget.total_bytes(heap) <= Bytes::from_mib(mib),
                        "{cell}"
                    );
                    assert!(
                        heap <= Bytes::from_mib(mib)
                            .percent_share(80.0)
                            .max(Bytes::from_mib(75))
                            || known.is_some(),
                        "{cell}"
                    );
                }
            }
        }
    }
}

#[test]
fn openj9_gets_its_own_dialect() {
    let files = Fake::v2("old").limited("/pod/app", "536870912", "100000 100000");
    let j9 = JdkRelease {
        vm: loadline_sizing::Vm::OpenJ9,
        ..jdk("17.0.9")
    };
    let (_, _, decision) = decide(&files, j9, "", None);
    assert_eq!(texts(&decision), ["-Xmx256m", "-Xtune:virtualized"]);
    let (_, _, decision) = decide(&files, j9, "-Xmx99m -Xtune:quickstart", None);
    assert!(decision.options.is_empty(), "{decision:?}");
    // Without a visible quota it gets the rounding of OpenJ9 itself.
    for (quota, count) in [
        ("120000 100000", 1),
        ("150000 100000", 2),
        ("90000 100000", 1),
    ] {
        let files = Fake::v2("new").limited("/pod/app", "536870912", quota);
        let (_, _, decision) = decide(&files, j9, "", None);
        let option = format!("-XX:ActiveProcessorCount={count}");
        assert!(has(&decision, &option), "{quota}: {decision:?}");
    }
}

#[test]
fn a_measured_profile_plans_the_heap_of_an_openj9() {
    let files = Fake::v2("old").limited("/pod/app", "536870912", "100000 100000");
    let j9 = JdkRelease {
        vm: loadline_sizing::Vm::OpenJ9,
        ..jdk("25")
    };
    // A Tomcat of the record: 64 MiB with a heap of 9.
    let text = "vm = OpenJ9\nclasses = 3233\nmetaspace = 15Mi\ncode_cache = 6Mi\nthreads = 32\n\
                thread_stack = 48Ki\ndirect = 0\njit = 8Mi\ncds = 0\nfiles = 23Mi\nmalloc = 0\n";
    let measured = AppProfile::parse_profile(text);
    assert_eq!(measured.notes, [""; 0]);
    let (_, _, decision) = decide(&files, j9, "", Some(&measured));
    // (512 - 20.5 kept free - 54.5 of regions) / 1.02.
    assert!(has(&decision, "-Xmx428m"), "{decision:?}");
    assert!(decision.warnings.is_empty(), "{decision:?}");
    assert_eq!(decision.budget.map(|budget| budget.fixed.len()), Some(10));
    // One of the other virtual machine says nothing, in either direction.
    let other = AppProfile {
        vm: loadline_sizing::Vm::HotSpot,
        ..measured.clone()
    };
    let (_, _, decision) = decide(&files, j9, "", Some(&other));
    assert!(has(&decision, "-Xmx256m"), "{decision:?}");
    assert!(decision.warnings[0].contains("measured on HotSpot, this is OpenJ9"));
    let (_, _, decision) = decide(&files, jdk("25"), "", Some(&measured));
    assert!(decision.warnings[0].contains("measured on OpenJ9, this is HotSpot"));
    // Where nothing was measured, its own rule, and a word when a typical service would not fit.
    let small = Fake::v2("old").limited("/pod/app", "268435456", "100000 100000");
    let (_, _, decision) = decide(&small, j9, "", None);
    assert!(has(&decision, "-Xmx128m"), "{decision:?}");
    assert!(
        decision.warnings[0].contains("a typical service"),
        "{decision:?}"
    );
}

/// Over limits, kernels and the user's own options: options for one JVM never reach the other.
#[test]
fn options_of_hotspot_never_reach_openj9_nor_openj9s_hotspot() {
    const OF_OPENJ9: [&str; 6] = [
        "-Xgc",
        "-Xtune:",
        "-Xquickstart",
        "-Xscmx",
        "-Xcodecache",
        "-Xshareclasses",
    ];
    for (kernel, memory, cpu) in [
        ("old", "134217728", "50000 100000"),
        ("new", "536870912", "100000 100000"),
        ("new", "4294967296", "400000 100000"),
        ("old", "max", "max 100000"),
    ] {
        for own in ["", "-Xmx99m", "-Xgcpolicy:balanced", "-XX:+UseSerialGC"] {
            let files = Fake::v2(kernel).limited("/pod/app", memory, cpu);
            let openj9 = JdkRelease {
                vm: loadline_sizing::Vm::OpenJ9,
                ..jdk("25")
            };
            let (_, _, decision) = decide(&files, openj9, own, None);
            for text in texts(&decision) {
                let name = text.strip_prefix("-XX:").map(|text| {
                    let name = text.trim_start_matches(['+', '-']);
                    name.split('=').next().unwrap_or(name).to_owned()
                });
                let is_taken = |name: String| openj9::TAKEN.contains(&name.as_str());
                assert!(name.is_none_or(is_taken), "{text} for OpenJ9");
            }
            let (_, _, decision) = decide(&files, jdk("25"), own, None);
            for text in texts(&decision) {
                let is_openj9s = OF_OPENJ9.iter().any(|prefix| text.starts_with(prefix));
                assert!(!is_openj9s, "{text} for HotSpot");
            }
        }
    }
}

#[test]
fn a_collector_is_named_only_where_hotspot_would_take_another() {
    let files = |kernel| Fake::v2(kernel).limited("/pod/app", "536870912", "200000 100000");
    let decide = |kernel, options| decide(&files(kernel), jdk("17.0.15"), options, None).2;
    let seeing = decide("old", "");
    assert!(takes(&seeing, CollectorKind::Serial), "{seeing:?}");
    assert!(!has(&seeing, "-XX:+Use"), "{:?}", texts(&seeing));
    // Blind, it takes the host for its own and G1 for the host.
    let blind = decide("new", "");
    assert!(takes(&blind, CollectorKind::Serial), "{blind:?}");
    assert!(has(&blind, "-XX:+UseSerialGC"), "{:?}", texts(&blind));
    for own in ["-XX:+UseParallelGC", "-XX:+AggressiveHeap"] {
        let decision = decide("new", own);
        assert!(
            takes(&decision, CollectorKind::Parallel),
            "{own}: {decision:?}"
        );
        assert!(!has(&decision, "-XX:+Use"), "{own}: {:?}", texts(&decision));
    }
    let tight = AppProfile {
        collector: Some(CollectorKind::G1),
        live_heap: Some(Bytes::from_mib(380)),
        ..profile()
    };
    let (_, _, decision) = self::decide(&files("new"), jdk("17.0.15"), "", Some(&tight));
    assert!(has(&decision, "-XX:+UseSerialGC"), "{:?}", texts(&decision));
    assert!(!has(&decision, "-XX:+UseG1GC"), "{:?}", texts(&decision));
}

#[test]
fn the_aggressive_heap_is_half_of_the_true_memory() {
    let files = |kernel| Fake::v2(kernel).limited("/pod/app", "2147483648", "200000 100000");
    let decide = |kernel| decide(&files(kernel), jdk("17.0.15"), "-XX:+AggressiveHeap", None).2;
    assert_eq!(decide("old").heap, Some(Bytes::from_gib(1)));
    assert!(!has(&decide("old"), "-Xmx"), "{:?}", texts(&decide("old")));
    assert!(has(&decide("new"), "-Xmx1024m") || has(&decide("new"), "-Xmx1g"));
    let ergonomics = decide("old").ergonomics.expect("it starts");
    assert_eq!(ergonomics.heap.initial, Bytes::from_gib(1));
    assert_eq!(ergonomics.young.initial, Bytes::from_mib(384));
}

#[test]
fn a_soft_limit_of_the_heap_does_not_make_the_jvm_refuse() {
    let files = Fake::v2("old").limited("/pod/app", "268435456", "100000 100000");
    let (_, _, decision) = decide(&files, jdk("17.0.15"), "-XX:SoftMaxHeapSize=100m", None);
    assert!(has(&decision, "-Xmx100m"), "{decision:?}");
    assert!(decision.ergonomics.is_some(), "{:?}", decision.warnings);
    let options = JvmOptionSet::from_words(["-Xmx76m", "-XX:SoftMaxHeapSize=100m"]);
    let machine = loadline_sizing::hotspot::MachineSize::from_limits(
        Bytes::from_mib(256),
        Cpus::from_whole(1),
    );
    let refused = loadline_sizing::hotspot::predict(jdk("17.0.15"), machine, &options);
    let refusal = refused.expect_err("the JVM does not start").to_string();
    assert!(refusal.contains("SoftMaxHeapSize (100Mi)"), "{refusal}");
}

#[test]
fn a_heap_fits_into_half_of_a_limited_address_space() {
    let files = Fake::v2("old").limited("/pod/app", "12884901888", "200000 100000");
    let decide = |space, options: &str| {
        let mut limits = limits::discover(&files, HOST);
        limits.host.address_space = space;
        let options = JvmOptionSet::from_words(options.split_whitespace());
        let jdk = jdk("17.0.15");
        decision::decide_launch(&DecisionInput {
            jdk,
            sight: &sight::predict(jdk, &files, &limits, &options),
            limits: &limits,
            options: &options,
            profile: None,
        })
    };
    assert!(decide(None, "").heap > Some(Bytes::from_gib(8)));
    let space = Some(Bytes::from_gib(8));
    let limited = decide(space, "");
    assert_eq!(limited.heap, Some(Bytes::from_gib(4)));
    let chosen = limited
        .options
        .iter()
        .find(|c| c.option.starts_with("-Xmx"));
    assert!(
        chosen.is_some_and(|c| c.reason.contains("RLIMIT_AS")),
        "{limited:?}"
    );
    let share = decide(space, "-XX:MaxRAMPercentage=80");
    assert_eq!(share.heap, Some(Bytes::from_gib(4)));
    // An explicit heap is the user's: the JVM does not cap it either.
    assert_eq!(decide(space, "-Xmx6g").heap, Some(Bytes::from_gib(6)));
}

#[test]
fn an_option_with_a_value_that_no_jvm_takes_is_warned_of() {
    let files = Fake::v2("new").limited("/pod/app", "1073741824", "200000 100000");
    let (_, _, decision) = decide(&files, jdk("17.0.15"), "-Xmx256m;", None);
    let warned = decision.warnings.iter().find(|w| w.contains("-Xmx256m;"));
    assert!(
        warned.is_some_and(|w| w.contains("refuses to start")),
        "{decision:?}"
    );
}

#[test]
fn a_flag_that_is_not_known_here_does_not_drop_what_is_right() {
    let files = Fake::v2("new").limited("/pod/app", "1073741824", "200000 100000");
    let own = "-XX:+UseCompactObjectHeaders";
    let (_, _, decision) = decide(&files, jdk("17.0.15"), own, None);
    assert!(has(&decision, "-Xmx"), "{decision:?}");
    assert!(decision.ergonomics.is_some());
    let warned = decision.warnings.iter().find(|w| w.starts_with(own));
    assert!(
        warned.is_some_and(|w| w.contains("not known")),
        "{decision:?}"
    );
}

#[test]
fn a_plan_above_its_own_limit_is_said_with_the_limit_that_would_fit() {
    let decide = |mib: u64| {
        let files = Fake::v2("old").limited("/pod/app", &(mib << 20).to_string(), "100000 100000");
        decide(&files, jdk("17.0.15"), "", None).2
    };
    let said = |mib| {
        let warnings = decide(mib).warnings;
        warnings
            .into_iter()
            .find(|w| w.starts_with("over-committed if this is a typical service"))
    };
    for mib in [200, 302, 320] {
        let budget = decide(mib).budget.expect("a limit");
        let minimum = budget.total_bytes(decide(mib).heap.expect("a limit"));
        let minimum = minimum.round_up(Bytes::from_mib(1));
        let warning = said(mib).expect("its sum is above the limit");
        assert!(
            warning.contains(&format!("raise the limit to {minimum}")),
            "{warning}"
        );
        // No verdict: nothing was measured.
        assert_eq!(decide(mib).minimum, None);
    }
    for mib in [512, 1024, 4096] {
        assert_eq!(said(mib), None, "{mib}");
    }
}

#[test]
fn a_heap_that_does_not_fit_is_said_with_its_sum() {
    let decide = |own: &str, profile: Option<&AppProfile>| {
        let limit = (232_u64 << 20).to_string();
        let files = Fake::v2("old").limited("/pod/app", &limit, "100000 100000");
        decide(&files, jdk("17.0.15"), own, profile).2
    };
    let measured = AppProfile {
        rest: Some(Bytes::from_mib(143)),
        live_heap: Some(Bytes::from_mib(25)),
        options: vec!["-Xmx64m".to_owned()],
        ..AppProfile::default()
    };
    let fits = decide("", Some(&measured));
    assert_eq!((fits.heap, fits.minimum), (Some(Bytes::from_mib(64)), None));
    assert!(has(&fits, "-Xmx64m"), "{fits:?}");
    let large = decide("-Xmx116m", Some(&measured));
    assert_eq!(large.minimum, Some(Bytes::from_mib(259)));
    let unknown = decide("-Xmx116m", None);
    assert_eq!(unknown.minimum, None, "nothing was measured");
    assert_eq!(
        large.warnings,
        [
            "over-committed: the heap may take 116Mi and everything else 143Mi: 259Mi in a limit of 232Mi, as measured; lower the heap to 89Mi (-Xmx89m) or raise the limit to 259Mi"
        ]
    );
    let warning = unknown.warnings.join(" ");
    assert!(
        warning.starts_with(
            "over-committed if this is a typical service: the heap may take 116Mi and "
        ),
        "{warning}"
    );
}
