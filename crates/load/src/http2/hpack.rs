//! Decodes header blocks (HPACK, RFC 7541) as far as a load generator cares: the status and the
//! content length.
//!
//! The dynamic table keeps what later blocks may refer to: sizes, and the values of those two
//! fields. A value that nobody will ask for is not even decoded.

use std::collections::VecDeque;

use super::{Broken, huffman};

/// Largest dynamic table, in octets as RFC 7541 §4.1 counts them: the default of HTTP/2.
const TABLE_LIMIT: usize = 4096;

/// RFC 7541 Appendix A. Fields 2 to 14 also have values, see [`static_value`].
pub(super) const STATIC_NAMES: [&str; 61] = [
    ":authority",
    ":method",
    ":method",
    ":path",
    ":path",
    ":scheme",
    ":scheme",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
];

/// What an answer's header block says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// `:status`; `None` in trailers.
    pub status: Option<u16>,
    /// `content-length`.
    pub content_length: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Status,
    Length,
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    name: Name,
    name_length: usize,
    /// Octets of the value, decoded.
    value_length: usize,
    /// The value of a status or length; `None` when it is no number.
    number: Option<u64>,
}

impl Field {
    /// RFC 7541 §4.1.
    fn size(&self) -> usize {
        self.name_length + self.value_length + 32
    }
}

/// The decoder of one connection.
#[derive(Debug)]
pub struct Decoder {
    /// The dynamic table, newest first.
    table: VecDeque<Field>,
    size: usize,
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            table: VecDeque::new(),
            size: 0,
            limit: TABLE_LIMIT,
        }
    }
}

impl Decoder {
    /// Forgets everything, for a new connection.
    pub fn reset(&mut self) {
        self.table.clear();
        self.size = 0;
        self.limit = TABLE_LIMIT;
    }

    /// Decodes a whole block.
    ///
    /// # Errors
    /// [`Broken::Compression`] where the block ends too early, refers to nothing, or has a status
    /// or length that is no number or comes twice.
    pub fn decode(&mut self, mut block: &[u8]) -> Result<Head, Broken> {
        let mut head = Head::default();
        let mut may_resize = true;
        while let Some(first) = block.first().copied() {
            if first & 0xe0 == 0x20 {
                let limit = integer(&mut block, 5)?;
                if !may_resize || limit > TABLE_LIMIT {
                    return Err(Broken::Compression);
                }
                self.limit = limit;
                self.evict(0);
                continue;
            }
            may_resize = false;
            let field = if first & 0x80 != 0 {
                let index = integer(&mut block, 7)?;
                self.field(index)?
            } else {
                let is_kept = first & 0xc0 == 0x40;
                let field = self.literal(&mut block, if is_kept { 6 } else { 4 }, is_kept)?;
                if is_kept {
                    self.insert(field);
                }
                field
            };
            head.note(&field)?;
        }
        Ok(head)
    }

    /// A field of the static or dynamic table.
    fn field(&self, index: usize) -> Result<Field, Broken> {
        let nth = index.checked_sub(1).ok_or(Broken::Compression)?;
        match STATIC_NAMES.get(nth) {
            Some(name) => Ok(Field {
                name: kind(name.as_bytes()),
                name_length: name.len(),
                value_length: 3,
                number: static_value(index),
            }),
            None => {
                let field = self.table.get(nth - STATIC_NAMES.len());
                field.copied().ok_or(Broken::Compression)
            }
        }
    }

