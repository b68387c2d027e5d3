//! The duties of PID 1, in a real PID namespace where that is allowed.

mod stage;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stage::{LAUNCHER, Stage};

/// Signals that can be passed on: all standard ones but KILL and STOP.
fn forwardable() -> impl Iterator<Item = i32> {
    (1..=31).filter(|signal| ![9, 19].contains(signal))
}

/// Whether a PID namespace can be made here.
fn has_namespaces() -> bool {
    let arguments = ["--pid", "--fork", "--mount-proc", "true"];
    let status = Command::new("unshare")
        .args(arguments)
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// The launcher as PID 1; the first word after these is the launcher.
fn as_pid_one(what: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", LAUNCHER]);
    command
        .env_clear()
        .env("PROBE", what)
        .env("LOADLINE_LOG", "quiet")
        .env("PATH", "/usr/bin:/bin");
    command.env("LOADLINE_MODE", "off");
    command
}

/// Sends a signal by number.
fn kill(signal: i32, pid: u32) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {pid}")])
        .status();
    assert!(status.expect("sh exists").success(), "kill -{signal} {pid}");
}

/// The only child of a process.
fn child_of(pid: u32) -> Option<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path)
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[test]
fn all_exit_codes_are_the_applications() {
    let stage = Stage::new();
    for code in 0..=255 {
        let mut command = stage.launcher("exit");
        let status = command
            .args(["--init", "--mode=off", "--"])
            .arg(stage.java())
            .arg(code.to_string())
            .status();
        assert_eq!(status.expect("the launcher starts").code(), Some(code));
    }
}

#[test]
fn all_exit_codes_are_the_applications_as_pid_one() {
    if !has_namespaces() {
        println!(
            "SKIP all_exit_codes_are_the_applications_as_pid_one: no PID namespaces (needs root)"
        );
        return;
    }
    let stage = Stage::new();
    for code in 0..=255 {
        let status = as_pid_one("exit")
            .arg(stage.java())
            .arg(code.to_string())
            .status();
        assert_eq!(status.expect("unshare starts").code(), Some(code));
    }
}

#[test]
fn failed_starts_have_the_codes_of_shells() {
    let stage = Stage::new();
    let code = |file: &std::path::Path| {
        let run = |init: &str| {
            let mut command = stage.launcher("exit");
            command
                .args([init, "--mode=off", "--"])
                .arg(file)
                .output()
                .expect("it starts")
        };
        let (init, no_init) = (run("--init"), run("--no-init"));
        let said = String::from_utf8_lossy(&init.stderr).into_owned();
        let expected = format!("{} could not be started: ", file.display());
        assert!(said.contains(&expected), "{said}");
        assert!(said.contains("\nhint: "), "{said}");
        assert_eq!(init.stderr, no_init.stderr);
        assert_eq!(init.status, no_init.status);
        init.status.code()
    };
    assert_eq!(code(std::path::Path::new("/no/such/dir/java")), Some(127));
    let alien = stage.java().with_file_name("alien");
    std::fs::create_dir(&alien).expect("a fresh directory");
    // By another process, as the stage does.
    let script = "printf '\\177ELF of another machine' > java && chmod +x java";
    let mut make = Command::new("sh");
    let made = make.args(["-c", script]).current_dir(&alien).status();
    assert!(made.is_ok_and(|status| status.success()));
    assert_eq!(code(&alien.join("java")), Some(126));
    let plain = stage.java().with_file_name("plain");
    std::fs::create_dir(&plain).expect("a fresh directory");
    std::fs::write(plain.join("java"), "not executable").expect("a fresh file");
    assert_eq!(code(&plain.join("java")), Some(126));
}

#[test]
fn a_code_can_count_as_success() {
    let stage = Stage::new();
    let mut command = stage.launcher("exit");
    command
        .env("LOADLINE_EXIT_ZERO", "143,130")
        .args(["--init", "--"])
        .arg(stage.java())
        .arg("143");
    assert_eq!(command.status().expect("it starts").code(), Some(0));
}

#[test]
fn a_fatal_signal_of_the_application_is_128_and_the_signal() {
    let stage = Stage::new();
    let mut child = start(
        stage
            .launcher("signals")
            .args(["--init", "--mode=off", "--"])
            .arg(stage.java()),
    )
    .0;
    let application = child_of(child.id()).expect("the application runs");
    kill(9, application);
    assert_eq!(child.wait().expect("it ends").code(), Some(137));
}

type Lines = std::io::Lines<BufReader<std::process::ChildStdout>>;

/// Starts the signal probe and waits until it is ready.
fn start(command: &mut Command) -> (Child, Lines) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let ready = lines.next().expect("a line").expect("text");
    assert_eq!(ready, "ready");
    (child, lines)
}

fn every_signal_arrives(init: u32, lines: &mut Lines) {
    // 32 and 33 belong to the C library's threads.
    for signal in forwardable().chain(34..=64) {
        kill(signal, init);
        let arrived = lines.next().expect("a line").expect("text");
        assert_eq!(arrived, signal.to_string());
    }
}

