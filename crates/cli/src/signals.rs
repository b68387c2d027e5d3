//! Ctrl-C and similar signals: the first asks for a clean end, a second one ends at once.
//!
//! Owns the signal flags. After the second signal the process dies from it; the kernel then kills
//! the trial's processes, and the next start removes the leftovers of their cgroups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as SignalQueue;

use crate::error::{Error, FailureKind};

/// Signals within this time are one request: timeout(1) and some supervisors signal a process and
/// then its group.
const ONE_REQUEST: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub struct Signals {
    came: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Starts to watch SIGINT, SIGTERM, and SIGHUP unless `nohup` or a shell had it ignored.
    /// Errors: When the kernel refuses a handler or a thread.
    pub fn watch_signals() -> Result<Self, Error> {
        let watched = Self {
            came: Arc::new(AtomicBool::new(false)),
            number: Arc::new(AtomicUsize::new(0)),
        };
        let hangup = (!ignores_hangup()).then_some(SIGHUP);
        let signals = [SIGINT, SIGTERM].into_iter().chain(hangup);
        let noted = watched.clone();
        let started = SignalQueue::new(signals).and_then(|queue| {
            let thread = std::thread::Builder::new().name("signals".to_owned());
            thread.spawn(move || noted.note_signals(queue))
        });
        started.map_err(|e| {
            let hint = "it takes a thread and a pipe: look at ulimit -u, ulimit -n and pids.max";
            Error::environment(format!("cannot watch for signals: {e}")).with_hint(hint)
        })?;
        Ok(watched)
    }

    fn note_signals(&self, mut queue: SignalQueue) {
        let mut first = None;
        for signal in queue.forever() {
            let noticed = *first.get_or_insert_with(Instant::now);
            if noticed.elapsed() > ONE_REQUEST {
                // It can fail only for a signal that cannot be watched either.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            let number = usize::try_from(signal).unwrap_or(2);
            self.number.store(number, Ordering::Relaxed);
            // After the number: whoever sees it finds it.
            self.came.store(true, Ordering::Release);
        }
    }

    pub fn has_come(&self) -> bool {
        self.came.load(Ordering::Acquire)
    }

    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.came
    }

    /// How the command ends after one: exit code 130 for SIGINT, 143 for SIGTERM.
    pub fn interrupt_kind(&self) -> FailureKind {
        let number = self.number.load(Ordering::Relaxed);
        FailureKind::Interrupted(u8::try_from(number).ok().filter(|n| *n > 0).unwrap_or(2))
    }
}

/// Whether this process was started with SIGHUP ignored: bit 0 of `SigIgn` in proc(5)'s status.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}
