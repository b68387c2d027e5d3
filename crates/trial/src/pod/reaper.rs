//! The first process of a PID namespace: it inherits all orphans, and must reap them.
//!
//! Owns `pod-part` in that role, as on a remote engine: it starts itself once more and reaps. In a
//! Kubernetes pod the kubelet's own container is the first. Facts: pid_namespaces(7).

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

const LOOK: Duration = Duration::from_millis(20);

/// Starts this program again with the same arguments and reaps until that one has ended; gives how it
/// ended. `None` where this is not the first process, and at once.
pub fn reap_until_end(told_to_end: &AtomicBool) -> io::Result<Option<String>> {
    if std::process::id() != 1 {
        return Ok(None);
    }
    let child = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut is_told = false;
    loop {
        if let (false, true, Some(child)) = (is_told, told_to_end.load(Ordering::Relaxed), child) {
            is_told = true;
            // One that has ended is reaped below.
            let _ = kill_process(child, Signal::TERM);
        }
        match wait(WaitOptions::NOHANG)? {
            Some((pid, status)) if Some(pid) == child => return Ok(Some(format!("{status:?}"))),
            Some(_) => {}
            None => thread::sleep(LOOK),
        }
    }
}
