use loadline_sizing::hotspot::CollectorKind;

use super::super::{GarbageCollector, GcLog, GcPause, read};

fn log(text: &str) -> GcLog {
    read(text.as_bytes(), usize::MAX)
}

/// Kind, cause, microseconds, heap after in KiB, end as uptime in ms.
fn say(pause: &GcPause) -> String {
    let cause = pause.name.cause.as_deref().unwrap_or("-");
    let after = pause.heap.map_or(0, |heap| heap.after >> 10);
    let end = pause.end.uptime_ns.map_or(0, |ns| ns / 1_000_000);
    let micros = pause.duration.as_micros();
    format!(
        "{} | {cause} | {micros} us | {after} K | {end} ms",
        pause.name.kind
    )
}

fn pauses(text: &str) -> Vec<String> {
    log(text).pauses.iter().map(say).collect()
}

#[test]
fn one_line_records() {
    let text = "\
1.053: [GC (Allocation Failure) 1.053: [ParNew: 218496K->25704K(245760K), 0.0145305 secs] 218496K->25704K(791936K), 0.0146984 secs] [Times: user=0.13 sys=0.00, real=0.01 secs] 
2012-04-18T14:23:59.890+0200: 0.202: [GC 0.202: [DefNew: 52480K->6524K(59008K), 0.0358874 secs] 52480K->50393K(517760K), 0.0359906 secs]
[GC [PSYoungGen: 512K->480K(1024K)] 512K->496K(261632K), 0.0007660 secs]
4.5: [Full GC (System) [PSYoungGen: 9639K->0K(1305216K)] [PSOldGen: 47862K->57155K(2796224K)] 57502K->57155K(4101440K) [PSPermGen: 84542K->84542K(1048576K)], 0.2991580 secs]
13.088: [GC 47513K(83008K), 0.0026705 secs]
5,503: [GC pause (G1 Evacuation Pause) (young) 8180M->169M(24576M), 0,4953831 secs]
";
    insta::assert_snapshot!(pauses(text).join("\n"), @"
    Young | Allocation Failure | 14698 us | 25704 K | 1067 ms
    Young | - | 35990 us | 50393 K | 237 ms
    Young | - | 766 us | 496 K | 0 ms
    Full | System.gc() | 299158 us | 57155 K | 4799 ms
    Young | - | 2670 us | 0 K | 13090 ms
    Young (Normal) | G1 Evacuation Pause | 495383 us | 173056 K | 5998 ms
    ");
}

#[test]
fn g1_has_its_heap_on_another_line() {
    let text = "\
0.065: [GC pause (G1 Evacuation Pause) (young) (initial-mark) (to-space exhausted), 0.0039925 secs]
   [Parallel Time: 762.3 ms, GC Workers: 8]
      [GC Worker Start (ms): Min: 6049187.4, Avg: 6049187.5, Max: 6049187.6, Diff: 0.1]
   [Eden: 512.0M(512.0M)->0.0B(448.0M) Survivors: 0.0B->64.0M Heap: 740.9M(10.0G)->408.0M(10.0G)]
 [Times: user=6.00 sys=0.28, real=10.26 secs] 
7.257: [GC concurrent-root-region-scan-start]
7.257: [GC concurrent-root-region-scan-end, 0.0005090 secs]
8.5: [GC remark 8.6: [GC ref-proc, 0.1656600 secs], 0.2274544 secs]
9.263: [GC cleanup 8598K->8598K(13M), 0.0004570 secs]
";
    let log = log(text);
    insta::assert_snapshot!(log.pauses.iter().map(say).collect::<Vec<_>>().join("\n"), @"
    Young (Concurrent Start) | G1 Evacuation Pause | 3992 us | 417792 K | 68 ms
    Remark | - | 227454 us | 0 K | 8727 ms
    Cleanup | - | 457 us | 8598 K | 9263 ms
    ");
    assert_eq!(log.summary.evacuation_failures, 1);
    assert_eq!(
        log.pauses[0].cpu.map(|cpu| cpu.real.as_millis()),
        Some(10_260)
    );
    assert_eq!(log.summary.concurrent.iter().count(), 1);
    assert_eq!(log.input.unknown_lines, 0);
}

/// Records over several lines, other threads in between.
#[test]
fn interleaved_records() {
    let concurrent_mode_failure = "\
27067.966: [GC {Heap before gc invocations=498:
 par new generation   total 261952K, used 261760K [0x00002aaab0000000, 0x00002aaac0000000)
27067.966: [ParNew: 261760K->261760K(261952K), 0.0000160 secs]27067.966: [CMS27067.966: [CMS-concurrent-abortable-preclean: 2.272/29.793 secs]
 (concurrent mode failure): 1147900K->1155037K(1179648K), 7.3953900 secs] 1409660K->1155037K(1441600K)Heap after gc invocations=499:
}
, 7.3957620 secs]
";
    let g1_full = "\
298.027: [Full GC (Metadata GC Threshold) [GC concurrent-root-region-scan-start]
298.027: [GC concurrent-root-region-scan-end, 0.0003609 secs]
298.027: [GC concurrent-mark-start]
 798M->797M(5120M), 3.4595066 secs]
