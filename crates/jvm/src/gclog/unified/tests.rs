use std::time::Duration;

use loadline_sizing::hotspot::CollectorKind;

use super::super::GarbageCollector;
use super::super::event::{CollectionWork, GcCpuTimes, HeaderFact, HeapChange};
use super::*;

const M: u64 = 1 << 20;

fn event(line: &str) -> Option<GcLogEvent<'_>> {
    let mut found = None;
    parse_unified_line(line.as_bytes(), &mut |event| found = Some(event));
    found
}

fn pause(line: &str) -> (String, u128, Option<HeapChange>) {
    match event(line) {
        Some(GcLogEvent::Pause(CollectionWork {
            name: text,
            duration,
            heap,
            ..
        })) => (
            String::from_utf8_lossy(text).into_owned(),
            duration.as_nanos(),
            heap,
        ),
        other => panic!("{line}: {other:?}"),
    }
}

fn heap(before: u64, after: u64, committed: Option<u64>) -> Option<HeapChange> {
    Some(HeapChange {
        before: before * M,
        after: after * M,
        committed: committed.map(|c| c * M),
    })
}

#[test]
fn decorations_in_any_subset() {
    let uptime = |ns| Some(ns);
    for (line, monotonic, up, unix) in [
        (
            "[0.008s][1269316683872ns][info][gc] Using G1",
            Some(1_269_316_683_872),
            uptime(8_000_000),
            None,
        ),
        ("[0,123s] Using G1", None, uptime(123_000_000), None),
        ("[246ms][gc] Using G1", None, uptime(246_000_000), None),
        (
            "[2019-05-09T01:39:00.821+0000][5413ms] Using G1",
            None,
            uptime(5_413_000_000),
            Some(1_557_365_940_821),
        ),
        (
            "[2019-05-09T01:39:00.821+0000][1557365940821ms][5413ms] Using G1",
            None,
            uptime(5_413_000_000),
            Some(1_557_365_940_821),
        ),
        (
            "[0.008s][8123456ns] Using G1",
            None,
            uptime(8_000_000),
            None,
        ),
        (
            "[1269316683872ns][8123456ns] Using G1",
            Some(1_269_316_683_872),
            uptime(8_123_456),
            None,
        ),
        (
            "[3619401490ms] Using G1",
            None,
            uptime(3_619_401_490_000_000),
            None,
        ),
        (
            "[some-host.example.org][4711][4712][info][gc   ] Using G1",
            None,
            None,
            None,
        ),
        (
            "[1.0s][Host-7][gc] Using G1",
            None,
            uptime(1_000_000_000),
            None,
        ),
    ] {
        let (decorations, text) = Decorations::split_line(line.as_bytes()).expect(line);
        assert_eq!(text, b"Using G1", "{line}");
        let at = decorations.at;
        assert_eq!(
            (at.monotonic_ns, at.uptime_ns, at.unix_ms),
            (monotonic, up, unix),
            "{line}"
        );
    }
}

/// Names of hosts may begin like records of classic logs.
#[test]
fn every_host_name_is_a_decoration() {
    let message = "GC(0) Pause Young (Allocation Failure) 9M->5M(20M) 10.000ms";
    for host in [
        "PSQL01",
        "GCP-node",
        "CMS2",
        "Parser",
        "Default",
        "FullStack",
        "Unloading",
        "web01",
    ] {
        for line in [
            format!("[1.010s][{host}][1234][info][gc] {message}"),
            format!("[{host}][1234][info][gc] {message}"),
            format!("[{host}] {message}"),
        ] {
            assert_eq!(pause(&line).1, 10_000_000, "{line}");
        }
    }
}

#[test]
fn lines_of_classic_logs_are_not_unified() {
    for line in [
        "[GC 30463K->3108K(1571712K), 0.1282309 secs]",
        "[Full GC 999M->691M(3072M), 3.4262061 secs]",
        " [Times: user=6.00 sys=0.28, real=10.26 secs]",
        "[PSYoungGen: 512K->480K(1024K)] 512K->496K(261632K), 0.0007660 secs]",
        "[CMS-concurrent-mark-start]",
        "[CMS-concurrent-sweep-start][GC [ParNew: 512K->480K(1024K), 0.0007660 secs]",
        "[GC[YG occupancy: 1056998 K (1922432 K)][GC 512K->480K(1024K), 0.0007660 secs]",
        "1.053: [GC",
        "",
    ] {
        assert_eq!(
            parse_unified_line(line.as_bytes(), &mut |_| {}),
            UnifiedLine::None,
            "{line}"
        );
    }
}

