use std::time::Duration;

use loadline_sizing::hotspot::CollectorKind;
use proptest::prelude::*;

use super::*;

fn read_text(text: &str) -> GcLog {
    read(text.as_bytes(), usize::MAX)
}

/// Lines of both grammars, to be cut, mixed and damaged.
const SEEDS: [&str; 12] = [
    "[1.0s][123456789012ns][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 56.205ms\n",
    "[1.0s][info][safepoint   ] Safepoint \"G1CollectForAllocation\", Time since last: 299678523 ns, Reaching safepoint: 3778 ns, Cleanup: 18714 ns, At safepoint: 68084579 ns, Total: 68107071 ns\n",
    "[2020-12-21T01:04:47.091+0000][1778483.410s][debug][gc,ergo] GC(597760) Initiate\n",
    "[1.1s][info][gc,cpu      ] GC(0) User=0.02s Sys=0.01s Real=0.84s\n",
    "[1.2s][gc] GC(1) Major Collection (Warmup) 26M(10%)->48M(19%) 0.193s\n",
    "1.053: [GC (Allocation Failure) 1.053: [ParNew: 218496K->25704K(245760K), 0.0145305 secs] 218496K->25704K(791936K), 0.0146984 secs] [Times: user=0.13 sys=0.00, real=0.01 secs] \n",
    "27067.966: [GC {Heap before gc invocations=498:\n",
    "27067.966: [ParNew: 261760K->261760K(261952K), 0.0000160 secs]27067.966: [CMS27067.966: [CMS-concurrent-abortable-preclean: 2.272/29.793 secs]\n (concurrent mode failure): 1147900K->1155037K(1179648K), 7.3953900 secs] 1409660K->1155037K(1441600K)Heap after gc invocations=499:\n}\n, 7.39 secs]\n",
    "0.065: [GC pause (G1 Evacuation Pause) (young) (initial-mark), 0.0039925 secs]\n   [Eden: 512.0M(512.0M)->0.0B(448.0M) Survivors: 0.0B->64.0M Heap: 740.9M(10.0G)->408.3M(10.0G)]\n",
    "{Heap before GC invocations=0 (full 0):\n PSYoungGen      total 76800K, used 66048K [0x00000000f0000000, 0x0)\n}\n",
    "Total time for which application threads were stopped: 0.0072168 seconds, Stopping threads took: 0.0000300 seconds\n",
    "GC(3) User=",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_it_fail(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        read(&bytes[..], 10);
    }

    #[test]
    fn no_mixture_of_lines_makes_it_fail_and_every_line_is_counted(
        picks in proptest::collection::vec((0usize..SEEDS.len(), 0usize..400, 0usize..400, any::<u8>()), 1..30),
    ) {
        let mut text = Vec::new();
        for (seed, cut, damage, byte) in picks {
            let mut line = SEEDS[seed].as_bytes().to_vec();
            if let Some(place) = line.get_mut(damage) { *place = byte; }
            line.truncate(cut.max(10));
            text.extend(line);
        }
        let log = read(&text[..], 10);
        let input = &log.input;
        let lines = text.split(|b| *b == b'\n').count() as u64 - u64::from(text.ends_with(b"\n"));
        prop_assert_eq!(input.counts.lines, lines);
        prop_assert_eq!(
            lines,
            input.gc_lines + input.other_lines + input.unknown_lines + input.empty_lines
        );
        prop_assert!(log.summary.stw.max <= log.summary.stw.total);
    }
}

#[test]
fn the_kept_lists_are_bounded_the_sums_are_not() {
    let lines: String = (0..100)
        .map(|n| {
            format!("[{n}.5s] GC({n}) Pause Young (Allocation Failure) 9M->5M(20M) 10.000ms\n")
        })
        .collect();
    let log = read(lines.as_bytes(), 7);
    assert_eq!(log.pauses.len(), 7);
    assert_eq!(log.summary.stw.count, 100);
    assert_eq!(log.summary.stw.total, Duration::from_secs(1));
    // From the begin of the first pause to the end of the last one.
    assert_eq!(log.summary.logged, Duration::from_millis(99_010));
    assert_eq!(log.summary.allocated, 99 * (4 << 20));
}

#[test]
fn a_frame_around_each_line_changes_nothing() {
    let lines = [
        "[0.004s][info][gc] Using G1",
        "[0.512s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(256M) 5.432ms",
        "[1.512s][info][gc] GC(1) Pause Full (System.gc()) 33M->5M(256M) 26.432ms",
    ];
    let plain = read_text(&lines.join("\n")).summary;
    for frame in [
        "2023-10-10T13:55:36.123456789Z stdout F @",
        "{\"log\":\"@\\n\",\"stream\":\"stdout\",\"time\":\"2023-10-10T13:55:36.1Z\"}",
        "orders-1  | @",
        "[pod/orders-7c9d/orders] @",
        "2023-10-10T13:55:36.123456789Z @",
        "Oct 10 13:55:36 host java[123]: @",
        "<134>1 2023-10-10T13:55:36.1Z host java 123 - - @",
    ] {
        let framed: Vec<String> = lines.iter().map(|line| frame.replace('@', line)).collect();
        let log = read_text(&framed.join("\n"));
        assert!(log.input.is_gc_log, "{frame}");
        assert_eq!(log.summary.stw, plain.stw, "{frame}");
        assert_eq!(
            log.header.collector,
            Some(GarbageCollector::HotSpot(CollectorKind::G1)),
            "{frame}"
        );
    }
    let stamp = "2023-10-10T13:55:36.123456789Z stdout";
    let halves = lines.map(|line| {
        let (begin, end) = line.split_at(line.len() / 2);
        format!("{stamp} P {begin}\n{stamp} F {end}")
    });
    assert_eq!(read_text(&halves.join("\n")).summary.stw, plain.stw);
}

