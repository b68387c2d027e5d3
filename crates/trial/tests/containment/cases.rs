//! What an application can see and do, and what a trial says about each way to misbehave.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use loadline_analysis::record::{InvalidReason, TrialPhase};
use loadline_protocol::log::{ChunkContent, EventLogReader};
use loadline_protocol::{NetworkMode, Readiness, TrialEnding, TrialEvent};
use loadline_sizing::Bytes;
use loadline_trial::samples::SampleRows;
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{Lab, PORT, Part, Spec, UID, load};
use crate::runner::Case;

pub const CASES: [Case; 26] = [
    ("confined", confined),
    ("unknown_service", unknown_service),
    ("served_and_measured", served_and_measured),
    ("serves_on_ipv6_alone", serves_on_ipv6_alone),
    ("shared_cpus", shared_cpus),
    ("several_at_once", several_at_once),
    ("one_of_several_dies", one_of_several_dies),
    ("log_line_and_tcp_readiness", log_line_and_tcp_readiness),
    ("closed_home", closed_home),
    ("early_exit", early_exit),
    ("exit_under_load", exit_under_load),
    ("killed_by_signal", killed_by_signal),
    ("out_of_memory", out_of_memory),
    ("child_out_of_memory", child_out_of_memory),
    ("ignores_term", ignores_term),
    ("daemons_left", daemons_left),
    ("never_ready", never_ready),
    ("answers_500", answers_500),
    ("output_flood", output_flood),
    ("planted_link", planted_link),
    ("planted_terabyte", planted_terabyte),
    ("deep_tree_left", deep_tree_left),
    ("planted_counters", planted_counters),
    ("foreign_server", foreign_server),
    ("interrupted", interrupted),
    ("cannot_start", cannot_start),
];

/// SPECIFICATION "app sandbox": only descriptors 0-2, not root, no capabilities, no way to more, no
/// cgroup file writable, a private network.
fn confined() {
    let mut lab = Lab::new();
    let session = Session::make();
    let mut spec = lab.spec(&["report"]);
    spec.readiness = Readiness::LogLine {
        contains: "Max open".to_owned(),
    };
    let trial = lab.run(&spec, None);
    let lines = &trial.evidence.last_output;
    let fact = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
            .as_str()
    };
    assert_eq!(fact("descriptors"), "descriptors 0 1 2");
    assert_eq!(fact("pid"), "pid 2");
    assert_eq!(fact("processes"), "processes 2");
    assert_eq!(fact("environment"), "environment ZOO");
    assert_eq!(fact("directory"), "directory /");
    assert_eq!(fact("writable-cgroups"), "writable-cgroups");
    assert_eq!(fact("tmp"), private_tmp());
    assert_eq!(fact("shm"), "shm");
    assert_eq!(fact("size-of-shm"), "size-of-shm 98304k");
    assert_eq!(fact("session"), "session true");
    assert_eq!(fact("Uid:"), format!("Uid: {UID} {UID} {UID} {UID}"));
    assert_eq!(fact("Gid:"), format!("Gid: {UID} {UID} {UID} {UID}"));
    assert_eq!(fact("Groups:"), "Groups:");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(fact(set), format!("{set} 0000000000000000"));
    }
    assert_eq!(fact("NoNewPrivs:"), "NoNewPrivs: 1");
    // A filter of system calls.
    assert_eq!(fact("Seccomp:"), "Seccomp: 2");
    assert_eq!(fact("user-namespace"), "user-namespace false");
    let services = fact("services");
    assert!(
        !services.contains("user") && !services.contains("systemd"),
        "{services}"
    );
    assert_eq!(fact("firmware"), "firmware");
    assert_eq!(fact("keys"), "keys 0");
    drop(session);
    // Without SIGPIPE, which a Rust program ignores itself, and the C library's own two.
    let ignored = u64::from_str_radix(&fact("SigIgn:")[8..], 16).expect("a mask");
    assert_eq!(ignored & !(1 << 12 | 1 << 31 | 1 << 32), 0, "{ignored:x}");
    assert_eq!(fact("SigBlk:"), "SigBlk: 0000000000000000");
    assert_eq!(fact("Umask:"), "Umask: 0022");
    assert_eq!(fact("Max core"), "Max core file size 0 0 bytes");
    let own_network = std::fs::read_link("/proc/self/ns/net").expect("it is there");
    assert!(!fact("network").contains(&own_network.display().to_string()));
    lab.assert_clean();
}

