//! A wrong experiment as its author should read it: where, what, and what to write instead.
//!
//! Owns the mapping from an [`ValueOrigin`] to a line or a flag, and the "did you mean" hint.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use loadline_load::{LoadError, in_plain_words, split_refusal};
use loadline_protocol::RunRefusal;
use loadline_sizing::options::words::has_word;
use strsim::damerau_levenshtein;
use toml::de::DeTable;

use super::said::ValueOrigin;
use crate::program::CommandError;

const CREDENTIALS: [&str; 3] = ["basic", "bearer", "headers"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}{}", excerpt.as_ref().map(|e| format!("\n    {e}")).unwrap_or_default())]
pub struct ExperimentError {
    pub place: String,
    pub problem: String,
    pub excerpt: Option<String>,
    pub hint: Option<String>,
}

/// What an experiment names and this machine does not have.
#[derive(Debug, thiserror::Error)]
pub enum SurroundingsError {
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

pub struct ExperimentSource<'a> {
    file: Option<(&'a str, &'a Path)>,
    /// Flags override it: a value without an origin then comes from a flag, because the file was
    /// checked alone before.
    has_flags: bool,
}

impl<'a> ExperimentSource<'a> {
    pub fn from_file(text: &'a str, path: &'a Path) -> Self {
        Self {
            file: Some((text, path)),
            has_flags: false,
        }
    }

    pub fn over_flags(under: Option<(&'a str, &'a Path)>) -> Self {
        Self {
            file: under,
            has_flags: true,
        }
    }

    pub fn experiment_error(&self, problem: impl Display, hint: impl Display) -> ExperimentError {
        ExperimentError {
            place: self.source_name(),
            problem: problem.to_string(),
            excerpt: None,
            hint: Some(hint.to_string()),
        }
    }

    /// Refuses the first option that is asked for. An option: whether it is asked for, its name, and the
    /// hint. `reason` is the begin of the sentence.
    pub fn refuse_asked(
        &self,
        reason: &str,
        options: &[(bool, &str, &str)],
    ) -> Result<(), ExperimentError> {
        match options.iter().find(|(is_asked, ..)| *is_asked) {
            None => Ok(()),
            Some((_, name, hint)) => Err(self.experiment_error(
                format!("{reason}, and the experiment asks for {name}"),
                hint,
            )),
        }
    }

    /// A refusal of a value, at its place in the file or with the name of its flag.
    pub fn error_at<'o>(
        &self,
        at: impl Into<&'o ValueOrigin>,
        problem: impl Display,
        hint: impl Display,
    ) -> ExperimentError {
        let (place, excerpt) = match at.into() {
            ValueOrigin::File(span) => self.locate(Some(span.clone())),
            ValueOrigin::Flag(name) => ((*name).to_owned(), None),
        };
        ExperimentError {
            place,
            problem: problem.to_string(),
            excerpt,
            hint: Some(hint.to_string()),
        }
    }

    pub fn key_error(
        &self,
        key: &str,
        problem: impl Display,
        hint: impl Display,
    ) -> ExperimentError {
        ExperimentError {
            hint: Some(hint.to_string()),
            ..self.load_key_error(key, &problem.to_string())
        }
    }

    pub fn load_key_error(&self, key: &str, problem: &str) -> ExperimentError {
        let (place, excerpt) = match self.file.filter(|_| !self.has_flags) {
            Some((text, _)) => self.locate(span_in_load(text, key)),
            None if key == "headers" => ("--header".to_owned(), None),
            None => (format!("--{key}"), None),
        };
        // Messages end up in logs of others.
        let excerpt = excerpt.filter(|_| !CREDENTIALS.contains(&key));
        let names_key = self.has_flags || excerpt.is_some();
        let (said, next) = split_refusal(problem);
        ExperimentError {
            place,
            problem: if names_key {
                said.to_owned()
            } else {
                format!("{key}: {said}")
            },
            excerpt,
            hint: Some(next.unwrap_or(FORMAT).to_owned()),
        }
    }

    pub fn syntax_error(&self, error: &toml::de::Error) -> ExperimentError {
        let (place, excerpt) = self.locate(error.span());
        let problem = error.message().trim().replace('\n', " ");
        let hint = did_you_mean(&problem).or_else(|| of_syntax(&problem));
        let (said, next) = match &hint {
            Some(_) => (problem.as_str(), None),
            None => split_refusal(&problem),
        };
        let hint = hint.or_else(|| Some(next.unwrap_or(FORMAT).to_owned()));
        ExperimentError {
            place,
            problem: in_plain_words(said),
            excerpt,
            hint,
        }
    }

    fn source_name(&self) -> String {
        match self.file.filter(|_| !self.has_flags) {
            Some((_, path)) => path.display().to_string(),
            None => "command line".to_owned(),
        }
    }

    fn locate(&self, span: Option<Range<usize>>) -> (String, Option<String>) {
        let (Some((text, path)), Some(span)) = (self.file, span) else {
            return (self.source_name(), None);
        };
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = text[line_start..start].chars().count() + 1;
        let mut lines = text[line_start..].lines();
        let excerpt = lines.next().map(|l| l.trim().chars().take(120).collect());
        (format!("{}:{line}:{column}", path.display()), excerpt)
    }
}

