//! One line of OpenJ9's log: an XML tag and its attributes.
//!
//! Owns the splitting. Uses no XML parser: the JVM writes each tag on a separate line, a truncated
//! log is no XML, and a reader must continue after damage. Entities stay as they are; no stored
//! value has any.

use std::time::Duration;

use super::super::number;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct XmlTag<'a> {
    /// Its name, with the slash where it closes: `gc-start`, `/gc-start`.
    pub name: &'a [u8],
    rest: &'a [u8],
}

impl<'a> XmlTag<'a> {
    pub fn from_line(line: &'a [u8]) -> Option<Self> {
        let inner = line.trim_ascii_start().strip_prefix(b"<")?;
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'?');
        let length = inner.iter().take_while(|b| is_name(b)).count();
        // `<a/>` ends in a slash that is no part of the name.
        let length = match inner[..length].strip_suffix(b"/") {
            Some(name) if !name.is_empty() => name.len(),
            _ => length,
        };
        let (name, rest) = inner.split_at(length);
        (!name.is_empty()).then_some(Self { name, rest })
    }

    pub fn attribute_text(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        while let Some(at) = memchr::memchr(b'"', rest) {
            let key = rest[..at].trim_ascii_start().strip_suffix(b"=")?;
            let value = &rest[at + 1..];
            let end = memchr::memchr(b'"', value)?;
            if key == name {
                return Some(&value[..end]);
            }
            rest = &value[end + 1..];
        }
        None
    }

    /// A whole number, decimal or `0x` and hexadecimal.
    pub fn attribute_number(&self, name: &[u8]) -> Option<u64> {
        parse_whole(self.attribute_text(name)?)
    }

    /// Milliseconds with three decimals, as `durationms` and `timems` have them.
    pub fn attribute_millis(&self, name: &[u8]) -> Option<Duration> {
        match number::take_billionths(self.attribute_text(name)?)? {
            (billionths, b"") => Some(Duration::from_nanos(billionths / 1_000)),
            _ => None,
        }
    }

    /// `timestamp`, local time of the JVM, milliseconds since 1970 as if it were UTC.
    pub fn stamp(&self) -> Option<i64> {
        number::take_date(self.attribute_text(b"timestamp")?).map(|(millis, _)| millis)
    }
}

pub(super) fn parse_whole(text: &[u8]) -> Option<u64> {
    if let Some(digits) = text.strip_prefix(b"0x") {
        return u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    }
    match number::take_whole(text)? {
        (value, b"") => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_a_name_and_attributes() {
        let line = br#"  <gc-end id="9878" type="global" durationms="1239.395" timestamp="2016-08-09T14:58:59.586">"#;
        let tag = XmlTag::from_line(line).expect("a tag");
        assert_eq!(tag.name, b"gc-end");
        assert_eq!(tag.attribute_number(b"id"), Some(9878));
        assert_eq!(tag.attribute_text(b"type"), Some(&b"global"[..]));
        assert_eq!(
            tag.attribute_millis(b"durationms"),
            Some(Duration::from_micros(1_239_395))
        );
        assert_eq!(tag.stamp(), Some(1_470_754_739_586));
        assert_eq!(tag.attribute_text(b"absent"), None);
        let hexadecimal =
            XmlTag::from_line(br#"<attribute name="maxHeapSize" value="0x20000000" />"#);
        assert_eq!(
            hexadecimal.expect("a tag").attribute_number(b"value"),
            Some(512 << 20)
        );
        assert_eq!(
            XmlTag::from_line(b"</gc-end>").map(|t| t.name),
            Some(&b"/gc-end"[..])
        );
        assert_eq!(
            XmlTag::from_line(b"<vmargs/>").map(|t| t.name),
            Some(&b"vmargs"[..])
        );
    }

    #[test]
    fn what_is_cut_has_what_it_has() {
        let tag = XmlTag::from_line(br#"<exclusive-end id="10" durationms="12.3"#).expect("a tag");
        assert_eq!(
            (
                tag.attribute_number(b"id"),
                tag.attribute_millis(b"durationms")
            ),
            (Some(10), None)
        );
        for text in [&b""[..], b"<", b"x", b"[1ns]<a>"] {
            assert_eq!(XmlTag::from_line(text), None);
        }
    }
}
