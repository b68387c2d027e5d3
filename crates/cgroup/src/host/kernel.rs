//! CPU time of the kernel's own threads: they work for processes that read and write, and are in no
//! group.
//!
//! Owns finding them and their time, not the attribution. A process in another PID namespace sees
//! none: then they count as the machine's noise.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::file;
use crate::proc_text::stat_field;

/// `PF_KTHREAD` of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// CPU time of each kernel thread so far, by its process id.
pub(crate) type KernelThreads = BTreeMap<u32, Duration>;

/// The kernel's threads now. What cannot be read, such as a thread that ends meanwhile, is left out.
pub(crate) fn kernel_threads(proc_root: &Path) -> KernelThreads {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, kernel_thread_time(&entry.path())?))
        })
        .collect()
}

/// `None`: no thread of the kernel.
fn kernel_thread_time(process: &Path) -> Option<Duration> {
    let stat = file::read(&process.join("stat")).ok()?;
    (stat_field(&stat, 9)? & KERNEL_THREAD != 0).then_some(())?;
    // Nanoseconds on a CPU, nanoseconds waiting for one, time slices.
    let times = file::read(&process.join("schedstat")).ok()?;
    let nanos = times.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Their work between two readings. A thread that ended in between is lost; a new thread counts
/// whole.
pub(crate) fn work_between(start: &KernelThreads, end: &KernelThreads) -> Duration {
    end.iter()
        .map(|(pid, time)| time.saturating_sub(start.get(pid).copied().unwrap_or_default()))
        .sum()
}