#[test]
fn every_forwardable_signal_arrives() {
    let stage = Stage::new();
    let mut command = stage.launcher("signals");
    let (mut child, mut lines) = start(
        command
            .args(["--init", "--mode=off", "--"])
            .arg(stage.java()),
    );
    every_signal_arrives(child.id(), &mut lines);
    kill(9, child_of(child.id()).expect("the application runs"));
    child.wait().expect("it ends");
}

#[test]
fn every_forwardable_signal_arrives_through_pid_one() {
    if !has_namespaces() {
        println!(
            "SKIP every_forwardable_signal_arrives_through_pid_one: no PID namespaces (needs root)"
        );
        return;
    }
    let stage = Stage::new();
    let (mut child, mut lines) = start(as_pid_one("signals").arg(stage.java()));
    let init = child_of(child.id()).expect("unshare forked");
    every_signal_arrives(init, &mut lines);
    kill(9, child_of(init).expect("the application runs"));
    assert_eq!(child.wait().expect("it ends").code(), Some(137));
}

/// The signal state of the application when started by `command`.
fn state(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    // A pending SIGCHLD of env's own doing would be noise.
    text.lines()
        .filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"))
        .collect()
}

#[test]
fn masks_and_ignored_signals_are_inherited_unchanged() {
    let env = "env --block-signal=USR1 --ignore-signal=HUP --default-signal=PIPE";
    let is_there = Command::new("sh")
        .args(["-c", &format!("{env} true")])
        .status();
    if !is_there.is_ok_and(|status| status.success()) {
        println!(
            "SKIP masks_and_ignored_signals_are_inherited_unchanged: env knows no --block-signal"
        );
        return;
    }
    let stage = Stage::new();
    let java = stage.java().display().to_string();
    let cases = [
        "",
        "env --block-signal=USR1,TERM --ignore-signal=HUP",
        "env --ignore-signal=PIPE",
        "env --ignore-signal=CHLD",
        "env --default-signal=PIPE",
    ];
    for case in cases {
        let run = |script: String| {
            let mut command = Command::new("sh");
            command
                .args(["-c", &script])
                .env("PROBE", "status")
                .env("LOADLINE_LOG", "quiet");
            state(&mut command)
        };
        let plain = run(format!("exec {case} {java} x"));
        assert!(plain.contains("SigBlk"), "{plain}");
        for mode in ["--no-init", "--init"] {
            let through = run(format!(
                "exec {case} {LAUNCHER} {mode} --mode=off -- {java} x"
            ));
            assert_eq!(through, plain, "{case} {mode}");
        }
    }
}

#[test]
fn init_ends_although_it_inherited_sigchld_ignored() {
    let env = "env --ignore-signal=CHLD";
    let is_there = Command::new("sh")
        .args(["-c", &format!("{env} true")])
        .status();
    if !is_there.is_ok_and(|status| status.success()) {
        println!("SKIP init_ends_although_it_inherited_sigchld_ignored: env has no such option");
        return;
    }
    let stage = Stage::new();
    let java = stage.java().display().to_string();
    let script = format!("exec {env} timeout -s KILL 60 {LAUNCHER} --init --mode=off -- {java} 7");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .env("PROBE", "exit")
        .env("LOADLINE_LOG", "quiet");
    assert_eq!(command.status().expect("sh exists").code(), Some(7));
}

/// Zombies among the children of a process.
fn zombies(pid: u32) -> usize {
    let children =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_zombie = |child: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    };
    children.split_whitespace().filter(is_zombie).count()
}

/// 1,000 orphans that wait for the end of the input, then a program that exits at once.
const ORPHANS: &str = "exec 3<&0; i=0; while [ $i -lt 1000 ]; do (read x <&3 &); i=$((i+1)); done; \
                       echo ready; exec sleep 300";

