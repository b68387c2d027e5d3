//! The chunked transfer coding, one byte range at a time (RFC 9112 §7.1).

use super::{MAX_HEAD, Malformed};

/// Longest line with a chunk's size and extensions.
const MAX_SIZE_LINE: usize = 4096;

/// Where in the coding the last byte was.
#[derive(Debug, Default)]
pub struct Chunked {
    state: State,
    /// Bytes of the current size line or of the trailer so far.
    line: usize,
}

#[derive(Debug)]
enum State {
    /// In the digits of a size.
    Size {
        value: u64,
        digits: u8,
    },
    /// After the digits, before the end of the line.
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
    /// Trailer lines; whether the current line is still empty.
    Trailer {
        empty: bool,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Size {
            value: 0,
            digits: 0,
        }
    }
}

impl Chunked {
    /// Takes bytes; returns how many belong to the body and whether it is complete.
    ///
    /// # Errors
    /// What is not of the coding.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Data { left } = &mut self.state {
                let rest = bytes.len() - at;
                let take = rest.min(usize::try_from(*left).unwrap_or(usize::MAX));
                body(&bytes[at..at + take]);
                at += take;
                *left -= take as u64;
                if *left == 0 {
                    self.state = State::DataEnd { seen: 0 };
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if self.framing(byte)? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// One byte outside the data; true when it ends the body.
    fn framing(&mut self, byte: u8) -> Result<bool, Malformed> {
        match &mut self.state {
            State::Size { value, digits } => match (byte as char).to_digit(16) {
                // 15 hexadecimal digits cannot overflow.
                Some(_) if *digits == 15 => return Err(Malformed::Chunk),
                Some(digit) => {
                    *value = *value << 4 | u64::from(digit);
                    *digits += 1;
                }
                None if *digits == 0 => return Err(Malformed::Chunk),
                None => {
                    let value = *value;
                    return self.after_digits(value, byte);
                }
            },
            State::Extension { value } => {
                let value = *value;
                self.line += 1;
                if self.line > MAX_SIZE_LINE {
                    return Err(Malformed::Chunk);
                }
                if byte == b'\n' {
                    self.begin_data(value);
                }
            }
            State::DataEnd { seen } => match (*seen, byte) {
                (0, b'\r') => *seen = 1,
                (_, b'\n') => self.state = State::default(),
                _ => return Err(Malformed::Chunk),
            },
            State::Trailer { empty } => {
                self.line += 1;
                match byte {
                    b'\n' if *empty => return Ok(true),
                    b'\n' => *empty = true,
                    b'\r' => {}
                    _ if self.line > MAX_HEAD => return Err(Malformed::HeadTooLarge),
                    _ => *empty = false,
                }
            }
            State::Data { .. } => {}
        }
        Ok(false)
    }

    fn after_digits(&mut self, value: u64, byte: u8) -> Result<bool, Malformed> {
        self.line = 0;
        match byte {
            b'\n' => self.begin_data(value),
            b'\r' | b';' | b' ' | b'\t' => self.state = State::Extension { value },
            _ => return Err(Malformed::Chunk),
        }
        Ok(false)
    }

    fn begin_data(&mut self, size: u64) {
        self.line = 0;
        self.state = match size {
            0 => State::Trailer { empty: true },
            left => State::Data { left },
        };
    }
}
