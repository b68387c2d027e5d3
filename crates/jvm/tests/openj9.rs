//! A real OpenJ9, if there is one below /usr/lib/jvm or another usual place: its properties, its GC
//! log, the options of its shared class cache.

#![allow(clippy::print_stdout)] // SKIP lines stand on stdout, from a helper too.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use loadline_jvm::cache::scc::{self, SharedCacheLimits, SharedCachePlace, SharedCacheStatistics};
use loadline_jvm::detect::words::{ASK_OPENJ9, JavaProperties};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_jvm::footprint::{self, Footprint};
use loadline_jvm::gclog::report::GcReport;
use loadline_jvm::gclog::{FindingCode, GcFinding, GcLog, GcLogBuilder, WallClock};
use loadline_jvm::java_dump;
use loadline_jvm::log_option::gc_log_options;
use loadline_sizing::Bytes;
use loadline_sizing::Vm;

/// The first OpenJ9 of this machine; reports if there is none.
fn openj9(test: &str) -> Option<InstalledJdk> {
    let jdks = DetectedJdks::scan_places(&JdkPlaces::of_process()).jdks;
    let found = jdks.into_iter().find(|jdk| jdk.kind == Vm::OpenJ9);
    if found.is_none() {
        println!("SKIP {test}: no OpenJ9 JVM on this machine");
    }
    found
}

/// A program that allocates: rounds, kilobytes kept, threads.
const ALLOCATE: (&str, &str) = ("Allocate.java", include_str!("data/gclog/Allocate.java"));

/// An account that nothing runs as.
const OTHER: u32 = 64_998;

/// A JVM that is killed when the test is over.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn java(jdk: &InstalledJdk, words: &[String]) -> Output {
    let output = Command::new(&jdk.java).args(words).output();
    output.expect("java runs")
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_real_openj9_says_its_build() {
    let Some(jdk) = openj9("a_real_openj9_says_its_build") else {
        return;
    };
    let output = java(&jdk, &ASK_OPENJ9.map(str::to_owned));
    let text = said(&output);
    let words = JavaProperties::from_output(&text).unwrap_or_else(|| panic!("no words: {text}"));
    assert!(words.vm.contains("J9"), "{words:?}");
    assert!(
        !words.vm_build.is_empty() && !words.runtime.is_empty(),
        "{words:?}"
    );
    assert!(
        jdk.name.contains(&jdk.version.feature.to_string()),
        "{jdk:?}"
    );
}

/// As another user, with a directory that root may read: as in a container.
#[test]
fn the_memory_of_a_running_openj9_is_told_by_its_java_dump() {
    let Some(jdk) = openj9("the_memory_of_a_running_openj9_is_told_by_its_java_dump") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    compile(directory.path(), ALLOCATE);
    let mut command = Command::new(&jdk.java);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(directory.path(), Some(OTHER), Some(OTHER)).expect("it is ours");
        command.uid(OTHER).gid(OTHER);
    }
    let child = command
        .args(["-Xms48m", "-Xmx48m", "-Xshareclasses:none", "-cp", "."])
        .args(["Allocate", "120000", "8", "20"])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let child = Killed(child.expect("a JDK that was found can be started"));
    let pid = child.0.id();
    let begin = Instant::now();
    let (smaps, dump) = loop {
        let smaps = read(Path::new(&format!("/proc/{pid}/smaps")));
        match java_dump::take_java_dump(pid) {
            Ok(dump) => break (smaps, dump),
            Err(error) if begin.elapsed() > Duration::from_secs(60) => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    assert!(footprint::is_openj9(&smaps));
    let seen = Footprint::of_java_dump(&dump, &smaps).expect("a whole dump");
    assert!(
        seen.heap > Bytes::from_mib(4) && seen.heap <= Bytes::from_mib(49),
        "{seen:?}"
    );
    assert!(seen.classes > 400 && seen.threads > 5, "{seen:?}");
    for region in [
        seen.metaspace,
        seen.code_cache,
        seen.stacks,
        seen.gc,
        seen.jvm,
        seen.files,
    ] {
        assert!(
            region > Bytes::from_kib(100) && region < Bytes::from_mib(64),
            "{seen:?}"
        );
    }
    let left = std::fs::read_dir(directory.path()).expect("it is there");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().starts_with("javacore")),
        "{left:?}"
    );
}

