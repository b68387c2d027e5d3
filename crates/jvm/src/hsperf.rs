//! HotSpot's own counters, as the JVM keeps them in a file in its /tmp: collections, safepoints,
//! classes. Reading costs the JVM nothing.
//!
//! Owns the binary form, version 2. There is no file with `-XX:-UsePerfData` or
//! `-XX:+PerfDisableSharedMem`. Facts: HotSpot's perfMemory.hpp (PerfDataPrologue, PerfDataEntry).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, openat};

use crate::beneath;
use crate::process::{JvmProcess, ProcessError};

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const PROLOGUE: usize = 32;
/// Bytes of an entry before its name.
const ENTRY: usize = 20;

/// Longest text: the most that -XX:PerfMaxStringConstLength takes.
const LONGEST_TEXT: usize = 32 << 10;

/// JVMs take 32 or 64 KiB (-XX:PerfDataMemorySize).
const SIZE_LIMIT: u64 = 1 << 20;

/// Most entries of /tmp that are looked at, and directories among them: a process may make any number.
const ENTRY_LIMIT: usize = 100_000;
const DIRECTORY_LIMIT: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum HsperfError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("process {pid} keeps no counters in {directory}")]
    None { pid: u32, directory: PathBuf },
    #[error("{path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("not HotSpot's counters: {what}")]
    Form { what: &'static str },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterValue {
    Number(i64),
    Text(String),
}

