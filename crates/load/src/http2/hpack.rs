//! Decodes header blocks (HPACK, RFC 7541) as far as loadline needs them: of an answer the status,
//! the content length and how a gRPC call ended, of a request the method and the path.
//!
//! The dynamic table keeps only data for later blocks: sizes, and the values of those fields. Other
//! values are not even decoded.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use super::{Http2Violation, huffman};

/// Octets of the table that every peer begins with, and the most that others may agree on.
const TABLE_LIMIT: usize = 4096;
const LARGEST_TABLE: usize = 64 << 10;

/// The content type of gRPC. Source: gRPC over HTTP/2, "Responses".
const GRPC: &[u8] = b"application/grpc";

/// The code of a call with a missing or invalid status. Source: gRPC, "HTTP to gRPC Status Code
/// Mapping".
pub(crate) const GRPC_UNKNOWN: u16 = 2;

/// The names of the static table (RFC 7541, appendix A), in its order.
pub(super) static STATIC_NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    ":authority :method :method :path :path :scheme :scheme :status :status :status \
    :status :status :status :status accept-charset accept-encoding accept-language \
    accept-ranges accept access-control-allow-origin age allow authorization \
    cache-control content-disposition content-encoding content-language content-length \
    content-location content-range content-type cookie date etag expect expires from \
    host if-match if-modified-since if-none-match if-range if-unmodified-since \
    last-modified link location max-forwards proxy-authenticate proxy-authorization \
    range referer refresh retry-after server set-cookie strict-transport-security \
    transfer-encoding user-agent vary via www-authenticate"
        .split(' ')
        .collect()
});

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodedHead {
    pub method: Option<Arc<[u8]>>,
    pub path: Option<Arc<[u8]>>,
    pub status: Option<u16>,
    pub content_length: Option<u64>,
    pub is_grpc: bool,
    pub grpc_status: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldName {
    Method,
    Path,
    Status,
    Length,
    ContentType,
    GrpcStatus,
    Other,
}

#[derive(Debug, Clone)]
struct DecodedField {
    name: FieldName,
    name_length: usize,
    /// Octets of the value, decoded.
    value_length: usize,
    /// The value of a status or length; `None` when it is no number. Of a content type 1 for gRPC.
    number: Option<u64>,
    /// The value of a method or path.
    text: Option<Arc<[u8]>>,
}

impl DecodedField {
    fn entry_size(&self) -> usize {
        self.name_length + self.value_length + 32
    }
}

#[derive(Debug)]
pub struct HpackDecoder {
    table: VecDeque<DecodedField>,
    size: usize,
    limit: usize,
    /// The largest limit that the encoder was allowed.
    allowed: usize,
}

impl Default for HpackDecoder {
    fn default() -> Self {
        Self {
            table: VecDeque::new(),
            size: 0,
            limit: TABLE_LIMIT,
            allowed: TABLE_LIMIT,
        }
    }
}

impl HpackDecoder {
    /// The receiver of these blocks allows a table of this size (SETTINGS_HEADER_TABLE_SIZE); the
    /// blocks say when it is used. One that was allowed before may still come.
    pub fn allow_table(&mut self, size: u32) {
        self.allowed = LARGEST_TABLE.min(size as usize).max(self.allowed);
    }

    /// Decodes a whole block.
    /// Errors: [`Http2Violation::Compression`] where the block ends too early, refers to nothing,
    /// has a status or length that is no number, or has a method, path, status or length twice.
    pub fn decode_block(&mut self, mut block: &[u8]) -> Result<DecodedHead, Http2Violation> {
        let mut head = DecodedHead::default();
        let mut may_resize = true;
        while let Some(first) = block.first().copied() {
            if first & 0xe0 == 0x20 {
                let limit = read_integer(&mut block, 5)?;
                if !may_resize || limit > self.allowed {
                    return Err(Http2Violation::Compression);
                }
                self.limit = limit;
                self.evict(0);
                continue;
            }
            may_resize = false;
            let field = if first & 0x80 != 0 {
                let index = read_integer(&mut block, 7)?;
                self.table_field(index)?
            } else {
                let is_kept = first & 0xc0 == 0x40;
                let field = self.read_literal(&mut block, if is_kept { 6 } else { 4 }, is_kept)?;
                if is_kept {
                    self.insert(field.clone());
                }
                field
            };
            head.note_field(field)?;
        }
        Ok(head)
    }

    fn table_field(&self, index: usize) -> Result<DecodedField, Http2Violation> {
        let nth = index.checked_sub(1).ok_or(Http2Violation::Compression)?;
        match STATIC_NAMES.get(nth) {
            Some(name) => Ok(DecodedField {
                name: classify_name(name.as_bytes()),
                name_length: name.len(),
                value_length: 3,
                number: static_value(index),
                text: static_text(index),
            }),
            None => {
                let field = self.table.get(nth - STATIC_NAMES.len());
                field.cloned().ok_or(Http2Violation::Compression)
            }
        }
    }

    fn read_literal(
        &self,
        block: &mut &[u8],
        prefix: u8,
        is_kept: bool,
    ) -> Result<DecodedField, Http2Violation> {
        let (name, name_length) = match read_integer(block, prefix)? {
            0 => literal_name(block)?,
            index => {
                let field = self.table_field(index)?;
                (field.name, field.name_length)
            }
        };
        let mut field = DecodedField {
            name,
            name_length,
            value_length: 0,
            number: None,
            text: None,
        };
        let (is_coded, text) = read_string(block)?;
        match name {
            FieldName::Other if !is_kept => {}
            FieldName::Other if !is_coded => field.value_length = text.len(),
            FieldName::Other => huffman::decode_huffman(text, &mut |_| field.value_length += 1)?,
            FieldName::Method | FieldName::Path => {
                let mut value = Vec::with_capacity(text.len());
                read_octets(is_coded, text, &mut |octet| value.push(octet))?;
                field.value_length = value.len();
                field.text = Some(value.into());
            }
            FieldName::ContentType => {
                let mut matched = 0;
                let mut octet = |octet: u8| {
                    let position = field.value_length;
                    field.value_length += 1;
                    let is_next = match GRPC.get(position) {
                        Some(expected) => octet.eq_ignore_ascii_case(expected),
                        // What follows is a subtype or a parameter; grpc-web has its own framing.
                        None => position > GRPC.len() || matches!(octet, b'+' | b';' | b' '),
                    };
                    matched += usize::from(is_next);
                };
                read_octets(is_coded, text, &mut octet)?;
                let is_grpc = matched >= GRPC.len() && matched == field.value_length;
                field.number = Some(u64::from(is_grpc));
            }
            FieldName::Status | FieldName::Length | FieldName::GrpcStatus => {
                let mut number = Some(0);
                let mut digit = |octet: u8| {
                    field.value_length += 1;
                    number = number.and_then(|n| next_digit(n, octet));
                };
                read_octets(is_coded, text, &mut digit)?;
                field.number = number.filter(|_| field.value_length > 0);
            }
        }
        Ok(field)
    }

    fn insert(&mut self, field: DecodedField) {
        self.evict(field.entry_size());
        // One that is larger than the table leaves it empty (RFC 7541 §4.4).
        if field.entry_size() <= self.limit {
            self.size += field.entry_size();
            self.table.push_front(field);
        }
    }

    fn evict(&mut self, room: usize) {
        while self.size + room > self.limit {
            let Some(oldest) = self.table.pop_back() else {
                return;
            };
            self.size -= oldest.entry_size();
        }
    }
}

impl DecodedHead {
    fn note_field(&mut self, field: DecodedField) -> Result<(), Http2Violation> {
        match field.name {
            FieldName::Other => {}
            FieldName::Method => note_once(&mut self.method, field.text)?,
            FieldName::Path => note_once(&mut self.path, field.text)?,
            FieldName::ContentType => self.is_grpc = field.number == Some(1),
            FieldName::GrpcStatus => {
                let code = field.number.and_then(|code| u16::try_from(code).ok());
                self.grpc_status = Some(code.unwrap_or(GRPC_UNKNOWN));
            }
            FieldName::Status => {
                let status = field.number.filter(|s| (100..1000).contains(s));
                note_once(&mut self.status, status.map(|s| s as u16))?;
            }
            FieldName::Length => {
                let length = field.number.ok_or(Http2Violation::Compression)?;
                if self
                    .content_length
                    .replace(length)
                    .is_some_and(|l| l != length)
                {
                    return Err(Http2Violation::Compression);
                }
            }
        }
        Ok(())
    }
}

/// Errors: The value is missing, or comes twice.
fn note_once<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), Http2Violation> {
    let value = value.ok_or(Http2Violation::Compression)?;
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Http2Violation::Compression),
    }
}

