//! What can stop a load run: never a failed request, only a plan or a machine that cannot.

use std::path::PathBuf;

use rustix::io::Errno;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{field}: {why}")]
    Plan { field: &'static str, why: String },
    #[error("part: {why}")]
    Part { why: String, hint: String },
    #[error("{call} failed: {errno}")]
    System {
        call: &'static str,
        errno: Errno,
        hint: &'static str,
    },
    #[error("{path}: cannot enter the network namespace: {errno}")]
    Namespace { path: PathBuf, errno: Errno },
    #[error("{authority}: {why}")]
    Target { authority: String, why: String },
    #[error("{authority}: unknown host: {why}")]
    UnknownHost { authority: String, why: String },
    #[error("the order on standard input is not valid: {0}")]
    Order(serde_json::Error),
    #[error("standard output: {0}")]
    Output(std::io::Error),
    #[error("the generator {name}: {why}")]
    Generator { name: String, why: String },
    #[error("the histogram is damaged: {0}")]
    Histogram(String),
    /// The outcomes do not add up to the schedule: a defect of loadline.
    #[error(
        "{scheduled} requests were scheduled but {accounted} are accounted for; this is a defect, please report it"
    )]
    Accounting { scheduled: u64, accounted: u64 },
    #[error("a generator thread panicked; this is a defect, please report it")]
    Panicked,
}

pub fn split_refusal(refusal: &str) -> (&str, Option<&str>) {
    match refusal.rsplit_once("; ") {
        Some((said, next)) => (said, Some(next)),
        None => (refusal, None),
    }
}

/// What serde calls a type, or a value before it shows it, and what people do.
const TYPES: [(&str, &str); 12] = [
    ("a sequence", "a list"),
    ("sequence", "a list"),
    ("a map", "a table"),
    ("map", "a table"),
    ("struct", "a table"),
    ("a boolean", "true or false"),
    ("u", "a whole number"),
    ("boolean ", ""),
    ("string ", "the text "),
    ("integer ", "the number "),
    ("floating point ", "the number "),
    ("f", "a number"),
];

/// A problem as serde says it, for people: of a key, or of a value of another type.
pub fn in_plain_words(problem: &str) -> String {
    let plain = |said: &str| {
        let known = TYPES.iter().find(|(rust, _)| said.starts_with(rust));
        known.map_or(said.to_owned(), |(rust, plain)| match *rust {
            "struct" | "u" | "f" => (*plain).to_owned(),
            _ => said.replacen(rust, plain, 1),
        })
    };
    if let Some(key) = problem.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(rest) = problem.strip_prefix("unknown field ") {
        return format!(
            "there is no key {} here",
            rest.split(',').next().unwrap_or(rest)
        );
    }
    let value = problem.strip_prefix("invalid type: ");
    let value = value.or(problem.strip_prefix("invalid value: "));
    match value.and_then(|value| value.rsplit_once(", expected ")) {
        Some((given, expected)) => format!("expected {}, not {}", plain(expected), plain(given)),
        None => problem.to_owned(),
    }
}

/// What is wrong with a text in TOML, with its line and what to do.
pub(crate) fn toml_refusal(text: &str, error: &toml::de::Error) -> String {
    let begin = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..begin]
        .split(|byte| *byte == b'\n')
        .count();
    let said = error.message();
    let hint = match said.split_once(", expected one of ") {
        Some((_, known)) => format!("known here: {}", known.replace('`', "")),
        None => "`loadline profile` writes one".to_owned(),
    };
    format!("line {line}: {}; {hint}", in_plain_words(said))
}

impl LoadError {
    pub fn load_hint(&self) -> Option<&str> {
        match self {
            Self::Part { hint, .. } => Some(hint),
            Self::System { hint, .. } => Some(hint),
            Self::Namespace { .. } => Some("it needs CAP_SYS_ADMIN and a running application"),
            Self::UnknownHost { .. } => Some(
                "check the spelling; names of containers and of services in a cluster are known only there",
            ),
            Self::Target { .. } => Some("is the server running and listening there?"),
            _ => None,
        }
    }

    pub(crate) fn plan(field: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Plan { field, why }
    }

    pub(crate) fn from_system_call(
        call: &'static str,
        hint: &'static str,
    ) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { call, errno, hint }
    }
}