#[test]
fn other_tags_are_no_evidence() {
    let parse = |line: &str| parse_unified_line(line.as_bytes(), &mut |_| {});
    assert_eq!(
        parse("[1.0s][info][class,load] java.lang.Object source: jrt:/java.base"),
        UnifiedLine::Other
    );
    assert_eq!(
        parse("[1.0s][info][gc,heap,coops] Heap address: 0x1"),
        UnifiedLine::Gc(None)
    );
    assert_eq!(
        parse("[1.0s][info][gc,heap] GC(7) Eden regions: 14->0(77)"),
        UnifiedLine::Gc(Some(7))
    );
}

#[test]
fn pauses_of_every_collector() {
    for (line, text, nanos, figures) in [
        (
            "[1s][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 56.205ms",
            "Pause Young (Normal) (G1 Evacuation Pause)",
            56_205_000,
            heap(19, 11, Some(256)),
        ),
        (
            "[1s][gc] GC(0) Pause Young (Allocation Failure) 69M->23M(247M) 840.917ms",
            "Pause Young (Allocation Failure)",
            840_917_000,
            heap(69, 23, Some(247)),
        ),
        (
            "[1s][gc] GC(0) Pause Full (System.gc()) 9M->8M(28M) 14.918ms",
            "Pause Full (System.gc())",
            14_918_000,
            heap(9, 8, Some(28)),
        ),
        // JDK 9 and 10.
        (
            "[1s][gc] GC(4) Pause Young (G1 Evacuation Pause) 14M->12M(128M) (0.196s, 0.202s) 6.529ms",
            "Pause Young (G1 Evacuation Pause)",
            6_529_000,
            heap(14, 12, Some(128)),
        ),
        (
            "[1s][gc,phases   ] GC(0) Y: Pause Mark Start (Major) 0.020ms",
            "Y: Pause Mark Start (Major)",
            20_000,
            None,
        ),
        (
            "[1s][gc,phases   ] GC(2) y: Pause Mark End 0.017ms",
            "y: Pause Mark End",
            17_000,
            None,
        ),
        (
            "[1s][gc          ] GC(0) Pause Init Mark (Young) 0.073ms",
            "Pause Init Mark (Young)",
            73_000,
            None,
        ),
        (
            "[1s][gc] GC(3) Pause Degenerated GC (Mark) 121M->19M(122M) 9,421ms",
            "Pause Degenerated GC (Mark)",
            9_421_000,
            heap(121, 19, Some(122)),
        ),
        (
            "[1s][gc] GC(3) Pause Full 1.5s",
            "Pause Full",
            1_500_000_000,
            None,
        ),
        (
            "[1s][gc] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 9M->8M(20M) 5.9 ms",
            "Pause Young (Normal) (G1 Evacuation Pause)",
            5_900_000,
            heap(9, 8, Some(20)),
        ),
        (
            "GC(1) Pause Remark 16M->16M(16384M) 7.517ms",
            "Pause Remark",
            7_517_000,
            heap(16, 16, Some(16384)),
        ),
    ] {
        assert_eq!(pause(line), (text.to_owned(), nanos, figures), "{line}");
    }
}

#[test]
fn echoes_tables_and_statistics_are_no_pauses() {
    assert_eq!(
        event("[1s][gc,start] GC(0) Pause Full (System.gc())"),
        Some(GcLogEvent::PauseStart(Some(0)))
    );
    for line in [
        "[1s][gc,stats    ] Pause Init Mark (G)               79774 us",
        "[1s][gc,stats] Pause Full GC (G)       =    0.028 s (a =    27600 us)",
        "[1s][gc,alloc] GC(0) y: Allocation Stalls:          0                0",
        "[1s][gc,stats]       Phase: Pause Mark End     0.010 / 0.020 ms",
        "[1s][gc,start] GC(3) Garbage Collection (Warmup)",
        "[1s][gc,marking] GC(3) Concurrent Mark",
    ] {
        assert_eq!(event(line), None, "{line}");
    }
}

