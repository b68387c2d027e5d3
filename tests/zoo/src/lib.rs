//! Programs that misbehave on purpose: what trials must survive and leave no trace of.
//!
//! Owns one mode for each way a program can be hostile; only tests run it. A mode that serves
//! does so on a tiny HTTP server, so that it gets ready first and misbehaves under load. Called
//! as `MODE key=value ...`; [`MODES`] lists them. With `needs=HOST:PORT,/FILE` each of them begins
//! only where a connection to that can be made, and that can be read.

mod calls;
mod exhaust;
mod files;
mod hostile;
mod memory;
mod processes;
mod report;
mod server;

use std::collections::BTreeMap;
use std::time::Duration;

/// A mode: its name, what it does, and the function that does it and gives the exit code.
pub struct Mode {
    name: &'static str,
    what: &'static str,
    run: fn(&Settings) -> u8,
}

const fn mode(name: &'static str, what: &'static str, run: fn(&Settings) -> u8) -> Mode {
    Mode { name, what, run }
}

/// The modes.
pub const MODES: [Mode; 49] = [
    mode(
        "serve",
        "answers; at port status slow_ms ready_ms heap_mib; badly after `good` answers: `answer`=half drip endless close garbage",
        server::serve,
    ),
    mode(
        "report",
        "says what it can see and do, then exits 0",
        |_| report::report(),
    ),
    mode("never-ready", "listens on nothing", |_| hostile::sleep()),
    mode("hang", "accepts and never answers", hostile::hang),
    mode(
        "say",
        "writes `text` after `after_ms`, then sleeps, or exits with `code`",
        hostile::say_then_end,
    ),
    mode(
        "exit",
        "exits with `code` after `after_ms`, serving before when it is not 0",
        hostile::exit,
    ),
    mode(
        "signal",
        "kills itself with signal `number` after `after_ms`",
        hostile::signal,
    ),
    // Output.
    mode(
        "flood",
        "writes `mib` to its output (`to`=stderr), then serves",
        hostile::flood,
    ),
    mode(
        "binary",
        "writes every byte value and escape sequences, then serves",
        hostile::binary,
    ),
    mode(
        "no-newline",
        "writes 10 MiB without a newline, then serves",
        hostile::no_newline,
    ),
    mode(
        "closed-output",
        "closes its standard streams, then serves",
        hostile::closed_output,
    ),
    // Processes.
    mode(
        "daemons",
        "starts `count` detached daemons that ignore TERM, then serves",
        processes::daemons,
    ),
    mode("daemon", "one of them", |_| processes::daemon()),
    mode("detach", "starts one and ends", |_| processes::detach()),
    mode(
        "fork-bomb",
        "serves while it forks without end",
        processes::fork_bomb,
    ),
    mode("fork", "forks without end", |_| processes::fork_for_ever()),
    mode(
        "ignore-term",
        "serves and ignores TERM",
        processes::ignore_term,
    ),
    mode(
        "squat",
        "a child serves, the parent only waits",
        processes::squat,
    ),
    mode(
        "forsake",
        "a child serves, the parent ends after `after_ms` with 0",
        processes::forsake,
    ),
    mode(
        "re-exec",
        "executes itself again, then serves",
        processes::re_exec,
    ),
    mode(
        "zombies",
        "waits for none of `count` children",
        processes::zombies,
    ),
    mode(
        "storm",
        "serves while it starts short programs without end",
        processes::storm,
    ),
    mode(
        "stop-self",
        "serves, then stops itself with SIGSTOP",
        hostile::stop_self,
    ),
    mode(
        "stopped-tree",
        "serves beside `count` processes that are stopped",
        processes::stopped_tree,
    ),
    mode("stopped", "`count` of them", processes::stopped),
    mode(
        "kill-all",
        "kills all that it may, itself among them",
        processes::kill_all,
    ),
    mode(
        "names",
        "starts children under odd names, then serves",
        processes::names,
    ),
    mode(
        "threads",
        "starts threads until it cannot, then serves",
        hostile::threads,
    ),
    mode(
        "held-parents",
        "serves beside `count` processes that their children hold (vfork)",
        calls::held_parents,
    ),
    mode(
        "deaf-sessions",
        "serves beside `count` sessions that ignore all signals",
        calls::deaf_sessions,
    ),
    mode(
        "traced",
        "serves beside `count` processes that trace each other",
        calls::traced,
    ),
    // Memory.
    mode(
        "oom",
        "serves, then allocates `step_mib` every `step_ms` until killed",
        memory::oom,
    ),
    mode(
        "oom-child",
        "serves while a child allocates from `after_ms` on until killed",
        memory::oom_child,
    ),
    mode(
        "grow",
        "allocates `step_mib` every `step_ms` until killed",
        memory::grow,
    ),
    mode(
        "oom-score",
        "asks to be killed first, then serves",
        calls::oom_score,
    ),
    mode(
        "locked-memory",
        "locks memory, then serves",
        calls::locked_memory,
    ),
    mode(
        "reserve",
        "reserves `count` times 8 GiB, then serves",
        exhaust::reserve,
    ),
    mode(
        "memory-files",
        "keeps `mib` in files without a directory, then serves",
        exhaust::memory_files,
    ),
    mode(
        "shared-memory",
        "writes `mib` to /dev/shm, then serves",
        exhaust::shared_memory,
    ),
    mode(
        "system-v",
        "makes `count` of each object of System V, then serves",
        exhaust::system_v,
    ),
    mode(
        "hold",
        "opens `count` of `what` (files epoll events inotify pipes timers ports abstract), then serves",
        exhaust::hold,
    ),
    // Files.
    mode(
        "fill-disk",
        "writes `mib` to /tmp, or to `file`, then serves",
        files::fill_disk,
    ),
    mode(
        "deep-tree",
        "makes `levels` directories in each other in /tmp, then serves",
        files::deep_tree,
    ),
    mode(
        "closed-tree",
        "makes a tree that nobody may enter, then serves",
        files::closed_tree,
    ),
    mode(
        "odd-names",
        "makes files whose names are no text, then serves",
        files::odd_names,
    ),
    mode(
        "many-files",
        "makes `count` files, then serves",
        files::many_files,
    ),
    mode(
        "lock",
        "locks what others may want, then serves",
        files::lock,
    ),
    mode(
        "plant",
        "makes `path` a `target` (fifo sparse directory socket closed growing gc-log counters, or a link to it), then serves",
        files::plant,
    ),
    // Rights.
    mode(
        "forbidden",
        "serves where it is refused `what` (keys bpf rings namespaces mounts clocks init rights core-files devices kernel-files groups)",
        calls::forbidden,
    ),
];

