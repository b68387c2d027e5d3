//! A Java dump of a running OpenJ9 (javacore): asked for, read, removed.
//!
//! Owns the way to its text; what it says is [`crate::footprint`]'s. SIGQUIT makes OpenJ9 write one
//! into its working directory, into /tmp where it may not write there; all of its threads stand
//! meanwhile. Works across PID and mount namespaces, with no more than the rights of the JVM's user.
//! Source: OpenJ9 documentation, "Java dump" and "-Xdump" (default agents, `user` event).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};

use crate::beneath;
use crate::process::{JvmProcess, ProcessError};
use crate::rights::with_rights_of;

/// One of a Spring Boot service takes less than a second; one without CPU takes longer.
const WAIT: Duration = Duration::from_secs(30);

/// Nothing has begun for so long: the signal was lost.
const AGAIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// One of 10 000 threads has less.
const CAP: u64 = 256 << 20;
const END: &[u8] = b"END OF DUMP";

#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("process {pid} has no handler for SIGQUIT")]
    NoHandler { pid: u32 },
    #[error("a Java dump of process {pid}: {path}: {source}")]
    File {
        pid: u32,
        path: PathBuf,
        source: io::Error,
    },
    #[error("process {pid} wrote no Java dump within {} s", WAIT.as_secs())]
    None { pid: u32 },
}

impl DumpError {
    pub fn dump_hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(error) => error.process_hint(),
            Self::NoHandler { .. } => {
                Some("it runs with -Xrs, or has only just started; try again when it is ready")
            }
            Self::File { .. } => Some("run as root or as the JVM's user"),
            Self::None { .. } => Some(
                "its -Xdump options leave Java dumps out or send them to another directory than its working directory and /tmp, neither can be written, or it gets no CPU",
            ),
        }
    }
}

pub fn take_java_dump(pid: u32) -> Result<String, DumpError> {
    let process = JvmProcess::for_pid(pid)?;
    if !process.catches_quit {
        return Err(DumpError::NoHandler { pid });
    }
    let failed = |path: &str| {
        let path = PathBuf::from(format!("/proc/{pid}/{path}"));
        move |source| DumpError::File { pid, path, source }
    };
    let places = [
        process.working_directory().map_err(failed("cwd"))?,
        process.temporary_directory().map_err(failed("root/tmp"))?,
    ];
    let taken = with_rights_of(process.uid, process.gid, || {
        let known = places.each_ref().map(|place| dump_names(place, &process));
        process.send_sigquit()?;
        wait_for_dump(&places, &known, &process)
    });
    let bytes = taken.and_then(|taken| taken).map_err(failed("cwd"))?;
    let bytes = bytes.ok_or(DumpError::None { pid })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn dump_names(place: &OwnedFd, process: &JvmProcess) -> BTreeSet<Vec<u8>> {
    let own = format!(".{}.", process.inner_pid);
    let is_dump = |name: &[u8]| {
        let text = String::from_utf8_lossy(name);
        text.starts_with("javacore.") && text.ends_with(".txt") && text.contains(&own)
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(place, ".", flags, Mode::empty()).and_then(Dir::new);
    let entries = opened.into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_bytes().to_owned())
        .filter(|name| is_dump(name))
        .collect()
}

/// The whole dump that was not there before, removed; `None` when there is none in time. A signal that
/// comes while the JVM is busy with the one before is lost, so it is sent again as long as nothing
/// begins.
fn wait_for_dump(
    places: &[OwnedFd; 2],
    known: &[BTreeSet<Vec<u8>>; 2],
    process: &JvmProcess,
) -> io::Result<Option<Vec<u8>>> {
    let begin = Instant::now();
    let mut asked = begin;
    while begin.elapsed() < WAIT {
        let mut has_begun = false;
        for (place, known) in places.iter().zip(known) {
            let new = dump_names(place, process);
            let Some(name) = new.difference(known).next() else {
                continue;
            };
            has_begun = true;
            let bytes = beneath::open_beneath(place, Path::new(OsStr::from_bytes(name)))
                .and_then(|file| beneath::read(file, CAP))?;
            let tail = &bytes[bytes.len().saturating_sub(200)..];
            if tail.windows(END.len()).any(|part| part == END) {
                unlinkat(place, OsStr::from_bytes(name), AtFlags::empty())?;
                return Ok(Some(bytes));
            }
        }
        if !has_begun && asked.elapsed() > AGAIN {
            process.send_sigquit()?;
            asked = Instant::now();
        }
        std::thread::sleep(LOOK);
    }
    Ok(None)
}