impl CounterValue {
    fn text_length(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Text(text) => text.len(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HsperfCounters {
    by_name: BTreeMap<String, CounterValue>,
}

impl HsperfCounters {
    pub fn for_jvm(pid: u32) -> Result<Self, HsperfError> {
        let process = JvmProcess::for_pid(pid)?;
        let directory = PathBuf::from(format!("/proc/{pid}/root/tmp"));
        let unreadable = |source| HsperfError::Unreadable {
            path: directory.clone(),
            source,
        };
        let file = file_of(&process).map_err(unreadable)?;
        let Some(file) = file else {
            return Err(HsperfError::None { pid, directory });
        };
        // A byte more than is allowed tells that there is more.
        let bytes = beneath::read(file, SIZE_LIMIT + 1).map_err(unreadable)?;
        if bytes.len() as u64 > SIZE_LIMIT {
            return Err(HsperfError::Form {
                what: "larger than 1 MiB",
            });
        }
        Self::from_hsperfdata(&bytes)
    }

    /// Reads a copy of the file. Errors: When it is not of version 2, or not yet complete, as the
    /// file of a starting JVM reports.
    pub fn from_hsperfdata(bytes: &[u8]) -> Result<Self, HsperfError> {
        let form = |what| HsperfError::Form { what };
        if bytes.len() < PROLOGUE || bytes[..4] != MAGIC {
            return Err(form("no magic number"));
        }
        let bytes = CounterReader {
            bytes,
            is_little: bytes[4] == 1,
        };
        if bytes.bytes[5] != 2 {
            return Err(form("not version 2"));
        }
        if bytes.bytes[7] == 0 {
            return Err(form("the JVM is still starting"));
        }
        let cut = || form("it is cut");
        let mut at = bytes.offset(24).ok_or_else(cut)?;
        let entries = bytes.offset(28).ok_or_else(cut)?;
        let (mut by_name, mut held) = (BTreeMap::new(), 0);
        for _ in 0..entries {
            let length = bytes.offset(at).ok_or_else(cut)?;
            if length < ENTRY {
                return Err(form("an entry without length"));
            }
            if let Some((name, value)) = bytes.entry(at) {
                held += name.len() + value.text_length();
                by_name.insert(name, value);
            }
            // Entries may name the same bytes again and again.
            if held > bytes.bytes.len() {
                return Err(form("its texts overlap"));
            }
            at = at.checked_add(length).ok_or_else(cut)?;
        }
        Ok(Self { by_name })
    }

    pub fn counter_number(&self, name: &str) -> Option<u64> {
        match self.by_name.get(name)? {
            CounterValue::Number(number) => u64::try_from(*number).ok(),
            CounterValue::Text(_) => None,
        }
    }

    pub fn counter_text(&self, name: &str) -> Option<&str> {
        match self.by_name.get(name)? {
            CounterValue::Text(text) => Some(text),
            CounterValue::Number(_) => None,
        }
    }

    pub fn classes_loaded(&self) -> Option<u64> {
        let own = self.counter_number("java.cls.loadedClasses")?;
        Some(own + self.classes_archived().unwrap_or(0))
    }

    /// Classes that came from a class archive, the JDK's own included.
    pub fn classes_archived(&self) -> Option<u64> {
        self.counter_number("java.cls.sharedLoadedClasses")
    }
}

/// `hsperfdata_USER/PID` in its /tmp, with its own PID. The process can put anything there, so only
/// a regular file of the process's user counts, and no link is followed.
fn file_of(process: &JvmProcess) -> io::Result<Option<File>> {
    let tmp = process.temporary_directory()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = Dir::new(openat(&tmp, ".", flags, Mode::empty())?)?;
    let names = listed.take(ENTRY_LIMIT).flatten();
    let names = names.map(|entry| entry.file_name().to_bytes().to_vec());
    let directories = names.filter(|name| name.starts_with(b"hsperfdata_"));
    let own = |file: &File| file.metadata().is_ok_and(|m| m.uid() == process.uid);
    let file = |name: Vec<u8>| {
        let path = Path::new(OsStr::from_bytes(&name)).join(process.inner_pid.to_string());
        beneath::open_beneath(&tmp, &path).ok().filter(own)
    };
    Ok(directories.take(DIRECTORY_LIMIT).find_map(file))
}

struct CounterReader<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl<'a> CounterReader<'a> {
    fn offset(&self, at: usize) -> Option<usize> {
        let bytes: [u8; 4] = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let number = if self.is_little {
            i32::from_le_bytes(bytes)
        } else {
            i32::from_be_bytes(bytes)
        };
        usize::try_from(number).ok()
    }

    fn long(&self, at: usize) -> Option<i64> {
        let bytes: [u8; 8] = self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.is_little {
            i64::from_le_bytes(bytes)
        } else {
            i64::from_be_bytes(bytes)
        })
    }

    fn read_text(&self, at: usize, limit: usize) -> Option<String> {
        let rest = self.bytes.get(at..)?;
        let window = &rest[..rest.len().min(limit)];
        let end = memchr::memchr(0, window).unwrap_or(window.len());
        Some(String::from_utf8_lossy(&window[..end]).into_owned())
    }

    fn entry(&self, at: usize) -> Option<(String, CounterValue)> {
        let name = self.read_text(at.checked_add(self.offset(at + 4)?)?, 512)?;
        let vector = self.offset(at + 8)?;
        let data = at.checked_add(self.offset(at + 16)?)?;
        let value = match self.bytes.get(at + 12)? {
            b'J' if vector == 0 => CounterValue::Number(self.long(data)?),
            b'B' => CounterValue::Text(self.read_text(data, vector.min(LONGEST_TEXT))?),
            _ => return None,
        };
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JDK_17: &[u8] = include_bytes!("../tests/data/hsperf/17-Parallel");
    const JDK_25: &[u8] = include_bytes!("../tests/data/hsperf/25-G1");

    #[test]
    fn counters_of_jdk_17_and_25() {
        let counters = HsperfCounters::from_hsperfdata(JDK_17).unwrap();
        assert_eq!(
            counters.counter_text("java.property.java.vm.version"),
            Some("17.0.15+6-Debian-1deb12u1")
        );
        assert!(counters.classes_loaded() > Some(300));

        let counters = HsperfCounters::from_hsperfdata(JDK_25).unwrap();
        assert_eq!(
            counters.counter_text("java.property.java.vm.version"),
            Some("25.0.3+9-LTS")
        );
        assert!(counters.counter_number("sun.threads.total_gc_cpu_time") > Some(0));
    }

    #[test]
    fn what_is_no_counter_file_is_refused() {
        assert!(HsperfCounters::from_hsperfdata(b"").is_err());
        assert!(HsperfCounters::from_hsperfdata(&[0; 64]).is_err());
        let mut starting = JDK_17.to_vec();
        starting[7] = 0;
        let error = HsperfCounters::from_hsperfdata(&starting)
            .unwrap_err()
            .to_string();
        assert!(error.contains("still starting"), "{error}");
    }

    #[test]
    fn entries_that_share_a_text_do_not_multiply_it() {
        // Each entry has its own name, and all have one text of 1 MiB.
        let (entries, text) = (4096, 1 << 20);
        let begin = PROLOGUE + entries * ENTRY;
        let names: Vec<String> = (0..entries).map(|n| format!("n{n:04}\0")).collect();
        let mut bytes = [MAGIC.as_slice(), &[1, 2, 0, 1], &[0; 16]].concat();
        let put = |bytes: &mut Vec<u8>, number: usize| {
            bytes.extend(i32::try_from(number).unwrap().to_le_bytes());
        };
        put(&mut bytes, PROLOGUE);
        put(&mut bytes, entries);
        for n in 0..entries {
            let back = n * ENTRY;
            put(&mut bytes, ENTRY);
            put(&mut bytes, begin + n * 6 - PROLOGUE - back);
            put(&mut bytes, text);
            bytes.extend(*b"B\0\0\0");
            put(&mut bytes, begin + entries * 6 - PROLOGUE - back);
        }
        bytes.extend(names.concat().into_bytes());
        bytes.extend(vec![b'x'; text]);
        let refusal = HsperfCounters::from_hsperfdata(&bytes).unwrap_err();
        assert!(refusal.to_string().contains("overlap"), "{refusal}");
    }

    proptest! {
        #[test]
        fn damage_never_makes_it_fail(
            damage in proptest::collection::vec((0usize..4096, any::<u8>()), 0..20),
            cut in 0usize..JDK_17.len(),
        ) {
            let mut bytes = JDK_17[..cut].to_vec();
            for (place, byte) in damage {
                if let Some(at) = bytes.get_mut(place) { *at = byte; }
            }
            let _ = HsperfCounters::from_hsperfdata(&bytes);
        }
    }
}
