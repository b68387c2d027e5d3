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
    let named = ends.find(is_secret).map(|at| at + 1);
    let begins = named.into_iter().chain(option_value(&text));
    match begins.min() {
        Some(at) if !text[at..].trim().is_empty() => {
            let gap = text[at..].len() - text[at..].trim_start().len();
            format!("{}{REDACTED}", &text[..at + gap])
        }
        _ => text.into_owned(),
    }
}

/// The end of the first option that names a secret and has its value behind a blank: `--password x`.
fn option_value(text: &str) -> Option<usize> {
    let mut end = 0;
    let mut words = text.split(' ').map(|word| {
        let begin = end;
        end += word.len() + 1;
        (begin, word)
    });
    let is_option = |word: &str| word.starts_with('-') && !word.contains(['=', ':']);
    let (begin, word) = words.find(|(_, word)| is_option(word) && is_secret_name(word))?;
    let next = words.map(|(_, word)| word).find(|word| !word.is_empty())?;
    (!next.starts_with('-')).then_some(begin + word.len())
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
