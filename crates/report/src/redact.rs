//! Secrets taken out of what a report shows or embeds: commands, options, environments, files.
//!
//! A value is a secret when the name before its `=` or `:` says so, or when it is the user part of
//! a URL. Reports are forwarded; the records in the store keep the values that were used.

use std::borrow::Cow;

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{Configuration, TrialRecord};

/// What stands in place of a secret.
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
/// Whole words of a name that do so (`ssl.key`, `basic-auth`), where a part would hit too much
/// (`monkey`, `author`, `passes`).
const WORDS: [&str; 7] = [
    "pass",
    "key",
    "cred",
    "creds",
    "auth",
    "authorization",
    "cookie",
];

/// Whether a variable, property or option of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(['.', '_', '-']);
    INSIDE.iter().any(|part| name.contains(part)) || words.any(|word| WORDS.contains(&word))
}

/// One argument or line: `--db.password=x` becomes `--db.password=[redacted]`, and
/// `jdbc:x://user:pw@host` becomes `jdbc:x://[redacted]@host`. All after the first secret name goes:
/// where its value ends cannot be known.
pub fn line(text: &str) -> String {
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

/// An environment variable: `NAME=value`, or `NAME=[redacted]`.
pub fn variable(name: &str, value: &str) -> String {
    if is_secret_name(name) {
        format!("{name}={REDACTED}")
    } else {
        format!("{name}={}", url_user(value))
    }
}

/// A command: each argument by itself; `--password x` as two arguments too.
pub fn command(arguments: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(arguments.len());
    let mut names_secret = false;
    for argument in arguments {
        if names_secret && !argument.starts_with('-') {
            out.push(REDACTED.to_owned());
        } else {
            out.push(line(argument));
        }
        names_secret =
            argument.starts_with('-') && !argument.contains('=') && is_secret_name(argument);
    }
    out
}

/// A file, line by line.
pub fn text(file: &str) -> String {
    file.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A copy of a record without secrets.
pub fn record(trial: &TrialRecord) -> TrialRecord {
    let mut trial = trial.clone();
    trial.configuration = configuration(&trial.configuration);
    for shown in [
        &mut trial.evidence.last_output,
        &mut trial.evidence.thread_dump,
    ] {
        for text in shown {
            *text = line(text);
        }
    }
    trial
}

/// A copy of a recommendation without secrets.
pub fn recommendation(recommendation: &Recommendation) -> Recommendation {
    Recommendation {
        configuration: configuration(&recommendation.configuration),
        ..recommendation.clone()
    }
}

fn configuration(configuration: &Configuration) -> Configuration {
    let mut configuration = configuration.clone();
    for option in &mut configuration.jvm_options {
        option.text = line(&option.text);
    }
    configuration.args = command(&configuration.args);
    for (name, value) in &mut configuration.env {
        *value = if is_secret_name(name) {
            REDACTED.to_owned()
        } else {
            line(value)
        };
    }
    configuration
}

/// The last word before the separator: `-Dspring.datasource.password` of a whole line.
fn name_before(text: &str, at: usize) -> &str {
    let name = text[..at].trim_end();
    let is_end = |c: char| !(c.is_alphanumeric() || "._-".contains(c));
    name.rsplit(is_end).find(|w| !w.is_empty()).unwrap_or(name)
}

/// Replaces the user part of each URL.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_names_go() {
        for (text, shown) in [
            ("--db.password=hunter2", "--db.password=[redacted]"),
            ("-Dapi_key=abc", "-Dapi_key=[redacted]"),
            ("password = \"x\"", "password = [redacted]"),
            ("Authorization: Bearer abc", "Authorization: [redacted]"),
            ("jdbc:pg://me:pw@db/x?a=b", "jdbc:pg://[redacted]@db/x?a=b"),
            (
                "a=1 x=2 \"token\": \"abc\"",
                "a=1 x=2 \"token\": [redacted]",
            ),
            ("http://x/?a=1&token=abc", "http://x/?a=1&token=[redacted]"),
            (
                "cannot authenticate: refused",
                "cannot authenticate: refused",
            ),
            ("-XX:+UseSerialGC", "-XX:+UseSerialGC"),
            ("-Xmx64m", "-Xmx64m"),
            ("--server.port=8080", "--server.port=8080"),
            (
                "http://localhost:8080/owners",
                "http://localhost:8080/owners",
            ),
        ] {
            assert_eq!(line(text), shown);
        }
    }

    #[test]
    fn an_option_with_its_value_as_the_next_argument() {
        let arguments = ["java", "--password", "x", "--verbose"].map(str::to_owned);
        assert_eq!(
            command(&arguments),
            ["java", "--password", "[redacted]", "--verbose"]
        );
    }
}