fn classify_name(name: &[u8]) -> FieldName {
    match name {
        b":method" => FieldName::Method,
        b":path" => FieldName::Path,
        b":status" => FieldName::Status,
        b"content-length" => FieldName::Length,
        b"content-type" => FieldName::ContentType,
        b"grpc-status" => FieldName::GrpcStatus,
        _ => FieldName::Other,
    }
}

fn static_value(index: usize) -> Option<u64> {
    const STATUSES: [u64; 7] = [200, 204, 206, 304, 400, 404, 500];
    STATUSES.get(index.checked_sub(8)?).copied()
}

fn static_text(index: usize) -> Option<Arc<[u8]>> {
    const TEXTS: [&str; 4] = ["GET", "POST", "/", "/index.html"];
    let text = TEXTS.get(index.checked_sub(2)?)?;
    Some(text.as_bytes().into())
}

fn next_digit(number: u64, octet: u8) -> Option<u64> {
    let digit = octet.is_ascii_digit().then(|| u64::from(octet - b'0'))?;
    number.checked_mul(10)?.checked_add(digit)
}

fn literal_name(block: &mut &[u8]) -> Result<(FieldName, usize), Http2Violation> {
    let (is_coded, text) = read_string(block)?;
    if !is_coded {
        return Ok((classify_name(text), text.len()));
    }
    // Long enough for the names that matter.
    let mut start = [0; 16];
    let mut length = 0;
    huffman::decode_huffman(text, &mut |octet| {
        if let Some(place) = start.get_mut(length) {
            *place = octet;
        }
        length += 1;
    })?;
    let name = start.get(..length).map_or(FieldName::Other, classify_name);
    Ok((name, length))
}

