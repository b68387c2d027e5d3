//! `size --try`: no size is proven and memory is not the cause; tries the likely cure once.
//!
//! Owns its experiment: starts at the largest size with the lever applied, as many as a proof has.
//! It is an ordinary result. `loadline_analysis::obstacle` owns causes and levers, `explain` the
//! words about pauses.

use std::sync::Arc;
use std::time::Duration;

use loadline_analysis::obstacle::{FlatMisses, Lever, find_flat_misses, same_but_memory};
use loadline_analysis::record::{Configuration, TrialPurpose, TrialRecord, TrialVerdict};
use loadline_experiment::{Experiment, ExperimentFile, ExperimentLoad, ValueWithOrigin};
use loadline_load::spec::text::TimeOrNone;
use loadline_runner::agenda::Agenda;
use loadline_runner::store::{ResultKind, Store};
use loadline_sizing::Cpus;

use crate::commands::explain::{attempt, explain_trial};
use crate::error::Error;
use crate::experiment::experiment_over;
use crate::measuring::{MeasureFlags, MeasuringSession, experiment_of, open_store};
use crate::output::AnswerPrinter;

const WARM: Duration = Duration::from_secs(30);

pub fn try_lever(result: &str, flags: &MeasureFlags, out: &mut AnswerPrinter) -> Result<(), Error> {
    let store = open_store(flags.state.as_deref())?;
    let trials = store.finished_trials(result)?;
    let Some(flat) = flat_misses(&trials) else {
        return out.print_answer("\n--try: nothing to try: no miss affected every size alike");
    };
    let Some(lever) = flat.lever() else {
        return out.print_answer(&format!("\n--try: nothing to try. {}", flat.lever_hint()));
    };
    let row = store.result_by_prefix(result)?;
    let mut tried = LeverTest {
        file: attempt::stored_experiment(&row)?,
        experiment: experiment_of(&row)?,
        configuration: at_top(&trials, &flat)?,
        what: String::new(),
    };
    tried.apply(lever, &store, &flat, row.machine.cpus)?;
    let what = tried.what.clone();
    let after = tried.run(flags)?;
    out.print_answer(&lever_sentence(&flat, &what, &trials, &after))
}

fn flat_misses(trials: &[TrialRecord]) -> Option<FlatMisses> {
    let last = trials.iter().rfind(|t| t.purpose == TrialPurpose::Prove);
    let configuration = &last.or(trials.last())?.configuration;
    find_flat_misses(same_but_memory(trials, configuration))
}

fn at_top(trials: &[TrialRecord], flat: &FlatMisses) -> Result<Configuration, Error> {
    let example = trials.iter().find(|t| t.id == flat.example);
    let example = example.ok_or_else(|| Error::internal("the example is gone"))?;
    Ok(Configuration {
        memory: Some(flat.to),
        ..example.configuration.clone()
    })
}

struct LeverTest {
    file: ExperimentFile,
    experiment: Experiment,
    configuration: Configuration,
    what: String,
}

impl LeverTest {
    fn apply(
        &mut self,
        lever: Lever,
        store: &Store,
        flat: &FlatMisses,
        cpus: u32,
    ) -> Result<(), Error> {
        match lever {
            Lever::WarmUp => {
                self.file.load.warm_up = Some(TimeOrNone(WARM));
                self.experiment.load = warmed_load(&self.experiment.load)?;
                self.what = format!("a warm-up of {} s", WARM.as_secs());
            }
            Lever::Cpu => {
                let more = more_cpu(self.configuration.cpu, cpus)?;
                self.configuration.cpu = Some(more);
                self.what = format!("a CPU limit of {more}");
            }
            Lever::Advice => {
                let told = explain_trial(store, &flat.example)?;
                let advice = attempt::choose(&told.advice, "")?;
                if let Some(changed) = &advice.configuration {
                    self.configuration = Configuration {
                        memory: self.configuration.memory,
                        ..changed.clone()
                    };
                }
                self.what = advice.text.clone();
            }
        }
        "tried".clone_into(&mut self.configuration.label);
        Ok(())
    }

    fn run(self, flags: &MeasureFlags) -> Result<Vec<Arc<TrialRecord>>, Error> {
        let starts = self.experiment.search.counted_starts().max(1);
        let title = format!("try {}", self.what);
        let starts = ValueWithOrigin::from_flag("--prove", starts);
        let tried = vec![self.configuration];
        let given = experiment_over(self.file, self.experiment, tried, starts, title)?;
        let mut measuring = MeasuringSession::begin_result(given, ResultKind::Run, flags)?;
        measuring.run_agenda(&Agenda::new(&measuring.experiment))
    }
}

fn warmed_load(load: &ExperimentLoad) -> Result<ExperimentLoad, Error> {
    let mut spec = load.spec.clone();
    spec.warm_up = Some(TimeOrNone(WARM));
    ExperimentLoad::new(spec).map_err(Error::from)
}

fn more_cpu(limit: Option<Cpus>, cpus: u32) -> Result<Cpus, Error> {
    let all = Cpus::from_whole(cpus);
    let twice = limit.map(|cpu| Cpus::from_millis(cpu.as_millis().saturating_mul(2)).min(all));
    twice.filter(|more| limit < Some(*more)).ok_or_else(|| {
        let what = "--try: this machine has no more CPU than the application could already use";
        Error::environment(what).with_hint("search on a machine with more CPUs")
    })
}

/// `Tried: a CPU limit of 1. At 512Mi 20 of 20 starts kept the SLO with it, 16 of 20 without.`
fn lever_sentence(
    flat: &FlatMisses,
    what: &str,
    before: &[TrialRecord],
    after: &[Arc<TrialRecord>],
) -> String {
    let before = before.iter();
    let before = count_kept(before.filter(|t| t.configuration.memory == Some(flat.to)));
    let (passes, starts) = count_kept(after.iter().map(|t| &**t));
    if starts == 0 {
        return format!("\nTried: {what}. None of its starts could be measured");
    }
    let next = if passes == starts {
        "search again with it"
    } else {
        "it does not cure every miss"
    };
    format!(
        "\nTried: {what}. At {} {passes} of {starts} starts kept the SLO with it, {} of {} without: {next}.",
        flat.to, before.0, before.1
    )
}

fn count_kept<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> (usize, usize) {
    let verdicts = trials.map(|t| t.verdict);
    let counted: Vec<TrialVerdict> = verdicts.filter(|v| v.is_evidence()).collect();
    let passes = counted.iter().filter(|v| **v == TrialVerdict::Pass).count();
    (passes, counted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_cpu_is_twice_as_much_within_the_machine() {
        let of = |millis| more_cpu(Some(Cpus::from_millis(millis)), 2).ok();
        assert_eq!(of(500), Some(Cpus::from_whole(1)));
        assert_eq!(of(1500), Some(Cpus::from_whole(2)));
        assert_eq!(of(2000), None);
        assert!(
            more_cpu(None, 2).is_err(),
            "no limit: the whole machine was used"
        );
    }
}