/// The runtime directory of a user who is logged in, as systemd makes it.
struct Session(std::path::PathBuf);

impl Session {
    fn make() -> Self {
        let own = format!("/run/user/loadline-{}", std::process::id());
        std::fs::create_dir_all(&own).expect("root may");
        Self(own.into())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
        // Without any login session the test made it.
        let _ = std::fs::remove_dir("/run/user");
    }
}

/// What an application sees in its /tmp: nothing, or the way to the program where that lies there.
fn private_tmp() -> String {
    let program = std::env::current_exe().expect("this program has a path");
    let way = program.strip_prefix("/tmp").ok();
    match way.and_then(|way| way.components().next()) {
        Some(first) => format!("tmp {}", first.as_os_str().display()),
        None => "tmp".to_owned(),
    }
}

/// A machine service with an unexpected name, open to everyone.
fn unknown_service() {
    let place = std::path::PathBuf::from(format!("/run/loadline-test-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("root may");
    let at = place.join("service.sock");
    let socket = std::os::unix::net::UnixListener::bind(&at).expect("it listens");
    let everyone = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&at, everyone).expect("a mode");
    let mut lab = Lab::new();
    let spec = lab.spec(&["forbidden", "what=sockets"]);
    let trial = lab.run(&spec, Some(&load(50.0, Duration::from_secs(1))));
    assert_eq!(
        trial.evidence.failure, None,
        "{:?}",
        trial.evidence.last_output
    );
    assert!(
        trial.start.ready.is_some(),
        "{:?}",
        trial.evidence.last_output
    );
    lab.assert_clean();
    drop(socket);
    std::fs::remove_dir_all(&place).expect("it is ours");
}

fn served_and_measured() {
    let mut lab = Lab::new();
    let spec = lab.spec(&["serve", "heap_mib=20", "ready_ms=100"]);
    let trial = lab.run(&spec, Some(&load(100.0, Duration::from_secs(3))));
    let start = trial.start;
    let ready = start.ready.expect("it gets ready");
    assert!(ready >= Duration::from_millis(100), "{ready:?}");
    assert_eq!(start.last_probe, "HTTP 200");
    assert!(start.cpu.is_some_and(|cpu| !cpu.is_zero()));
    assert_eq!((trial.load[0].scheduled, trial.load[0].ok), (300, 300));
    let evidence = trial.evidence;
    assert_eq!(evidence.exit.signal, Some(15));
    assert!(!evidence.exit.before_stop && !evidence.exit.unclean_stop);
    assert_eq!(evidence.exit.leftover_processes, 0);
    let anon = evidence.cgroup.peak_anon.expect("memory is counted");
    assert!(
        anon >= Bytes::from_mib(20) && anon < Bytes::from_mib(40),
        "{anon}"
    );
    let rss = evidence.cgroup.peak_rss.expect("RSS is read");
    assert!(rss >= Bytes::from_mib(20), "{rss}");
    assert_eq!(evidence.cgroup.oom_kills, Some(0));
    assert!(evidence.cgroup.measure_cpu.is_some() && evidence.cgroup.measure_nr_periods.is_some());
    assert!(evidence.seconds.len() >= 3, "{:#?}", evidence.seconds);
    assert!(evidence.noise.foreign_cpu.is_some() && evidence.noise.clock_jump.is_some());
    assert_eq!(evidence.failure, None);
    let kept = SampleRows::new(
        EventLogReader::new(std::fs::File::open(&spec.log).expect("its log")),
        0,
    );
    assert!(kept.count() > 25, "its samples are kept");
    lab.assert_clean();
}

/// A service that listens at ::1 alone gets ready, and the load reaches it.
fn serves_on_ipv6_alone() {
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        println!("SKIP serves_on_ipv6_alone: this kernel has no IPv6");
        return;
    }
    let mut lab = Lab::new();
    let spec = lab.spec(&["serve", "at=::1"]);
    let trial = lab.run(&spec, Some(&load(50.0, Duration::from_secs(1))));
    assert_eq!(trial.start.last_probe, "HTTP 200");
    assert_eq!((trial.load[0].scheduled, trial.load[0].ok), (50, 50));
    lab.assert_clean();
}

