//! Memory of the machine: /proc/meminfo, /proc/vmstat.

use std::path::Path;

use loadline_sizing::Bytes;

use crate::error::CgroupError;
use crate::file;
use crate::proc_text::keyed_value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineMemory {
    pub total: Bytes,
    /// What new programs can get without swapping, by the kernel's estimate.
    pub available: Bytes,
    /// Swap space; zero: none.
    pub swap_total: Bytes,
}

impl MachineMemory {
    /// Reads /proc/meminfo.
    /// Errors: A file that cannot be read or lacks a field (MemAvailable came with Linux 3.14).
    pub fn read(proc_root: &Path) -> Result<Self, CgroupError> {
        let path = proc_root.join("meminfo");
        let text = file::read(&path)?;
        Self::parse_meminfo(&text)
            .map_err(|field| CgroupError::malformed(&path, format!("no {field}")))
    }

    pub(super) fn parse_meminfo(text: &str) -> Result<Self, &'static str> {
        let field = |name: &'static str| {
            let value = text.lines().find_map(|l| l.strip_prefix(name));
            let kib = value.and_then(|v| v.strip_prefix(':')?.trim().strip_suffix("kB"));
            kib.and_then(|v| v.trim().parse().ok())
                .map(Bytes::from_kib)
                .ok_or(name)
        };
        Ok(Self {
            total: field("MemTotal")?,
            available: field("MemAvailable")?,
            swap_total: field("SwapTotal")?,
        })
    }
}

/// Pages swapped in since boot; `None` on a kernel without swap.
/// Errors: /proc/vmstat cannot be read.
pub(crate) fn swapped_in(proc_root: &Path) -> Result<Option<u64>, CgroupError> {
    let text = file::read(&proc_root.join("vmstat"))?;
    Ok(keyed_value(&text, "pswpin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_a_missing_one_is_named() {
        let text = "MemTotal:       24576 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";
        let memory = MachineMemory::parse_meminfo(text).unwrap();
        assert_eq!(memory.total, Bytes::from_mib(24));
        assert_eq!(memory.available, Bytes::from_mib(1));
        let old = text.replace("MemAvailable", "X");
        assert_eq!(MachineMemory::parse_meminfo(&old), Err("MemAvailable"));
    }
}
