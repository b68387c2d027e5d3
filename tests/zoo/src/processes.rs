//! Processes that multiply, hide, or do not want to end.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Signal, getpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{Settings, hostile, server};

/// This program again, in another mode. The test binary has the zoo below an argument of its own.
pub(crate) fn own(arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == "zoo")
    {
        command.arg("zoo");
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Handles the signals that ask to end, by doing nothing.
fn ignore_signals() {
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        // Not ignoring would make the test easier, not wrong.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Starts daemons the classic way: child, new session, grandchild, parent gone.
pub(crate) fn daemons(settings: &Settings) -> u8 {
    for _ in 0..settings.number("count", 20) {
        if let Ok(mut child) = own(&["detach"]).spawn() {
            let _ = child.wait();
        }
    }
    server::serve(settings)
}

/// Between parent and daemon.
pub(crate) fn detach() -> u8 {
    let _ = rustix::process::setsid();
    let _daemon = own(&["daemon"]).spawn();
    0
}

pub(crate) fn daemon() -> u8 {
    ignore_signals();
    hostile::sleep()
}

pub(crate) fn fork_bomb(settings: &Settings) -> u8 {
    std::thread::scope(|scope| {
        scope.spawn(fork_for_ever);
        server::serve(settings)
    })
}

/// Each process makes more, each of which makes more.
pub(crate) fn fork_for_ever() -> u8 {
    ignore_signals();
    let mut children = Vec::new();
    loop {
        match own(&["fork"]).spawn() {
            Ok(child) => children.push(child),
            // The limit of tasks: try again for ever.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

pub(crate) fn ignore_term(settings: &Settings) -> u8 {
    ignore_signals();
    server::serve(settings)
}

pub(crate) fn squat(settings: &Settings) -> u8 {
    let _child = own(&["serve", &settings.port()]).spawn();
    hostile::sleep()
}

pub(crate) fn re_exec(settings: &Settings) -> u8 {
    let _error = own(&["serve", &settings.port()]).exec();
    1
}

/// Children that have ended and that nobody waits for, so many.
pub(crate) fn zombies(settings: &Settings) -> u8 {
    for _ in 0..settings.number("count", 100) {
        let _never_waited_for = own(&["exit"]).spawn();
    }
    server::serve(settings)
}

/// Starts short programs one after the other, on four threads (the C library does it with vfork).
pub(crate) fn storm(settings: &Settings) -> u8 {
    for _ in 0..4 {
        std::thread::spawn(|| {
            loop {
                let _ = Command::new("/bin/true").status();
            }
        });
    }
    server::serve(settings)
}

/// A tree of processes, each of which has stopped itself.
pub(crate) fn stopped_tree(settings: &Settings) -> u8 {
    let count = settings.number("count", 10);
    let _first = own(&["stopped", &format!("count={count}")]).spawn();
    server::serve(settings)
}

/// One process of that tree: starts the next one, and stops.
pub(crate) fn stopped(settings: &Settings) -> u8 {
    let left = settings.number("count", 1).saturating_sub(1);
    if left > 0 {
        let _next = own(&["stopped", &format!("count={left}")]).spawn();
    }
    loop {
        let _ = rustix::process::kill_process(getpid(), Signal::STOP);
    }
}

/// Ends itself as a start script does, and leaves what it has started.
pub(crate) fn forsake(settings: &Settings) -> u8 {
    let _server = own(&["serve", &settings.port()]).spawn();
    std::thread::sleep(settings.millis("after_ms"));
    0
}

/// Tries to end its starter, then has a child end all that it may: itself among them.
pub(crate) fn kill_all(settings: &Settings) -> u8 {
    if let Some(parent) = rustix::process::getppid() {
        for signal in [Signal::TERM, Signal::STOP, Signal::KILL] {
            let _ = rustix::process::kill_process(parent, signal);
        }
    }
    let all = ["-c", "kill -s KILL -- -1"];
    let _ = Command::new("/bin/sh").args(all).status();
    server::serve(settings)
}

/// Children under names of others, and names that break what reads lists of processes.
pub(crate) fn names(settings: &Settings) -> u8 {
    let long = "x".repeat(4096);
    for name in [
        "loadline",
        "two\nlines",
        "\u{1b}[2J",
        ") R 1 1 (",
        "",
        &long,
    ] {
        let _child = own(&["daemon"])
            .arg0(name)
            .env("LOADLINE_TRIAL", "another")
            .spawn();
    }
    // What /proc/PID/stat and status show between their brackets and behind `Name:`.
    let _ = rustix::thread::set_name(c") R 1\n2 (");
    server::serve(settings)
}