/// Three instances: each with its own limits, network and share of the load; nothing is left.
fn several_at_once() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["serve", "heap_mib=20"]);
    spec.configuration.instances = 3;
    spec.configuration.cpu = Some(loadline_sizing::Cpus::from_millis(200));
    let trial = lab.run(&spec, Some(&load(90.0, Duration::from_secs(3))));
    let seen: Vec<_> = trial
        .load
        .iter()
        .map(|l| (l.instance, l.scheduled, l.ok, l.offered_rate))
        .collect();
    let share = |n| (Some(n), 90, 90, Some(30.0));
    assert_eq!(seen, [share(1), share(2), share(3)]);
    let evidence = trial.evidence;
    let seconds: u64 = evidence.seconds.iter().filter_map(|s| s.achieved).sum();
    assert_eq!(seconds, 270, "{:#?}", evidence.seconds);
    assert_eq!(evidence.failure, None);
    assert_eq!(evidence.instances.len(), 3);
    let ready = evidence.instances.iter().map(|i| i.start.ready);
    let start = trial.start.ready;
    assert_eq!(start, ready.max().flatten(), "ready when the last one is");
    let mut sum = 0;
    for instance in &evidence.instances {
        let cgroup = &instance.cgroup;
        let anon = cgroup.peak_anon.expect("memory is counted");
        assert!(
            anon >= Bytes::from_mib(20) && anon < Bytes::from_mib(40),
            "each has its own heap: {anon}"
        );
        let memory = cgroup.loaded_rss.zip(cgroup.loaded_pss);
        let (rss, pss) = memory.expect("memory is read after the load");
        assert!(pss <= rss && rss >= Bytes::from_mib(20), "{rss} {pss}");
        sum += rss.as_bytes();
        assert_eq!(instance.exit.signal, Some(15));
    }
    let all = evidence.cgroup.loaded_rss.map(|b| b.as_bytes());
    assert_eq!(all, Some(sum));
    assert!(
        evidence.noise.foreign_cpu.is_some(),
        "the window was watched"
    );
    assert_eq!(evidence.noise.contention, None, "they wait for each other");
    let anon = evidence.seconds.iter().filter_map(|s| s.anon).max();
    assert!(
        anon >= Some(Bytes::from_mib(60)),
        "the sum of all: {anon:?}"
    );
    for index in 0..3 {
        let log = EventLogReader::new(std::fs::File::open(&spec.log).expect("its log"));
        assert!(
            SampleRows::new(log, index).count() > 25,
            "samples of {index}"
        );
    }
    lab.assert_clean();
}

/// One that dies takes the trial with it: its exit and its last words are the trial's.
fn one_of_several_dies() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["serve", "heap_mib=100"]);
    spec.configuration.instances = 2;
    let trial = lab.run(&spec, Some(&load(20.0, Duration::from_secs(1))));
    assert_eq!(trial.start.ready, None);
    assert_eq!(trial.load, []);
    let evidence = trial.evidence;
    assert!(evidence.exit.before_stop, "{:?}", evidence.exit);
    assert!(evidence.cgroup.oom_kills >= Some(1));
    let failed = evidence.instances.iter().filter(|i| i.has_failed()).count();
    assert_eq!(failed, 2, "both need more than their own limit");
    lab.assert_clean();
}

