//! Reads an event log, also one that still grows.
//!
//! Owns the way from bytes to records. Trusts nothing: a length, a checksum or a body that is wrong
//! is an error, never a panic and never a large allocation.

use std::io::{self, Read};

use super::{Content, HEAD, LABEL, LARGEST_PAYLOAD, LogError, MAGIC, Piece, Record};
use super::{checksum, unpack};

/// Read at once.
const BLOCK: usize = 64 << 10;

/// Reads records one after the other.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// Read and not yet given out; records begin at `used`.
    buffer: Vec<u8>,
    used: usize,
    offset: u64,
}

impl<R: Read> Reader<R> {
    /// Reads a log from its begin.
    pub fn new(from: R) -> Self {
        Self::resume(from, 0)
    }

    /// Goes on where another reader was ([`Reader::offset`]); `from` stands there.
    pub fn resume(from: R, offset: u64) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            used: 0,
            offset,
        }
    }

    /// Where the next record begins in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` where no whole one is there yet, which is the end of a log that
    /// nobody writes.
    ///
    /// # Errors
    /// [`LogError`]; there is nothing behind it.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        if self.offset == 0 {
            if !self.has(MAGIC.len())? {
                return match MAGIC.starts_with(self.rest()) {
                    true => Ok(None),
                    false => Err(LogError::Foreign),
                };
            }
            if !self.rest().starts_with(MAGIC) {
                return Err(LogError::Foreign);
            }
            self.take(MAGIC.len());
        }
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        let (head, rest) = self.rest().split_at(HEAD);
        let payload = &rest[..length];
        let said = head.last_chunk::<4>().copied().map(u32::from_le_bytes);
        let of = head.first_chunk::<4>().copied().unwrap_or_default();
        if said != Some(checksum(of, payload)) {
            return Err(self.damaged("a checksum is wrong"));
        }
        let record = record(payload)?;
        self.take(HEAD + length);
        Ok(Some(record))
    }

    /// The next piece, past all events.
    ///
    /// # Errors
    /// As [`Reader::next_record`].
    pub fn next_piece(&mut self) -> Result<Option<Piece>, LogError> {
        loop {
            match self.next_record()? {
                Some(Record::Event(_)) => {}
                Some(Record::Piece(piece)) => return Ok(Some(piece)),
                None => return Ok(None),
            }
        }
    }

    /// Length of the next payload, once all of it is there.
    fn length(&mut self) -> Result<Option<usize>, LogError> {
        if !self.has(HEAD)? {
            return Ok(None);
        }
        let length = self.rest().first_chunk::<4>().copied();
        let length = length.map_or(0, u32::from_le_bytes);
        if length > LARGEST_PAYLOAD || (length as usize) < LABEL {
            return Err(self.damaged("a length is wrong"));
        }
        let length = length as usize;
        Ok(self.has(HEAD + length)?.then_some(length))
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    fn take(&mut self, length: usize) {
        self.used += length;
        self.offset += length as u64;
        if self.used == self.buffer.len() {
            self.buffer.clear();
            self.used = 0;
        }
    }

    /// Whether so much is there, after reading what is needed for it.
    fn has(&mut self, length: usize) -> Result<bool, LogError> {
        if self.rest().len() < length {
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

    fn damaged(&self, why: &str) -> LogError {
        LogError::Damaged(format!("{why} at byte {}", self.offset))
    }
}

fn record(payload: &[u8]) -> Result<Record, LogError> {
    let (label, packed) = payload.split_at(LABEL);
    let instance = label
        .last_chunk::<4>()
        .copied()
        .map_or(0, u32::from_le_bytes);
    match Content::of(label[0]) {
        Some(content) => Ok(Record::Piece(Piece {
            content,
            instance,
            packed: packed.to_vec(),
        })),
        None => serde_json::from_slice(&unpack(packed)?)
            .map(Record::Event)
            .map_err(|error| LogError::Damaged(format!("an event is not understood: {error}"))),
    }
}

/// One file of a log, its pieces joined.
#[derive(Debug)]
pub struct Joined<R> {
    log: Reader<R>,
    content: Content,
    instance: u32,
    part: io::Cursor<Vec<u8>>,
}

impl<R: Read> Reader<R> {
    /// What is left of a file of an instance, from 0.
    pub fn join(self, content: Content, instance: u32) -> Joined<R> {
        Joined {
            log: self,
            content,
            instance,
            part: io::Cursor::default(),
        }
    }
}

impl<R: Read> Read for Joined<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.part.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            match self.log.next_piece().map_err(io::Error::other)? {
                Some(piece) if (piece.content, piece.instance) == (self.content, self.instance) => {
                    self.part = io::Cursor::new(piece.bytes().map_err(io::Error::other)?);
                }
                Some(_) => {}
                None => return Ok(0),
            }
        }
    }
}
