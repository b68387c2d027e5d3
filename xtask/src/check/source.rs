//! Rust text as rules read it: where comments, strings and test-only items are.
//!
//! Not a parser. It knows how comments, literals and brackets nest, which is what decides where an
//! item ends.

use std::ops::Range;

/// The text with blanks for comments and for the content of string and character literals. Every
/// line keeps its number and every byte its place.
pub fn blank_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = token_end(bytes, at);
        if end == at {
            plain.push(bytes[at]);
            at += 1;
            continue;
        }
        let blank = |byte: &u8| if *byte == b'\n' { b'\n' } else { b' ' };
        plain.extend(bytes[at..end].iter().map(blank));
        at = end;
    }
    String::from_utf8(plain).unwrap_or_default()
}

/// Where the comment or literal that begins here ends; `at` when none begins here.
fn token_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => end_of(rest, b"\n").map_or(bytes.len(), |length| at + length - 1),
        [b'/', b'*', ..] => comment_end(bytes, at),
        [b'"', ..] => string_end(bytes, at),
        [b'\'', ..] => character_end(bytes, at),
        [b'r', b'"' | b'#', ..] if !is_in_word(bytes, at) => raw_string_end(bytes, at),
        _ if rest[0] >= 0x80 => at + 1,
        _ => at,
    }
}

/// Whether a longer word goes on here. `br""` and `cr""` are raw strings as `r""` is.
fn is_in_word(bytes: &[u8], at: usize) -> bool {
    let word = bytes[..at]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    let word: Vec<u8> = word.copied().collect();
    !matches!(word.as_slice(), [] | [b'b' | b'c'])
}

fn end_of(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let found = bytes.windows(mark.len()).position(|window| window == mark);
    found.map(|at| at + mark.len())
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], start: usize) -> usize {
    let hashes = bytes[start + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let quote = start + 1 + hashes;
    // `r#name` is a word.
    if bytes.get(quote) != Some(&b'"') {
        return start;
    }
    let mut mark = vec![b'"'];
    mark.resize(hashes + 1, b'#');
    end_of(&bytes[quote + 1..], &mark).map_or(bytes.len(), |length| quote + 1 + length)
}

/// A quote begins a character, or is the mark of a lifetime.
fn character_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start + 1) {
        Some(b'\\') => end_of(&bytes[start + 3..], b"'").map_or(bytes.len(), |n| start + 3 + n),
        Some(first) => {
            let length = match first {
                0x00..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0.. => 4,
            };
            let end = start + 1 + length;
            match bytes.get(end) == Some(&b'\'') {
                true => end + 1,
                false => start,
            }
        }
        None => start,
    }
}

/// The bytes of items that exist in tests only. `plain` is what [`blank_literals`] gave.
pub fn test_items(plain: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for mark in ["#[cfg(test)]", "#[cfg(all(test,"] {
        for (start, _) in plain.match_indices(mark) {
            items.push(start..item_end(plain, start));
        }
    }
    items.sort_by_key(|item| item.start);
    items
}

fn item_end(plain: &str, start: usize) -> usize {
    let body = after_attributes(plain, start);
    let first = plain[body..].split(|c: char| !c.is_alphanumeric()).next();
    // A field, a variant or an arm ends with a comma; so does no item.
    let ends_with_comma = !first.is_some_and(|word| ITEM_WORDS.contains(&word));
    // After the braces of these comes a semicolon.
    let has_semicolon = ["use", "const", "static", "type", "let"]
        .iter()
        .any(|word| first == Some(word))
        || plain[body..].starts_with("pub use ");
    let mut depth = 0;
    for (offset, byte) in plain[body..].bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        let is_end = match byte {
            b';' => depth == 0,
            b',' => depth == 0 && ends_with_comma,
            b'}' => depth == 0 && !has_semicolon,
            _ => false,
        };
        if depth < 0 {
            return body + offset;
        }
        if is_end {
            return body + offset + 1;
        }
    }
    plain.len()
}

const ITEM_WORDS: &[&str] = &[
    "pub", "fn", "mod", "use", "struct", "enum", "trait", "impl", "const", "static", "type",
    "unsafe", "async", "extern", "let",
];

fn after_attributes(plain: &str, start: usize) -> usize {
    let mut at = start;
    while plain[at..].starts_with("#[") {
        let mut depth = 0;
        for (offset, byte) in plain[at..].bytes().enumerate() {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if byte == b']' && depth == 0 {
                at += offset + 1;
                break;
            }
        }
        if depth != 0 {
            return plain.len();
        }
        at += plain[at..].len() - plain[at..].trim_start().len();
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remainder without test items.
    fn shipped(text: &str) -> String {
        let plain = blank_literals(text);
        let (mut left, mut at) = (String::new(), 0);
        for item in test_items(&plain) {
            if item.start >= at {
                left.push_str(&text[at..item.start]);
                at = item.end;
            }
        }
        left + &text[at..]
    }

    #[test]
    fn comments_and_literals_are_blank() {
        for (text, plain) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("}\"{", b"x")"#, "f(      , b   )"),
            (r##"f(r#"}"#, br"{")"##, "f(      , b    )"),
            (
                r"f('{', '\'', '\u{7d}', 'é')",
                "f(   ,     ,         ,     )",
            ),
            ("fn f<'a>(b: &'a str)", "fn f<'a>(b: &'a str)"),
            ("r#type + r2", "r#type + r2"),
        ] {
            assert_eq!(blank_literals(text), plain, "{text}");
            assert_eq!(blank_literals(text).len(), text.len());
        }
    }

    #[test]
    fn only_the_items_of_tests_go() {
        for (text, left) in [
            (
                "a();\n#[cfg(test)]\nmod tests {\n\"}\"; }\n}\nb();",
                "a();\n\n}\nb();",
            ),
            ("#[cfg(test)]\nmod story;\nmod size;", "\nmod size;"),
            ("#[cfg(test)]\nuse a::{b, c};\nx", "\nx"),
            (
                "#[cfg(test)]\npub fn f(a: [u8; 3]) -> B<C, D> {\n}\nx",
                "\nx",
            ),
            ("#[cfg(all(test, unix))]\n#[allow(a)]\nfn f() {}\nx", "\nx"),
            (
                "struct A {\n#[cfg(test)]\nb: C<D>,\ne: F }",
                "struct A {\n\ne: F }",
            ),
            ("A {\n#[cfg(test)]\nb: 1\n}x", "A {\n}x"),
            (
                "#[cfg(any(test, fuzzing))]\nmod a;",
                "#[cfg(any(test, fuzzing))]\nmod a;",
            ),
            ("// #[cfg(test)]\nmod a {}", "// #[cfg(test)]\nmod a {}"),
        ] {
            assert_eq!(shipped(text), left, "{text}");
        }
    }
}
