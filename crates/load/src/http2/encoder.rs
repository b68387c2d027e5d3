//! Encodes the header blocks of requests (HPACK, RFC 7541).
//!
//! Fields that are constant over a plan are compiled once ([`FixedFields`]) and enter the
//! connection's dynamic table with the first request that has them; from then on each costs one
//! octet, as with a browser. Values with variables are sent literally and not indexed. The indexed
//! fields are chosen so that the table never overflows: no entry is ever evicted.

use super::hpack::STATIC_NAMES;
use crate::template::{TemplateVariables, TextTemplate};

/// Octets of the peer's table that are used: the default, which every peer begins with.
const TABLE: usize = 4096;
/// The index of the newest entry: the static table has 61.
const NEWEST: usize = 62;

#[derive(Debug, Default)]
pub(crate) struct FixedFields {
    fields: Vec<FixedField>,
    /// Octets of the table they take.
    size: usize,
}

#[derive(Debug)]
struct FixedField {
    name: String,
    value: Vec<u8>,
    /// Spelt out; kept by the peer if there is room.
    literal: Vec<u8>,
    passing: Vec<u8>,
    is_kept: bool,
}

#[derive(Debug, Default)]
pub(crate) struct HeaderFields(Vec<HeaderField>);

#[derive(Debug)]
enum HeaderField {
    Static(u8),
    Fixed(usize),
    Varying { name: Vec<u8>, value: TextTemplate },
    Length,
}

impl HeaderFields {
    /// Adds a field; its value may hold variables, `name` is in lower case.
    pub(crate) fn add_field(&mut self, name: &str, value: TextTemplate, fixed: &mut FixedFields) {
        let field = match value.fixed_text() {
            Some(value) => match static_field(name, &value) {
                Some(index) => HeaderField::Static(index),
                None => HeaderField::Fixed(fixed.field_number(name, &value)),
            },
            None => HeaderField::Varying {
                name: begin_literal(name, 0, 4),
                value,
            },
        };
        self.0.push(field);
    }

    pub(crate) fn add_length(&mut self) {
        self.0.push(HeaderField::Length);
    }

    pub(crate) fn render(
        &self,
        fixed: &FixedFields,
        encoder: &mut HpackEncoder,
        variables: &mut TemplateVariables,
        (body, scratch): (usize, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        encoder.begin_block(fixed, out);
        for field in &self.0 {
            match field {
                HeaderField::Static(index) => out.push(0x80 | index),
                HeaderField::Fixed(number) => {
                    encoder.push_field(*number, &fixed.fields[*number], out)
                }
                HeaderField::Varying { name, value } => {
                    scratch.clear();
                    value.render(variables, scratch);
                    out.extend_from_slice(name);
                    push_string(out, scratch);
                }
                HeaderField::Length => {
                    out.extend_from_slice(&begin_literal("content-length", 0, 4));
                    push_string(out, body.to_string().as_bytes());
                }
            }
        }
    }
}

impl FixedFields {
    fn field_number(&mut self, name: &str, value: &[u8]) -> usize {
        let known = self.fields.iter();
        if let Some(at) = known
            .clone()
            .position(|f| f.name == name && f.value == value)
        {
            return at;
        }
        let size = name.len() + value.len() + 32;
        let is_kept = self.size + size <= TABLE;
        if is_kept {
            self.size += size;
        }
        let spelt = |flags, prefix| {
            let mut out = begin_literal(name, flags, prefix);
            push_string(&mut out, value);
            out
        };
        self.fields.push(FixedField {
            name: name.to_owned(),
            value: value.to_vec(),
            literal: spelt(0x40, 6),
            passing: spelt(0, 4),
            is_kept,
        });
        self.fields.len() - 1
    }
}

#[derive(Debug, Default)]
pub(crate) struct HpackEncoder {
    /// For each fixed field, how many were in the table when it came there; 0 is not there.
    places: Vec<usize>,
    count: usize,
    is_off: bool,
    must_tell: bool,
}

impl HpackEncoder {
    /// The peer changes the size of its table. One below the default is not used at all.
    pub(crate) fn resize(&mut self, size: u32) {
        if (size as usize) < TABLE {
            self.places.clear();
            self.count = 0;
            self.is_off = true;
            self.must_tell = true;
        }
    }

    fn begin_block(&mut self, fixed: &FixedFields, out: &mut Vec<u8>) {
        self.places.resize(fixed.fields.len(), 0);
        if std::mem::take(&mut self.must_tell) {
            // A table of size 0.
            out.push(0x20);
        }
    }

