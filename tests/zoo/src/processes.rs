//! Processes that multiply, hide, or do not want to end.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{Settings, hostile, server};

/// This program again, in another mode. The test binary has the zoo below an argument of its own.
pub(crate) fn own(arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    if std::env::args().nth(1).is_some_and(|first| first == "zoo") {
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
    let port = format!("port={}", settings.number("port", 8080));
    let _child = own(&["serve", &port]).spawn();
    hostile::sleep()
}

pub(crate) fn re_exec(settings: &Settings) -> u8 {
    let port = format!("port={}", settings.number("port", 8080));
    let _error = own(&["serve", &port]).exec();
    1
}