/// Without a quota the application may run everywhere: the generator gets a separate group.
fn shared_cpus() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["serve"]);
    spec.configuration.cpu = None;
    let trial = lab.run(&spec, Some(&load(50.0, Duration::from_secs(1))));
    assert_eq!(trial.load[0].ok, 50);
    let warnings = trial.evidence.warnings;
    assert!(
        warnings.iter().any(|w| w.contains("shares CPUs")),
        "{warnings:?}"
    );
    lab.assert_clean();
}

fn log_line_and_tcp_readiness() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["say", "text=Started Zoo in 1 s", "after_ms=200"]);
    spec.readiness = Readiness::LogLine {
        contains: "Started Zoo".to_owned(),
    };
    let start = lab.run(&spec, None).start;
    assert!(
        start
            .ready
            .is_some_and(|ready| ready >= Duration::from_millis(200))
    );
    let mut spec = lab.spec(&["hang"]);
    spec.readiness = Readiness::Tcp { port: PORT };
    let start = lab.run(&spec, None).start;
    assert_eq!(start.last_probe, "connected");
    assert!(start.ready.is_some());
    lab.assert_clean();
}

/// A checkout below a directory that only root may enter, as root's home is.
fn closed_home() {
    let mut lab = Lab::new();
    let home = tempfile::tempdir().expect("a directory");
    let app = home.path().join("app");
    std::fs::create_dir(&app).expect("a directory");
    let program = app.join("program");
    std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy");
    let open = |path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("an own file");
    };
    open(&app, 0o755);
    open(&program, 0o755);
    std::fs::write(home.path().join("secret"), "x").expect("a file");
    let mut spec = lab.spec(&["serve"]);
    spec.directory = app.clone();
    spec.command[0] = "./program".to_owned();
    let trial = lab.run(&spec, None);
    assert!(trial.start.ready.is_some());
    open(&program, 0o700);
    let mut again = lab.spec(&["serve"]);
    (again.directory, again.command) = (spec.directory, spec.command);
    let text = refusal(&again);
    assert!(
        text.contains("cannot be read by uid") && text.contains("hint:"),
        "{text}"
    );
    lab.assert_clean();
}

/// What a host says that refuses a trial.
fn refusal(spec: &Spec) -> String {
    match spec.start().end() {
        Some(TrialEnding::Refused(refusal)) => format!("{refusal}\nhint: {}", refusal.hint),
        other => panic!("it was not refused: {other:?}"),
    }
}

fn early_exit() {
    let mut lab = Lab::new();
    for code in [0, 3] {
        let spec = lab.spec(&["exit", &format!("code={code}")]);
        let begin = Instant::now();
        let trial = lab.run(&spec, None);
        assert!(
            begin.elapsed() < Duration::from_secs(50),
            "it waited for the deadline"
        );
        assert_eq!(trial.start.ready, None);
        assert!(trial.evidence.exit.before_stop);
        assert_eq!(trial.evidence.exit.code, Some(code));
    }
    lab.assert_clean();
}

fn exit_under_load() {
    let mut lab = Lab::new();
    let spec = lab.spec(&["exit", "after_ms=10000", "code=1"]);
    let begin = Instant::now();
    let trial = lab.run(&spec, Some(&load(100.0, Duration::from_secs(60))));
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "the load went on"
    );
    assert!(trial.load[0].ok > 0, "{:?}", trial.load);
    assert!(trial.evidence.exit.before_stop);
    assert_eq!(trial.evidence.exit.code, Some(1));
    lab.assert_clean();
}

fn killed_by_signal() {
    let mut lab = Lab::new();
    for number in [11, 6, 9] {
        let spec = lab.spec(&["signal", &format!("number={number}"), "after_ms=50"]);
        let evidence = lab.run(&spec, None).evidence;
        assert!(evidence.exit.before_stop);
        assert_eq!(evidence.exit.signal, Some(number));
        assert_eq!(evidence.cgroup.oom_kills, Some(0));
    }
    lab.assert_clean();
}

