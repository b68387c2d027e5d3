//! Reading and writing kernel files, with the path in every error.
//!
//! A write is one `write` call, as the kernel demands; it never creates a file, so that a
//! misspelt name is an error and not a new file in a fake tree.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::CgroupError;

/// Longest kernel file that is read. The longest known, memory.numa_stat or cgroup.procs of a
/// fork bomb, stay below it.
const MAX_FILE: u64 = 4 << 20;

/// The text of a file, bytes that are not UTF-8 replaced.
pub(crate) fn read(path: &Path) -> Result<String, CgroupError> {
    read_io(path).map_err(|e| CgroupError::for_file("read", path, e))
}

pub(crate) fn read_optional(path: &Path) -> Result<Option<String>, CgroupError> {
    match read_io(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if crate::error::is_gone(&e) => Ok(None),
        Err(e) => Err(CgroupError::for_file("read", path, e)),
    }
}

fn read_io(path: &Path) -> io::Result<String> {
    // O_NONBLOCK: a FIFO in the place of the file must not block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    write_io(path, value).map_err(|e| CgroupError::for_file("write", path, e))
}

pub(crate) fn write_io(path: &Path, value: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).truncate(true).open(path)?;
    let written = file.write(value.as_bytes())?;
    if written == value.len() {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::WriteZero))
    }
}