#[test]
fn a_real_openj9_takes_the_options() {
    let Some(jdk) = openj9("a_real_openj9_takes_the_options") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let run = |options: &[String]| {
        let version = ["-version".to_owned()];
        said(&java(&jdk, &[options, &version].concat()))
    };
    let place = SharedCachePlace::in_own_directory(directory.path());
    let limits = SharedCacheLimits {
        hard: Bytes::from_mib(16),
        soft: Bytes::from_mib(12),
    };
    run(&scc::populate_options(&place, limits, false));
    let said = run(&[scc::print_statistics(&place)]);
    let statistics = SharedCacheStatistics::from_print_stats(&said)
        .unwrap_or_else(|| panic!("no statistics: {said}"));
    assert!(statistics.classes > 100, "{statistics:?}");
    let said = run(&scc::attach_options(&place));
    assert!(said.contains("OpenJ9"), "{said}");
    run(&[scc::destroy_option(&place)]);
    // Invalid places: a missing directory, and a read-only one.
    let absent = directory.path().join("absent");
    let said = run(&scc::attach_options(&SharedCachePlace::in_own_directory(
        &absent,
    )));
    assert!(
        said.contains("OpenJ9") && !absent.join("x").exists(),
        "{said}"
    );
    let said = run(&scc::attach_options(&SharedCachePlace::in_own_directory(
        Path::new("/proc/self"),
    )));
    assert!(said.contains("OpenJ9"), "{said}");
}

/// Compiles a program by any JDK's javac: a runtime that `jlink` made has none.
fn compile(directory: &Path, source: (&str, &str)) {
    let program = directory.join(source.0);
    std::fs::write(&program, source.1).expect("it is ours");
    let jdks = DetectedJdks::scan_places(&JdkPlaces::of_process()).jdks;
    let compilers = jdks.iter().map(|jdk| jdk.home.join("bin/javac"));
    let compiler = compilers.into_iter().find(|javac| javac.exists());
    let output = Command::new(compiler.expect("a JDK with javac"))
        .args(["--release", "11", "-nowarn", "-d"])
        .arg(directory)
        .arg(program)
        .output()
        .expect("javac runs");
    assert!(output.status.success(), "{}", said(&output));
}