#[test]
fn a_pause_that_has_begun_and_not_ended_is_told() {
    let log = read_text(
        "[1.0s][gc,start] GC(0) Pause Young (Allocation Failure)\n\
         [1.1s][gc      ] GC(0) Pause Young (Allocation Failure) 9M->5M(20M) 10.000ms\n\
         [2.0s][gc,start] GC(1) Pause Full (Ergonomics)\n",
    );
    assert_eq!(log.input.unfinished_pauses, 1);
    assert_eq!(log.summary.stw.count, 1);
}

#[test]
fn starved_pauses_are_those_with_little_cpu() {
    let pause = |id: u32, cpu: &str| {
        format!(
            "[1.0s][gc    ] GC({id}) Pause Young (Allocation Failure) 9M->5M(20M) 100.000ms\n\
             [1.0s][gc,cpu] GC({id}) User={cpu}s Sys=0.00s Real=0.10s\n"
        )
    };
    let header =
        "[0.0s][gc,init] CPUs: 8 total, 8 available\n[0.0s][gc,init] Parallel Workers: 8\n";
    let eight = read_text(&format!("{header}{}{}", pause(0, "0.70"), pause(1, "0.40")));
    assert_eq!((eight.summary.long_with_cpu, eight.summary.starved), (2, 1));
    let header =
        "[0.0s][gc,init] CPUs: 2 total, 2 available\n[0.0s][gc,init] Parallel Workers: 2\n";
    let two = read_text(&format!("{header}{}{}", pause(0, "0.10"), pause(1, "0.04")));
    assert_eq!((two.summary.long_with_cpu, two.summary.starved), (2, 1));
}

#[test]
fn lines_that_the_jvm_dropped_are_told() {
    let log = read_text(
        "[1.0s][warning][]     12 messages dropped due to async logging\n     3 messages dropped due to async logging\n[1.0s][gc] Using G1\n",
    );
    assert_eq!(log.input.dropped_lines, 15);
}

/// A log is untrusted data: sums of impossible values saturate.
#[test]
fn sums_of_figures_beyond_all_numbers_saturate() {
    let most = "9".repeat(30);
    let mut text = format!("[1.0s][warning][]     {most} messages dropped due to async logging\n");
    for number in 0..4 {
        text.push_str(&format!(
            "[{number}.0s][gc] GC({number}) Pause Young (Normal) 0M->{most}T({most}T) 1.0ms\n"
        ));
        text.push_str(&format!(
            "[{number}.5s][gc] GC({number}) Pause Young (Normal) {most}T->0M({most}T) 1.0ms\n"
        ));
        text.push_str("     1 messages dropped due to async logging\n");
    }
    let log = read_text(&text);
    assert_eq!(log.input.dropped_lines, u64::MAX);
    assert_eq!(log.summary.allocated, u64::MAX);
    assert_eq!(log.summary.promoted, Some(u64::MAX));
}

/// CMS of JDK 9 to 13 writes CPU times after its concurrent phases too.
#[test]
fn cpu_of_concurrent_phases_is_no_cpu_of_collections() {
    let log = read_text(
        "[1.0s][gc,start] GC(1) Pause Initial Mark\n\
         [1.0s][gc      ] GC(1) Pause Initial Mark 5M->5M(20M) 10.000ms\n\
         [1.0s][gc,cpu  ] GC(1) User=0.02s Sys=0.00s Real=0.01s\n\
         [1.0s][gc      ] GC(1) Concurrent Mark\n\
         [3.0s][gc      ] GC(1) Concurrent Mark 2000.000ms\n\
         [3.0s][gc,cpu  ] GC(1) User=4.00s Sys=0.10s Real=2.00s\n\
         [4.0s][gc      ] GC(2) Pause Young (Allocation Failure) 9M->5M(20M) 10.000ms\n\
         [4.0s][gc      ] GC(1) Concurrent Preclean 500.000ms\n\
         [4.0s][gc,cpu  ] GC(1) User=0.50s Sys=0.00s Real=0.50s\n\
         [4.0s][gc,cpu  ] GC(2) User=0.03s Sys=0.01s Real=0.01s\n\
         [5.0s][gc      ] GC(1) Pause Remark 5M->5M(20M) 10.000ms\n\
         [6.0s][gc      ] GC(1) Concurrent Sweep 900.000ms\n\
         [6.0s][gc,cpu  ] GC(1) User=0.90s Sys=0.00s Real=0.90s\n",
    );
    let summary = &log.summary;
    assert_eq!((summary.stw.count, summary.cpu_count), (3, 2));
    assert_eq!(summary.cpu.user, Duration::from_millis(50));
    assert_eq!(summary.cpu.real, Duration::from_millis(20));
}

