//! A load command: what an experiment with one cannot ask.

use loadline_analysis::record::Configuration;

use super::super::checked::Checked;
use crate::Experiment;
use crate::error::ExperimentSource;

pub(super) fn check_load_command(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let command = &experiment.load.spec.command;
    if command.is_empty() {
        return Ok(());
    }
    let configurations = experiment.configurations();
    let has = |of: fn(&Configuration) -> bool| configurations.iter().any(of);
    let takes_rate = command.iter().any(|word| word.contains("{rate}"));
    let refused = [
        (
            experiment.cluster.is_some(),
            "trials in a cluster: there is no program of this machine",
            "leave out the command (--load), or the cluster (--kubernetes)",
        ),
        (
            has(|c| c.instances > 1),
            "several instances: one program cannot be in the network of each",
            "size one instance: leave out instances",
        ),
        (
            experiment.search.pricing.is_some(),
            "prices, which need the load at many rates",
            "describe the requests in a profile (loadline profile), or leave out the prices",
        ),
        (
            experiment.search.soak.is_some(),
            "a soak, which rests without load",
            "describe the requests in a profile (loadline profile), or leave out the soak",
        ),
        (
            experiment.has_outages(),
            "an outage, which is judged by when each request was due",
            "describe the requests in a profile (loadline profile) for the drill",
        ),
        (
            has(|c| c.rate.is_some()) && !takes_rate,
            "rates as levels, and the command does not say {rate}",
            "write {rate} where the command names its rate",
        ),
    ];
    source.refuse_asked("load.command makes the load", &refused)
}
