//! `cpu-burst` and `start-cpu`: the CPU limit that a configuration must have for them.

use std::time::Duration;

use loadline_analysis::record::Configuration;
use loadline_analysis::search::size::cpu::CpuPolicy;
use loadline_analysis::throttle::QuotaLimit;
use loadline_sizing::Cpus;

use super::super::checked::Checked;
use crate::Experiment;
use crate::error::ExperimentSource;

/// Refuses a burst that the kernel would refuse only after other trials have run. With prices the
/// search chooses the quota, so it is not known yet.
pub(super) fn check_bursts(experiment: &Experiment, source: &ExperimentSource<'_>) -> Checked<()> {
    if experiment.search.pricing.is_some() {
        return Ok(());
    }
    for mut configuration in experiment.configurations() {
        if experiment.search.cpu_policy == CpuPolicy::Request {
            configuration.cpu = None;
        }
        let start = || start_refusal(&configuration, experiment);
        if let Some((problem, hint)) = burst_refusal(&configuration).or_else(start) {
            return Err(source.experiment_error(problem, hint));
        }
    }
    Ok(())
}

fn burst_refusal(configuration: &Configuration) -> Option<(String, String)> {
    let burst = configuration.cpu_burst?;
    let label = &configuration.label;
    let limit = QuotaLimit::for_configuration(configuration);
    let Some((cpu, limit)) = configuration.cpu.zip(limit) else {
        return Some((
            format!("`{label}` has a cpu-burst and no CPU limit: there is no quota to save up"),
            "give it one: cpu = \"1\", or leave the burst out".to_owned(),
        ));
    };
    (burst.as_micros() > limit.quota.as_micros()).then(|| {
        let quota = time_text(limit.quota);
        let period = time_text(limit.period);
        (
            format!(
                "the cpu-burst of `{label}`, {}, is more than its quota: {cpu} of a CPU in a period of {period} is {quota}",
                time_text(burst)
            ),
            format!("the kernel takes at most the quota: cpu-burst = \"{quota}\""),
        )
    })
}

/// A limit that the search chooses is below the largest that it may choose.
fn start_refusal(
    configuration: &Configuration,
    experiment: &Experiment,
) -> Option<(String, String)> {
    let start = configuration.start_cpu?;
    let label = &configuration.label;
    if experiment.app.run.is_some() {
        return Some((
            format!("start-cpu of `{label}` is {start}, but a job is never ready: it ends"),
            "leave start-cpu out (--start-cpu)".to_owned(),
        ));
    }
    match configuration.cpu {
        None if experiment.search.cpu_policy == CpuPolicy::Request => Some((
            format!(
                "start-cpu of `{label}` is {start}, and with cpu-policy request there is no CPU limit to go back to"
            ),
            "cpu-policy = \"both\" (--cpu-policy both) gives a limit too; or leave start-cpu out"
                .to_owned(),
        )),
        None if experiment.searches_cpu() => None,
        None => Some((
            format!("start-cpu of `{label}` is {start}, and there is no CPU limit to go back to"),
            "give it one: cpu = \"1\" (--cpu 1), or leave start-cpu out".to_owned(),
        )),
        Some(cpu) if start <= cpu => Some((
            format!("start-cpu of `{label}` is {start}, which is not above its CPU limit, {cpu}"),
            format!(
                "the start needs more than the limit: --start-cpu {}, or leave it out",
                Cpus::from_millis(cpu.as_millis() * 2)
            ),
        )),
        Some(_) => None,
    }
}

fn time_text(time: Duration) -> String {
    match time.as_micros() {
        us if us.is_multiple_of(1000) => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}
