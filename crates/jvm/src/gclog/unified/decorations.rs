//! The bracketed fields before a message: `[0.008s][1269316683872ns][info][gc,start ] `.
//!
//! Any subset of the twelve decorations, in any locale, padded or not. They are recognised by their
//! form, because a log does not declare them.

use super::super::event::LogTime;
use super::super::number;

/// Smaller `ms` values are uptime, larger ones time since 1970: 16 years against 1986.
const EPOCH_FROM_MS: u64 = 500_000_000_000;

/// A lone `ns` value below this is uptime: no machine starts a JVM in the first second after boot.
const MONOTONIC_FROM_NS: u64 = 1_000_000_000;

/// Uptime as `s` or `ms` and as `ns` differ by rounding and by the time between two readings; no
/// JVM starts so early after boot that the monotonic clock is this near.
const SAME_CLOCK_NS: u64 = 10_000_000;
const FIELDS_LIMIT: usize = 14;

/// First words of a classic record: `[Times: ...]`, `[GC ...]`, `[CMS-concurrent-mark-start]`.
const CLASSIC: [&[u8]; 7] = [b"GC", b"Full", b"CMS", b"Par", b"PS", b"Def", b"Unloading"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Decorations<'a> {
    pub at: LogTime,
    /// `gc,start` without padding; empty when the log has no tags.
    pub tags: &'a [u8],
}

impl<'a> Decorations<'a> {
    /// Splits a line; `None` for text outside a unified log. Without any field only an unmistakable
    /// message counts.
    pub(in super::super) fn split_line(line: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut found = Self::default();
        let mut rest = line;
        let mut fields = 0;
        while let [b'[', inner @ ..] = rest {
            let Some(end) = field_end(inner) else { break };
            let field = &inner[..end];
            // A message without tags has an empty field for them.
            let is_field = found.take_field(field) || (field.is_empty() && fields > 0);
            let is_record = fields == 0 && is_classic(field, &inner[end + 1..]);
            if !is_field || is_record {
                break;
            }
            rest = &inner[end + 1..];
            fields += 1;
            if fields == FIELDS_LIMIT {
                break;
            }
        }
        if fields == 0 {
            let bare = rest.starts_with(b"GC(")
                || rest.starts_with(b"Safepoint \"")
                || rest.ends_with(b" messages dropped due to async logging");
            return bare.then_some((found, rest));
        }
        Some((found, rest.strip_prefix(b" ").unwrap_or(rest)))
    }

    fn take_field(&mut self, field: &'a [u8]) -> bool {
        let field = field.trim_ascii_end();
        match field.first() {
            Some(b'0'..=b'9') => self.take_number(field),
            Some(b'a'..=b'z') => {
                if !is_level(field) && is_tags(field) {
                    self.tags = field;
                }
                // A host name may be anything without a blank.
                !field.contains(&b' ')
            }
            // Classic logs have `[Times: ...]`, `[GC ...]`.
            Some(b'A'..=b'Z') => !field.iter().any(|b| matches!(b, b' ' | b':' | b'(')),
            _ => false,
        }
    }

    fn take_number(&mut self, field: &[u8]) -> bool {
        if let Some((millis, rest)) = number::take_date(field) {
            self.at.unix_ms = self.at.unix_ms.or(Some(millis));
            return rest.is_empty();
        }
        let Some((whole, unit)) = number::take_whole(field) else {
            return false;
        };
        match unit {
            b"ms" if whole >= EPOCH_FROM_MS => {
                self.at.unix_ms = self.at.unix_ms.or(i64::try_from(whole).ok());
            }
            b"ms" => self.take_uptime(whole.saturating_mul(1_000_000)),
            b"ns" => self.take_nanos(whole),
            // Process and thread ids stand bare.
            b"" => {}
            _ => return self.take_seconds(field),
        }
        true
    }

    fn take_seconds(&mut self, field: &[u8]) -> bool {
        match number::take_billionths(field) {
            Some((nanos, b"s")) => self.take_uptime(nanos),
            // A host name may start with a digit.
            _ => return !field.iter().any(|b| matches!(b, b' ' | b':' | b'>')),
        }
        true
    }

    fn take_uptime(&mut self, nanos: u64) {
        self.at.uptime_ns = self.at.uptime_ns.or(Some(nanos));
    }

    /// `tn` and `un` look alike: `un` agrees with the uptime of its line, and comes after `tn`.
    fn take_nanos(&mut self, nanos: u64) {
        let is_uptime = match (self.at.uptime_ns, self.at.monotonic_ns) {
            (_, Some(_)) => true,
            (Some(uptime), None) => nanos.abs_diff(uptime) < SAME_CLOCK_NS,
            (None, None) => nanos < MONOTONIC_FROM_NS,
        };
        if is_uptime {
            self.take_uptime(nanos);
        } else {
            self.at.monotonic_ns = Some(nanos);
        }
    }
}

/// The closing bracket, within the longest field there can be (a host name has 255 bytes).
fn field_end(inner: &[u8]) -> Option<usize> {
    let window = &inner[..inner.len().min(260)];
    memchr::memchr(b']', window)
}

/// Whether the first field of a line is no host name but a classic record: those begin a line,
/// and no other field or message follows them.
fn is_classic(field: &[u8], after: &[u8]) -> bool {
    let is_decoration = after.starts_with(b"[") || after.starts_with(b" GC(");
    // Nearly all fields begin with a digit: one look is enough for them.
    matches!(field.first(), Some(b'A'..=b'Z'))
        && CLASSIC.iter().any(|word| field.starts_with(word))
        && (field.starts_with(b"CMS-concurrent-") || !is_decoration)
}

fn is_level(field: &[u8]) -> bool {
    matches!(field, b"info" | b"debug" | b"trace" | b"warning" | b"error")
}

fn is_tags(field: &[u8]) -> bool {
    field
        .iter()
        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b',' | b'_'))
}
