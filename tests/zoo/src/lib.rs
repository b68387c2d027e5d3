//! Programs that misbehave on purpose: what trials must survive and leave no trace of.
//!
//! Owns one mode for each way a program can be hostile; only tests run it. A mode that serves
//! does so on a tiny HTTP server, so that it gets ready first and misbehaves under load. Called
//! as `MODE key=value ...`; [`MODES`] lists them. With `needs=HOST:PORT,/FILE` each of them begins
//! only where a connection to that can be made, and that can be read.

mod hostile;
mod memory;
mod processes;
mod report;
mod server;

use std::collections::BTreeMap;
use std::time::Duration;

/// The modes, each with what it does.
pub const MODES: [(&str, &str); 23] = [
    ("serve", "answers; port status slow_ms ready_ms heap_mib"),
    (
        "daemons",
        "starts `count` detached daemons that ignore TERM, then serves",
    ),
    ("fork-bomb", "serves while it forks without end"),
    ("ignore-term", "serves and ignores TERM"),
    (
        "oom",
        "serves, then allocates `step_mib` every `step_ms` until killed",
    ),
    ("oom-child", "serves while a child allocates until killed"),
    ("flood", "writes `mib` to its output, then serves"),
    (
        "binary",
        "writes every byte value and escape sequences, then serves",
    ),
    ("no-newline", "writes 10 MiB without a newline, then serves"),
    ("squat", "a child serves, the parent only waits"),
    (
        "exit",
        "exits with `code` after `after_ms`, serving before when it is not 0",
    ),
    (
        "signal",
        "kills itself with signal `number` after `after_ms`",
    ),
    ("stop-self", "serves, then stops itself with SIGSTOP"),
    (
        "descriptors",
        "opens descriptors until it cannot, then serves",
    ),
    ("threads", "starts threads until it cannot, then serves"),
    (
        "fill-disk",
        "writes `mib` to /tmp, or to `file`, then serves",
    ),
    (
        "deep-tree",
        "makes `levels` directories in each other in /tmp, then serves",
    ),
    ("re-exec", "executes itself again, then serves"),
    (
        "plant",
        "makes `path` a link to `target`, a FIFO (`fifo`), or a file of 1 TiB (`sparse`), then serves",
    ),
    ("never-ready", "listens on nothing"),
    ("hang", "accepts and never answers"),
    ("say", "writes `text` after `after_ms`, then sleeps"),
    ("report", "says what it can see and do, then exits 0"),
];

/// The arguments after the mode.
pub(crate) struct Settings(BTreeMap<String, String>);

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
    match mode.as_str() {
        "serve" => server::serve(&settings),
        "daemons" => processes::daemons(&settings),
        "daemon" => processes::daemon(),
        "detach" => processes::detach(),
        "fork-bomb" => processes::fork_bomb(&settings),
        "fork" => processes::fork_for_ever(),
        "ignore-term" => processes::ignore_term(&settings),
        "oom" => memory::oom(&settings),
        "oom-child" => memory::oom_child(&settings),
        "grow" => memory::grow(&settings),
        "flood" => hostile::flood(&settings),
        "binary" => hostile::binary(&settings),
        "no-newline" => hostile::no_newline(&settings),
        "squat" => processes::squat(&settings),
        "exit" => hostile::exit(&settings),
        "signal" => hostile::signal(&settings),
        "stop-self" => hostile::stop_self(&settings),
        "descriptors" => hostile::descriptors(&settings),
        "threads" => hostile::threads(&settings),
        "fill-disk" => hostile::fill_disk(&settings),
        "deep-tree" => hostile::deep_tree(&settings),
        "re-exec" => processes::re_exec(&settings),
        "plant" => hostile::plant(&settings),
        "never-ready" => hostile::sleep(),
        "hang" => hostile::hang(&settings),
        "say" => hostile::say_then_sleep(&settings),
        "report" => report::report(),
        _ => usage(),
    }
}

fn usage() -> u8 {
    for (mode, what) in MODES {
        say(&format!("{mode:12} {what}\n"));
    }
    2
}

/// Writes to standard output; a closed one is no reason to stop.
pub(crate) fn say(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
