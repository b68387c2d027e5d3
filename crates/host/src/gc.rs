//! The GC log of a running application: into the event log as it grows, read when it has ended.
//!
//! Owns the way from a file that the application writes to loadline's own copy: nothing the
//! application planted in its place is followed, and the size is capped. The log's format is
//! `loadline_jvm::gclog`'s.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use loadline_jvm::gclog::{Builder, GcLog};
use loadline_trial::log::{Content, Log, PIECE};

use crate::container::Container;
use crate::gc_evidence::KEPT_PAUSES;

/// More of a log is not kept: a trial of minutes writes a few MiB.
const CAP: u64 = 256 << 20;

/// The log of one application.
#[derive(Debug)]
pub(crate) struct Tail {
    seen: PathBuf,
    log: Arc<Log>,
    instance: u32,
    file: Option<File>,
    taken: u64,
}

impl Tail {
    /// Of an instance, from 0, that writes its log to a path as it sees it.
    pub(crate) fn new(seen: PathBuf, log: Arc<Log>, instance: u32) -> Self {
        Self {
            seen,
            log,
            instance,
            file: None,
            taken: 0,
        }
    }

    /// Copies what was written since the last time.
    ///
    /// # Errors
    /// A log that is not there yet, or cannot be read.
    pub(crate) fn copy(&mut self, container: &dyn Container) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(container.open(&self.seen)?),
        };
        let mut part = Vec::with_capacity(PIECE);
        loop {
            part.clear();
            let room = CAP.saturating_sub(self.taken).min(PIECE as u64);
            file.take(room).read_to_end(&mut part)?;
            if part.is_empty() {
                return Ok(());
            }
            self.taken += part.len() as u64;
            self.log.piece(Content::GcLog, self.instance, &part);
        }
    }

    /// Reads the copy; `measure` is the measure phase on CLOCK_MONOTONIC. What is wrong with a log
    /// that should be there is a warning; `is_jvm` is whether one should be there at all.
    pub(crate) fn read(
        &mut self,
        container: &dyn Container,
        measure: Option<(u64, u64)>,
        is_jvm: bool,
        warnings: &mut Vec<String>,
    ) -> Option<GcLog> {
        let copied = self.copy(container).and_then(|()| self.log.reader());
        let reader = match copied {
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
        let mut log = Builder::new(KEPT_PAUSES).window(measure);
        log.read(reader.join(Content::GcLog, self.instance));
        Some(log.finish())
    }
}
