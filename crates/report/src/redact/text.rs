//! Secrets taken out of a line, a command, a variable.
//!
//! Owns where the value of a secret begins; which names are one is [`loadline_sizing::secret`]'s.

use std::borrow::Cow;

pub use loadline_sizing::secret::is_secret_name;

pub const REDACTED: &str = "[redacted]";

/// One argument or line: `--db.password=x` becomes `--db.password=[redacted]`, and
/// `jdbc:x://user:pw@host` becomes `jdbc:x://[redacted]@host`. All after the first secret name goes:
/// where its value ends cannot be known.
pub fn redact_line(text: &str) -> String {
    let text = url_user(text);
    let is_secret = |at: &usize| is_secret_name(name_before(&text, *at));
    let mut ends = text.match_indices(['=', ':']).map(|(at, _)| at);
    let ends = ends.find(is_secret);
    match ends {
        Some(at) if !text[at + 1..].trim().is_empty() => {
            let gap = text[at + 1..].len() - text[at + 1..].trim_start().len();
            format!("{}{REDACTED}", &text[..=at + gap])
        }
        _ => text.into_owned(),
    }
}

pub fn redact_variable(name: &str, value: &str) -> String {
    if is_secret_name(name) {
        format!("{name}={REDACTED}")
    } else {
        format!("{name}={}", url_user(value))
    }
}

/// A command, argument by argument; `--password x` as two arguments too.
pub fn redact_command(arguments: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(arguments.len());
    let mut names_secret = false;
    for argument in arguments {
        out.push(if names_secret && !argument.starts_with('-') {
            REDACTED.to_owned()
        } else {
            redact_line(argument)
        });
        names_secret =
            argument.starts_with('-') && !argument.contains('=') && is_secret_name(argument);
    }
    out
}

/// The last word before the separator: `-Dspring.datasource.password` of a whole line.
fn name_before(text: &str, at: usize) -> &str {
    let name = text[..at].trim_end();
    let is_end = |c: char| !(c.is_alphanumeric() || "._-".contains(c));
    name.rsplit(is_end).find(|w| !w.is_empty()).unwrap_or(name)
}

fn url_user(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let is_end = |c: char| c == '/' || c == '"' || c == '\'' || c.is_whitespace();
        let end = after.find(is_end).unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(user) => {
                out.push_str(REDACTED);
                rest = &after[user..];
            }
            None => rest = after,
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}