    fn push_field(&mut self, number: usize, field: &FixedField, out: &mut Vec<u8>) {
        match self.places[number] {
            0 if self.is_off || !field.is_kept => out.extend_from_slice(&field.passing),
            0 => {
                out.extend_from_slice(&field.literal);
                self.count += 1;
                self.places[number] = self.count;
            }
            place => push_integer(out, 0x80, 7, NEWEST + self.count - place),
        }
    }
}

fn static_field(name: &str, value: &[u8]) -> Option<u8> {
    Some(match (name, value) {
        (":method", b"GET") => 2,
        (":method", b"POST") => 3,
        (":path", b"/") => 4,
        (":path", b"/index.html") => 5,
        (":scheme", b"http") => 6,
        (":scheme", b"https") => 7,
        ("accept-encoding", b"gzip, deflate") => 16,
        _ => return None,
    })
}

pub(super) fn begin_literal(name: &str, flags: u8, prefix: u8) -> Vec<u8> {
    let mut out = Vec::new();
    match STATIC_NAMES.iter().position(|n| *n == name) {
        Some(at) => push_integer(&mut out, flags, prefix, at + 1),
        None => {
            out.push(flags);
            push_string(&mut out, name.as_bytes());
        }
    }
    out
}

pub(super) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    push_integer(out, 0, 7, text.len());
    out.extend_from_slice(text);
}

/// RFC 7541 §5.1.
pub(super) fn push_integer(out: &mut Vec<u8>, flags: u8, prefix: u8, value: usize) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        return out.push(flags | value as u8);
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::ValueEncoding;

    fn template(text: &str) -> TextTemplate {
        let mut template = TextTemplate::default();
        template
            .append_compiled(text.as_bytes(), ValueEncoding::Plain)
            .unwrap();
        template
    }

    struct Case {
        fixed: FixedFields,
        encoder: HpackEncoder,
        variables: TemplateVariables,
    }

    impl Case {
        fn render(&mut self, fields: &HeaderFields) -> Vec<u8> {
            let mut out = Vec::new();
            let memory = (3, &mut Vec::new());
            self.variables.next_request();
            fields.render(
                &self.fixed,
                &mut self.encoder,
                &mut self.variables,
                memory,
                &mut out,
            );
            out
        }
    }

    fn case(all: &[(&str, &str)]) -> (Case, HeaderFields) {
        let mut case = Case {
            fixed: FixedFields::default(),
            encoder: HpackEncoder::default(),
            variables: TemplateVariables::new(0, 0, 1),
        };
        let mut fields = HeaderFields::default();
        for (name, value) in all {
            fields.add_field(name, template(value), &mut case.fixed);
        }
        (case, fields)
    }

    /// RFC 7541 Appendix C.3, first request; the next one sends one octet per field.
    #[test]
    fn what_was_sent_once_costs_one_octet() {
        let (mut case, fields) = case(&[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
        ]);
        let mut first = vec![0x82, 0x86, 0x84, 0x41, 0x0f];
        first.extend_from_slice(b"www.example.com");
        assert_eq!(case.render(&fields), first);
        assert_eq!(case.render(&fields), [0x82, 0x86, 0x84, 0xbe]);
    }

    #[test]
    fn the_newest_entry_has_the_smallest_number() {
        let (mut case, mut fields) = case(&[(":authority", "a"), ("x", "1")]);
        fields.add_field("x", template("{seq}"), &mut case.fixed);
        fields.add_length();
        case.render(&fields);
        let varying = [0, 1, b'x', 1, b'1', 0x0f, 13, 1, b'3'];
        assert_eq!(case.render(&fields), [&[0xbf, 0xbe][..], &varying].concat());
    }

    #[test]
    fn a_peer_with_a_small_table_gets_everything_spelt_out() {
        let (mut case, fields) = case(&[("x", "1")]);
        case.encoder.resize(100);
        assert_eq!(case.render(&fields), [0x20, 0, 1, b'x', 1, b'1']);
        assert_eq!(case.render(&fields), [0, 1, b'x', 1, b'1']);
        case.encoder = HpackEncoder::default();
        case.encoder.resize(65_536);
        assert_eq!(case.render(&fields), [0x40, 1, b'x', 1, b'1']);
    }

    #[test]
    fn what_does_not_fit_into_the_table_is_not_kept() {
        let long = "v".repeat(3000);
        let (mut case, fields) = case(&[("a", &long), ("b", &long)]);
        case.render(&fields);
        let second = case.render(&fields);
        assert_eq!(second[..2], [0xbe, 0]);
        assert_eq!(second.len(), 1 + 1 + 2 + 3 + 3000);
    }
}
