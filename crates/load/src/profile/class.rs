//! Requests that do the same: a path with its identifiers replaced.
//!
//! Owns the rule: a segment of digits becomes `{id}`, a UUID `{uuid}`, 16 or more hexadecimal
//! digits `{hash}`; of the query only the keys are kept.

use std::hash::Hasher;

/// Hashes class keys, of which there are few and which are met for every line. A log made to
/// collide costs time only: the number of classes is limited.
/// Source of the constant: FxHash, 2^64 over the golden ratio made odd.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for word in words.iter().chain(std::iter::once(&last)) {
            let mixed = self.0.rotate_left(5) ^ u64::from_le_bytes(*word);
            self.0 = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, the product mixes the high ones.
        self.0 ^ (self.0 >> 32)
    }
}

pub(super) fn normalise(path: &[u8], out: &mut Vec<u8>) {
    let (path, query) = match path.iter().position(|b| *b == b'?') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (path, &[][..]),
    };
    for (index, segment) in path.split(|b| *b == b'/').enumerate() {
        if index > 0 {
            out.push(b'/');
        }
        out.extend_from_slice(replacement(segment).unwrap_or(segment));
    }
    let keys = query.split(|b| *b == b'&').filter(|pair| !pair.is_empty());
    for (index, pair) in keys.enumerate() {
        out.push(if index == 0 { b'?' } else { b'&' });
        let end = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
        out.extend_from_slice(&pair[..end]);
    }
}

fn replacement(segment: &[u8]) -> Option<&'static [u8]> {
    if !segment.first()?.is_ascii_hexdigit() {
        return None;
    }
    if segment.iter().all(u8::is_ascii_digit) {
        return Some(b"{id}");
    }
    let is_uuid = segment.len() == 36
        && segment.iter().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        });
    if is_uuid {
        return Some(b"{uuid}");
    }
    let is_hash = segment.len() >= 16 && segment.iter().all(u8::is_ascii_hexdigit);
    is_hash.then_some(b"{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_replaced_and_words_are_not() {
        for (path, class) in [
            ("/", "/"),
            ("/owners/17/pets/3", "/owners/{id}/pets/{id}"),
            ("/a/123e4567-e89b-12d3-a456-426614174000", "/a/{uuid}"),
            ("/img/d41d8cd98f00b204e9800998ecf8427e", "/img/{hash}"),
            ("/cafe/v2", "/cafe/v2"),
            ("/owners?lastName=Davis&page=2", "/owners?lastName&page"),
            ("/x?", "/x"),
        ] {
            let mut out = Vec::new();
            normalise(path.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), class);
        }
    }
}
