//! `size --start-cpu auto`: CPU until ready for the size that was found.
//!
//! Owns where the plain start comes from; `loadline_analysis::search::start_cpu` owns the rule.

use loadline_analysis::interval::median;
use loadline_analysis::record::{TrialPurpose, TrialRecord};
use loadline_analysis::search::start_cpu::StartCpuSearch;
use loadline_analysis::startup::ready_seconds;
use loadline_sizing::Cpus;

use super::SearchConclusion;
use crate::error::{CommandOutcome, Error, store_refused};
use crate::measuring::MeasuringSession;

/// The conclusion with the CPU that its start gets, where that is asked for and the size holds.
pub(super) fn choose_start_cpu(
    measuring: &mut MeasuringSession,
    concluded: SearchConclusion,
) -> Result<SearchConclusion, Error> {
    if !measuring.experiment.search.is_start_cpu_asked {
        return Ok(concluded);
    }
    let SearchConclusion::Found(mut best, Ok(CommandOutcome::Done)) = concluded else {
        return Ok(concluded);
    };
    let trials = measuring.store.finished_trials(&measuring.result);
    let trials = trials.map_err(|e| store_refused(&e))?;
    let is_plain = |trial: &&TrialRecord| {
        trial.purpose == TrialPurpose::Prove && trial.configuration == best.configuration
    };
    let plain: Vec<f64> = trials
        .iter()
        .filter(is_plain)
        .filter_map(ready_seconds)
        .collect();
    if let Some(plain) = median(&plain) {
        let search = StartCpuSearch {
            found: best.configuration.clone(),
            plain,
            machine: Cpus::from_whole(measuring.host.host_machine().cpus),
            start_deadline: measuring.experiment.app.start_deadline,
        };
        if search.amounts().is_empty() {
            say!("warning: --start-cpu auto: this machine has no more CPU than the limit");
        }
        if let Some(boosted) = measuring.search(&search, None)? {
            best.configuration = boosted;
        }
    }
    Ok(SearchConclusion::Found(best, Ok(CommandOutcome::Done)))
}
