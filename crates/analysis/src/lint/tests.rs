use std::time::Duration;

use loadline_sizing::{Bytes, Cpus, JdkRelease};

use super::*;

fn container() -> LintedContainer {
    let both = ContainerResources {
        cpu: Some(Cpus::from_whole(1)),
        memory: Some(Bytes::from_mib(512)),
    };
    LintedContainer {
        name: "app".to_owned(),
        requests: both,
        limits: both,
        ..LintedContainer::default()
    }
}

fn text(container: &LintedContainer, measured: MeasuredNeeds) -> String {
    let findings = lint(container, measured);
    let line = |f: &LintFinding| format!("{:?}: {}", f.severity, f.problem);
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn options_that_no_jvm_starts_with_are_errors() {
    for (options, said) in [
        (&["-Xmx80%"][..], Some("-Xmx80%: expected an amount")),
        (&["-XX:MaxRAMPercentage=75%"], Some("expected a percentage")),
        (&["-Xms512m", "-Xmx256m"], Some("larger than the largest")),
        (&["-Xmx$HEAP", "-XX:+UseConcMarkSweepGC"], None),
        (&["-XX:MaxRAMPercentage=75"], None),
        (&["-XX:+UseG1GC", "-XX:+UseZGC"], Some("one collector only")),
        (
            &["-XX:MaxRamPercentage=75"],
            Some("did you mean -XX:MaxRAM"),
        ),
        (&["-XMX512m"], Some("did you mean -Xmx512m")),
        (&["\u{2013}Xmx512m"], Some("did you mean -Xmx512m")),
        (
            &["-Xmx1g -Xss1m"],
            Some("-Xmx1g -Xss1m: expected an amount"),
        ),
        (
            &["-XX:ReservedCodeCacheSize=1m"],
            Some("a code cache of 1Mi"),
        ),
        (&["-Xmx1g", "-XX:ConcGCThreads=9", "-XX:+UseG1GC"], None),
        (&["-XX:MaxGCPauseMillis=0"], Some("a number above 0")),
        (&["-XX:ReservedCodeCacheSize=3g"], Some("at most 2g")),
        (
            &["-XX:MaxHeapFreeRatio=30"],
            Some("above MaxHeapFreeRatio (30)"),
        ),
        (&["-Xlog:gcs"], Some("instead of `gcs`")),
        (&["-Xlog:gc*:file=gc.log:times"], Some("instead of `times`")),
        (&["-Xmn0"], Some("an amount above 0")),
        (
            &["-XX:NativeMemoryTracking=on"],
            Some("one of off, summary, detail"),
        ),
        (&["-XX:MaxMetaspaceSize=64"], Some("at least 128k")),
        (&["-XX:+TraceClassLoading", "-Xmx80%"], Some("-Xmx80%")),
        (&["-XX:+UseG1gc"], Some("did you mean -XX:+UseG1GC")),
        // A later JDK takes it.
        (&["-XX:G1HeapRegionSize=64m"], None),
        (&["-XX:G1HeapRegionSize=1g"], Some("at most 32m")),
        // Its JDK is not known: it may be OpenJ9.
        (&["-Xgcpolicy:gencon"], None),
    ] {
        let linted = LintedContainer {
            jvm: options.iter().map(|o| (*o).to_owned()).collect(),
            ..container()
        };
        let found = check_refused_options(&linted).map(|found| found.problem);
        let holds = match (&found, said) {
            (Some(found), Some(said)) => found.contains(said),
            (found, said) => found.is_none() && said.is_none(),
        };
        assert!(holds, "{options:?}: {found:?}");
    }
}

#[test]
fn the_jdk_of_the_image_decides_about_its_flags_and_its_sight() {
    for (jdk, option, said) in [
        (
            "21",
            "-XX:+UseConcMarkSweepGC",
            "HotSpot 21 does not know this flag",
        ),
        ("11", "-XX:+UseZGC", "experimental in HotSpot 11"),
        ("17", "-XX:+PrintGCDateStamps", "does not know this flag"),
        ("17", "-Xgcpolicy:gencon", "does not know this flag"),
        ("8", "-XX:MaxRAMPercentage=50", "a percentage with a point"),
        ("8u131", "-Dx=y", "HotSpot 8u131 has no container support"),
        ("11.0.11", "-Dx=y", "Warning: on a node with cgroup v2"),
        ("11.0.11", "-Xmx256m", ""),
        ("8", "-Xlog:gc", "does not know this flag"),
        ("17", "-XX:G1HeapRegionSize=64m", "at most 32m"),
        ("21", "-XX:G1HeapRegionSize=64m", ""),
        ("21", "-XX:+TraceClassLoading", "does not know this flag"),
        ("25", "-XX:+DebugNonSafepoints", "diagnostic in HotSpot 25"),
        (
            "17",
            "-XX:G1NewSizePercent=20",
            "experimental in HotSpot 17",
        ),
        ("8u372", "-XX:+UseConcMarkSweepGC", ""),
        (
            "17",
            "-Xmx2m",
            "a heap of 2Mi is less than a small service needs (16Mi)",
        ),
        ("17", "-Xmx16m", ""),
        ("17", "-Xmx1m", "a heap of 1Mi is below the least of 2Mi"),
        ("17", "-XX:MaxRAMPercentage=50", ""),
    ] {
        let mut linted = LintedContainer {
            jdk: Some(JdkRelease::for_hotspot(jdk.parse().expect("a version"))),
            jvm: vec![option.to_owned()],
            ..container()
        };
        linted.limits.memory = Some(Bytes::from_gib(2));
        linted.requests = linted.limits;
        let found = text(&linted, MeasuredNeeds::default());
        assert!(
            found.contains(said) && said.is_empty() == found.is_empty(),
            "{jdk} {option}: {found}"
        );
    }
}

#[test]
fn options_of_modules_need_their_jdk() {
    for (jdk, option, is_refused) in [
        ("8u412", "--add-opens=java.base/java.lang=ALL-UNNAMED", true),
        ("8u412", "--illegal-access=permit", true),
        ("17", "--illegal-access=permit", false),
        ("11", "--enable-native-access=ALL-UNNAMED", true),
        ("25", "--add-modules", false),
    ] {
        let linted = LintedContainer {
            jdk: Some(JdkRelease::for_hotspot(jdk.parse().expect("a version"))),
            long_options: vec![option.to_owned()],
            ..container()
        };
        let found = check_refused_options(&linted);
        assert_eq!(found.is_some(), is_refused, "{jdk} {option}: {found:?}");
    }
}

#[test]
fn a_percentage_that_does_not_count_is_named() {
    let mut linted = LintedContainer {
        jvm: vec!["-XX:MaxRAMPercentage=50".to_owned()],
        ..container()
    };
    assert!(check_shares(&linted).is_empty());
    linted.limits.memory = Some(Bytes::from_mib(200));
    let found = check_shares(&linted).remove(0);
    assert!(
        found
            .problem
            .contains("is not the share of the heap in a limit of 200Mi"),
        "{}",
        found.problem
    );
    assert!(found.hint.contains("MinRAMPercentage"), "{}", found.hint);
}

#[test]
fn amounts_in_wrong_units_and_switched_off_support_are_told() {
    let of = |memory: u64, cpu: u32, options: &[&str]| {
        let limits = ContainerResources {
            cpu: Some(Cpus::from_millis(cpu)),
            memory: Some(Bytes::from_bytes(memory)),
        };
        let linted = LintedContainer {
            jvm: options.iter().map(|o| (*o).to_owned()).collect(),
            requests: limits,
            limits,
            ..container()
        };
        text(&linted, MeasuredNeeds::default())
    };
    let gib = 1 << 30;
    for (said, wanted) in [
        (of(1, 1000, &["-Xmx1g"]), "limit is 1 byte: no JVM starts"),
        (of(1024, 1000, &[]), "request is 1024 bytes: no JVM starts"),
        (of(gib, 500_000, &[]), "is 500 CPUs, more than most nodes"),
        (
            of(gib, 1000, &["-XX:MaxRAMPercentage=0.75"]),
            "less than one percent",
        ),
        (
            of(gib, 1000, &["-XX:-UseContainerSupport"]),
            "whatever the limit is",
        ),
    ] {
        assert!(said.contains(wanted), "{said}");
    }
    let tiny = of(1, 1000, &["-Xmx1g"]);
    assert!(!tiny.contains("does not start with"), "{tiny}");
    let bounded = of(gib, 1000, &["-XX:-UseContainerSupport", "-Xmx256m"]);
    assert!(!bounded.contains("whatever"), "{bounded}");
}

#[test]
fn a_sound_container_has_no_findings() {
    assert_eq!(text(&container(), MeasuredNeeds::default()), "");
    assert_eq!(qos_class(&container()), "Guaranteed");
}

/// What `size --cpu-policy request` ships is meant so; any other Burstable pod is told.
#[test]
fn a_cpu_request_without_a_limit_is_a_size() {
    let mut of = container();
    of.limits.cpu = None;
    assert_eq!(qos_class(&of), "Burstable");
    assert_eq!(text(&of, MeasuredNeeds::default()), "");
    let mut beside = of.clone();
    beside.pod.running = vec![ContainerNeeds::default()];
    let mut little = of.clone();
    little.requests.memory = Some(Bytes::from_mib(256));
    of.requests.cpu = None;
    for other in [beside, little, of] {
        let said = text(&other, MeasuredNeeds::default());
        assert_eq!(said, "Note: QoS class Burstable");
    }
}

#[test]
fn the_class_is_that_of_the_whole_pod() {
    let sound = container();
    let class = |pod: PodNeeds| {
        let of = LintedContainer {
            pod,
            ..sound.clone()
        };
        qos_class(&of)
    };
    let none = vec![ContainerNeeds::default()];
    let running = PodNeeds {
        running: none.clone(),
        ..PodNeeds::default()
    };
    let starting = PodNeeds {
        starting: none,
        ..PodNeeds::default()
    };
    assert_eq!([class(running.clone()), class(starting)], ["Burstable"; 2]);
    let mut large = sound.clone();
    large.limits.memory = Some(Bytes::from_gib(2));
    let before = LintedContainer {
        pod: PodNeeds {
            running: vec![sound.own_needs()],
            starting: vec![large.own_needs()],
            ..PodNeeds::default()
        },
        ..sound.clone()
    };
    let size = (Some(Cpus::from_whole(2)), Some(Bytes::from_gib(2)));
    assert_eq!(before.pod_size(), size);
    let own = PodNeeds {
        own: Some(sound.own_needs()),
        ..running
    };
    assert_eq!(class(own.clone()), "Guaranteed");
    let mut bare = LintedContainer {
        pod: own,
        ..LintedContainer::default()
    };
    bare.inherit_limits();
    assert_eq!(text(&bare, MeasuredNeeds::default()), "");
    assert_eq!(bare.pod_size().1, Some(Bytes::from_mib(512)));
}

#[test]
fn a_heap_without_a_limit_is_what_its_options_say() {
    let problem = |options: &[&str], unseen: &[&str]| {
        let of = LintedContainer {
            jvm: options.iter().map(|o| (*o).to_owned()).collect(),
            unseen: unseen.iter().map(|o| (*o).to_owned()).collect(),
            ..LintedContainer::default()
        };
        text(&of, MeasuredNeeds::default())
    };
    let said = [
        problem(&["-Xmx256m"], &[]),
        problem(&["-XX:MaxRAMPercentage=75"], &[]),
        problem(&[], &["ConfigMap env"]),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    Error: QoS class BestEffort: the pod has no requests and no limits
    Warning: no memory limit: -Xmx256m bounds the heap, and nothing bounds the rest
    Error: no memory limit: -XX:MaxRAMPercentage=75 is a share of the node's memory
    Error: QoS class BestEffort: the pod has no requests and no limits
    Error: QoS class BestEffort: the pod has no requests and no limits
    Warning: no memory limit: whether an option bounds the heap is not to be seen here
    Note: not checked: ConfigMap env
    ");
}

#[test]
fn requests_above_limits_and_initial_heaps_are_seen() {
    let mut of = container();
    of.requests.cpu = Some(Cpus::from_whole(2));
    of.requests.memory = Some(Bytes::from_gib(1));
    let mut small = container();
    small.requests.memory = Some(Bytes::from_mib(64));
    small.jvm = vec![
        "-XX:InitialRAMPercentage=25".to_owned(),
        "-XX:+UseConcMarkSweepGC".to_owned(),
    ];
    let mut gone = container();
    gone.jvm = vec!["-Xmx1g".to_owned(), "-XX:+UseConcMarkSweepGC".to_owned()];
    // Of 1500m a JVM with 1Gi takes Serial, and one with 4Gi G1.
    let mut threads = container();
    threads.requests.cpu = Some(Cpus::from_millis(1500));
    threads.limits = ContainerResources {
        memory: Some(Bytes::from_gib(4)),
        ..threads.requests
    };
    threads.requests = threads.limits;
    let mut pod = container();
    pod.pod.own = Some(ContainerNeeds {
        requests: ContainerResources {
            cpu: Some(Cpus::from_whole(1)),
            memory: Some(Bytes::from_gib(1)),
        },
        limits: ContainerResources {
            cpu: Some(Cpus::from_millis(500)),
            memory: Some(Bytes::from_mib(256)),
        },
    });
    let all = [of, small, gone, threads, pod].map(|of| text(&of, MeasuredNeeds::default()));
    insta::assert_snapshot!(all.join("\n"), @"
    Error: the CPU request 2 is above the limit 1: the API server refuses the pod
    Error: the memory request 1Gi is above the limit 512Mi: the API server refuses the pod
    Note: QoS class Burstable
    Warning: the memory request is 64Mi, less than the heap of 128Mi it starts with (-XX:InitialRAMPercentage=25)
    Note: QoS class Burstable
    Error: over-committed: the heap may take 1Gi and everything else 290Mi: 1314Mi in a limit of 512Mi (for a typical service)
    Warning: the CPU limit is 1500m: G1 runs 2 GC threads, which use up the quota and stop the application until the next period
    Error: the CPU request of the pod 1 is above its limit 500m: the API server refuses the pod
    Error: the memory request of the pod 1Gi is above its limit 256Mi: the API server refuses the pod
    Error: the CPU limit 1 is above the limit of the pod 500m: the API server refuses the pod
    Error: the memory limit 512Mi is above the limit of the pod 256Mi: the API server refuses the pod
    Note: QoS class Burstable
    ");
}

#[test]
fn a_container_without_numbers() {
    let bare = LintedContainer::default();
    insta::assert_snapshot!(text(&bare, MeasuredNeeds::default()), @"
    Error: no memory limit: the JVM takes a quarter of the node's memory as its heap
    Error: QoS class BestEffort: the pod has no requests and no limits
    ");
}

#[test]
fn quantities_and_heaps_that_cannot_be_meant_are_named() {
    let mut bad = container();
    bad.limits.memory = Some(Bytes::from_bytes(1));
    bad.requests.memory = bad.limits.memory;
    bad.unreadable = vec!["requests.cpu `1 core`".to_owned()];
    let hint = |amount: &str| {
        let of = LintedContainer {
            unreadable: vec![amount.to_owned()],
            ..container()
        };
        lint(&of, MeasuredNeeds::default()).remove(0).hint
    };
    for (amount, said) in [
        ("requests.cpu `1 core`", "did you mean 1?"),
        ("limits.cpu `500mi`", "did you mean 500m?"),
        ("limits.memory `1gig`", "did you mean 1Gi?"),
        ("limits.memory `1K`", "did you mean 1Ki?"),
        ("limits.memory `half`", "write 512Mi, 1Gi, 1G, 250m or 1.5"),
    ] {
        assert_eq!(hint(amount), said, "{amount}");
    }
    insta::assert_snapshot!(text(&bad, MeasuredNeeds::default()), @"
    Error: requests.cpu `1 core` is no quantity, and the API server refuses it
    Error: the memory limit is 1 byte: no JVM starts in it
    Error: the memory request is 1 byte: no JVM starts in it
    ");
    let mut heaps = container();
    heaps.jvm = vec!["-XX:MaxRAMPercentage=90".to_owned()];
    insta::assert_snapshot!(text(&heaps, MeasuredNeeds::default()), @"Error: over-committed: the heap may take 462Mi and everything else 248Mi: 710Mi in a limit of 512Mi (for a typical service)");
    heaps.jvm.push("-Xmx256m".to_owned());
    insta::assert_snapshot!(text(&heaps, MeasuredNeeds::default()), @"Warning: -Xmx256m and -XX:MaxRAMPercentage=90 are both set: the percentage is ignored");
    let placeholder = LintedContainer {
        unreadable: vec!["limits.memory `${MEMORY}`".to_owned()],
        jvm: vec!["-Xmx{{".to_owned()],
        ..container()
    };
    insta::assert_snapshot!(text(&placeholder, MeasuredNeeds::default()), @"Warning: limits.memory `${MEMORY}` is a placeholder and was not checked");
    let unknown = LintedContainer {
        unreadable: vec!["limits.memory `512MB`".to_owned()],
        ..container()
    };
    assert!(!text(&unknown, MeasuredNeeds::default()).contains("no memory limit"));
}

#[test]
fn a_heap_and_everything_else_have_to_fit() {
    let problems = |options: &[&str], rest: Option<u64>| {
        let mut of = container();
        of.jvm = options.iter().map(|o| (*o).to_owned()).collect();
        let measured = MeasuredNeeds {
            rest: rest.map(Bytes::from_mib),
            ..MeasuredNeeds::default()
        };
        let found = lint(&of, measured);
        let line = |f: &LintFinding| format!("{:?}: {}\n  hint: {}", f.severity, f.problem, f.hint);
        found.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(problems(&["-Xmx256m"], None), "");
    assert_eq!(problems(&["-Xmx370m"], Some(142)), "");
    let said = [
        problems(&["-XX:MaxRAMPercentage=75"], None),
        problems(&["-Xmx371m"], Some(142)),
        problems(&[], Some(500)),
        problems(&["-Xmx128m", "-Xmx200m"], Some(142)),
        problems(&["-Xmx128m", "-XX:MaxRAMPercentage=75"], Some(142)),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    Error: over-committed: the heap may take 384Mi and everything else 248Mi: 632Mi in a limit of 512Mi (for a typical service)
      hint: lower the heap to 264Mi (-Xmx264m) or raise the limit to 632Mi; --measured RESULT takes the service's own
    Error: over-committed: the heap may take 372Mi and everything else 142Mi: 514Mi in a limit of 512Mi (as it was measured, growth included)
      hint: lower the heap to 370Mi (-Xmx370m) or raise the limit to 514Mi
    Error: over-committed: the heap may take 128Mi and everything else 500Mi: 628Mi in a limit of 512Mi (as it was measured, growth included)
      hint: raise the limit to 628Mi; no heap fits into 512Mi
    Warning: the heap is set twice: -Xmx128m, then -Xmx200m; the last one counts
      hint: keep one; a percentage follows the limit, -Xmx does not
    Warning: -Xmx128m and -XX:MaxRAMPercentage=75 are both set: the percentage is ignored
      hint: keep one; a percentage follows the limit, -Xmx does not
    ");
}

#[test]
fn every_rule_fires_on_what_it_is_for() {
    let mut bad = container();
    bad.limits.cpu = Some(Cpus::from_millis(1500));
    bad.requests.memory = Some(Bytes::from_mib(128));
    bad.jvm = vec!["-Xmx512m".to_owned(), "-Xms256m".to_owned()];
    let probe = |kind: &str| ContainerProbe {
        kind: kind.to_owned(),
        initial_delay: Duration::from_secs(5),
        period: Duration::from_secs(10),
        failures: 3,
    };
    bad.probes = vec![probe("livenessProbe"), probe("readinessProbe")];
    insta::assert_snapshot!(text(&bad, MeasuredNeeds::default()), @"
    Error: over-committed: the heap may take 512Mi and everything else 248Mi: 760Mi in a limit of 512Mi (for a typical service)
    Warning: the memory request is 128Mi, less than the heap of 256Mi it starts with (-Xms256m)
    Note: QoS class Burstable
    ");
    let measured = MeasuredNeeds {
        start: Some(Duration::from_secs(40)),
        memory: Some(Bytes::from_mib(300)),
        rest: Some(Bytes::from_mib(142)),
    };
    bad.jvm = vec!["-Xmx480m".to_owned(), "-XX:ParallelGCThreads=1".to_owned()];
    insta::assert_snapshot!(text(&bad, measured), @"
    Error: over-committed: the heap may take 480Mi and everything else 142Mi: 622Mi in a limit of 512Mi (as it was measured, growth included)
    Error: the livenessProbe gives up after 35 s, but a start took 40.0 s when it was measured
    Warning: the memory request is 128Mi, but 300Mi were used when it was measured
    Note: QoS class Burstable
    ");
    bad.probes.push(ContainerProbe {
        failures: 10,
        ..probe("startupProbe")
    });
    assert!(!text(&bad, measured).contains("Probe"));
    bad.limits.cpu = Some(Cpus::from_whole(1));
    bad.jvm = ["-XX:+UseParallelGC", "-XX:ParallelGCThreads=4"]
        .map(str::to_owned)
        .to_vec();
    let said = text(&bad, measured);
    assert!(
        said.contains("CPU limit is 1: Parallel runs 4 GC threads"),
        "{said}"
    );
}