fn out_of_memory() {
    let mut lab = Lab::new();
    for step in ["step_ms=0", "step_ms=20"] {
        let spec = lab.spec(&["oom", "step_mib=4", step]);
        let trial = lab.run(&spec, Some(&load(50.0, Duration::from_secs(30))));
        let evidence = trial.evidence;
        assert!(evidence.exit.before_stop, "{:?}", evidence.exit);
        assert_eq!(evidence.exit.signal, Some(9));
        assert!(evidence.cgroup.oom_kills.is_some_and(|kills| kills >= 1));
        let peak = evidence.cgroup.peak_memory.expect("it is counted");
        // A process that the kernel is killing may take a few pages more, to be able to end.
        assert!(
            peak > Bytes::from_mib(60) && peak < Bytes::from_mib(65),
            "{peak}"
        );
    }
    lab.assert_clean();
}

/// One process of the group is killed for memory, the main one lives: a container dies as a whole.
fn child_out_of_memory() {
    let mut lab = Lab::new();
    let spec = lab.spec(&["oom-child"]);
    let trial = lab.run(&spec, Some(&load(50.0, Duration::from_secs(30))));
    let evidence = trial.evidence;
    assert!(evidence.cgroup.oom_kills.is_some_and(|kills| kills >= 1));
    assert!(evidence.exit.before_stop);
    assert_eq!(evidence.exit.signal, Some(9));
    lab.assert_clean();
}

fn ignores_term() {
    let mut lab = Lab::new();
    lab.grace = Duration::from_secs(1);
    let spec = lab.spec(&["ignore-term"]);
    let evidence = lab.run(&spec, None).evidence;
    assert!(evidence.exit.unclean_stop && !evidence.exit.before_stop);
    assert_eq!(evidence.exit.signal, Some(9));
    lab.assert_clean();
}

fn daemons_left() {
    let mut lab = Lab::new();
    let spec = lab.spec(&["daemons", "count=20"]);
    let trial = lab.run(&spec, None);
    assert!(trial.start.ready.is_some());
    assert_eq!(trial.evidence.exit.leftover_processes, 20);
    lab.assert_clean();
}

fn never_ready() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["never-ready"]);
    spec.start_deadline = Duration::from_secs(5);
    spec.stop_grace = Duration::from_secs(1);
    let begin = Instant::now();
    let evidence = lab.run(&spec, None).evidence;
    let (waited, start) = (begin.elapsed(), &evidence.start);
    assert_eq!(start.ready, None);
    assert_eq!(start.last_probe, "connection refused");
    assert!(
        waited >= Duration::from_secs(5) && waited < Duration::from_secs(60),
        "{waited:?}"
    );
    assert!(!evidence.exit.before_stop);
    lab.assert_clean();
}

fn answers_500() {
    let mut lab = Lab::new();
    // It answers until it is stopped: an earlier exit may reset the last connection.
    let mut spec = lab.spec(&["exit", "status=500", "after_ms=600000"]);
    spec.start_deadline = Duration::from_secs(5);
    spec.stop_grace = Duration::from_secs(1);
    let start = lab.run(&spec, None).start;
    assert_eq!((start.ready, start.last_probe.as_str()), (None, "HTTP 500"));
    lab.assert_clean();
}

fn output_flood() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["flood", "mib=200"]);
    spec.configuration.cpu = None;
    let trial = lab.run(&spec, None);
    assert!(trial.start.ready.is_some());
    let log = EventLogReader::new(std::fs::File::open(&spec.log).expect("its log"));
    let kept = std::io::copy(
        &mut log.join_chunks(ChunkContent::Output, 0),
        &mut std::io::sink(),
    );
    assert_eq!(kept.expect("it is whole"), 16 << 20);
    let warnings = trial.evidence.warnings;
    assert!(
        warnings.iter().any(|w| w.contains("wrote 209715200 bytes")),
        "{warnings:?}"
    );
    let spec = lab.spec(&["binary"]);
    let lines = lab.run(&spec, None).evidence.last_output;
    assert!(lines.iter().any(|line| line.ends_with("red")), "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.chars().all(|c| !c.is_control()))
    );
    lab.assert_clean();
}

