//! Which process owns something that outlives a crash: a running trial, the machine's lock.
//!
//! A pid alone is not an identity: it is reused. Boot id, pid and start time together are
//! (proc(5), `/proc/PID/stat` field 22).

use std::fmt;
use std::fs;
use std::str::FromStr;

/// A process on one boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    boot_id: String,
    pid: u32,
    start_time: u64,
}

impl Owner {
    /// This process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self {
            boot_id: boot_id(),
            pid,
            start_time: start_time(pid).unwrap_or(0),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether that very process still runs.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && start_time(self.pid) == Some(self.start_time)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.boot_id, self.pid, self.start_time)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split_ascii_whitespace();
        let boot_id = parts.next().ok_or(())?.to_owned();
        let pid = parts.next().and_then(|p| p.parse().ok()).ok_or(())?;
        let start_time = parts.next().and_then(|p| p.parse().ok()).ok_or(())?;
        Ok(Self {
            boot_id,
            pid,
            start_time,
        })
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Clock ticks after boot at which the process started; `None` when there is no such process, or
/// only what a parent has not yet waited for.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command may contain blanks and parentheses; fields are counted after its last one.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_survives_a_round_trip() {
        let me = Owner::current();
        assert!(me.is_alive());
        assert_eq!(me.to_string().parse(), Ok(me));
    }

    #[test]
    fn another_boot_or_a_reused_pid_is_not_alive() {
        let me = Owner::current();
        assert!(
            !Owner {
                boot_id: "other".into(),
                ..me.clone()
            }
            .is_alive()
        );
        assert!(
            !Owner {
                start_time: me.start_time + 1,
                ..me
            }
            .is_alive()
        );
    }
}
