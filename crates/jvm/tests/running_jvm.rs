//! Attaching to real JVMs and reading their counters: every JDK of this machine.

#![allow(clippy::print_stdout)] // SKIP lines stand on stdout, from a helper too.

use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadline_jvm::attach::{self, AttachError};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_jvm::gclog;
use loadline_jvm::hsperf::{HsperfCounters, HsperfError};
use loadline_jvm::log_option::gc_log_options;
use loadline_jvm::nmt;
use loadline_sizing::Vm;

/// Longest wait for a JVM to come up on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// HotSpot JDKs that can run a source file: 11 and later, with the compiler.
fn jdks(test: &str) -> Vec<InstalledJdk> {
    let found = DetectedJdks::scan_places(&JdkPlaces::of_process());
    let usable = |jdk: &InstalledJdk| {
        jdk.kind == Vm::HotSpot
            && jdk.version.feature >= 11
            && jdk.modules.iter().any(|module| module == "jdk.compiler")
    };
    let jdks: Vec<InstalledJdk> = found.jdks.into_iter().filter(usable).collect();
    if jdks.is_empty() {
        println!("SKIP {test}: no JDK 11 or later on this machine");
    }
    jdks
}

/// A JVM that is killed when the test is over.
struct Running(Child);

impl Running {
    fn start(jdk: &InstalledJdk, options: &[String], directory: &Path) -> Self {
        Self::start_as(None, jdk, options, directory)
    }

