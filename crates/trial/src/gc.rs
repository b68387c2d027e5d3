//! The GC log of a running application: into the event log as it grows, read when it has ended.
//!
//! Owns the way from a file that the application writes to loadline's own copy: nothing the
//! application planted in its place is followed, and the size is capped. The log's format is
//! `loadline_jvm::gclog`'s.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use loadline_jvm::gclog::{ClockAdjustment, GcLog, GcLogBuilder, WallClock};
use loadline_protocol::log::{ChunkContent, EventLog, PIECE};

use crate::clock::{monotonic_ns, wall_ahead_ns};
use crate::container::AppContainer;
use crate::gc_evidence::KEPT_PAUSES;

const CAP: u64 = 256 << 20;

/// A longer log with less than this on the disk is mostly a hole: nothing was written there.
const HOLLOW: u64 = 16 << 20;
const LEAST_HELD: u64 = 64;

/// A wall clock that moved by more between two looks at it was set.
const SET_NS: i64 = 1_000_000;

const MOST_SETS: usize = 1_000;

#[derive(Debug)]
pub(crate) struct GcLogTail {
    seen: PathBuf,
    log: Arc<EventLog>,
    instance: u32,
    file: Option<File>,
    taken: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC before the application was started, ns.
    ahead_ns: i64,
    set: Vec<ClockAdjustment>,
    looked_ns: u64,
}

impl GcLogTail {
    /// Of an instance, from 0, that writes its log to a path as it sees it.
    pub(crate) fn new(seen: PathBuf, log: Arc<EventLog>, instance: u32) -> Self {
        Self {
            seen,
            log,
            instance,
            file: None,
            taken: 0,
            ahead_ns: wall_ahead_ns(),
            set: Vec::new(),
            looked_ns: monotonic_ns(),
        }
    }

    /// Looks at the wall clock: a log that has no other one (OpenJ9's) is placed by it.
    pub(crate) fn look_at_clock(&mut self) {
        let (before, now) = (self.looked_ns, monotonic_ns());
        let ahead_ns = wall_ahead_ns();
        let known = self.set.last().map_or(self.ahead_ns, |set| set.ahead_ns);
        if (ahead_ns - known).abs() >= SET_NS && self.set.len() < MOST_SETS {
            let between = (before, monotonic_ns());
            self.set.push(ClockAdjustment { between, ahead_ns });
        }
        self.looked_ns = now;
    }

    /// Copies new bytes. Errors: A log that does not exist yet, or cannot be read.
    pub(crate) fn copy_new_bytes(&mut self, container: &dyn AppContainer) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(container.open_file(&self.seen)?),
        };
        // A start script may run another JVM before the server: each truncates the file.
        let found = file.metadata()?;
        if found.len() < file.stream_position()? {
            file.rewind()?;
        }
        if found.len() > HOLLOW && found.blocks() * 512 < found.len() / LEAST_HELD {
            let (says, holds) = (found.len(), found.blocks() * 512);
            let why = format!("it has {says} bytes, and the disk holds {holds} of them");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let mut part = Vec::with_capacity(PIECE);
        loop {
            part.clear();
            let room = CAP.saturating_sub(self.taken).min(PIECE as u64);
            file.take(room).read_to_end(&mut part)?;
            if part.is_empty() {
                return Ok(());
            }
            self.taken += part.len() as u64;
            self.log
                .append_chunk(ChunkContent::GcLog, self.instance, &part);
        }
    }

    /// Reads the copy; the application was executed at `exec_ns`, `measure` is the measure phase,
    /// both on CLOCK_MONOTONIC. Problems of an expected log are warnings; `is_jvm` tells whether a
    /// log is expected at all.
    pub(crate) fn read(
        &mut self,
        container: &dyn AppContainer,
        (exec_ns, measure): (u64, Option<(u64, u64)>),
        is_jvm: bool,
        warnings: &mut Vec<String>,
    ) -> Option<GcLog> {
        let copied = self.copy_new_bytes(container);
        let reader = match copied.and_then(|()| self.log.open_reader()) {
            Ok(reader) => reader,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_jvm => return None,
            Err(error) => {
                let seen = self.seen.display();
                warnings.push(format!("GC log: cannot read {seen}: {error}"));
                return None;
            }
        };
        if self.taken >= CAP {
            warnings.push(format!(
                "the GC log is longer than {} MiB: the figures are of the part before that",
                CAP >> 20
            ));
        }
        self.look_at_clock();
        let wall = self.wall_clock(exec_ns);
        let mut log = GcLogBuilder::new(KEPT_PAUSES)
            .with_window(measure)
            .with_wall_clock(wall);
        log.read(reader.join_chunks(ChunkContent::GcLog, self.instance));
        let log = log.finish_log();
        let unplaced = log.window.as_ref().map_or(0, |window| window.unplaced);
        if log.header.is_openj9 && unplaced > 0 {
            warnings.push(format!(
                "the wall clock was set during the trial: {unplaced} pauses of the GC log have no place in time"
            ));
        }
        Some(log)
    }

    /// The offset of the wall clock during the trial; `None` if unknown.
    fn wall_clock(&self, exec_ns: u64) -> Option<WallClock> {
        (self.set.len() < MOST_SETS).then(|| WallClock {
            ahead_ns: self.ahead_ns,
            set: self.set.clone(),
            started_ms: (exec_ns.cast_signed() + self.ahead_ns) / 1_000_000,
        })
    }
}
