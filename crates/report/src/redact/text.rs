//! Secrets taken out of a line, a command, a variable.
//!
//! Owns what name makes a value a secret, and where such a value begins.

use std::borrow::Cow;

pub const REDACTED: &str = "[redacted]";

/// Texts inside a name that make its value a secret (`dbPassword`, `ACCESS_TOKEN`).
const INSIDE: [&str; 8] = [
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "credential",
];
/// Whole words of a name that do so (`ssl.key`, `basic-auth`, `accountKey`), where a part would hit
/// too much (`monkey`, `author`, `passes`).
const WORDS: [&str; 8] = [
    "pass",
    "key",
    "cred",
    "creds",
    "auth",
    "authorization",
    "cookie",
    // The address of a webhook is all that it takes to write there.
    "notify",
];
/// Words after `key` that make it the name of something else: `keyStore` is a path.
const NO_KEYS: [&str; 4] = ["store", "alias", "serializer", "deserializer"];

pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if INSIDE.iter().any(|part| lower.contains(part)) {
        return true;
    }
    let words = name_words(name.strip_prefix("-D").unwrap_or(name));
    let is_other = |next: Option<&String>| next.is_some_and(|w| NO_KEYS.contains(&w.as_str()));
    let is_secret = |(at, word): (usize, &String)| {
        WORDS.contains(&word.as_str()) && !(word == "key" && is_other(words.get(at + 1)))
    };
    words.iter().enumerate().any(is_secret)
}

/// The words of a name in lower case: `storage.accountKey` is `storage`, `account`, `key`.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let ends_capitals = before.is_uppercase() && rest.peek().is_some_and(|n| n.is_lowercase());
        let begins = c.is_uppercase() && (!before.is_uppercase() || ends_capitals);
        if begins || ['.', '_', '-'].contains(&c) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && !['.', '_', '-'].contains(&c)
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// One argument or line: `--db.password=x` becomes `--db.password=[redacted]`, and
/// `jdbc:x://user:pw@host` becomes `jdbc:x://[redacted]@host`. All after the first secret name goes:
/// where its value ends cannot be known.
pub fn redact_line(text: &str) -> String {
    let text = url_user(text);
    let is_secret = |at: &usize| is_secret_name(name_before(&text, *at));
    let ends = text
        .match_indices(['=', ':'])
        .map(|(at, _)| at)
        .find(is_secret);
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

/// A command: each argument by itself; `--password x` as two arguments too.
pub fn redact_command(arguments: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(arguments.len());
    let mut names_secret = false;
    for argument in arguments {
        if names_secret && !argument.starts_with('-') {
            out.push(REDACTED.to_owned());
        } else {
            out.push(redact_line(argument));
        }
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
        let end = after
            .find(|c: char| c == '/' || c == '"' || c == '\'' || c.is_whitespace())
            .unwrap_or(after.len());
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
