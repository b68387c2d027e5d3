use std::path::Path;

use super::*;

fn report(name: &str) -> GcReport {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jvm/tests/data/gclog");
    let log = files::read(&[data.join(name)], 0).unwrap();
    GcReport::for_log(&log, &[PathBuf::from(name)])
}

#[test]
fn g1_with_evacuation_failures_reads_like_this() {
    insta::assert_snapshot!(gc_text(&report("17-G1-full.log.gz")), @"
    17-G1-full.log.gz
    G1, JDK 17.0.15+6-Debian-1deb12u1, 2 CPUs, heap up to 48 MiB; 290 ms logged

                                          count    total      p50      p90      p99      max  cause
    Pauses                                  119   163 ms   770 us  3.80 ms  8.26 ms  14.0 ms  56.02 % of the time
      Young (Normal)                         22  45.3 ms   737 us  4.72 ms  14.0 ms  14.0 ms  G1 Preventive Collection
      Young (Normal)                         32  45.2 ms  1.05 ms  2.88 ms  3.91 ms  3.91 ms  G1 Evacuation Pause
      Full                                    7  23.7 ms  2.88 ms  5.47 ms  5.47 ms  5.47 ms  G1 Compaction Pause
      Young (Concurrent Start)               16  17.8 ms   672 us  3.80 ms  3.84 ms  3.84 ms  G1 Humongous Allocation
      Remark                                 16  8.15 ms   254 us   401 us  4.02 ms  4.02 ms
      Young (Prepare Mixed)                   4  7.01 ms   885 us  4.12 ms  4.12 ms  4.12 ms  G1 Evacuation Pause
      Young (Mixed)                           2  5.88 ms   770 us  5.12 ms  5.12 ms  5.12 ms  G1 Preventive Collection
      Young (Mixed)                           2  5.22 ms  1.34 ms  3.89 ms  3.89 ms  3.89 ms  G1 Evacuation Pause
      Full                                    1  2.65 ms  2.65 ms  2.65 ms  2.65 ms  2.65 ms  System.gc()
      Young (Concurrent Start)                2  1.17 ms   319 us   854 us   854 us   854 us  G1 Evacuation Pause
      Cleanup                                15   485 us  23.0 us  38.9 us   148 us   148 us
    Concurrent phases
      Concurrent Mark Cycle                  18   169 ms  7.86 ms  17.3 ms  19.6 ms  19.6 ms
      Concurrent Mark                        16  96.6 ms  4.59 ms  12.1 ms  14.0 ms  14.0 ms
      Concurrent Mark From Roots             18  56.4 ms  2.29 ms  8.13 ms  9.91 ms  9.91 ms
      Concurrent Rebuild Remembered Sets     16  35.5 ms  1.77 ms  3.08 ms  8.56 ms  8.56 ms
      Concurrent Cleanup for Next Mark       15  9.13 ms   590 us  1.31 ms  1.54 ms  1.54 ms
      Concurrent Scan Root Regions           18  1.84 ms  58.4 us   393 us   693 us   693 us
      Concurrent Preclean                    16   245 us  15.1 us  17.0 us  17.0 us  17.0 us
      Concurrent Clear Claimed Marks         18  54.0 us  3.01 us  3.01 us  6.00 us  6.00 us

    Heap, highest  before 46 MiB, after 46 MiB, after a full one 46 MiB, committed 48 MiB
    Allocated      517 MiB, 1.74 GiB/s
    GC CPU         user 180 ms, system 10.0 ms in 170 ms of collections
    Safepoints     112, total 187 ms, longest 14.0 ms; reaching them: total 3.28 ms, longest 263 us
    Lines          1878 read

    Findings
    - The heap is too tight: up to 46 MiB of 48 MiB were in use after a full collection, and 7 full
      collections ran because there was no room. Raise -Xmx or keep less.
    - 5 collections found no room to copy live objects (evacuation failure, to-space exhausted), which
      makes pauses long. Raise -Xmx or -XX:G1ReservePercent.
    - 16 collections ran because of humongous allocations, objects of half a region or more (regions
      have 1 MiB). Larger regions (-XX:G1HeapRegionSize) or smaller arrays.
    - The application called System.gc(): 1 collection. -XX:+ExplicitGCInvokesConcurrent or
      -XX:+DisableExplicitGC.
    - The application stood still for 56.0 % of the logged time.
    ");
}

#[test]
fn generational_zgc_with_stalls_reads_like_this() {
    insta::assert_snapshot!(gc_text(&report("25-Z-stall.log.gz")), @"
    25-Z-stall.log.gz
    generational ZGC, JDK 25.0.3+9-LTS, 2 CPUs, heap up to 48 MiB; 120 ms logged

                                        count    total      p50      p90      p99      max  cause
    Pauses                                 22   169 us  9.21 us  12.0 us  12.0 us  12.0 us  0.14 % of the time
      Y: Mark End                           3  27.0 us  9.21 us  12.0 us  12.0 us  12.0 us
      y: Mark Start                         3  23.0 us  9.00 us  9.00 us  9.00 us  9.00 us
      Y: Mark Start (Major)                 2  22.0 us  10.2 us  12.0 us  12.0 us  12.0 us
      y: Mark End                           3  22.0 us  8.06 us  10.0 us  10.0 us  10.0 us
      y: Relocate Start                     3  21.0 us  9.00 us  9.00 us  9.00 us  9.00 us
      Y: Relocate Start                     3  18.0 us  6.01 us  9.00 us  9.00 us  9.00 us
      O: Relocate Start                     2  17.0 us  7.04 us  10.0 us  10.0 us  10.0 us
      O: Mark End                           2  16.0 us  4.03 us  12.0 us  12.0 us  12.0 us
      Y: Mark Start                         1  3.00 us  3.00 us  3.00 us  3.00 us  3.00 us
    Stalls (threads that waited for memory)
      Allocation Stall                     23  68.8 ms  1.02 ms  7.86 ms  11.3 ms  11.3 ms
      Relocation Stall                      7  13.1 ms   836 us  6.56 ms  6.56 ms  6.56 ms
    Concurrent phases
      Concurrent Relocate                   8  52.7 ms   655 us  22.0 ms  22.0 ms  22.0 ms
      Concurrent Mark                       8  46.4 ms  3.60 ms  15.0 ms  15.0 ms  15.0 ms
      Concurrent Select Relocation Set      8  9.17 ms   201 us  6.31 ms  6.31 ms  6.31 ms
      Concurrent Process Non-Strong         2  6.62 ms   201 us  6.42 ms  6.42 ms  6.42 ms
      Concurrent Remap Roots                2   693 us   113 us   581 us   581 us   581 us
      Concurrent Reset Relocation Set       8  9.00 us      0 s  4.00 us  4.00 us  4.00 us
      Concurrent Mark Free                  8  5.00 us      0 s  2.00 us  2.00 us  2.00 us

    Heap, highest  before 48 MiB, after 48 MiB
    Allocated      2.0 MiB, 17 MiB/s
    Safepoints     23, total 6.70 ms, longest 2.05 ms; reaching them: total 740 us, longest 99.0 us
    Lines          527 read

    Findings
    - Threads waited for memory 30 times (0.082 s in all, longest 0.011 s): the collector could not
      keep up. More heap, more CPU, or fewer allocations.
    ");
}

#[test]
fn the_json_keeps_its_schema() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&report("25-Serial.log")).unwrap(), @r#"
    {
      "schema": 1,
      "files": [
        "25-Serial.log"
      ],
      "collector": "Serial",
      "generational": false,
      "jdk": "25.0.3+9-LTS",
      "jvm_starts": 1,
      "logged_seconds": 0.175948,
      "stw": {
        "count": 2,
        "full_count": 1,
        "total_seconds": 0.1726,
        "max_seconds": 0.152948,
        "p50_seconds": 0.019922943,
        "p90_seconds": 0.152948,
        "p99_seconds": 0.152948,
        "share_of_time": 0.980971650714984,
        "by_kind": [
          {
            "kind": "Full",
            "cause": "System.gc()",
            "count": 1,
            "total_seconds": 0.019652,
            "p50_seconds": 0.019652,
            "p90_seconds": 0.019652,
            "p99_seconds": 0.019652,
            "max_seconds": 0.019652
          },
          {
            "kind": "Young",
            "cause": "Allocation Failure",
            "count": 1,
            "total_seconds": 0.152948,
            "p50_seconds": 0.152948,
            "p90_seconds": 0.152948,
            "p99_seconds": 0.152948,
            "max_seconds": 0.152948
          }
        ]
      },
      "heap_before_max_bytes": 13631488,
      "heap_after_max_bytes": 7340032,
      "heap_after_full_max_bytes": 7340032,
      "heap_committed_max_bytes": 48234496,
      "heap_max_bytes": 50331648,
      "allocated_bytes": 2097152,
      "allocation_bytes_per_second": 11919157.933025667,
      "gc_cpu": {
        "collections": 2,
        "user_seconds": 0.0,
        "system_seconds": 0.03,
        "real_seconds": 0.18
      },
      "safepoints": {
        "count": 2,
        "total_seconds": 0.214807531,
        "max_seconds": 0.192996748,
        "reaching_total_seconds": 0.042019915,
        "reaching_max_seconds": 0.039926436,
        "by_operation": [
          {
            "kind": "SerialCollectForAllocation",
            "count": 1,
            "total_seconds": 0.192996748,
            "p50_seconds": 0.192996748,
            "p90_seconds": 0.192996748,
            "p99_seconds": 0.192996748,
            "max_seconds": 0.192996748
          },
          {
            "kind": "SerialGCCollect",
            "count": 1,
            "total_seconds": 0.021810783,
            "p50_seconds": 0.021810783,
            "p90_seconds": 0.021810783,
            "p99_seconds": 0.021810783,
            "max_seconds": 0.021810783
          }
        ]
      },
      "stalls": [],
      "phases": [],
      "concurrent": [],
      "machine": {
        "cpus": 2,
        "cpus_available": 2,
        "memory_bytes": 25275924480,
        "heap_min_bytes": 50331648,
        "heap_initial_bytes": 50331648,
        "region_bytes": null,
        "parallel_workers": null,
        "concurrent_workers": null
      },
      "findings": [
        {
          "code": "system_gc",
          "text": "The application called System.gc(): 1 collection. -XX:+ExplicitGCInvokesConcurrent or -XX:+DisableExplicitGC."
        },
        {
          "code": "time_paused",
          "text": "The application stood still for 98.1 % of the logged time."
        }
      ],
      "input": {
        "complete": true,
        "bytes": 5550,
        "lines": 52,
        "gc_lines": 52,
        "other_lines": 0,
        "unknown_lines": 0,
        "too_long_lines": 0,
        "dropped_lines": 0,
        "missing_collections": 0,
        "first_collection": null,
        "unfinished_pauses": 0,
        "last_line_cut": false,
        "stopped": null
      }
    }
    "#);
}

#[test]
fn times_and_sizes_have_three_digits() {
    for (seconds, text) in [
        (0.0, "0 s"),
        (0.000_003_21, "3.21 us"),
        (0.0123, "12.3 ms"),
        (0.9999, "1.00 s"),
        (59.94, "59.9 s"),
        (3700.0, "3700 s"),
    ] {
        assert_eq!(format_seconds(seconds), text);
    }
    for (bytes, text) in [
        (1023, "0 KiB"),
        (1 << 20, "1.0 MiB"),
        (48 << 20, "48 MiB"),
        (3 << 30, "3.00 GiB"),
    ] {
        assert_eq!(format_size(bytes), text);
    }
}

#[test]
fn findings_are_wrapped() {
    let text = wrap_bullet("word ".repeat(30).trim_end());
    assert!(
        text.lines().all(|line| line.chars().count() <= 98),
        "{text}"
    );
    assert!(
        text.starts_with("- word") && text.contains("\n  word"),
        "{text}"
    );
}
