//! The GC log parser on real logs of every collector of JDK 17 and 25 (tests/data/README.md),
//! whole, cut, rotated, compressed and damaged.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use loadline_jvm::gclog::files::{self, GcLogError};
use loadline_jvm::gclog::report::GcReport;
use loadline_jvm::gclog::{self, FindingCode, GarbageCollector, GcLog};
use loadline_sizing::hotspot::CollectorKind;

use CollectorKind::{G1, Parallel, Serial, Shenandoah, Z};

/// Counted with awk over the lines `GC(n) ... Pause ... ms`, `... Stall (...) ... ms` and
/// `Safepoint "`: file, collector, generational, pauses, their sum and largest in us, full ones,
/// stalls, safepoints.
type Row = (
    &'static str,
    CollectorKind,
    bool,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
);

const LOGS: [Row; 17] = [
    ("17-G1.log", G1, false, 34, 118_128, 31_774, 1, 0, 34),
    (
        "17-Parallel-async.log",
        Parallel,
        false,
        4,
        51_337,
        26_616,
        1,
        0,
        3,
    ),
    (
        "17-Parallel.log",
        Parallel,
        false,
        13,
        148_290,
        28_731,
        2,
        0,
        12,
    ),
    ("17-Serial.log", Serial, false, 7, 52_898, 11_790, 1, 0, 7),
    ("17-Shenandoah.log", Shenandoah, false, 8, 205, 51, 0, 0, 8),
    ("17-Z-stall.log", Z, false, 12, 80, 11, 0, 22, 12),
    ("17-Z.log", Z, false, 14, 122, 13, 0, 0, 14),
    ("25-G1.log", G1, false, 25, 85_057, 26_828, 2, 0, 24),
    (
        "25-Parallel.log",
        Parallel,
        false,
        12,
        74_715,
        15_167,
        6,
        0,
        12,
    ),
    ("25-Serial.log", Serial, false, 2, 172_600, 152_948, 1, 0, 2),
    ("25-Shenandoah.log", Shenandoah, false, 8, 236, 59, 0, 0, 9),
    (
        "17-G1-full.log.gz",
        G1,
        false,
        119,
        162_576,
        14_026,
        8,
        0,
        112,
    ),
    (
        "17-Shenandoah-full.log.gz",
        Shenandoah,
        false,
        28,
        3_695,
        3_099,
        0,
        0,
        28,
    ),
    (
        "25-ShenandoahGen-full.log.gz",
        Shenandoah,
        true,
        65,
        30_304,
        9_569,
        3,
        0,
        65,
    ),
    (
        "25-ShenandoahGen.log.gz",
        Shenandoah,
        true,
        9,
        332,
        97,
        0,
        0,
        10,
    ),
    ("25-Z-stall.log.gz", Z, true, 22, 169, 12, 0, 30, 23),
    ("25-Z.log.gz", Z, true, 23, 150, 19, 0, 0, 24),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/gclog")
        .join(name)
}

fn read(name: &str) -> GcLog {
    files::read(&[path(name)], usize::MAX).expect(name)
}

/// The text of a log, decompressed.
fn text(name: &str) -> Vec<u8> {
    let bytes = fs::read(path(name)).expect(name);
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_end(&mut text)
        .expect(name);
    text
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).expect("a temporary directory can be written");
    path
}

