//! `size --start-cpu auto`: CPU until ready for the size that was found.
//!
//! Owns where the plain start comes from; `loadline_analysis::search::start_cpu` owns the rule.

use loadline_analysis::interval::median;
use loadline_analysis::record::{Configuration, TrialPurpose, TrialRecord};
use loadline_analysis::search::start_cpu::StartCpuSearch;
use loadline_analysis::startup::ready_seconds;
use loadline_sizing::Cpus;

use crate::error::Error;
use crate::measuring::MeasuringSession;

/// The found size with the CPU of its start; `None` if that was not asked for, or is not worth it.
pub(super) fn choose_start_cpu(
    measuring: &mut MeasuringSession,
    found: &Configuration,
) -> Result<Option<Configuration>, Error> {
    if !measuring.experiment.search.is_start_cpu_asked {
        return Ok(None);
    }
    let trials = measuring.store.finished_trials(&measuring.result)?;
    let is_plain = |trial: &&TrialRecord| {
        trial.purpose == TrialPurpose::Prove && trial.configuration == *found
    };
    let plain = trials.iter().filter(is_plain);
    let plain: Vec<f64> = plain.filter_map(ready_seconds).collect();
    let Some(plain) = median(&plain) else {
        say!("warning: --start-cpu auto: no start of this size was measured");
        return Ok(None);
    };
    let search = StartCpuSearch {
        found: found.clone(),
        plain,
        machine: Cpus::from_whole(measuring.host.host_machine().cpus),
        start_deadline: measuring.experiment.app.start_deadline,
    };
    if search.amounts().is_empty() {
        say!("warning: --start-cpu auto: this machine has no more CPU than the limit");
    }
    measuring.search(&search, None)
}
