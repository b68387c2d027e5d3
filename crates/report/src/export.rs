//! The records as JSON, for other programs and other machines; [`read`] takes them back.
//!
//! Owns the exported form. Secrets are taken out, nothing else is changed: whatever a report, an
//! artefact or a comparison says can be said again from the file alone.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{
    MOST_MEMORY, MachineDescription, SCHEMA, TrialRecord, memory_of_json,
};
use loadline_analysis::slo::Slo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::redact;
use crate::view::{LoadWords, ResultView};

/// The exported form; its fields are those of the records (docs/reference/record.md).
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ExportedResult {
    /// Version of the form of records.
    schema: u32,
    /// UUIDv7 of the result.
    result: String,
    /// Short name people gave it.
    title: String,
    /// The question of the experiment; null where it has none.
    #[serde(default)]
    question: Option<String>,
    /// The command that was typed, program first; secrets taken out.
    command: Vec<String>,
    /// The experiment (TOML); secrets taken out.
    experiment: String,
    /// The load in words; secrets taken out.
    load: String,
    /// The same words with the rate apart, where the load has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load_in_parts: Option<LoadWords>,
    /// The SLO in text.
    slo: String,
    /// The machine that measured.
    machine: MachineDescription,
    /// Why the result is not complete; null when it is.
    #[serde(default)]
    incomplete: Option<String>,
    /// What a search concluded; null for a matrix, or when nothing is feasible.
    #[serde(default)]
    recommendation: Option<Recommendation>,
    /// Remarks of the run as a whole.
    #[serde(default)]
    warnings: Vec<String>,
    /// Every trial, in the order they ran.
    trials: Vec<TrialRecord>,
}

#[derive(Deserialize)]
struct ExportVersion {
    schema: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("this is not an exported result: {why}")]
    Form { why: String },
    #[error("the records have format {found}, this loadline knows {SCHEMA}")]
    Newer { found: u32 },
    #[error("the records take more than {} GiB of memory", MOST_MEMORY >> 30)]
    Large,
    #[error("the SLO in the records cannot be read: {why}")]
    Slo { why: String },
}

impl ReadError {
    pub fn read_hint(&self) -> Option<&'static str> {
        match self {
            Self::Form { .. } => Some("`loadline export RESULT -o result.json` writes one"),
            Self::Newer { .. } => Some("use the loadline that wrote them"),
            Self::Large | Self::Slo { .. } => None,
        }
    }
}

/// The result and all its trials, on one line: indented it would be twice as long.
pub fn render_json(view: &ResultView) -> String {
    let load = redact::redact_load(&view.load);
    let recommendation = view.recommendation.as_ref();
    let export = ExportedResult {
        schema: SCHEMA,
        result: view.id.clone(),
        title: view.title.clone(),
        question: view.question.clone(),
        command: redact::redact_command(&view.command),
        experiment: redact::redact_experiment(&view.experiment),
        load: load.to_string(),
        load_in_parts: load.rate_per_second.is_some().then_some(load),
        slo: view.slo.to_string(),
        machine: redact::redact_machine(&view.machine),
        incomplete: view.incomplete.clone(),
        recommendation: recommendation.map(redact::redact_recommendation),
        warnings: view.warnings.clone(),
        trials: view.trials.iter().map(redact::redact_record).collect(),
    };
    let text = serde_json::to_string(&export);
    text.expect("records are maps with text keys; numbers that are none become null")
}

/// The records of the trials, one on each line: for tools that read JSON in a stream.
pub fn render_json_lines(view: &ResultView) -> String {
    let line = |trial: &TrialRecord| {
        let text = serde_json::to_string(&redact::redact_record(trial));
        text.expect("a record has text keys; numbers that are none become null") + "\n"
    };
    view.trials.iter().map(line).collect()
}

/// Reads the output of [`render_json`]. Secrets are redacted here too: an older loadline that knew
/// fewer kinds may have written the file. Errors: [`ReadError`] when it is something else, or of a
/// newer format.
pub fn read(text: &str) -> Result<ResultView, ReadError> {
    let form = |e: serde_json::Error| ReadError::Form { why: e.to_string() };
    let is_object = text.trim_start().starts_with('{');
    if !is_object {
        let why = "it is no JSON object".to_owned();
        return Err(ReadError::Form { why });
    }
    if memory_of_json(text.as_bytes()) > MOST_MEMORY {
        return Err(ReadError::Large);
    }
    // First of all: of a newer form nothing else can be expected.
    let ExportVersion { schema: found } = serde_json::from_str(text).map_err(form)?;
    if found > SCHEMA {
        return Err(ReadError::Newer { found });
    }
    let export: ExportedResult = serde_json::from_str(text).map_err(form)?;
    let slo: Result<Slo, _> = export.slo.parse();
    let in_words = || LoadWords::without_rate(export.load);
    let load = export.load_in_parts.unwrap_or_else(in_words);
    let recommendation = export.recommendation.as_ref();
    Ok(ResultView {
        id: export.result,
        title: export.title,
        question: export.question,
        command: export.command,
        experiment: export.experiment,
        load: redact::redact_load(&load),
        machine: export.machine,
        slo: slo.map_err(|e| ReadError::Slo { why: e.to_string() })?,
        recommendation: recommendation.map(redact::redact_recommendation),
        trials: export.trials.iter().map(redact::redact_record).collect(),
        incomplete: export.incomplete,
        // The experiment has it.
        node: None,
        today: None,
        warnings: export.warnings,
    })
}