fn gzip(bytes: impl Read) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    io::copy(&mut { bytes }, &mut encoder).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn every_collector_of_jdk_17_and_25_is_read_whole() {
    for (name, collector, generational, pauses, sum, max, full, stalls, safepoints) in LOGS {
        let log = read(name);
        let summary = &log.summary;
        let jdk = if name.starts_with("17") {
            "17.0.15"
        } else {
            "25.0.3"
        };
        let collector = GarbageCollector::HotSpot(collector);
        assert_eq!(log.header.collector, Some(collector), "{name}");
        assert_eq!(log.header.is_generational, generational, "{name}");
        assert!(
            log.header
                .jdk
                .as_deref()
                .is_some_and(|v| v.starts_with(jdk)),
            "{name}"
        );
        assert_eq!(log.header.heap_max_bytes, Some(48 << 20), "{name}");
        assert_eq!(log.header.machine.cpus_available, Some(2), "{name}");
        assert_eq!(summary.stw.count, pauses, "{name}");
        assert_eq!(summary.stw.total.as_micros(), u128::from(sum), "{name}");
        assert_eq!(summary.stw.max.as_micros(), u128::from(max), "{name}");
        assert_eq!(summary.full, full, "{name}");
        assert_eq!(log.safepoints.len() as u64, safepoints, "{name}");
        let waited = log
            .stalls
            .iter()
            .filter(|stall| &*stall.name != "Pacing")
            .count();
        assert_eq!(waited as u64, stalls, "{name}");
        assert_eq!(log.input.unknown_lines, 0, "{name}");
        assert!(log.input.is_complete(), "{name}: {:?}", log.input);
        let after = summary
            .heap_after_max
            .expect("every collector tells the heap");
        assert!(after > 1 << 20 && after <= 48 << 20, "{name}: {after}");
    }
}

#[test]
fn pauses_lie_in_their_safepoints_on_the_monotonic_clock() {
    for (name, collector, ..) in LOGS {
        let log = read(name);
        let safepoints: Vec<(u64, u64)> = log
            .safepoints
            .iter()
            .filter_map(|s| s.monotonic_span())
            .collect();
        assert_eq!(safepoints.len(), log.safepoints.len(), "{name}");
        assert!(safepoints.is_sorted_by_key(|(_, end)| *end), "{name}");
        if collector != Serial && collector != Parallel {
            continue; // Others log some pauses after they have let the threads go.
        }
        for pause in &log.pauses {
            let (start, end) = pause.monotonic_span().expect("tn");
            // A collection that fails is followed by a full one in the same safepoint.
            let is_inside =
                |(from, to): &(u64, u64)| *from <= start + 20_000 && end <= *to + 20_000;
            assert!(safepoints.iter().any(is_inside), "{name}: {pause:?}");
        }
    }
}

#[test]
fn collections_that_report_cpu_time_keep_it() {
    for (name, collector, ..) in LOGS {
        let log = read(name);
        let with_cpu = log
            .pauses
            .iter()
            .filter(|pause| pause.cpu.is_some())
            .count();
        let has_cpu = matches!(collector, Serial | Parallel | G1);
        assert_eq!(with_cpu > 0, has_cpu, "{name}: {with_cpu}");
        if collector != G1 && has_cpu {
            assert_eq!(with_cpu, log.pauses.len(), "{name}");
        }
    }
}

/// A killed JVM leaves a log that is cut anywhere: the part before the cut is read as usual.
#[test]
fn a_log_cut_at_any_byte_of_its_end_gives_the_same_pauses_up_to_there() {
    // Every byte of one log, every seventh of others: a test takes seconds, not minutes.
    for (name, step) in [
        ("25-Serial.log", 1),
        ("17-G1.log", 7),
        ("17-Z-stall.log", 7),
        ("25-ShenandoahGen-full.log.gz", 101),
    ] {
        let text = text(name);
        let mut whole = read(name).pauses;
        for cut in (text.len().saturating_sub(4096)..text.len())
            .rev()
            .step_by(step)
        {
            let log = gclog::read(&text[..cut], usize::MAX);
            let found = log.pauses.len();
            whole.truncate(found);
            if let (Some(last), Some(known)) = (log.pauses.last(), whole.last_mut()) {
                // The line with its CPU times may be behind the cut.
                known.cpu = last.cpu.and(known.cpu);
            }
            assert!(log.pauses == whole, "{name} cut at {cut}: other pauses");
            let ended = text[..cut].iter().filter(|b| **b == b'\n').count() as u64;
            assert!(log.input.counts.lines - ended <= 1, "{name} cut at {cut}");
            if text[cut - 1] != b'\n' {
                assert!(is_told_incomplete(&log), "{name} cut at {cut}");
            }
        }
    }
}

