//! How many instances a trial runs: range, and what does not go together with several.

use std::ops::Range;

use loadline_analysis::record::{Configuration, CpuSets};
use loadline_protocol::NetworkMode;

use super::super::checked::Checked;
use crate::error::ExperimentSource;
use crate::said::{Text, ValueWithOrigin};
use crate::{Experiment, ExperimentError};

/// Each instance has its own namespaces, cgroup and load generator; more instances would measure
/// the machine rather than the application.
const RANGE: Range<u32> = 1..65;

pub(super) fn plain_instances(text: &Text, source: &ExperimentSource<'_>) -> Checked<u32> {
    let number = source.parse_text(text, "a whole number of instances, such as 4")?;
    check_instance_count(&text.with_same_origin(number), source)
}

pub(super) fn check_instance_count(
    number: &ValueWithOrigin<u32>,
    source: &ExperimentSource<'_>,
) -> Checked<u32> {
    source.in_range(Some(number), 1, RANGE, "instances")
}

pub(super) fn check_instances(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    for configuration in experiment.configurations() {
        let refusal = instances_refusal(experiment, &configuration);
        refusal.map_or(Ok(()), |(problem, hint)| {
            Err::<(), ExperimentError>(source.experiment_error(problem, hint))
        })?;
    }
    Ok(())
}

fn instances_refusal(
    experiment: &Experiment,
    configuration: &Configuration,
) -> Option<(String, &'static str)> {
    let instances = configuration.instances;
    let lists = configuration.cpuset.as_ref().map_or(1, CpuSets::set_count);
    if lists > 1 && lists != instances as usize {
        return Some((
            format!("the cpuset has {lists} lists of CPUs for {instances} instances"),
            "give one list for all instances (0-3), or one for each, with ; between (0-1;2-3)",
        ));
    }
    if instances == 1 {
        return None;
    }
    if experiment.app.network == NetworkMode::Host {
        return Some((
            format!(
                "{instances} instances cannot share the machine's network: each listens on the same port"
            ),
            "leave out network = \"host\" (--network host): each instance gets its own network",
        ));
    }
    let connections = experiment
        .load
        .spec
        .connection_count(&experiment.load.model);
    if connections < instances {
        return Some((
            format!("{connections} connections cannot be spread over {instances} instances"),
            "give at least one for each instance: connections = 64 (--connections 64)",
        ));
    }
    experiment.search.pricing.as_ref().map(|_| {
        (
            "instances is given, but with prices the search chooses how many replicas there are"
                .to_owned(),
            "leave out instances, or bound the replicas: replicas = \"2..8\" (--replicas 2..8)",
        )
    })
}
