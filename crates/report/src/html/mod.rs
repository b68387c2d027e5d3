//! The report as one HTML file that works from file://, offline, forever.
//!
//! Owns the page and its safety: every text is escaped, no inline handlers or styles, a content
//! security policy that allows exactly our scripts and style by hash (CSP Level 3). The content is
//! that of every other format ([`crate::content`]); only charts are added.

mod assets;
mod charts;
mod page;

use base64::Engine as _;
use sha2::{Digest, Sha256};

use crate::text;

pub use page::html;

/// A text as HTML, for elements and quoted attributes; control characters are gone.
pub fn escape(foreign: &str) -> String {
    escape_clean(&text::clean(foreign))
}

/// [`escape`] for whole files.
pub(crate) fn escape_file(foreign: &str) -> String {
    escape_clean(&text::clean_file(foreign))
}

fn escape_clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// JSON that may stand inside a script element: it cannot end the element or start a comment.
fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            _ => out.push(c),
        }
    }
    out
}

/// The source expression of a script or style in the policy: `'sha256-...'`.
fn policy_hash(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    format!(
        "'sha256-{}'",
        base64::engine::general_purpose::STANDARD.encode(digest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("\"><img onerror='x'>\u{1b}[31m"),
            "&quot;&gt;&lt;img onerror=&#39;x&#39;&gt;"
        );
        assert_eq!(
            json_in_script("\"</script>\u{2028}\""),
            "\"\\u003c/script\\u003e\\u2028\""
        );
    }

    #[test]
    fn the_policy_hash_is_the_one_of_the_standard() {
        // The example of CSP Level 2, section 7.18.1 (script-src, hash usage).
        assert_eq!(
            policy_hash("alert('Hello, world.');"),
            "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
        );
    }
}