fn span_in_load(text: &str, key: &str) -> Option<Range<usize>> {
    let file = DeTable::parse(text).ok()?;
    let (table, load) = file.get_ref().get_key_value("load")?;
    let keys = load.get_ref().as_table()?;
    let key = keys.get_key_value(key).map(|(key, _)| key.span());
    Some(key.unwrap_or(table.span()))
}

const FORMAT: &str = "docs/reference/experiment.schema.json has every key (loadline schema experiment); `loadline init` writes a whole experiment";

/// A part of a problem as serde or the TOML parser says it, and the hint.
const KINDS: &str = r#"expected struct ReadyTable => write ready = { http = "/health" }, { tcp = 9092 } or { log = "Started" }
sequence, expected a string => write one text, its parts with commas: "p99<50ms,errors<0.1%"
, expected a string => write it as text, in quotes and with its unit: "512Mi", "0.5"
map, expected a sequence => write it with double brackets, once for each: [[dependency]], [[factor]]
, expected a map => write a table: { NAME = "value" }
, expected a boolean => write true or false, without quotes
unclosed => close it: a list ends with ], a table with }
key with no value, expected `=` => TOML has `=` between a key and its value: slo = "p99<50ms"
missing escaped value => between double quotes \ begins an escape: write 'C:\java' with single quotes
must be quoted => put the text in quotes: slo = "p99<50ms"
duplicate key => a table or a key may appear only once: merge them
missing field `slo` => an experiment needs an SLO: slo = "p99<50ms,errors<0.1%"; `loadline init` writes a whole one"#;

fn of_syntax(problem: &str) -> Option<String> {
    let mut kinds = KINDS.lines().filter_map(|line| line.split_once(" => "));
    if let Some((_, hint)) = kinds.find(|(kind, _)| problem.contains(kind)) {
        return Some(hint.to_owned());
    }
    let number = problem.strip_prefix("invalid type: integer `");
    if let Some(number) = number.and_then(|rest| rest.strip_suffix("`, expected a sequence")) {
        return Some(format!("write a list: [{number}]"));
    }
    let text = problem.strip_prefix("invalid type: string \"")?;
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if let Some((number, expected)) = text
        .split_once("\", expected ")
        .filter(|(n, _)| is_number(n))
    {
        return match expected {
            "a sequence" => Some(format!("write a list of numbers: [{number}]")),
            _ => Some(format!("write the number without quotes: {number}")),
        };
    }
    let text = text.strip_suffix("\", expected a sequence")?;
    // Words with quotes or escapes in them are better left to who wrote them.
    let words = if text.contains(['\\', '\'']) {
        vec!["java", "-jar", "app.jar"]
    } else {
        text.split_whitespace().collect()
    };
    Some(format!("write a list, word by word: {words:?}"))
}

/// Names that other tools and people have for a table or key.
const OTHER_NAMES: &str = "\
application service target => app
vary parameters => factor
variants => configuration
objectives => slo
traffic => load
resources => limits
dependencies => dependency
cmd => command
rps => rate
duration => measure";

/// Keys that were written into another table, and where they belong.
const PLACES: &str = r#"jvm => write JVM options into the command: ["java", "-Xmx256m", "-jar", "app.jar"]; several sets to compare are levels of a [[factor]]
command image env ready user ends fresh reset => it belongs in [app]
url rate closed duration measure warm-up warmup connections timeout => it belongs in [load]
cpu memory start-cpu instances => it belongs in [limits]
repeats seed accept-noise => it belongs in [run]
cpu-policy headroom heap prove prices replicas budget soak min-memory max-memory => it belongs in [search]"#;

/// From serde's "unknown field `x`, expected one of `a`, `b`": the nearest, or the whole list.
fn did_you_mean(problem: &str) -> Option<String> {
    let quoted: Vec<&str> = problem.split('`').skip(1).step_by(2).collect();
    let (wrong, known) = quoted.split_first()?;
    if !problem.starts_with("unknown") || known.is_empty() {
        return None;
    }
    let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
    if let Some(meant) = known.iter().find(|known| plain(known) == plain(wrong)) {
        return Some(format!("did you mean `{meant}`?"));
    }
    let rows = |table: &'static str| table.lines().filter_map(|line| line.split_once(" => "));
    let name = wrong.replace('_', "-");
    if let Some((_, place)) = rows(PLACES).find(|(keys, _)| has_word(keys, &name)) {
        return Some(place.to_owned());
    }
    let distance = |name: &str, key| (damerau_levenshtein(name, wrong), key);
    let meant = rows(OTHER_NAMES)
        .flat_map(|(names, key)| names.split(' ').map(move |name| distance(name, key)));
    let meant = meant.filter(|(_, key)| known.contains(key));
    if let Some((_, key)) = meant
        .min()
        .filter(|(far, _)| *far <= wrong.chars().count() / 4)
    {
        return Some(format!("did you mean `{key}`?"));
    }
    let nearest = known.iter().min_by_key(|k| damerau_levenshtein(k, wrong))?;
    let close = damerau_levenshtein(nearest, wrong) <= wrong.chars().count().div_ceil(2);
    Some(if close {
        format!("did you mean `{nearest}`?")
    } else {
        format!("known here: {}", known.join(", "))
    })
}
