//! The recorder of pauses (`workloads/hiccup`) in real JVMs, as an agent and as a canary: a JVM that
//! is stopped for a known time must write down exactly that.

#![allow(clippy::print_stdout)] // SKIP lines stand on stdout.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadline_analysis::pauses::ApplicationPauses;
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_trial::application_pauses::{VARIABLE, parse_pauses};
use rustix::process::{Pid, Signal, kill_process};

/// The JDKs of the promise.
const JDKS: [&str; 2] = ["17", "25"];

/// How long the JVM is stopped. A busy machine makes other pauses, but none as long.
const STOPPED: Duration = Duration::from_millis(1500);

/// How far the recorded ends may lie from what this test saw.
const NEAR: u64 = 500_000_000;

/// Longest wait for a JVM to come up on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn built(name: &str) -> Option<PathBuf> {
    let jar = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../build/workloads")
        .join(name);
    jar.is_file().then_some(jar)
}

/// A JVM that is killed when the test is over.
struct Jvm(Child);

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What the recorder has written, once `is_there` says that it is enough.
fn recorded(file: &Path, is_there: impl Fn(&ApplicationPauses) -> bool) -> ApplicationPauses {
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // A line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let seen = parse_pauses(whole);
        if is_there(&seen) || begin.elapsed() > PATIENCE {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Stops the JVM and compares.
fn stop_and_compare(mut command: Command, file: &Path, source: &str) {
    let what = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let jvm = Jvm(command
        .spawn()
        .expect("a JDK that was found can be started"));
    // The first line says that it records; it comes with the first flush.
    let begun = recorded(file, |seen| !seen.source.is_empty());
    assert_eq!(begun.source, source, "{what}");
    let pid = Pid::from_child(&jvm.0);
    kill_process(pid, Signal::STOP).expect("it is ours");
    let from = now();
    std::thread::sleep(STOPPED);
    let to = now();
    kill_process(pid, Signal::CONT).expect("it is ours");
    let wanted = |(start, end): &&(u64, u64)| {
        start.abs_diff(from) < NEAR && end.abs_diff(to) < NEAR && end - start > (to - from) * 9 / 10
    };
    let seen = recorded(file, |seen| seen.pauses_ns.iter().any(|p| wanted(&p)));
    let found = seen.pauses_ns.iter().filter(wanted).count();
    assert_eq!(
        found, 1,
        "{what}: stopped {from} to {to}, wrote {:?}",
        seen.pauses_ns
    );
    assert_eq!(seen.unknown_lines, 0, "{what}");
}

/// Runs each JDK of the promise with the recorder; reports missing ones.
fn each(test: &str, run: impl Fn(&InstalledJdk, &Path, &Path)) {
    let Some(jar) = built("hiccup.jar") else {
        println!("SKIP {test}: build/workloads/hiccup.jar is not built (make workloads)");
        return;
    };
    let found = DetectedJdks::scan_places(&JdkPlaces::of_process());
    for name in JDKS {
        match found.select(name) {
            Ok(jdk) => {
                let directory = tempfile::tempdir().expect("a directory");
                run(&jdk, &jar, &directory.path().join("pauses"));
            }
            Err(reason) => println!("SKIP {test} on JDK {name}: {reason}"),
        }
    }
}

#[test]
fn the_agent_writes_down_when_its_jvm_stood() {
    each(
        "the_agent_writes_down_when_its_jvm_stood",
        |jdk, jar, file| {
            let ping = built("ping.jar").expect("workloads are built together");
            let mut command = Command::new(&jdk.java);
            let port = std::net::TcpListener::bind(("127.0.0.1", 0))
                .and_then(|l| l.local_addr())
                .expect("a free port");
            command
                .arg(format!("-javaagent:{}=over=20", jar.display()))
                .args(["-Xmx32m", "-XX:+UseSerialGC", "-jar"])
                .arg(ping)
                .arg(format!("--port={}", port.port()))
                .env(VARIABLE, file);
            stop_and_compare(command, file, "hiccup");
        },
    );
}

#[test]
fn the_canary_writes_down_when_it_stood() {
    each("the_canary_writes_down_when_it_stood", |jdk, jar, file| {
        let mut command = Command::new(&jdk.java);
        command
            .args(["-Xmx16m", "-XX:+UseSerialGC", "-jar"])
            .arg(jar)
            .arg(format!("over=20,file={}", file.display()));
        stop_and_compare(command, file, "canary");
    });
}
