//! `loadline explain TRIAL`: why it paused, the longest pauses with the log lines behind them, and
//! what to do about it.
//!
//! Owns the command. What it says is `loadline_analysis::explain`'s and `advice`'s; the text is in
//! [`text`], the JSON form in [`json`], trying the advice out in [`attempt`].

pub mod attempt;
pub mod json;
mod text;

use std::path::Path;

use clap::Args;
use loadline_analysis::advice::{self, TrialAdvice};
use loadline_analysis::explain::Explanation;
use loadline_analysis::record::TrialRecord;
use loadline_analysis::span::TimeSpan;
use loadline_analysis::timeline::TimelineStep;
use loadline_report::ResultView;
use loadline_runner::logs;
use loadline_runner::store::Store;

use crate::away::{ConsentFlags, confirm_experiment};
use crate::error::{CommandOutcome, Error, store_refused};
use crate::measuring::{MeasureFlags, open_store_to_read};
use crate::output::AnswerPrinter;
use crate::result::{is_file_name, of_store, view_by_id};
use crate::say::one_line_json;
use crate::ui::next::next_command as next;
use crate::ui::text::short;

#[derive(Args)]
pub struct ExplainArguments {
    /// Id of a trial, or a unique prefix; for a result (also `last`, or a file written by
    /// `export`), the trial that paused most is explained
    #[arg(default_value = "last")]
    id: String,
    /// Print as JSON (docs/reference/explain.schema.json)
    #[arg(long)]
    json: bool,
    /// Run trials with and without the advised change in turn, and report its effect; without
    /// ADVICE, try the first advice that can be tried
    #[arg(long = "try", value_name = "ADVICE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    advice: Option<String>,
    /// With --try: trials of each side
    #[arg(long, value_name = "N", default_value_t = 3, requires = "advice")]
    repeats: u32,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    consent: ConsentFlags,
}

pub struct TrialExplanation {
    record: TrialRecord,
    explanation: Explanation,
    pub advice: Vec<TrialAdvice>,
    log: Option<String>,
    /// What the cgroup used around each of the longest pauses; empty where samples were not kept.
    timelines: Vec<Vec<TimelineStep>>,
}

pub fn run(arguments: &ExplainArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    if arguments.advice.is_some() {
        of_store(&arguments.id)?;
    } else if is_file_name(&arguments.id) || is_directory(&arguments.id) {
        let told = explain_exported(&view_by_id(&arguments.id, None)?)?;
        out.print_answer(&explain_text(&told, arguments.json)?)?;
        return Ok(CommandOutcome::Done);
    }
    let store = open_store_to_read(arguments.measure.state.as_deref())?;
    let told = explain_trial(&store, &arguments.id)?;
    let Some(word) = &arguments.advice else {
        out.print_answer(&explain_text(&told, arguments.json)?)?;
        return Ok(CommandOutcome::Done);
    };
    let advice = attempt::choose(&told.advice, word)?;
    if !arguments.json {
        out.print_answer(&text::explanation_text(&told))?;
    }
    let row = store.result_by_prefix(&told.record.result)?;
    let flags = (arguments.measure.state.as_deref(), arguments.consent);
    confirm_experiment(&store, &row, flags)?;
    let effect = attempt::run(&store, &told.record, advice, arguments)?;
    out.print_answer(&if arguments.json {
        one_line_json(&json::explain_document(&told, Some((advice, &effect))))?
    } else {
        text::effect(advice, &effect)
    })?;
    Ok(CommandOutcome::Done)
}

fn is_directory(id: &str) -> bool {
    id != "last" && Path::new(id).is_dir()
}

fn explain_text(told: &TrialExplanation, as_json: bool) -> Result<String, Error> {
    if as_json {
        one_line_json(&json::explain_document(told, None))
    } else {
        Ok(text::explanation_text(told))
    }
}

/// What there is to say about the trial of an exported result that paused most. Logs stay on the
/// machine that measured.
fn explain_exported(view: &ResultView) -> Result<TrialExplanation, Error> {
    let record = most_paused(view.trials.clone(), &view.id)?;
    let explanation = explain_record(&record)?;
    let command = match record.configuration.application.clone() {
        Some(application) => application.command,
        None => attempt::parse_experiment(&view.experiment)?.app.command,
    };
    Ok(TrialExplanation {
        advice: advice::advise_trial(&record, &explanation, &command, view.machine.cpus),
        log: None,
        timelines: vec![Vec::new(); explanation.longest().len()],
        explanation,
        record,
    })
}

impl TrialExplanation {
    fn recorded_pauses(&self) -> &[(u64, u64)] {
        let gc = self.record.evidence.gc.as_ref();
        gc.map_or(&[], |gc| &gc.pause_spans_ns)
    }
}

fn explain_record(record: &TrialRecord) -> Result<Explanation, Error> {
    Explanation::for_trial(record).ok_or_else(|| {
        Error::usage(format!(
                "trial {} has nothing to explain: {}",
                short(&record.id),
                record.reason
            ),
        )
        .with_hint("trials of several instances and of older versions, and applications that never started, were not watched")
    })
}

/// What there is to say about a trial, or the trial of a result that paused most.
/// Errors: When there is no such trial, or it was not watched.
pub fn explain_trial(store: &Store, id: &str) -> Result<TrialExplanation, Error> {
    let record = find_trial(store, id)?;
    let explanation = explain_record(&record)?;
    let row = store.result_by_prefix(&record.result)?;
    let of_level = record.configuration.application.clone();
    let command = match of_level {
        Some(application) => application.command,
        None => attempt::stored_experiment(&row)?.app.command,
    };
    let spans: Vec<TimeSpan> = explanation.longest().iter().map(|p| p.pause).collect();
    Ok(TrialExplanation {
        advice: advice::advise_trial(&record, &explanation, &command, row.machine.cpus),
        log: logs::gc_log(store, &record.id),
        timelines: logs::timelines(store, &record.id, &spans),
        explanation,
        record,
    })
}

/// A trial by its id, or the trial of a result that paused most.
fn find_trial(store: &Store, id: &str) -> Result<TrialRecord, Error> {
    let row = match store.result_by_prefix(id) {
        Ok(row) => row,
        Err(no_result) => {
            return store
                .trial_by_prefix(id)
                .map_err(|_| store_refused(&no_result));
        }
    };
    let trials = store.finished_trials(&row.id)?;
    most_paused(trials, &row.id)
}

fn most_paused(trials: Vec<TrialRecord>, result: &str) -> Result<TrialRecord, Error> {
    let paused = |t: &TrialRecord| Explanation::for_trial(t).map(|e| e.total_ns());
    let most = trials.into_iter().max_by_key(paused).ok_or_else(|| {
        Error::usage(format!("result {} has no finished trial", short(result)))
            .with_hint(format!("{} runs the rest", next("resume")))
    })?;
    talk!(
        "the trial of result {} that paused most: {}, {}",
        short(result),
        short(&most.id),
        most.configuration.label
    );
    Ok(most)
}