fn planted_link() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["plant", "path=/tmp/gc.log", "target=/etc/shadow"]);
    spec.gc_log = Some("/tmp/gc.log".into());
    let evidence = lab.run(&spec, None).evidence;
    assert_eq!(evidence.gc, None);
    let log = EventLogReader::new(std::fs::File::open(&spec.log).expect("its log"));
    let kept = std::io::copy(
        &mut log.join_chunks(ChunkContent::GcLog, 0),
        &mut std::io::sink(),
    );
    assert_eq!(kept.expect("it is whole"), 0);
    lab.assert_clean();
}

/// Deeper than any path may be long, with links out of the tree: it is removed, and the targets
/// stay.
fn deep_tree_left() {
    let kept = tempfile::tempdir().expect("a directory");
    std::fs::write(kept.path().join("file"), "x").expect("a file");
    let mut lab = Lab::new();
    let target = format!("target={}", kept.path().display());
    let spec = lab.spec(&["deep-tree", "levels=3000", "name=255", &target]);
    let trial = lab.run(&spec, None);
    assert!(trial.start.ready.is_some(), "the tree could not be made");
    assert_eq!(trial.evidence.failure, None);
    lab.assert_clean();
    assert!(kept.path().join("file").is_file());
}

/// A file that is handed over, and a log, are copied only if they can be genuine.
fn planted_terabyte() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["plant", "path=/tmp/app.jsa", "target=sparse"]);
    spec.hand_over = vec!["/tmp/app.jsa".into()];
    let evidence = lab.run(&spec, None).evidence;
    let said = evidence.warnings.join("\n");
    assert!(
        said.contains("cannot read /tmp/app.jsa: it has 1099511627776 bytes"),
        "{said}"
    );
    let log = std::fs::metadata(&spec.log).expect("its log");
    assert!(log.len() < 16 << 20, "{} bytes", log.len());
    // Nor is a log of collections that is one hole.
    let mut spec = lab.spec(&["plant", "path=/tmp/gc.log", "target=sparse"]);
    spec.gc_log = Some("/tmp/gc.log".into());
    let evidence = lab.run(&spec, None).evidence;
    let said = evidence.warnings.join("\n");
    assert!(
        said.contains("GC log: cannot read /tmp/gc.log: it has 1099511627776 bytes"),
        "{said}"
    );
    assert_eq!(evidence.gc, None);
    lab.assert_clean();
}

/// What stands where a JVM has its counters, and can be waited for without end: the trial ends in
/// time, as if there were nothing.
fn planted_counters() {
    for target in ["/proc/kmsg", "/dev/zero", "fifo"] {
        let (done, is_done) = mpsc::channel::<()>();
        // By itself: a trial that hangs here can be asked nothing, not even to stop.
        let trial = std::thread::spawn(move || {
            let mut lab = Lab::new();
            let target = format!("target={target}");
            let spec = lab.spec(&["plant", "path=/tmp/hsperfdata_x/2", &target]);
            let trial = lab.run(&spec, Some(&load(50.0, Duration::from_secs(1))));
            let start = &trial.start;
            assert!(start.ready.is_some() && start.rss.is_some(), "{start:?}");
            assert_eq!(start.classes, None);
            assert_eq!(trial.load[0].ok, 50);
            assert_eq!(trial.evidence.exit.signal, Some(15));
            assert!(!trial.evidence.exit.unclean_stop);
            lab.assert_clean();
            drop(done);
        });
        let waited = is_done.recv_timeout(Duration::from_secs(120));
        assert_eq!(
            waited,
            Err(RecvTimeoutError::Disconnected),
            "{target}: it hangs"
        );
        assert!(trial.join().is_ok(), "{target}");
    }
}