/// Waits for something; what does not happen within a minute hangs.
#[track_caller]
fn wait_until(happens: impl Fn() -> bool) {
    for _ in 0..1200 {
        if happens() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never came");
}

fn is_sleep(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
}

/// Children of a process, zombies included.
fn children(pid: u32) -> usize {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.unwrap_or_default().split_whitespace().count()
}

/// Children of this PID 1 before 1,000 orphans end, and zombies once `is_over`.
fn orphans(command: &mut Command, is_over: impl Fn(u32) -> bool) -> (usize, usize) {
    command
        .args(["sh", "-c", ORPHANS])
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let (mut child, _lines) = start(command);
    let init = child_of(child.id()).expect("unshare forked");
    // Until the shell has become `sleep` it would reap what ends.
    wait_until(|| {
        let list = std::fs::read_to_string(format!("/proc/{init}/task/{init}/children"));
        let list = list.unwrap_or_default();
        let first = list.split_whitespace().next().unwrap_or_default();
        is_sleep(&init.to_string()) || is_sleep(first)
    });
    let before = children(init);
    drop(child.stdin.take());
    wait_until(|| is_over(init));
    let left = zombies(init);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    (before, left)
}

#[test]
fn a_thousand_orphans_are_reaped() {
    if !has_namespaces() {
        println!("SKIP a_thousand_orphans_are_reaped: no PID namespaces (needs root)");
        return;
    }
    let (before, left) = orphans(&mut as_pid_one(""), |init| children(init) <= 1);
    assert!(before >= 1000, "{before}");
    assert_eq!(left, 0);
    // The same without init: the test can fail.
    let (before, left) = orphans(as_pid_one("").env("LOADLINE_INIT", "never"), |init| {
        zombies(init) >= 900
    });
    assert!(before >= 1000 && left >= 900, "{before} {left}");
}

/// Whether a process still runs; a zombie does not.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

/// The launcher as an init that is not PID 1, in front of a program that says `ready`.
fn as_init(stage: &Stage, script: &str) -> Command {
    let mut command = stage.launcher("");
    command.args(["--init", "--mode=off", "--", "sh", "-c", script]);
    command
}

#[test]
fn nothing_is_left_when_init_is_killed() {
    let stage = Stage::new();
    let (mut child, _lines) = start(&mut as_init(&stage, "echo ready; exec sleep 300"));
    let application = child_of(child.id()).expect("it was started");
    kill(9, child.id());
    child.wait().expect("it ends");
    wait_until(|| !is_running(application));
}

#[test]
fn a_signal_reaches_the_whole_group_where_that_is_asked_for() {
    let stage = Stage::new();
    for (is_group, is_left) in [("1", false), ("0", true)] {
        let mut command = as_init(&stage, "sleep 300 & echo $! >&2; echo ready; wait");
        command.env("LOADLINE_SIGNAL_GROUP", is_group);
        let (mut child, _lines) = start(command.stderr(Stdio::piped()));
        let mut number = String::new();
        let errors = child.stderr.take().expect("it is piped");
        BufReader::new(errors)
            .read_line(&mut number)
            .expect("a number");
        let second: u32 = number.trim().parse().expect("a number");
        kill(15, child.id());
        let code = child.wait().expect("it ends").code();
        assert_eq!(code, Some(143), "LOADLINE_SIGNAL_GROUP={is_group}");
        if is_left {
            assert!(is_running(second), "it got no signal");
            kill(9, second);
        } else {
            wait_until(|| !is_running(second));
        }
    }
}

#[test]
fn init_ends_with_its_parent_where_that_is_asked_for() {
    let mut parent = Command::new("sh");
    // The parent stays a shell: if it became the launcher it would be no parent.
    let script = "\"$0\" --init --mode=off -- sh -c 'echo ready; exec sleep 300' & wait";
    parent
        .args(["-c", script, LAUNCHER])
        .env("LOADLINE_PARENT_DEATH", "TERM");
    let (mut child, _lines) = start(&mut parent);
    let init = child_of(child.id()).expect("the shell started it");
    let application = child_of(init).expect("it was started");
    kill(9, child.id());
    child.wait().expect("it ends");
    wait_until(|| !is_running(init) && !is_running(application));
}

/// Resident memory of a process, KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.expect("Linux has the field")
}

/// `LOADLINE_ORPHANS_SECONDS=600 cargo test -p loadline-launcher --test init orphans_for`.
#[test]
fn orphans_for_minutes_leave_no_zombie_and_take_no_memory() {
    let name = "orphans_for_minutes_leave_no_zombie_and_take_no_memory";
    let Ok(seconds) = std::env::var("LOADLINE_ORPHANS_SECONDS") else {
        println!("SKIP {name}: takes minutes, LOADLINE_ORPHANS_SECONDS=600 runs it");
        return;
    };
    if !has_namespaces() {
        println!("SKIP {name}: no PID namespaces (needs root)");
        return;
    }
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    // A process that ends without having waited leaves its children to PID 1; a shell waits whenever
    // one ends. A line of input asks for a hundred, so that there are never more than were counted.
    let script = r#"$| = 1; print "ready\n"; while (<STDIN>) {
                    if (my $pid = fork) { waitpid $pid, 0; print "batch\n"; next }
                    for (1..100) { fork or last } exit }"#;
    let mut command = as_pid_one("");
    command.args(["perl", "-e", script]).stdin(Stdio::piped());
    let (mut child, mut lines) = start(&mut command);
    let mut more = child.stdin.take().expect("piped");
    let init = child_of(child.id()).expect("unshare forked");
    let begin = std::time::Instant::now();
    let (mut orphans, mut first, mut most, mut zombie) = (0u64, None, 0, 0);
    while begin.elapsed().as_secs() < seconds {
        more.write_all(b"more\n").expect("it goes on");
        let line = lines.next().expect("it goes on");
        assert_eq!(line.expect("text"), "batch");
        orphans += 100;
        let resident = resident_kib(init);
        first.get_or_insert(resident);
        most = most.max(resident);
        zombie = zombie.max(zombies(init));
        // No more than a thousand a second.
        let due = Duration::from_millis(orphans).saturating_sub(begin.elapsed());
        std::thread::sleep(due);
    }
    let rate = orphans / seconds.max(1);
    let first = first.expect("there was a batch");
    println!(
        "{orphans} orphans, {rate}/s; {first} KiB, at most {most} KiB; {zombie} zombies at once"
    );
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(most < first + 256, "{first} KiB became {most} KiB");
    assert!(zombie < 200, "{zombie} zombies at once");
}
