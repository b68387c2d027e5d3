//! Ctrl-C and similar signals: the first asks for a clean end, the second ends at once.
//!
//! Owns the signal flags. After the second signal the process dies from it; the kernel then kills
//! the trial's processes, and the next start removes the leftovers of their cgroups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Error, FailureKind};

#[derive(Debug, Clone)]
pub struct Signals {
    came: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Starts to watch SIGINT, SIGTERM, and SIGHUP unless `nohup` or a shell had it ignored.
    /// Errors: When the kernel refuses a handler.
    pub fn watch_signals() -> Result<Self, Error> {
        let came = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicUsize::new(0));
        let hangup = (!ignores_hangup()).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let seen = Arc::new(AtomicBool::new(false));
            let refuse = |e: std::io::Error| {
                Error::new(
                    FailureKind::Internal,
                    format!("cannot watch for signal {signal}: {e}"),
                )
            };
            // The order matters: the default action runs only if the flag was set before.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&seen))
                .map_err(refuse)?;
            let value = usize::try_from(signal).unwrap_or(2);
            signal_hook::flag::register_usize(signal, Arc::clone(&number), value)
                .map_err(refuse)?;
            // After the number: whoever sees it finds it.
            signal_hook::flag::register(signal, Arc::clone(&came)).map_err(refuse)?;
            // Last: what has counted as the first has been noticed.
            signal_hook::flag::register(signal, seen).map_err(refuse)?;
        }
        Ok(Self { came, number })
    }

    pub fn has_come(&self) -> bool {
        self.came.load(Ordering::Relaxed)
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
