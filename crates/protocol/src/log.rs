//! The event log of one trial: its events, and the raw evidence, in one file.
//!
//! Owns the format, its writer and its reader. A record is written with one call and never changed;
//! no step waits for the disk, because that would disturb the measurement. A log cut off anywhere
//! (kill -9, full disk) is readable up to its last whole record, and reading can start at any
//! record's begin. Records of one instance and content are in order; others may be between.
//!
//! ```text
//! log     := "LLEL1\n" , record*
//! record  := u32le length , u32le crc32(length, payload) , payload
//! payload := u8 content , u32le instance , zstd(body)
//! content := 0 (an event, as JSON) | 1 (samples) | 2 (GC log) | 3 (output) | 4 + n (file n)
//! ```

mod reader;
mod writer;

use std::io::{self, Read};

use crate::TrialEvent;

pub use reader::{EventLogReader, JoinedFile};
pub use writer::EventLog;

const MAGIC: &[u8] = b"LLEL1\n";
const HEAD: usize = 8;
const LABEL: usize = 5;
const LARGEST_PAYLOAD: u32 = 64 << 20;

/// A body larger than this is neither written nor read: a log of some bytes could ask for any memory.
/// The largest that a trial writes, its evidence, is a few MiB.
const LARGEST_BODY: usize = 32 << 20;

/// zstd's window, as a power of two: what it is at the level that the writer takes is 2 MiB.
const LARGEST_WINDOW: u32 = 23;

/// Longest part of a file in one record, before packing: the memory a reader needs.
pub const PIECE: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkContent {
    /// Samples of the cgroup's counters; each piece can be read alone.
    Samples,
    GcLog,
    Output,
    /// A file of `Order::hand_over`, by its place there.
    File(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChunk {
    pub content: ChunkContent,
    /// Of which instance, from 0.
    pub instance: u32,
    packed: Vec<u8>,
}

impl FileChunk {
    /// The unpacked bytes. Errors: The packed data are damaged, although the checksum is right.
    pub fn unpacked_bytes(&self) -> Result<Vec<u8>, LogError> {
        unpack(&self.packed)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum LogEntry {
    Event(TrialEvent),
    Piece(FileChunk),
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the event log cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("it is no event log of loadline")]
    Foreign,
    #[error("the event log is damaged: {0}")]
    Damaged(String),
}

impl ChunkContent {
    fn to_code(self) -> u8 {
        match self {
            Self::Samples => 1,
            Self::GcLog => 2,
            Self::Output => 3,
            Self::File(number) => 4_u8.saturating_add(number),
        }
    }

    /// `None` is an event.
    fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => None,
            1 => Some(Self::Samples),
            2 => Some(Self::GcLog),
            3 => Some(Self::Output),
            file => Some(Self::File(file - 4)),
        }
    }
}

fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// Allocates memory as bytes come: the size declared in a frame is not trusted.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, LogError> {
    let damaged = |error: io::Error| LogError::Damaged(error.to_string());
    let mut decoder = zstd::Decoder::with_buffer(packed).map_err(damaged)?;
    decoder.window_log_max(LARGEST_WINDOW).map_err(damaged)?;
    let mut body = Vec::new();
    let mut limited = decoder.take(LARGEST_BODY as u64 + 1);
    limited.read_to_end(&mut body).map_err(damaged)?;
    if body.len() > LARGEST_BODY {
        Err(LogError::Damaged("a body is too large".to_owned()))
    } else {
        Ok(body)
    }
}

#[cfg(test)]
mod tests;