    fn literal(&self, block: &mut &[u8], prefix: u8, is_kept: bool) -> Result<Field, Broken> {
        let (name, name_length) = match integer(block, prefix)? {
            0 => literal_name(block)?,
            index => {
                let field = self.field(index)?;
                (field.name, field.name_length)
            }
        };
        let mut field = Field {
            name,
            name_length,
            value_length: 0,
            number: None,
        };
        let (is_coded, text) = string(block)?;
        match name {
            Name::Other if !is_kept => {}
            Name::Other if !is_coded => field.value_length = text.len(),
            Name::Other => huffman::decode(text, &mut |_| field.value_length += 1)?,
            Name::Status | Name::Length => {
                let mut number = Some(0);
                let mut digit = |octet: u8| {
                    field.value_length += 1;
                    number = number.and_then(|n| next_digit(n, octet));
                };
                match is_coded {
                    true => huffman::decode(text, &mut digit)?,
                    false => text.iter().copied().for_each(digit),
                }
                field.number = number.filter(|_| field.value_length > 0);
            }
        }
        Ok(field)
    }

    fn insert(&mut self, field: Field) {
        self.evict(field.size());
        // One that is larger than the table leaves it empty (RFC 7541 §4.4).
        if field.size() <= self.limit {
            self.size += field.size();
            self.table.push_front(field);
        }
    }

    /// Makes room.
    fn evict(&mut self, room: usize) {
        while self.size + room > self.limit {
            let Some(oldest) = self.table.pop_back() else {
                return;
            };
            self.size -= oldest.size();
        }
    }
}

impl Head {
    fn note(&mut self, field: &Field) -> Result<(), Broken> {
        match field.name {
            Name::Other => return Ok(()),
            Name::Status => {
                let status = field.number.filter(|s| (100..1000).contains(s));
                let status = status.ok_or(Broken::Compression)?;
                if self.status.replace(status as u16).is_some() {
                    return Err(Broken::Compression);
                }
            }
            Name::Length => {
                let length = field.number.ok_or(Broken::Compression)?;
                if self
                    .content_length
                    .replace(length)
                    .is_some_and(|l| l != length)
                {
                    return Err(Broken::Compression);
                }
            }
        }
        Ok(())
    }
}

fn kind(name: &[u8]) -> Name {
    match name {
        b":status" => Name::Status,
        b"content-length" => Name::Length,
        _ => Name::Other,
    }
}

/// Value of the fields of the static table that have a number.
fn static_value(index: usize) -> Option<u64> {
    const STATUSES: [u64; 7] = [200, 204, 206, 304, 400, 404, 500];
    STATUSES.get(index.checked_sub(8)?).copied()
}

fn next_digit(number: u64, octet: u8) -> Option<u64> {
    let digit = octet.is_ascii_digit().then(|| u64::from(octet - b'0'))?;
    number.checked_mul(10)?.checked_add(digit)
}

/// A name that is spelt out, and its length.
fn literal_name(block: &mut &[u8]) -> Result<(Name, usize), Broken> {
    let (is_coded, text) = string(block)?;
    if !is_coded {
        return Ok((kind(text), text.len()));
    }
    // Long enough for the names that matter.
    let mut start = [0; 16];
    let mut length = 0;
    huffman::decode(text, &mut |octet| {
        if let Some(place) = start.get_mut(length) {
            *place = octet;
        }
        length += 1;
    })?;
    let name = start.get(..length).map_or(Name::Other, kind);
    Ok((name, length))
}

/// A string literal: whether it is Huffman-coded, and its octets (RFC 7541 §5.2).
fn string<'a>(block: &mut &'a [u8]) -> Result<(bool, &'a [u8]), Broken> {
    let is_coded = block.first().ok_or(Broken::Compression)? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or(Broken::Compression)?;
    *block = rest;
    Ok((is_coded, text))
}

/// An integer with a prefix of so many bits (RFC 7541 §5.1), below 2^28.
fn integer(block: &mut &[u8], prefix: u8) -> Result<usize, Broken> {
    let mask = (1usize << prefix) - 1;
    let mut value = usize::from(octet(block)?) & mask;
    if value < mask {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let octet = usize::from(octet(block)?);
        value += (octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Broken::Compression)
}

fn octet(block: &mut &[u8]) -> Result<u8, Broken> {
    let (first, rest) = block.split_first().ok_or(Broken::Compression)?;
    *block = rest;
    Ok(*first)
}

#[cfg(test)]
mod tests;