/// A pause promotes the growth of the remainder over the previous pause; a full collection resets
/// it.
#[test]
fn what_pauses_leave_more_was_promoted() {
    let pause = |second: u32, kind: &str, after: u32| {
        format!("[{second}.0s][gc] GC({second}) Pause {kind} 40M->{after}M(61M) 10.000ms\n")
    };
    let text = [
        pause(1, "Young (Allocation Failure)", 5),
        pause(2, "Young (Allocation Failure)", 8),
        pause(3, "Full (Ergonomics)", 20),
        pause(4, "Young (Allocation Failure)", 21),
        pause(5, "Young (Allocation Failure)", 19),
    ];
    assert_eq!(read_text(&text.concat()).summary.promoted, Some(4 << 20));
    assert_eq!(
        read_text("[1.0s][gc] Using Serial\n").summary.promoted,
        None
    );
}

/// Allocation is a lower bound: 80 MiB before each minor collection but the first, of which the
/// major one sees 50.
#[test]
fn a_major_collection_around_minor_ones_adds_no_allocation() {
    let minor = |second: &str, id: u32| {
        format!(
            "[{second}s][gc] GC({id}) Minor Collection (Allocation Rate)\n\
             [{second}s][gc] GC({id}) Minor Collection (Allocation Rate) 100M(50%)->20M(10%) 0.010s\n"
        )
    };
    let major = |text: &str| format!("[4.0s][gc] GC(2) Major Collection (Warmup){text}\n");
    let text = [
        minor("1.0", 0),
        minor("2.0", 1),
        major(""),
        minor("3.0", 3),
        major(" 90M(45%)->70M(35%) 1.900s"),
        minor("4.3", 4),
    ]
    .concat();
    let log = read_text(&text);
    assert!(log.header.is_generational);
    assert_eq!(log.summary.allocated, 240 << 20);
    assert_eq!(log.summary.heap_after_max, Some(70 << 20));
    // Alone it counts like any other: 70 MiB before it, then 30 until the next.
    let text = [
        minor("1.0", 0),
        major(""),
        major(" 90M(45%)->70M(35%) 1.900s"),
        minor("4.3", 4),
    ];
    assert_eq!(read_text(&text.concat()).summary.allocated, 100 << 20);
}

/// Each collector and JDK has its own words for a full collection for want of room, some none.
#[test]
fn a_full_heap_is_told_whatever_the_cause_of_the_full_collections() {
    let is_told = |pause: &str| {
        let line = |id: u32| format!("[{id}.0s][gc] GC({id}) {pause} 64M->63M(64M) 10.000ms\n");
        let log = read_text(&(0..3).map(line).collect::<String>());
        let findings = findings::all_findings(&log);
        findings.iter().any(|f| f.code == FindingCode::HeapTooTight)
    };
    for cause in [
        " (G1 Evacuation Pause)",
        " (G1 Humongous Allocation)",
        " (G1 Compaction Pause)",
        " (Allocation Failure)",
        " (Ergonomics)",
        "",
    ] {
        assert!(is_told(&format!("Pause Full{cause}")), "{cause}");
    }
    for cause in [
        "System.gc()",
        "Diagnostic Command",
        "Metadata GC Threshold",
        "Metadata GC Clear Soft References",
        "Heap Dump Initiated GC",
        "Heap Inspection Initiated GC",
        "GCLocker Initiated GC",
    ] {
        assert!(!is_told(&format!("Pause Full ({cause})")), "{cause}");
    }
    assert!(!is_told("Pause Young (G1 Evacuation Pause)"));
}

#[test]
fn a_log_that_cannot_show_pauses_says_so_and_a_long_stop_is_found() {
    let said = |text: &str| {
        let findings = super::findings::all_findings(&read_text(text));
        let texts = findings.into_iter().map(|finding| finding.text);
        texts.collect::<Vec<_>>().join("\n")
    };
    let cycles = "[0.038s][info][gc] Using The Z Garbage Collector\n\
        [1.810s][info][gc] GC(0) Garbage Collection (Warmup) 122M(2%)->66M(1%)\n";
    assert!(
        said(cycles).contains("cannot show pauses"),
        "{}",
        said(cycles)
    );
    let with_pauses = "[0.038s][info][gc] Using G1\n\
        [1.810s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 122M->66M(512M) 2.000ms\n";
    assert_eq!(said(with_pauses), "");
    let long = with_pauses.replace("2.000ms", "20030.000ms");
    assert!(
        said(&long).contains("stood still for 20.0 s at once"),
        "{}",
        said(&long)
    );
}
