//! Texts of /proc that the application writes part of: its command lines, its mappings.
//!
//! Owns how much is read of one, and of how many processes, and the numbers of its lines. Sources:
//! proc_pid_status(5), proc_pid_smaps(5).

use std::fs::File;
use std::io::Read;

use loadline_sizing::Bytes;

pub(crate) const MOST_PROCESSES: usize = 512;

/// In bytes; most have 2 KiB.
const LARGEST_STATUS: u64 = 64 << 10;

pub(crate) fn read_bounded(path: &str, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn read_status(pid: u32) -> Option<String> {
    read_bounded(&format!("/proc/{pid}/status"), LARGEST_STATUS)
}

/// The number of a line, without its unit: `VmHWM:     1234 kB`.
pub(crate) fn status_number(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Of a line in kB.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<Bytes> {
    status_number(text, name).map(Bytes::from_kib)
}
