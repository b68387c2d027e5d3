//! Request patterns: a method and a path with stars.
//!
//! Owns the form and the match: `*` matches the text between two slashes (also the method), `**`
//! everything; keys of a query count only if the pattern has them. Templates of a profile and
//! answers of a stub use patterns.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A method and a path, such as `POST /orders/*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

impl Pattern {
    pub fn fits_request(&self, request: &[u8]) -> bool {
        let pattern = self.0.as_bytes();
        let path = memchr::memchr(b'?', request).map_or(request, |at| &request[..at]);
        let has_query = pattern.contains(&b'?');
        matches(pattern, if has_query { request } else { path })
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_one = text
            .split_once(' ')
            .is_some_and(|(method, path)| !method.is_empty() && path.starts_with('/'));
        if is_one || text.ends_with(" **") {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "match = \"{text}\" is not a method and path, such as \"POST /orders/*\""
            ))
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where to go on when what follows a star does not fit: one more byte belongs to the star.
    let (mut at, mut from) = (0, 0);
    let mut retry: Option<(usize, usize, bool)> = None;
    loop {
        let is_all = pattern[at..].starts_with(b"**");
        if is_all || pattern.get(at) == Some(&b'*') {
            at += if is_all { 2 } else { 1 };
            retry = Some((at, from, is_all));
        } else if from < text.len() && pattern.get(at) == text.get(from) {
            at += 1;
            from += 1;
        } else if at == pattern.len() && from == text.len() {
            return true;
        } else {
            let Some((after, taken, is_all)) = retry else {
                return false;
            };
            let is_end = !is_all && matches!(text.get(taken), Some(b'/' | b' ' | b'?'));
            if taken == text.len() || is_end {
                return false;
            }
            (at, from) = (after, taken + 1);
            retry = Some((after, taken + 1, is_all));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_one_stretch_or_all() {
        for (pattern, class, is_match) in [
            ("POST /orders", "POST /orders", true),
            ("POST /orders", "POST /orders/{id}", false),
            ("POST /orders/*", "POST /orders/{id}", true),
            ("POST /orders/*", "POST /orders/{id}/items", false),
            ("POST /orders/*/items", "POST /orders/{id}/items", true),
            ("POST /orders/**", "POST /orders/{id}/items", true),
            ("POST /**/items", "POST /a/b/items", true),
            ("* /orders", "PUT /orders", true),
            ("*T /orders", "PUT /orders", true),
            ("* **", "DELETE /a/b?c", true),
            ("POST /orders", "POST /orders?dry", true),
            ("POST /orders?dry", "POST /orders?dry", true),
            ("POST /orders?dry", "POST /orders", false),
            ("POST /orders/{id}", "POST /orders/{id}", true),
            ("POST /o*s/*", "POST /orders/7", true),
            ("POST /o", "POST /", false),
        ] {
            let read: Pattern = pattern.parse().unwrap();
            assert_eq!(
                read.fits_request(class.as_bytes()),
                is_match,
                "{pattern} {class}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_an_example() {
        for text in ["/orders", "POST orders", "", "POST", " /x"] {
            let refused = text.parse::<Pattern>().unwrap_err();
            assert!(refused.contains("not a method and path"), "{refused}");
        }
    }
}
