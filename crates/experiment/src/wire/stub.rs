//! Stubs of HTTP dependencies, in a file.
//!
//! Owns the schema of a stub's file and of its answers; [`super::super::stub`] turns them into
//! types. Latency has the keys of a `latency` toxic, a pattern those of a profile's templates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadline_load::histogram;
use loadline_load::profile::ClassAnswers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::said::{Text, ValueWithOrigin};

const STUB: &str = "--stub";

/// A stub's file: what it answers. `loadline profile --stub` writes one from access logs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StubFile {
    /// Where it comes from, in words; for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The answers.
    #[serde(default)]
    pub answer: Vec<AnswerTable>,
}

impl StubFile {
    pub fn from_seen_answers(origin: String, seen: Vec<ClassAnswers>) -> Self {
        let recorded =
            |seen: &ClassAnswers| (!seen.durations.is_empty()).then(|| seen.durations.clone());
        let answer = |seen: ClassAnswers| AnswerTable {
            weight: Some(ValueWithOrigin::from_flag(STUB, seen.requests as f64)),
            status: Some(ValueWithOrigin::from_flag(STUB, seen.status)),
            body_bytes: Some(ValueWithOrigin::from_flag(STUB, seen.mean_bytes)),
            recorded: recorded(&seen).map(|_| ValueWithOrigin::from_flag(STUB, origin.clone())),
            histogram: recorded(&seen).map(|durations| histogram::encode_histogram(&durations)),
            r#match: ValueWithOrigin::from_flag(STUB, seen.class),
            ..AnswerTable::default()
        };
        Self {
            answer: seen.into_iter().map(answer).collect(),
            origin,
        }
    }

    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// An answer of a stub. The first `match` that fits a request counts; among several with the same
/// `match` the weights decide at random.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AnswerTable {
    /// Method and path: `GET /prices/*`. `*` is what lies between two slashes (also the method), `**`
    /// everything; the path counts as it is and with its identifiers replaced, `GET /prices/{id}`.
    pub r#match: Text,
    /// How often, relative to others with the same `match`; default 1.
    pub weight: Option<ValueWithOrigin<f64>>,
    /// Status; default 200.
    pub status: Option<ValueWithOrigin<u16>>,
    /// Headers; the length of the body is added.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// The body.
    pub body: Option<String>,
    /// A file with the body, relative to the file that names it.
    pub body_file: Option<ValueWithOrigin<PathBuf>>,
    /// A body of this many meaningless bytes.
    pub body_bytes: Option<ValueWithOrigin<u64>>,
    /// From the end of the request until the answer is sent: `20ms`; default: at once.
    pub latency: Option<Text>,
    /// How far that varies: `5ms`.
    pub jitter: Option<Text>,
    /// `uniform` (the default with jitter), `normal`, or `pareto`.
    pub distribution: Option<Text>,
    /// Of a Pareto distribution, above 1: smaller is a longer tail; default 2.5.
    pub shape: Option<ValueWithOrigin<f64>>,
    /// In place of the others: an HdrHistogram interval log (`.hlog`, in ns), relative to the file that
    /// names it, from which is drawn as often as was seen.
    pub recorded: Option<Text>,
    /// What `recorded` holds, once it was read: HdrHistogram V2 deflate, base64, ns.
    pub histogram: Option<String>,
}