/// Another server holds the port: it gets no request, and nothing is started.
fn foreign_server() {
    let mut lab = Lab::new();
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = server.local_addr().expect("it is bound").port();
    server.set_nonblocking(true).expect("a descriptor");
    let mut spec = lab.spec(&["serve", &format!("port={port}")]);
    spec.network = NetworkMode::Host;
    spec.readiness = Readiness::Http {
        port,
        path: "/".to_owned(),
    };
    let text = refusal(&spec);
    assert!(text.contains("another program listens"), "{text}");
    assert!(server.accept().is_err(), "the foreign server was spoken to");
    drop(server);
    // Taken in the middle: after the start, by another than the application.
    spec.command.truncate(2);
    spec.command.push("never-ready".to_owned());
    spec.log = spec.log.with_extension("again");
    spec.start_deadline = Duration::from_secs(60);
    let mut part = spec.start();
    part.until_phase(TrialPhase::Start);
    std::thread::sleep(Duration::from_millis(500));
    let server = TcpListener::bind(("127.0.0.1", port)).expect("it is free");
    server.set_nonblocking(true).expect("a descriptor");
    let ended = part.end();
    let Some(TrialEnding::Measured(evidence)) = ended else {
        panic!("{ended:?}");
    };
    let failure = evidence.failure.expect("it could not be measured");
    assert_eq!(failure.cause, InvalidReason::ToolError);
    assert!(
        failure.detail.contains("not part of the trial"),
        "{failure:?}"
    );
    assert!(server.accept().is_err(), "the foreign server was spoken to");
    drop(server);
    // With the port free the application is measured on the machine's network.
    let mut spec = lab.spec(&["serve", &format!("port={port}")]);
    spec.network = NetworkMode::Host;
    spec.readiness = Readiness::Http {
        port,
        path: "/".to_owned(),
    };
    let start = lab.run(&spec, None).start;
    assert_eq!(start.last_probe, "HTTP 200");
    lab.assert_clean();
}

fn interrupted() {
    let mut lab = Lab::new();
    let signal = |part: &Part, signal| {
        let pid = Pid::from_raw(part.child.id() as i32).expect("a process");
        kill_process(pid, signal).expect("it runs");
    };
    let mut part = lab.spec(&["never-ready"]).start();
    part.until_phase(TrialPhase::Start);
    std::thread::sleep(Duration::from_millis(300));
    signal(&part, Signal::TERM);
    assert_eq!(part.end(), Some(TrialEnding::Stopped));
    let mut spec = lab.spec(&["serve"]);
    spec.load = vec![load(10.0, Duration::from_secs(60))];
    let mut part = spec.start();
    let is_driven =
        |e: &TrialEvent| matches!(e, TrialEvent::Progress(p) if p.phase == TrialPhase::Measure);
    assert!(part.until(is_driven).is_some());
    signal(&part, Signal::TERM);
    assert_eq!(part.end(), Some(TrialEnding::Stopped));
    lab.assert_clean();
}

fn cannot_start() {
    let mut lab = Lab::new();
    let mut spec = lab.spec(&["serve"]);
    spec.command[0] = "/nonexistent/java".to_owned();
    let text = refusal(&spec);
    assert!(text.contains("/nonexistent/java cannot be found"), "{text}");
    // Readable, but no program.
    let mut spec = lab.spec(&[]);
    spec.command = vec!["/etc/passwd".to_owned()];
    let text = refusal(&spec);
    assert!(text.contains("executing /etc/passwd"), "{text}");
    let mut spec = lab.spec(&["serve"]);
    spec.configuration.memory = Some(Bytes::from_gib(1 << 20));
    let text = refusal(&spec);
    assert!(text.contains("of memory are available"), "{text}");
    lab.assert_clean();
}
