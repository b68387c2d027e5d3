//! Whether a search chooses the CPU limit too.
//!
//! Owns when `size` does so and what cannot be combined with it; which limits are tried is
//! `loadline_analysis::search::size::cpu`'s.

use loadline_analysis::search::size::cpu::CpuPolicy;

use super::super::Experiment;
use super::super::error::ExperimentSource;
use super::super::said::Text;
use super::super::wire::LimitsTable;
use super::Checked;

/// What leaves the choice to the search.
const AUTO: &str = "auto";

/// The CPU limit where it says that it is to be chosen.
pub(crate) fn auto_cpu(limits: &LimitsTable) -> Option<&Text> {
    limits
        .cpu
        .as_ref()
        .filter(|text| text.inner_value() == AUTO)
}

impl Experiment {
    /// Whether `size` chooses the CPU limit.
    pub fn searches_cpu(&self) -> bool {
        self.search.is_cpu_asked
    }

    fn names_cpu(&self) -> bool {
        self.configurations().iter().any(|c| {
            c.cpu.is_some()
                || c.cpuset.is_some()
                || c.cpu_shares.is_some()
                || c.neighbour_threads.is_some()
        })
    }

    /// What does not go with a search for the CPU limit, and what to write.
    fn why_no_cpu_search(&self) -> Option<(&'static str, &'static str)> {
        let reasons = [
            (
                self.search.pricing.is_some(),
                "with prices the size is chosen from an offer",
                "leave out cpu: the search over an offer's sizes chooses it",
            ),
            (
                self.app.run.is_some(),
                "the application is a job",
                "give the CPU that the run gets: cpu = \"1\" (--cpu 1)",
            ),
            (
                self.cluster.is_some(),
                "the CPUs of the cluster's nodes are not known before",
                "give a limit, or several to compare: --cpu 500m,1",
            ),
            (
                self.configurations().iter().any(|c| c.instances > 1),
                "several instances share the load",
                "give a limit: cpu = \"1\" (--cpu 1)",
            ),
        ];
        let found = reasons.into_iter().find(|(is_so, ..)| *is_so);
        found.map(|(_, reason, hint)| (reason, hint))
    }
}

/// Refuses `cpu = "auto"` and `cpu-policy = "request"` where they cannot be answered.
pub(super) fn refuse_auto(experiment: &Experiment, source: &ExperimentSource<'_>) -> Checked<()> {
    let is_request = experiment.search.cpu_policy == CpuPolicy::Request;
    if is_request && let Some((reason, hint)) = experiment.why_no_cpu_search() {
        return Err(source.experiment_error(
            format!("cpu-policy is request, which is measured next to a neighbour, but {reason}"),
            hint,
        ));
    }
    if !experiment.search.is_cpu_asked {
        return Ok(());
    }
    let named = experiment.names_cpu().then_some((
        "a level gives CPU already",
        "leave out cpu = \"auto\" (--cpu auto), or the other",
    ));
    match experiment.why_no_cpu_search().or(named) {
        None => Ok(()),
        Some((reason, hint)) => Err(source.experiment_error(
            format!("cpu is auto, which chooses the limit, but {reason}"),
            hint,
        )),
    }
}