";
    let limit = "\
165944.630: [Full GC [PSYoungGen: 230400K->217423K(268800K)] [PSOldGen: 1789951K->1789951K(1789952K)] 2020351K->2007375K(2058752K) [PSPermGen: 188837K->188837K(524288K)]      GC time would exceed GCTimeLimit of 98%
, 7.2070810 secs] [Times: user=7.21 sys=0.00, real=7.21 secs]
";
    let text = [concurrent_mode_failure, g1_full, limit].concat();
    insta::assert_snapshot!(pauses(&text).join("\n"), @"
    Full | Concurrent Mode Failure | 7395762 us | 1155037 K | 27075361 ms
    Full | Metadata GC Threshold | 3459506 us | 816128 K | 301486 ms
    Full | - | 7207081 us | 2007375 K | 165951837 ms
    ");
}

/// A young collection inside the remark: both are reported, and their sum is the time that the
/// application was stopped.
#[test]
fn scavenge_before_remark() {
    let text = "\
171.721: [GC (CMS Final Remark) [YG occupancy: 1056998 K (1922432 K)]171.721: [GC (CMS Final Remark) 171.721: [ParNew: 1056998K->151245K(1922432K), 0.1588173 secs] 2442587K->1615175K(4019584K), 0.1590607 secs] [Times: user=0.49 sys=0.05, real=0.16 secs]
171.880: [Rescan (parallel) , 0.0646557 secs]171.9: [weak refs processing, 0.0193751 secs] [1 CMS-remark: 1463930K(2097152K)] 1615175K(4019584K), 0.3629240 secs] [Times: user=0.9 sys=0.0, real=0.36 secs]
";
    insta::assert_snapshot!(pauses(text).join("\n"), @"
    Young | CMS Final Remark | 159060 us | 1615175 K | 171880 ms
    Remark | - | 203863 us | 0 K | 172083 ms
    ");
    let summary = log(text).summary;
    assert_eq!(summary.stw.total.as_micros(), 362_924);
    // The times of the remark contain those of the collection inside.
    assert_eq!(summary.cpu_count, 2);
    assert_eq!(summary.cpu.user.as_millis(), 900);
    assert_eq!(summary.cpu.real.as_millis(), 360);
}