/// Whether the report says that the log is not whole, in its field and in words.
fn is_told_incomplete(log: &GcLog) -> bool {
    let report = GcReport::for_log(log, &[]);
    let mut findings = report.findings.iter();
    !report.input.complete && findings.any(|finding| finding.code == FindingCode::Incomplete)
}

#[test]
fn a_set_is_read_in_order_whatever_its_file_names_and_a_gap_is_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = text("17-G1.log");
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let thirds: Vec<Vec<u8>> = lines
        .chunks(lines.len() / 3 + 1)
        .map(<[_]>::concat)
        .collect();
    // After rotation the oldest file may have any number.
    let first = write(directory.path(), "gc.log.1", &thirds[0]);
    let second = write(directory.path(), "gc.log.2.gz", &gzip(&thirds[1][..]));
    let third = write(directory.path(), "gc.log.0", &thirds[2]);

    let set = files::group_files(&[third.clone(), second, first.clone()]);
    assert_eq!(set.len(), 1);
    let log = files::read(&set[0], usize::MAX).expect("a set");
    assert_eq!(log.pauses, read("17-G1.log").pauses);
    assert!(log.input.is_complete(), "{:?}", log.input);

    let log = files::read(&[third, first], usize::MAX).expect("a set");
    assert!(log.input.missing_collections > 0, "{:?}", log.input);
    assert_eq!(log.summary.jvm_starts, 1);
}

#[test]
fn two_jvms_in_one_file_are_told_apart() {
    let one = text("17-Serial.log");
    let log = gclog::read(&[&one[..], &one[..]].concat()[..], usize::MAX);
    let single = read("17-Serial.log");
    assert_eq!(log.summary.jvm_starts, 2);
    assert_eq!(log.summary.stw.count, 2 * single.summary.stw.count);
    assert_eq!(log.summary.logged, 2 * single.summary.logged);
    assert_eq!(log.summary.allocated, 2 * single.summary.allocated);
    assert!(log.input.is_complete(), "{:?}", log.input);
}

#[test]
fn line_ends_and_decimal_commas_change_nothing() {
    let text = String::from_utf8(text("25-G1.log")).expect("ASCII");
    let whole = gclog::read(text.as_bytes(), usize::MAX);
    let crlf = text.replace('\n', "\r\n");
    assert_eq!(
        gclog::read(crlf.as_bytes(), usize::MAX).pauses,
        whole.pauses
    );
    // As a locale with a decimal comma prints: only between digits.
    let mut commas = text.into_bytes();
    for i in 1..commas.len() - 1 {
        if commas[i] == b'.' && commas[i - 1].is_ascii_digit() && commas[i + 1].is_ascii_digit() {
            commas[i] = b',';
        }
    }
    assert_eq!(gclog::read(&commas[..], usize::MAX).pauses, whole.pauses);
}

#[test]
fn what_is_no_log_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str, bytes: &[u8]| write(directory.path(), name, bytes);
    let error = |path: PathBuf| match files::read(&[path], 0) {
        Ok(log) => panic!("{log:?}"),
        Err(error) => error,
    };
    assert!(matches!(
        error(directory.path().to_owned()),
        GcLogError::Directory { .. }
    ));
    assert!(matches!(error(at("empty", b"")), GcLogError::Empty { .. }));
    assert!(matches!(
        error(directory.path().join("none")),
        GcLogError::Unreadable { .. }
    ));
    let binary: Vec<u8> = (0..100_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
    let text = error(at("binary", &binary)).to_string();
    assert!(text.contains("non-UTF-8 text"), "{text}");
    let old = b"<?xml version=\"1.0\" ?>\n<verbosegc version=\"R24\">\n<af type=\"nursery\">\n";
    let text = error(at("old", old)).to_string();
    assert!(text.contains("before J9 2.6"), "{text}");
    let text = error(at("gzip.gz", &gzip(&b"hello\n"[..])[..12])).to_string();
    assert!(text.contains("reading stopped"), "{text}");
}

