//! Writes an event log, from several threads at once.
//!
//! Owns the order of records in the file, and its state on a full disk: a record that did not fit
//! is taken back, so that the log stays whole and a shorter one may still fit after it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use super::{
    ChunkContent, EventLogReader, HEAD, LABEL, LARGEST_BODY, LARGEST_PAYLOAD, MAGIC, PIECE,
    checksum,
};
use crate::TrialEvent;

/// zstd's: samples and logs shrink to a tenth with it, and more costs time that is not ours.
const LEVEL: i32 = 3;

#[derive(Debug)]
pub struct EventLog {
    state: Mutex<EventLogState>,
}

#[derive(Debug)]
struct EventLogState {
    file: File,
    length: u64,
    failure: Option<io::Error>,
}

impl EventLog {
    /// Begins a log in an empty file, opened for reading and appending.
    /// Errors: A file that is not empty, no regular one, or cannot be written.
    pub fn begin_log(mut file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > 0 {
            return Err(io::Error::other("it is no empty file"));
        }
        file.write_all(MAGIC)?;
        let state = EventLogState {
            file,
            length: MAGIC.len() as u64,
            failure: None,
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    pub fn append_event(&self, event: &TrialEvent) -> io::Result<()> {
        self.append_entry(0, 0, &serde_json::to_vec(event)?)
    }

    /// Appends a part of a file, in as many records as it takes. What cannot be written is missing
    /// and told by [`EventLog::chunk_failure`]: whoever samples and reads goes on.
    pub fn append_chunk(&self, content: ChunkContent, instance: u32, bytes: &[u8]) {
        for part in bytes.chunks(PIECE) {
            self.append_whole_chunk(content, instance, part);
        }
    }

    pub fn append_whole_chunk(&self, content: ChunkContent, instance: u32, bytes: &[u8]) {
        if let Err(error) = self.append_entry(content.to_code(), instance, bytes) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.failure.get_or_insert(error);
        }
    }

    pub fn chunk_failure(&self) -> Option<io::Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failure.take()
    }

    /// Reads the log from its begin, while it is written.
    /// Errors: A file that has no second descriptor to give.
    pub fn open_reader(&self) -> Result<EventLogReader<impl Read + use<>>, io::Error> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = state.file.try_clone()?;
        Ok(EventLogReader::new(PositionedFile { file, position: 0 }))
    }

    fn append_entry(&self, code: u8, instance: u32, body: &[u8]) -> io::Result<()> {
        let too_large = || io::Error::other("the record is too large for the event log");
        if body.len() > LARGEST_BODY {
            return Err(too_large());
        }
        let body = zstd::bulk::compress(body, LEVEL)?;
        let length = u32::try_from(LABEL + body.len())
            .ok()
            .filter(|length| *length <= LARGEST_PAYLOAD)
            .ok_or_else(too_large)?;
        let mut record = Vec::with_capacity(HEAD + LABEL + body.len());
        record.extend(length.to_le_bytes());
        record.extend([0; 4]);
        record.push(code);
        record.extend(instance.to_le_bytes());
        record.extend(body);
        let sum = checksum(length.to_le_bytes(), &record[HEAD..]);
        record[4..HEAD].copy_from_slice(&sum.to_le_bytes());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write(&record)
    }
}

impl EventLogState {
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let Err(error) = self.file.write_all(record) else {
            self.length += record.len() as u64;
            return Ok(());
        };
        // A torn record would hide all that come behind it.
        self.file.set_len(self.length)?;
        Err(error)
    }
}

/// A file that others append to and read elsewhere: it keeps its own position.
struct PositionedFile {
    file: File,
    position: u64,
}

impl Read for PositionedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}
