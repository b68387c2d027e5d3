//! Whether a search chooses the CPU limit too.
//!
//! Owns when `size` does so and what cannot be combined with it; which limits are tried is
//! `loadline_analysis::search::size::cpu`'s.

use loadline_analysis::record::Configuration;
use loadline_analysis::search::size::cpu::CpuPolicy;

use super::super::Experiment;
use super::super::error::ExperimentSource;
use super::super::said::Text;
use super::Checked;

/// What leaves the choice to the search.
pub const AUTO_CPU: &str = "auto";
/// No limit, and no search for one.
pub const NO_CPU_LIMIT: &str = "none";

pub(crate) fn is_auto(amount: Option<&Text>) -> bool {
    amount.is_some_and(|text| **text == AUTO_CPU)
}

/// Whether an amount of CPU is a number.
pub(crate) fn is_amount(text: &Text) -> bool {
    ![AUTO_CPU, NO_CPU_LIMIT].contains(&text.as_str())
}

impl Experiment {
    pub fn searches_cpu(&self) -> bool {
        self.search.is_cpu_asked || self.search.cpu_policy == CpuPolicy::Both
    }

    /// Whether `size` may choose the CPU limit although that was not asked for: the search is for one
    /// configuration with no word about CPU, judged by the answers to loadline's own requests.
    pub fn may_choose_cpu(&self) -> bool {
        let names_any = |c: &Configuration| c.cpu.is_some() || c.start_cpu.is_some();
        let configurations = self.configurations();
        !self.searches_cpu()
            && self.search.cpu_policy == CpuPolicy::Limit
            && configurations.len() == 1
            && !configurations.iter().any(names_any)
            && !self.names_cpu()
            && self.why_no_cpu_search().is_none()
            && self.load.spec.command.is_empty()
            && self.metrics.is_none()
    }

    /// Whether a level fixes the CPU. A request is searched under a given limit.
    fn names_cpu(&self) -> bool {
        self.configurations().iter().any(|c| {
            c.cpu.is_some() && self.search.is_cpu_asked
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
                "the CPUs of the cluster's nodes are not known in advance",
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

/// Refuses `cpu = "auto"` and a `cpu-policy` with a request where they cannot be answered.
pub(super) fn refuse_auto(experiment: &Experiment, source: &ExperimentSource<'_>) -> Checked<()> {
    let asked = match experiment.search.cpu_policy {
        CpuPolicy::Limit => "cpu is auto, which chooses the limit",
        CpuPolicy::Request => "cpu-policy is request, which is measured next to a neighbour",
        CpuPolicy::Both => "cpu-policy is both, which chooses a request next to a neighbour",
    };
    let is_asked = experiment.searches_cpu() || experiment.search.cpu_policy == CpuPolicy::Request;
    let reason = experiment.why_no_cpu_search().filter(|_| is_asked);
    let is_named = experiment.searches_cpu() && experiment.names_cpu();
    let named = is_named.then_some((
        "a level gives CPU already",
        "leave out cpu = \"auto\" (--cpu auto), or the other",
    ));
    match reason.or(named) {
        None => refuse_auto_start(experiment, source),
        Some((reason, hint)) => {
            Err(source.experiment_error(format!("{asked}, but {reason}"), hint))
        }
    }
}

fn refuse_auto_start(experiment: &Experiment, source: &ExperimentSource<'_>) -> Checked<()> {
    if !experiment.search.is_start_cpu_asked {
        return Ok(());
    }
    let configurations = experiment.configurations();
    let is_limited = configurations.iter().all(|c| c.cpu.is_some()) || experiment.searches_cpu();
    let refused = [
        (
            experiment.app.run.is_some(),
            "a job, which is never ready",
            "leave start-cpu out (--start-cpu)",
        ),
        (
            experiment.search.pricing.is_some(),
            "prices, which take the size from an offer",
            "leave start-cpu out (--start-cpu), or the prices",
        ),
        (
            experiment.cluster.is_some(),
            "trials in a cluster, and their pods keep their limits",
            "leave start-cpu out (--start-cpu), or measure on this machine",
        ),
        (
            experiment.search.cpu_policy == CpuPolicy::Request || !is_limited,
            "no CPU limit to go back to",
            "give it one: cpu = \"1\" (--cpu 1), or let it be chosen: --cpu auto",
        ),
        (
            configurations.len() > 1,
            "several configurations, of which one is answered",
            "size one configuration: one CPU limit, one JDK, one set of JVM options",
        ),
    ];
    source.refuse_asked(
        "start-cpu is auto, which chooses it for the answer",
        &refused,
    )
}