/// Other texts have lines like the details of a classic log.
#[test]
fn texts_with_braces_and_headings_are_no_logs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [
        ("package.json", "{\n  \"name\": \"x\"\n}\n"),
        (
            "build.rs",
            "fn main() {\n    let a = [X, Y];\n    [Xy, 3];\n}\n",
        ),
        (
            "page.html",
            "<p>\nHeap\nMetaspace is class data\nAvg: 3\nSum: 4\n</p>\n",
        ),
        (
            "readme.md",
            "Heap dumps\n[GCViewer](http://x) reads [ParNew: this] and [GC that].\n",
        ),
        (
            "build.log",
            "[INFO] Version: 1.2.3\n[INFO] Memory: 512M\n[INFO] 3 messages dropped\n",
        ),
        (
            "app.log",
            "2024-01-01 10:00:00.123 INFO [GC-watch] started in 3 secs\n",
        ),
    ] {
        let path = write(directory.path(), name, text.as_bytes());
        let read = files::read(&[path], 0);
        assert!(matches!(read, Err(GcLogError::NotALog { .. })), "{name}");
    }
}

/// A JVM that did not collect, or was killed in its first collection, has a log all the same.
#[test]
fn a_log_without_a_whole_pause_is_a_log() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let heap = "Heap\n PSYoungGen      total 76800K, used 66048K [0x00000000f0000000, 0x0, 0x0)\n";
    for (name, text, unfinished) in [
        ("heap", heap, 0),
        ("before", "{Heap before GC invocations=0 (full 0):\n", 0),
        ("cut", "1.053: [GC (Allocation Failure) 1.053: [ParN", 1),
        (
            "dated",
            "2016-04-14T22:30:09.108+0200: [GC (Allocation Fai",
            1,
        ),
        ("unified", "[0.008s][info][gc] Using G1\n", 0),
    ] {
        let log = files::read(&[write(directory.path(), name, text.as_bytes())], 0).expect(name);
        assert_eq!(log.summary.stw.count, 0, "{name}");
        assert_eq!(log.input.unfinished_pauses, unfinished, "{name}");
    }
}

#[test]
fn a_cut_gzip_stream_gives_what_it_has() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bytes = fs::read(path("25-ShenandoahGen-full.log.gz")).expect("test data");
    let cut = write(directory.path(), "gc.log.gz", &bytes[..bytes.len() / 2]);
    let log = files::read(&[cut], usize::MAX).expect("half a log");
    assert!(log.pauses.len() > 10);
    assert!(!log.input.is_complete());
    assert!(log.input.stopped.is_some(), "{:?}", log.input);
}

#[test]
fn a_gzip_bomb_is_stopped_early() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bomb = gzip(&text("17-Serial.log")[..]);
    let zeros = io::repeat(b'0').take(100 << 20);
    bomb.write_all(&gzip(zeros)).expect("memory");
    let log = files::read(&[write(directory.path(), "gc.log.gz", &bomb)], 0).expect("its begin");
    assert_eq!(log.summary.stw.count, 7);
    let why = log.input.stopped.expect("it was stopped");
    assert!(why.contains("gzip stream grows"), "{why}");
    assert!(
        log.input.counts.bytes < 100 << 20,
        "{}",
        log.input.counts.bytes
    );
}

#[test]
fn a_line_without_end_is_skipped_and_counted() {
    let text = text("17-Serial.log");
    let endless = io::repeat(b'x').take(64 << 20);
    let reader = text.chain_all(endless);
    let log = gclog::read(reader, 0);
    assert_eq!(log.summary.stw.count, 14);
    assert_eq!(log.input.counts.too_long, 1);
    assert!(!log.input.is_complete());
}

/// The text, something else on a separate line, the text again.
trait Around {
    fn chain_all(self, middle: impl Read) -> impl Read;
}

impl Around for Vec<u8> {
    fn chain_all(self, middle: impl Read) -> impl Read {
        let again = [b"\n", &self[..]].concat();
        io::Cursor::new(self)
            .chain(middle)
            .chain(io::Cursor::new(again))
    }
}
