//! Texts as Dockerfiles take them: quoted, or held to what a name may have.

use crate::text;

pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text::one_line(text)).to_string()
}

/// A value of an `ENV` line: quoted, `$` literal.
pub fn env(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

pub fn image_reference(text: &str) -> String {
    let is_reference = |c: &char| c.is_ascii_alphanumeric() || "._-/:@".contains(*c);
    text.chars().filter(is_reference).collect()
}
