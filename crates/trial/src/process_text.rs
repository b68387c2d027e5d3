//! Texts of /proc that the application writes part of: its command lines, its mappings.
//!
//! Owns how much is read of one, and of how many processes.

use std::fs::File;
use std::io::Read;

/// Most processes that are read of one application.
pub(crate) const MOST_PROCESSES: usize = 512;

pub(crate) fn read_bounded(path: &str, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
