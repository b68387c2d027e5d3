//! The records as JSON, for other programs. Secrets are taken out, nothing else is changed.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{Machine, TrialRecord};
use serde::Serialize;

use crate::redact;
use crate::view::ResultView;

/// The exported form; its fields are those of the records.
#[derive(Serialize)]
struct Export<'a> {
    schema: u32,
    result: &'a str,
    title: &'a str,
    command: Vec<String>,
    experiment: String,
    load: &'a str,
    slo: String,
    machine: &'a Machine,
    incomplete: Option<&'a str>,
    recommendation: Option<Recommendation>,
    warnings: &'a [String],
    trials: Vec<TrialRecord>,
}

/// The result and all its trials, indented.
pub fn json(view: &ResultView) -> String {
    let export = Export {
        schema: loadline_analysis::record::SCHEMA,
        result: &view.id,
        title: &view.title,
        command: redact::command(&view.command),
        experiment: redact::text(&view.experiment),
        load: &view.load,
        slo: view.slo.to_string(),
        machine: &view.machine,
        incomplete: view.incomplete.as_deref(),
        recommendation: view.recommendation.as_ref().map(redact::recommendation),
        warnings: &view.warnings,
        trials: view.trials.iter().map(redact::record).collect(),
    };
    let text = serde_json::to_string_pretty(&export);
    text.expect("records are maps with text keys; numbers that are none become null")
}