#[test]
fn the_serial_trio_says_how_long_threads_really_stood() {
    // The pause line says 841 ms; the threads stood for 2207 ms on 30 ms of CPU.
    let line = "[1s][safepoint   ] Safepoint \"SerialCollectForAllocation\", Time since last: 2211026346 ns, Reaching safepoint: 1320208346 ns, At safepoint: 887228010 ns, Leaving safepoint: 32755 ns, Total: 2207469111 ns, Threads: 1 runnable, 13 total";
    let Some(GcLogEvent::Safepoint {
        name,
        reaching,
        total,
        ..
    }) = event(line)
    else {
        panic!()
    };
    assert_eq!(name, Some(&b"SerialCollectForAllocation"[..]));
    assert_eq!(reaching, Some(Duration::from_nanos(1_320_208_346)));
    assert_eq!(total, Duration::from_nanos(2_207_469_111));
    let cpu = "[1s][gc,cpu      ] GC(0) User=0.02s Sys=0.01s Real=0.84s";
    let ms = Duration::from_millis;
    assert_eq!(
        event(cpu),
        Some(GcLogEvent::Cpu {
            id: Some(0),
            cpu: GcCpuTimes {
                user: ms(20),
                system: ms(10),
                real: ms(840)
            }
        })
    );
    let old = "[1s][safepoint] Total time for which application threads were stopped: 0.0072168 seconds, Stopping threads took: 0.0000300 seconds";
    let Some(GcLogEvent::Safepoint {
        name: None,
        reaching: Some(reaching),
        total,
        ..
    }) = event(old)
    else {
        panic!()
    };
    assert_eq!((reaching.as_nanos(), total.as_nanos()), (30_000, 7_216_800));
    // Cut in the middle of a number.
    assert_eq!(event(&line[..line.find("9111 ns").unwrap()]), None);
}

#[test]
fn cycles_stalls_and_facts() {
    let cycle = "[1s][gc] GC(0) Major Collection (Warmup) 26M(10%)->48M(19%) 0.193s";
    let Some(GcLogEvent::Cycle { heap: figures, .. }) = event(cycle) else {
        panic!()
    };
    assert_eq!(Some(figures), heap(26, 48, None));
    let Some(GcLogEvent::Stall { name, duration, .. }) =
        event("[1s][gc] Allocation Stall (alloc-0) 382.528ms")
    else {
        panic!()
    };
    assert_eq!(
        (name, duration.as_micros()),
        (&b"Allocation Stall"[..], 382_528)
    );
    let Some(GcLogEvent::Concurrent(CollectionWork {
        name,
        heap: figures,
        ..
    })) = event("[1s][gc] GC(0) Concurrent cleanup (unload classes) 110M->111M(256M) 0.019ms")
    else {
        panic!()
    };
    assert_eq!(
        (name, figures),
        (
            &b"Concurrent cleanup (unload classes)"[..],
            heap(110, 111, Some(256))
        )
    );
    for (line, fact) in [
        (
            "[0s][gc] Using The Z Garbage Collector",
            HeaderFact::Collector(GarbageCollector::HotSpot(CollectorKind::Z)),
        ),
        (
            "[0s][gc,init] CPUs: 2 total, 1 available",
            HeaderFact::Cpus {
                total: 2,
                available: 1,
            },
        ),
        (
            "[0s][gc,init] Heap Max Capacity: 48M",
            HeaderFact::HeapMax(48 * M),
        ),
        (
            "[0s][gc,init] Version: 25.0.3+9-LTS (release)",
            HeaderFact::Version {
                text: b"25.0.3+9-LTS",
                is_start: true,
            },
        ),
        ("[0s][gc,init] Mode: Generational", HeaderFact::Generational),
        (
            "[0s][gc,heap] GC(1) PSYoungGen: 65536K->10722K(76288K)",
            HeaderFact::CollectorMark(GarbageCollector::HotSpot(CollectorKind::Parallel)),
        ),
    ] {
        assert_eq!(event(line), Some(GcLogEvent::Fact(fact)), "{line}");
    }
    assert_eq!(
        event("[0s][gc,task] GC(1) Using 2 workers of 2 for evacuation"),
        None
    );
}