/// Runs a program of this test with a GC log; the log's text and what the program printed.
fn logged(
    jdk: &InstalledJdk,
    source: (&str, &str),
    more: &[&str],
    arguments: &[&str],
) -> (String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    compile(directory.path(), source);
    let log = directory.path().join("gc.log");
    let mut words = gc_log_options(&log, &jdk.version, jdk.kind);
    words.push("-Xshareclasses:none".to_owned());
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words.extend(["-cp".to_owned(), directory.path().display().to_string()]);
    words.push(source.0.trim_end_matches(".java").to_owned());
    words.extend(arguments.iter().map(|word| (*word).to_owned()));
    let output = java(jdk, &words);
    assert!(output.status.success(), "{}", said(&output));
    let text = read(&log);
    (text, String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read(path: &Path) -> String {
    let text = std::fs::read(path).expect("the JVM wrote it");
    String::from_utf8_lossy(&text).into_owned()
}

fn parsed(text: &str, wall: Option<WallClock>) -> GcLog {
    let mut builder = GcLogBuilder::new(10_000).with_wall_clock(wall);
    builder.read(text.as_bytes());
    builder.finish_log()
}

/// Another reader's result: stops with a working collector, and their sum.
fn naive(text: &str) -> (u64, Duration) {
    let (mut count, mut sum, mut is_gc) = (0, Duration::ZERO, false);
    for line in text.lines() {
        if line.contains("<exclusive-start") {
            is_gc = false;
        }
        is_gc |= line.contains("<gc-start") || line.contains("<cycle-start");
        if let Some(rest) = line.split("<exclusive-end").nth(1).filter(|_| is_gc) {
            let millis = rest.split("durationms=\"").nth(1).expect("a duration");
            let millis: f64 = millis
                .split('"')
                .next()
                .expect("it ends")
                .parse()
                .expect("a number");
            count += 1;
            sum += Duration::from_micros((millis * 1000.0).round() as u64);
        }
    }
    (count, sum)
}

#[test]
fn the_log_of_a_real_openj9_is_read_under_every_policy() {
    let test = "the_log_of_a_real_openj9_is_read_under_every_policy";
    let Some(jdk) = openj9(test) else { return };
    for policy in ["gencon", "balanced", "optthruput", "optavgpause"] {
        let option = format!("-Xgcpolicy:{policy}");
        let (text, _) = logged(&jdk, ALLOCATE, &[&option, "-Xmx96m"], &["3000", "8", "20"]);
        is_read(&text, policy, 96 << 20);
    }
}

/// Every line is known, and its pauses match another reader's.
fn is_read(text: &str, policy: &str, heap_max: u64) {
    let log = parsed(text, None);
    assert_eq!(
        log.header.collector.map(|c| c.collector_name()),
        Some(policy)
    );
    assert_eq!(log.header.heap_max_bytes, Some(heap_max), "{policy}");
    assert_eq!(log.input.unknown_lines, 0, "{policy}");
    assert_eq!(log.input.unfinished_pauses, 0, "{policy}");
    let (count, sum) = naive(text);
    assert!(count > 0, "{policy}: {text}");
    assert_eq!(
        (log.summary.stw.count, log.summary.stw.total),
        (count, sum),
        "{policy}"
    );
    let after = log.summary.heap_after_max.expect("pauses have a heap");
    assert!(0 < after && after <= heap_max, "{policy}: {after}");
    assert!(
        log.summary.cpu_count > 0 && log.summary.allocated > 0,
        "{policy}"
    );
}

/// The stored log of a real OpenJ9.
fn kept(policy: &str) -> String {
    let name = format!("tests/data/gclog/openj9-25-{policy}.log.gz");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let file = std::fs::File::open(&path).expect("recorded data");
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(file);
    std::io::Read::read_to_string(&mut reader, &mut text).expect("text");
    text
}

#[test]
fn the_logs_that_a_real_openj9_wrote_are_read_where_there_is_none() {
    for policy in ["gencon", "balanced", "optthruput", "optavgpause"] {
        is_read(&kept(policy), policy, 24 << 20);
    }
}

/// Metronome writes sums of its pauses: it is named, and no pause is made up.
#[test]
fn metronome_is_named_and_gives_no_pauses() {
    let log = parsed(&kept("metronome"), None);
    assert_eq!(
        log.header.collector.map(|c| c.collector_name()),
        Some("metronome")
    );
    assert_eq!(log.summary.stw.count, 0);
    let report = GcReport::for_log(&log, &[]);
    let told = |finding: &GcFinding| finding.code == FindingCode::SumsOnly;
    assert!(report.findings.iter().any(told), "{:?}", report.findings);
}

#[test]
fn the_pauses_of_a_real_openj9_lie_where_its_clock_says() {
    let test = "the_pauses_of_a_real_openj9_lie_where_its_clock_says";
    let Some(jdk) = openj9(test) else { return };
    let clock = |id| {
        let now = rustix::time::clock_gettime(id);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    let begin = clock(rustix::time::ClockId::Monotonic);
    let wall = clock(rustix::time::ClockId::Realtime);
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let source = ("Collect.java", include_str!("data/gclog/Collect.java"));
    let (text, printed) = logged(&jdk, source, &["-Xmx64m"], &[]);
    let wall = WallClock {
        ahead_ns: wall - begin,
        set: Vec::new(),
        started_ms: i64::try_from(started.as_millis()).expect("now"),
    };
    let log = parsed(&text, Some(wall));
    let asked = |p: &&loadline_jvm::gclog::GcPause| p.name.cause.as_deref() == Some("System.gc()");
    let pauses: Vec<(u64, u64)> = log
        .pauses
        .iter()
        .filter(asked)
        .filter_map(|pause| pause.monotonic_span())
        .collect();
    let calls: Vec<(u64, u64)> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(from, to)| (from.parse().expect("ns"), to.trim().parse().expect("ns")))
        .collect();
    // A call of System.gc() collects twice (OpenJ9 0.51).
    assert_eq!((pauses.len() % 20, calls.len()), (0, 20), "{printed}");
    let each = pauses.len() / calls.len();
    // Each lies in its call, but for the error of its place.
    let worst = pauses.iter().enumerate().map(|(index, pause)| {
        let call = calls[index / each];
        let before = call.0.saturating_sub(pause.0);
        before.max(pause.1.saturating_sub(call.1))
    });
    let worst = Duration::from_nanos(worst.max().expect("there are some"));
    println!("outside of its call by at most {worst:?}");
    assert!(worst < Duration::from_millis(2), "{worst:?}");
}