#[test]
fn a_record_without_end_is_told_and_hides_no_other() {
    let text = "\
1.0: [GC 1.0: [ParNew
2.0: [GC (Allocation Failure) 2.0: [ParNew: 9K->1K(99K), 0.01 secs] 9K->1K(99K), 0.0200000 secs]
3.0: [Full GC (Ergonomics) [PSYoungGen: 1K->0K(9K)]";
    let log = log(text);
    assert_eq!(log.summary.stw.count, 1);
    assert_eq!(log.input.unfinished_pauses, 2);
}

#[test]
fn the_header_names_jvm_heap_and_collector() {
    let text = "\
OpenJDK 64-Bit Server VM (25.292-b10) for linux-amd64 JRE (1.8.0_292-b10), built on Apr 20 2021 by \"x\"
Memory: 4k page, physical 16433232k(1234k free), swap 0k(0k free)
CommandLine flags: -XX:InitialHeapSize=1048576 -XX:MaxHeapSize=100663296 -XX:+PrintGC -XX:+UseG1GC 
";
    let header = log(text).header;
    assert_eq!(header.jdk.as_deref(), Some("1.8.0_292-b10"));
    assert_eq!(
        header.collector,
        Some(GarbageCollector::HotSpot(CollectorKind::G1))
    );
    assert_eq!(header.heap_max_bytes, Some(96 << 20));
    assert_eq!(header.machine.memory_bytes, Some(16_433_232 << 10));
}

#[test]
fn histograms_inside_a_full_collection_do_not_confuse_the_brackets() {
    let text = "\
69302.2: [Full GC (Heap Dump Initiated GC) 69302.241: [Class Histogram (before full gc): 
 num     #instances         #bytes  class name
----------------------------------------------
   1:       2050241     4701812112  [Ljava.lang.Object;
   2:       3842390      388061760  [C
Total      21105030     6129842472
, 1.5000000 secs]
 21G->20G(22G), 10.0000000 secs]
";
    insta::assert_snapshot!(pauses(text).join("\n"), @"Full | Heap Dump Initiated GC | 10000000 us | 20971520 K | 69312200 ms");
}

/// `-XX:+PrintGCDateStamps` alone: every clock figure is on the wall clock.
#[test]
fn dates_without_uptimes_are_the_clock() {
    for offset in ["+0200", "+0000", "-0500", "+0530"] {
        let record = |second: u32| {
            let date = format!("2016-04-14T22:30:{second:02}.108{offset}");
            format!(
                "{date}: [GC (Allocation Failure) {date}: [ParNew: 9M->1M(20M), 0.0090000 secs] \
                 10M->2M(40M), 0.0100000 secs] [Times: user=0.01 sys=0.00, real=0.01 secs]"
            )
        };
        let stopped = |second: u32| {
            format!(
                "2016-04-14T22:30:{second:02}.118{offset}: Total time for which application \
                 threads were stopped: 0.0100000 seconds, Stopping threads took: 0.0000100 seconds"
            )
        };
        let lines = [
            format!("{}{}", record(9), record(19)),
            stopped(19),
            record(39),
        ];
        for text in [
            lines.join("\n"),
            [&lines[0], &lines[2]].map(String::as_str).join("\n"),
        ] {
            let log = log(&text);
            let summary = &log.summary;
            assert_eq!(summary.jvm_starts, 1, "{text}");
            assert_eq!(summary.stw.count, 3, "{text}");
            assert_eq!(summary.logged.as_millis(), 30_010, "{text}");
            assert_eq!(summary.allocated, 2 * (8 << 20), "{text}");
            assert!(summary.paused_share().is_some_and(|share| share < 0.001));
            let ends = log.pauses.iter().map(|pause| pause.end);
            assert!(ends.clone().all(|end| end.uptime_ns.is_none()), "{text}");
            let seconds: Vec<i64> = ends
                .filter_map(|end| end.unix_ms)
                .map(|ms| ms / 1000 % 60)
                .collect();
            assert_eq!(seconds, [9, 19, 39], "{text}");
        }
    }
}

/// A record keeps both of its clocks, and a line that has lost one does not start another JVM.
#[test]
fn dates_and_uptimes_are_both_kept_and_never_mixed() {
    let text = "\
2017-06-18T05:23:03.447-0500: 2.177: [GC 9M->1M(20M), 0.0100000 secs]
2017-06-18T05:23:04.447-0500: 3.177: 2017-06-18T05:23:04.447-0500: [GC 9M->1M(20M), 0.0100000 secs]
2017-06-18T05:23:05.447-0500: 4.177: [GC 9M->1M(20M), 0.0100000 secs]
";
    let log = log(text);
    let first = log.pauses[0].end;
    assert_eq!(first.uptime_ns, Some(2_187_000_000));
    assert_eq!(first.unix_ms, Some(1_497_781_383_457));
    assert_eq!(log.pauses[1].end.uptime_ns, None);
    assert_eq!(log.summary.jvm_starts, 1);
    assert_eq!(log.summary.logged.as_millis(), 2_010);
}

/// CMS also writes CPU times after its concurrent phases, on the same line or on the next.
#[test]
fn cpu_of_concurrent_phases_is_no_cpu_of_collections() {
    let text = "\
1.0: [GC [1 CMS-initial-mark: 10K(20K)] 12K(40K), 0.0100000 secs] [Times: user=0.02 sys=0.00, real=0.01 secs]
1.1: [CMS-concurrent-mark-start]
5.2: [CMS-concurrent-mark: 4.100/4.100 secs] [Times: user=4.10 sys=0.10, real=4.10 secs]
5.3: [CMS-concurrent-preclean: 0.016/0.048 secs]5.301: Application time: 0.0055079 seconds
 [Times: user=0.15 sys=0.02, real=0.05 secs]
6.0: [GC 6.0: [ParNew6.1: [CMS-concurrent-abortable-preclean: 0.2/0.9 secs] [Times: user=0.70 sys=0.00, real=0.90 secs]
: 9K->1K(9K), 0.0090000 secs] 12K->4K(40K), 0.0100000 secs] [Times: user=0.03 sys=0.01, real=0.01 secs]
";
    let log = log(text);
    let summary = &log.summary;
    assert_eq!((summary.stw.count, summary.cpu_count), (2, 2));
    let cpu = summary.cpu;
    let millis = [cpu.user, cpu.system, cpu.real].map(|time| time.as_millis());
    assert_eq!(millis, [50, 10, 20]);
}