    /// As a user, who gets the directory.
    fn start_as(
        user: Option<u32>,
        jdk: &InstalledJdk,
        options: &[String],
        directory: &Path,
    ) -> Self {
        let source = directory.join("Allocate.java");
        std::fs::write(&source, include_str!("data/gclog/Allocate.java")).expect("it is ours");
        let mut command = Command::new(&jdk.java);
        if let Some(user) = user {
            std::os::unix::fs::chown(directory, Some(user), Some(user)).expect("it is ours");
            command.uid(user).gid(user);
        }
        let child = command
            .args(["-Xms48m", "-Xmx48m", "-XX:NativeMemoryTracking=summary"])
            .args(options)
            .arg(source)
            .args(["120000", "8", "20"])
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a JDK that was found can be started");
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tries until it works or patience is over.
fn until<T, E: std::fmt::Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begin = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) if begin.elapsed() > PATIENCE => panic!("{error:?}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_owned();
    (directory, path)
}

#[test]
fn commands_are_answered_without_a_jdk_tool() {
    for jdk in jdks("commands_are_answered_without_a_jdk_tool") {
        let (_guard, directory) = directory();
        let jvm = Running::start(&jdk, &[], &directory);
        let text = until(|| attach::run_jcmd(jvm.pid(), "VM.native_memory summary scale=B"));
        let summary = nmt::NmtSummary::from_nmt_report(&text).expect(&text);
        let mut categories = summary.categories.iter();
        let heap = categories.find(|c| c.name == "Java Heap").expect(&text);
        assert_eq!(heap.committed.as_mib(), 48.0, "{jdk:?}");
        let version = attach::run_jcmd(jvm.pid(), "VM.version").expect("it has answered before");
        assert!(
            version.contains(&jdk.version.feature.to_string()),
            "{version}"
        );
        let refused = attach::run_jcmd(jvm.pid(), "No.such_command");
        assert!(
            matches!(refused, Err(AttachError::Refused { .. })),
            "{refused:?}"
        );
        assert_eq!(names(&directory), ["Allocate.java"], "no trigger is left");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("it is ours").flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whoever owns the working directory may put a link to root's files where the trigger is made,
/// and one to another program's socket where the JVM's is.
#[test]
fn what_the_jvms_user_planted_is_not_followed() {
    const TEST: &str = "what_the_jvms_user_planted_is_not_followed";
    const USER: u32 = 64_999;
    if !rustix::process::geteuid().is_root() {
        println!("SKIP {TEST}: not root");
        return;
    }
    let plants: [fn(&Path, u32) -> PathBuf; 2] = [
        |directory, pid| directory.join(format!(".attach_pid{pid}")),
        |_, pid| PathBuf::from(format!("/tmp/.java_pid{pid}")),
    ];
    let jdks = jdks(TEST);
    for (jdk, plant) in jdks.iter().flat_map(|jdk| plants.map(|plant| (jdk, plant))) {
        let ((_guard, directory), (_own, roots)) = (directory(), directory());
        // As a file it may be emptied, as a socket it may be spoken to.
        let victim = roots.join("victim");
        let is_socket = plant(&directory, 1).starts_with("/tmp/.java_pid1");
        let listener = is_socket.then(|| UnixListener::bind(&victim).expect("it is ours"));
        if listener.is_none() {
            std::fs::write(&victim, "root's").expect("it is ours");
        }
        let jvm = Running::start_as(Some(USER), jdk, &[], &directory);
        let link = plant(&directory, jvm.pid());
        symlink(&victim, &link).expect("the name is free");
        lchown(&link, Some(USER), Some(USER)).expect("it is ours");
        let answer = until(|| match attach::run_jcmd(jvm.pid(), "VM.version") {
            // Too early: not yet a JVM.
            Err(AttachError::NoHandler { .. }) => Err(()),
            other => Ok(other),
        });
        let _ = std::fs::remove_file(&link);
        let there = victim.symlink_metadata().expect("it is there");
        assert_eq!((there.uid(), there.gid()), (0, 0), "it was given away");
        match listener {
            None => assert_eq!(there.len(), 6, "it was emptied"),
            Some(listener) => {
                listener.set_nonblocking(true).expect("it is open");
                assert!(listener.accept().is_err(), "it was spoken to");
            }
        }
        assert!(answer.is_ok_and(|version| version.contains("JDK")));
        assert_eq!(names(&directory), ["Allocate.java"]);
    }
}

#[test]
fn counters_of_a_running_jvm_grow() {
    for jdk in jdks("counters_of_a_running_jvm_grow") {
        let (_guard, directory) = directory();
        let jvm = Running::start(&jdk, &["-XX:+UseSerialGC".to_owned()], &directory);
        let collections =
            |counters: &HsperfCounters| counters.counter_number("sun.gc.collector.0.invocations");
        let first = until(|| HsperfCounters::for_jvm(jvm.pid()));
        until(|| match HsperfCounters::for_jvm(jvm.pid()) {
            Ok(now) if collections(&now) > collections(&first) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

#[test]
fn a_jvm_logs_what_the_reader_reads() {
    for jdk in jdks("a_jvm_logs_what_the_reader_reads") {
        let (_guard, directory) = directory();
        let path = directory.join("gc.log");
        let options = gc_log_options(&path, &jdk.version, jdk.kind);
        let _jvm = Running::start(&jdk, &options, &directory);
        let log = until(|| {
            let log =
                gclog::files::read(std::slice::from_ref(&path), 1000).map_err(|e| e.to_string())?;
            if log.pauses.len() > 3 {
                Ok(log)
            } else {
                Err("too few pauses so far".to_owned())
            }
        });
        assert!(
            log.pauses
                .iter()
                .all(|pause| pause.monotonic_span().is_some())
        );
        assert_eq!(log.header.jdk.as_deref(), Some(jdk.version.full.as_str()));
    }
}

#[test]
fn what_is_no_jvm_is_left_alone() {
    let mut child = Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep is everywhere");
    let attached = attach::run_jcmd(child.id(), "VM.version");
    let counted = HsperfCounters::for_jvm(child.id());
    let is_alive = child.try_wait().expect("it is our child").is_none();
    let _ = child.kill();
    let _ = child.wait();
    assert!(
        matches!(attached, Err(AttachError::NoHandler { .. })),
        "{attached:?}"
    );
    assert!(
        matches!(counted, Err(HsperfError::None { .. })),
        "{counted:?}"
    );
    assert!(
        is_alive,
        "SIGQUIT was sent to a process that does not expect it"
    );
}
