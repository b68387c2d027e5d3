//! One message on a connection: its length in four bytes, big-endian, and JSON.
//!
//! Owns the bounds. Both ends can be reached by others: memory is taken as bytes arrive, never for
//! a claimed length, and an overlong message is not read at all.

use std::io::{self, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Of a message before the other has shown that it knows the secret.
pub const MOST_OF_STRANGERS: u32 = 1024;

/// Of every other message: a plan with all its bodies, or the histograms of a profile of thousands of
/// requests.
pub const MOST: u32 = 64 << 20;

/// Reads one; `None` is the orderly end of the connection.
pub fn read<T: DeserializeOwned>(mut from: impl Read, most: u32) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    let first = loop {
        match from.read(&mut length[..1]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_be_bytes(length);
    if length > most {
        let why = format!("a message of {length} bytes, and {most} are allowed");
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    let mut text = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut text)?;
    if text.len() != length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Writes one, in one piece.
pub fn write(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    if length > MOST {
        let why = format!("a message of {length} bytes, and {MOST} are allowed");
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    to.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::ToGenerator;

    #[test]
    fn what_was_written_is_read_one_after_the_other() {
        let mut bytes = Vec::new();
        write(&mut bytes, &ToGenerator::Clock { echo: 7 }).unwrap();
        write(&mut bytes, &ToGenerator::Stop).unwrap();
        let mut rest = bytes.as_slice();
        let mut next = || read::<ToGenerator>(&mut rest, MOST).unwrap();
        assert_eq!(next(), Some(ToGenerator::Clock { echo: 7 }));
        assert_eq!(next(), Some(ToGenerator::Stop));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_length_alone_takes_no_memory_and_none_is_believed() {
        let said = |bytes: &[u8], most| {
            let read = read::<ToGenerator>(bytes, most);
            read.map_err(|error| error.kind())
        };
        let long = [&[0, 0, 4, 1], &[b' '; 1025][..]].concat();
        assert_eq!(said(&long, MOST_OF_STRANGERS), Err(ErrorKind::InvalidData));
        assert_eq!(said(&[255; 4], MOST), Err(ErrorKind::InvalidData));
        assert_eq!(said(&[3, 0, 0, 0], MOST), Err(ErrorKind::UnexpectedEof));
        assert_eq!(said(&[0, 0], MOST), Err(ErrorKind::UnexpectedEof));
        assert_eq!(said(b"\0\0\0\x02{}", MOST), Err(ErrorKind::InvalidData));
    }
}