fn read_octets(
    is_coded: bool,
    text: &[u8],
    each: &mut impl FnMut(u8),
) -> Result<(), Http2Violation> {
    if is_coded {
        huffman::decode_huffman(text, each)
    } else {
        text.iter().copied().for_each(each);
        Ok(())
    }
}

fn read_string<'a>(block: &mut &'a [u8]) -> Result<(bool, &'a [u8]), Http2Violation> {
    let is_coded = block.first().ok_or(Http2Violation::Compression)? & 0x80 != 0;
    let length = read_integer(block, 7)?;
    let (text, rest) = block
        .split_at_checked(length)
        .ok_or(Http2Violation::Compression)?;
    *block = rest;
    Ok((is_coded, text))
}

/// An integer with a prefix of `prefix` bits (RFC 7541 §5.1), below 2^28.
fn read_integer(block: &mut &[u8], prefix: u8) -> Result<usize, Http2Violation> {
    let mask = (1usize << prefix) - 1;
    let mut value = usize::from(read_octet(block)?) & mask;
    if value < mask {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let octet = usize::from(read_octet(block)?);
        value += (octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Http2Violation::Compression)
}

fn read_octet(block: &mut &[u8]) -> Result<u8, Http2Violation> {
    let (first, rest) = block.split_first().ok_or(Http2Violation::Compression)?;
    *block = rest;
    Ok(*first)
}

#[cfg(test)]
mod tests;
