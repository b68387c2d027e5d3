//! `explain --try`: runs the advised configuration and the old one in turn, and shows the effect.
//!
//! Owns its experiment: the trial's own, with exactly the two configurations. It is an ordinary
//! result: listed, shown and resumed like any other.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use loadline_analysis::advice::{AdviceKind, GC_THREADS, TrialAdvice};
use loadline_analysis::effect::ChangeEffect;
use loadline_analysis::interval::Bootstrap;
use loadline_analysis::record::{Configuration, JvmOption, TrialRecord, ValueProvenance};
use loadline_experiment::{ExperimentFile, ValueWithOrigin};
use loadline_runner::agenda::Agenda;
use loadline_runner::store::{ResultKind, ResultRow, Store};

use super::ExplainArguments;
use crate::error::{Error, not_measured};
use crate::experiment::{LoadedExperiment, experiment_over};
use crate::measuring::{MeasuringSession, experiment_of};
use crate::ui::text::short;

const BEFORE: &str = "before";

pub fn stored_experiment(row: &ResultRow) -> Result<ExperimentFile, Error> {
    parse_experiment(&row.experiment)
}

pub fn parse_experiment(text: &str) -> Result<ExperimentFile, Error> {
    let place = Path::new("stored experiment");
    ExperimentFile::from_toml(text, place).map_err(Error::from)
}

pub fn choose<'a>(all: &'a [TrialAdvice], word: &str) -> Result<&'a TrialAdvice, Error> {
    let mut can: Vec<&TrialAdvice> = all.iter().filter(|a| a.configuration.is_some()).collect();
    if !word.is_empty() {
        can.retain(|a| a.kind.kind_name() == word);
    }
    can.first().copied().ok_or_else(|| {
        let known: Vec<_> = AdviceKind::ALL.iter().map(|k| k.kind_name()).collect();
        let triable = all.iter().filter(|a| a.configuration.is_some());
        let names: Vec<_> = triable.map(|a| a.kind.kind_name()).collect();
        let hint = match names.as_slice() {
            [] => "this trial got no advice that can be tried".to_owned(),
            names => format!("it can try: {}", names.join(", ")),
        };
        let what = if known.contains(&word) || word.is_empty() {
            "there is no such advice for this trial".to_owned()
        } else {
            format!("`{word}` is not a kind of advice ({})", known.join(", "))
        };
        Error::usage(what).with_hint(hint)
    })
}

pub fn run(
    store: &Store,
    record: &TrialRecord,
    advice: &TrialAdvice,
    arguments: &ExplainArguments,
) -> Result<ChangeEffect, Error> {
    let given = try_experiment(store, record, advice, arguments.repeats)?;
    let mut measuring = MeasuringSession::begin_result(given, ResultKind::Run, &arguments.measure)?;
    let records = measuring.run_agenda(&Agenda::new(&measuring.experiment))?;
    if advice.kind == AdviceKind::GcThreads {
        differ(&threads(&records, true), &threads(&records, false))?;
    }
    let side = |is_before| of_side(&records, is_before).collect::<Vec<_>>();
    let effect = ChangeEffect::between_trials(&side(true), &side(false), Bootstrap::default());
    effect.ok_or_else(|| {
        not_measured(records.last().map(|r| &**r))
            .unwrap_or_else(|| Error::invalid("no trial could be measured"))
    })
}

fn try_experiment(
    store: &Store,
    record: &TrialRecord,
    advice: &TrialAdvice,
    repeats: u32,
) -> Result<LoadedExperiment, Error> {
    let row = store.result_by_prefix(&record.result)?;
    let mut file = stored_experiment(&row)?;
    let mut experiment = experiment_of(&row)?;
    let trial = short(&record.id);
    file.question = Some(format!(
        "Trial {trial}: what does it change to {}?",
        advice.text
    ));
    file.analysis = None;
    let mut before = Configuration {
        label: BEFORE.to_owned(),
        ..record.configuration.clone()
    };
    if advice.kind == AdviceKind::GcThreads {
        let of_level = before.application.as_mut();
        let own = own_threads(of_level.map_or(&mut file.app.command, |a| &mut a.command));
        experiment.app.command.clone_from(&file.app.command);
        before.jvm_options.extend(own);
    }
    let sides = [Some(before), advice.configuration.clone()];
    let title = format!("try {}", advice.kind.kind_name());
    let sides = sides.into_iter().flatten().collect();
    let repeats = ValueWithOrigin::from_flag("--repeats", repeats);
    experiment_over(file, experiment, sides, repeats, title)
}

/// Removes the number of GC threads from the user's own options, which would win on both sides, and
/// returns the effective one: the last.
fn own_threads(command: &mut Vec<String>) -> Option<JvmOption> {
    let is_threads = |word: &String| GC_THREADS.iter().any(|option| word.starts_with(option));
    let text = command.iter().rfind(|word| is_threads(word)).cloned();
    command.retain(|word| !is_threads(word));
    text.map(|text| JvmOption {
        text,
        provenance: ValueProvenance::User,
    })
}

fn of_side(records: &[Arc<TrialRecord>], is_before: bool) -> impl Iterator<Item = &TrialRecord> {
    let records = records.iter().map(AsRef::as_ref);
    records.filter(move |r: &&TrialRecord| (r.configuration.label == BEFORE) == is_before)
}

fn threads(records: &[Arc<TrialRecord>], is_before: bool) -> BTreeSet<u32> {
    let logs = of_side(records, is_before).filter_map(|r| r.evidence.gc.as_ref());
    logs.filter_map(|gc| gc.parallel_workers).collect()
}

fn differ(before: &BTreeSet<u32>, after: &BTreeSet<u32>) -> Result<(), Error> {
    match before.first() {
        Some(same) if before == after => Err(Error::invalid(format!(
            "nothing was tried: both sides ran with {same} GC threads"
        ))
        .with_hint(format!(
            "a script, an option file or _JAVA_OPTIONS sets {} and wins: take it out",
            GC_THREADS.join(" or ")
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_threads_become_an_option_of_the_side_before() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let mut command = words(
            "java -XX:ParallelGCThreads=2 -Xmx1g -XX:ParallelGCThreads=8 -jar app.jar --port=1",
        );
        let own = own_threads(&mut command).map(|option| option.text);
        assert_eq!(own.as_deref(), Some("-XX:ParallelGCThreads=8"));
        assert_eq!(command, words("java -Xmx1g -jar app.jar --port=1"));
        assert_eq!(own_threads(&mut command), None);
    }

    #[test]
    fn a_configuration_is_not_compared_with_itself() {
        let of = |numbers: &[u32]| numbers.iter().copied().collect::<BTreeSet<u32>>();
        assert!(differ(&of(&[8]), &of(&[8])).is_err());
        assert!(differ(&of(&[8]), &of(&[2])).is_ok());
        assert!(differ(&of(&[]), &of(&[])).is_ok(), "logs that do not tell");
    }
}
