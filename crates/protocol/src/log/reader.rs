//! Reads an event log, even a growing one.
//!
//! Owns the way from bytes to records. Trusts no input: a wrong length, checksum or body is an
//! error, never a panic and never a large allocation.

use std::io::{self, Read};

use super::{ChunkContent, FileChunk, HEAD, LABEL, LARGEST_PAYLOAD, LogEntry, LogError, MAGIC};
use super::{checksum, unpack};

const BLOCK: usize = 64 << 10;

#[derive(Debug)]
pub struct EventLogReader<R> {
    from: R,
    /// Read and not yet given out; records begin at `used`.
    buffer: Vec<u8>,
    used: usize,
    offset: u64,
}

impl<R: Read> EventLogReader<R> {
    pub fn new(from: R) -> Self {
        Self::resume_at(from, 0)
    }

    /// Continues where another reader was ([`EventLogReader::offset`]); `from` is at that position.
    pub fn resume_at(from: R, offset: u64) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            used: 0,
            offset,
        }
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` if no whole record is there yet, which is the end of a finished log.
    /// Errors: [`LogError`]; reading cannot continue.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>, LogError> {
        if self.offset == 0 {
            if !self.has_bytes(MAGIC.len())? {
                return if MAGIC.starts_with(self.unread_bytes()) {
                    Ok(None)
                } else {
                    Err(LogError::Foreign)
                };
            }
            if !self.unread_bytes().starts_with(MAGIC) {
                return Err(LogError::Foreign);
            }
            self.consume_bytes(MAGIC.len());
        }
        let Some(length) = self.payload_length()? else {
            return Ok(None);
        };
        let (head, rest) = self.unread_bytes().split_at(HEAD);
        let payload = &rest[..length];
        let said = head.last_chunk::<4>().copied().map(u32::from_le_bytes);
        let of = head.first_chunk::<4>().copied().unwrap_or_default();
        // No fuzzer hits one.
        if said != Some(checksum(of, payload)) && !cfg!(fuzzing) {
            return Err(self.damage_error("a checksum is wrong"));
        }
        let record = parse_entry(payload)?;
        self.consume_bytes(HEAD + length);
        Ok(Some(record))
    }

    pub fn next_chunk(&mut self) -> Result<Option<FileChunk>, LogError> {
        loop {
            match self.next_entry()? {
                Some(LogEntry::Event(_)) => {}
                Some(LogEntry::Piece(piece)) => return Ok(Some(piece)),
                None => return Ok(None),
            }
        }
    }

    /// Length of the next payload, once all its bytes are there.
    fn payload_length(&mut self) -> Result<Option<usize>, LogError> {
        if !self.has_bytes(HEAD)? {
            return Ok(None);
        }
        let length = self.unread_bytes().first_chunk::<4>().copied();
        let length = length.map_or(0, u32::from_le_bytes);
        if length > LARGEST_PAYLOAD || (length as usize) < LABEL {
            return Err(self.damage_error("a length is wrong"));
        }
        let length = length as usize;
        Ok(self.has_bytes(HEAD + length)?.then_some(length))
    }

    fn unread_bytes(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    fn consume_bytes(&mut self, length: usize) {
        self.used += length;
        self.offset += length as u64;
        if self.used == self.buffer.len() {
            self.buffer.clear();
            self.used = 0;
        }
    }

    /// Whether this many bytes are there, after reading as necessary.
    fn has_bytes(&mut self, length: usize) -> Result<bool, LogError> {
        if self.unread_bytes().len() < length {
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        while self.buffer.len() - self.used < length {
            // Never more than is there: a wrong length allocates nothing.
            let mut block = (&mut self.from).take(BLOCK as u64);
            if block.read_to_end(&mut self.buffer)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn damage_error(&self, why: &str) -> LogError {
        LogError::Damaged(format!("{why} at byte {}", self.offset))
    }
}

fn parse_entry(payload: &[u8]) -> Result<LogEntry, LogError> {
    let (label, packed) = payload.split_at(LABEL);
    let instance = label.last_chunk::<4>().copied();
    let instance = instance.map_or(0, u32::from_le_bytes);
    match ChunkContent::from_code(label[0]) {
        Some(content) => Ok(LogEntry::Piece(FileChunk {
            content,
            instance,
            packed: packed.to_vec(),
        })),
        // Nor does what it makes of a packed text unpack.
        None => serde_json::from_slice(&unpack(packed).or_else(|error| {
            if cfg!(fuzzing) {
                Ok(packed.to_vec())
            } else {
                Err(error)
            }
        })?)
        .map(LogEntry::Event)
        .map_err(|error| LogError::Damaged(format!("an event is not understood: {error}"))),
    }
}

#[derive(Debug)]
pub struct JoinedFile<R> {
    log: EventLogReader<R>,
    content: ChunkContent,
    instance: u32,
    part: io::Cursor<Vec<u8>>,
}

impl<R: Read> EventLogReader<R> {
    /// The remainder of a file of an instance, from 0.
    pub fn join_chunks(self, content: ChunkContent, instance: u32) -> JoinedFile<R> {
        JoinedFile {
            log: self,
            content,
            instance,
            part: io::Cursor::default(),
        }
    }
}

impl<R: Read> Read for JoinedFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.part.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            match self.log.next_chunk().map_err(io::Error::other)? {
                Some(piece) if (piece.content, piece.instance) == (self.content, self.instance) => {
                    self.part = io::Cursor::new(piece.unpacked_bytes().map_err(io::Error::other)?);
                }
                Some(_) => {}
                None => return Ok(0),
            }
        }
    }
}
