//! The chunked transfer coding, one byte range at a time (RFC 9112 §7.1).

use super::{MAX_HEAD, MalformedResponse};

const MAX_SIZE_LINE: usize = 4096;

#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: ChunkState,
    line: usize,
}

#[derive(Debug)]
enum ChunkState {
    Size {
        value: u64,
        digits: u8,
    },
    Extension {
        value: u64,
    },
    Data {
        left: u64,
    },
    /// CR LF after the data; how many of the two were seen.
    DataEnd {
        seen: u8,
    },
    Trailer {
        empty: bool,
    },
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size {
            value: 0,
            digits: 0,
        }
    }
}

impl ChunkedDecoder {
    /// Takes bytes; returns how many belong to the body and whether it is complete. Errors: Bytes
    /// that violate the coding.
    pub fn feed_chunks(
        &mut self,
        bytes: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, bool), MalformedResponse> {
        let mut at = 0;
        while at < bytes.len() {
            if let ChunkState::Data { left } = &mut self.state {
                let rest = bytes.len() - at;
                let take = rest.min(usize::try_from(*left).unwrap_or(usize::MAX));
                body(&bytes[at..at + take]);
                at += take;
                *left -= take as u64;
                if *left == 0 {
                    self.state = ChunkState::DataEnd { seen: 0 };
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if self.take_framing_byte(byte)? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// One byte outside the data; true when it ends the body.
    fn take_framing_byte(&mut self, byte: u8) -> Result<bool, MalformedResponse> {
        match &mut self.state {
            ChunkState::Size { value, digits } => match (byte as char).to_digit(16) {
                // 15 hexadecimal digits cannot overflow.
                Some(_) if *digits == 15 => return Err(MalformedResponse::Chunk),
                Some(digit) => {
                    *value = *value << 4 | u64::from(digit);
                    *digits += 1;
                }
                None if *digits == 0 => return Err(MalformedResponse::Chunk),
                None => {
                    let value = *value;
                    return self.after_digits(value, byte);
                }
            },
            ChunkState::Extension { value } => {
                let value = *value;
                self.line += 1;
                if self.line > MAX_SIZE_LINE {
                    return Err(MalformedResponse::Chunk);
                }
                if byte == b'\n' {
                    self.begin_data(value);
                }
            }
            ChunkState::DataEnd { seen } => match (*seen, byte) {
                (0, b'\r') => *seen = 1,
                (_, b'\n') => self.state = ChunkState::default(),
                _ => return Err(MalformedResponse::Chunk),
            },
            ChunkState::Trailer { empty } => {
                self.line += 1;
                match byte {
                    b'\n' if *empty => return Ok(true),
                    b'\n' => *empty = true,
                    b'\r' => {}
                    _ if self.line > MAX_HEAD => return Err(MalformedResponse::HeadTooLarge),
                    _ => *empty = false,
                }
            }
            ChunkState::Data { .. } => {}
        }
        Ok(false)
    }

    fn after_digits(&mut self, value: u64, byte: u8) -> Result<bool, MalformedResponse> {
        self.line = 0;
        match byte {
            b'\n' => self.begin_data(value),
            b'\r' | b';' | b' ' | b'\t' => self.state = ChunkState::Extension { value },
            _ => return Err(MalformedResponse::Chunk),
        }
        Ok(false)
    }

    fn begin_data(&mut self, size: u64) {
        self.line = 0;
        self.state = match size {
            0 => ChunkState::Trailer { empty: true },
            left => ChunkState::Data { left },
        };
    }
}