/// The arguments after the mode.
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    fn new(arguments: impl Iterator<Item = String>) -> Self {
        let pair = |argument: String| {
            let (key, value) = argument.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        };
        Self(arguments.filter_map(pair).collect())
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.0
            .get(key)
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    }

    fn text(&self, key: &str, default: &str) -> String {
        self.0
            .get(key)
            .cloned()
            .unwrap_or_else(|| default.to_owned())
    }

    fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.number(key, 0))
    }

    /// The port to serve on, as an argument for another of its kind.
    fn port(&self) -> String {
        format!("port={}", self.number("port", 8080))
    }
}

/// Runs a mode; returns the exit code.
pub fn run(mut arguments: impl Iterator<Item = String>) -> u8 {
    let mode = arguments.next().unwrap_or_default();
    let settings = Settings::new(arguments);
    let needs = settings.text("needs", "");
    if let Some(missing) = server::missing(needs.split(',').filter(|need| !need.is_empty())) {
        say(&format!("{missing} is not there\n"));
        return 1;
    }
    match MODES.iter().find(|known| known.name == mode) {
        Some(mode) => (mode.run)(&settings),
        None => usage(),
    }
}

fn usage() -> u8 {
    for Mode { name, what, .. } in MODES {
        say(&format!("{name:13} {what}\n"));
    }
    2
}

/// Writes to standard output; a closed one is no reason to stop.
pub(crate) fn say(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
