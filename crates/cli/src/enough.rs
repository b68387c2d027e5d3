//! Before anything runs: whether the percentiles of the SLO have enough requests beyond them, and the
//! machine enough CPUs.
//!
//! Owns the notes and refusals about both on the command line; `loadline_analysis::pooled` has the
//! rule, `loadline_experiment` the length of a trial.

use loadline_analysis::text;
use loadline_experiment::{Experiment, ThinPercentile};

use crate::error::Error;
use crate::experiment::LoadedExperiment;
use crate::images::images_apart;

/// Refuses a search if too few requests would support its answer, even over all starts of its
/// proof. Errors: With the length that the percentile needs.
pub fn check_request_count(experiment: &Experiment) -> Result<(), Error> {
    let starts = experiment.search.prove.max(1);
    let Some(thin) = experiment.thin_percentiles(starts).into_iter().next() else {
        return Ok(());
    };
    let refusal = thin.refusal_for_trials(starts);
    Err(Error::usage(&refusal).with_hint(&refusal.hint))
}

/// Notes: a chosen length, percentiles of few requests with `so`, the consequence, and an exit code
/// that says nothing.
pub fn notes(given: &LoadedExperiment, so: &str) -> Vec<String> {
    let experiment = &given.experiment;
    let chosen = experiment.load.spec.duration.map(|time| time.0);
    let chosen = chosen.filter(|_| given.file.load.duration.is_none());
    let length = chosen.map(|length| {
        let length = text::short_duration(length);
        format!("each trial measures for {length}, which the SLO's percentiles need (--duration)")
    });
    let thin = experiment.thin_percentiles(1);
    let thin = thin.iter().map(ThinPercentile::warning_sentence);
    let thin = thin.map(|sentence| format!("{sentence} (--duration): {so}"));
    let exit = experiment.doubt_exit_code();
    let mut notes: Vec<String> = length.into_iter().chain(thin).chain(exit).collect();
    // Two objectives of one percentile say the same.
    notes.dedup();
    notes
}

/// CPUs that trials can use: those of this machine. The nodes of a cluster and the machine of an engine
/// apart are not looked at by a plan, so there every size may have room.
pub fn trial_cpus(experiment: &Experiment) -> u32 {
    let here = std::thread::available_parallelism().map(|n| u32::try_from(n.get()));
    match (&experiment.cluster, here) {
        _ if images_apart(experiment).is_some() => u32::MAX,
        (None, Ok(cpus)) => cpus.unwrap_or(u32::MAX),
        (None, Err(_)) => 1,
        (Some(_), _) => u32::MAX,
    }
}

pub fn missing_cpus(experiment: &Experiment) -> Option<String> {
    let here = trial_cpus(experiment);
    let configurations = experiment.configurations();
    let limits = configurations.iter().map(|c| c.cpu.max(c.start_cpu));
    let most = limits.max().flatten().filter(|cpus| cpus.ceil() > here)?;
    Some(format!(
        "the CPU limit of {most} is more than the {here} of this machine: no trial can use it"
    ))
}

/// Refuses an answer with CPU that no start could have had.
pub fn refuse_missing_cpus(experiment: &Experiment) -> Result<(), Error> {
    let here = trial_cpus(experiment);
    missing_cpus(experiment).map_or(Ok(()), |problem| {
        Err(Error::environment(problem).with_hint(format!(
            "allow at most {here} (--cpu {here}), or measure on a larger machine"
        )))
    })
}
