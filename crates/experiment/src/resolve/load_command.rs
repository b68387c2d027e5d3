//! A load command: what its exit code means, and what an experiment with one cannot ask.

use loadline_analysis::record::Configuration;
use loadline_analysis::slo::{Objective, Slo};
use loadline_load::LoadSpec;

use super::super::checked::Checked;
use crate::Experiment;
use crate::error::ExperimentSource;

/// Programs by name, and the exit code with which each says that its own thresholds were missed;
/// `None` exits with 0 whatever was answered. Seen in runs of each; k6 and Artillery as documented.
const EXIT_CODES: [(&str, Option<u8>); 12] = [
    ("k6", Some(99)),
    ("locust", Some(1)),
    ("artillery", Some(1)),
    ("io.gatling.app.Gatling", Some(2)),
    ("vegeta", None),
    ("hey", None),
    ("oha", None),
    ("autocannon", None),
    ("wrk", None),
    ("ghz", None),
    ("jmeter", None),
    ("ApacheJMeter.jar", None),
];

/// The first known program that makes the load, in a shell's words as well.
fn known_tool(spec: &LoadSpec) -> Option<(&'static str, Option<u8>)> {
    let words = spec.command.iter().chain(&spec.drive);
    let words = words.flat_map(|word| word.split_ascii_whitespace());
    let programs = words.filter(|word| !word.contains("://"));
    let mut names = programs.filter_map(|word| word.rsplit('/').next());
    names.find_map(|name| EXIT_CODES.into_iter().find(|(tool, _)| *tool == name))
}

/// Puts the code of the tool into `load passes`, where none is named.
pub(super) fn name_failing_exit(slo: &mut Slo, spec: &LoadSpec) {
    let Some((_, Some(code))) = known_tool(spec) else {
        return;
    };
    for objective in &mut slo.objectives {
        if *objective == (Objective::LoadPasses { fails_with: 1 }) {
            *objective = Objective::LoadPasses { fails_with: code };
        }
    }
}

impl Experiment {
    /// Why `load passes` says nothing; `None` where it does.
    pub fn doubt_exit_code(&self) -> Option<String> {
        self.slo.failing_exit()?;
        let (tool, code) = known_tool(&self.load.spec)?;
        code.is_none().then(|| {
            format!("`load passes` holds for any answers: {tool} exits with 0 even if all requests fail; only the other objectives of the SLO judge")
        })
    }
}

pub(super) fn check_load_command(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let spec = &experiment.load.spec;
    let command = &spec.command;
    if command.is_empty() && spec.drive.is_empty() && experiment.slo.failing_exit().is_some() {
        return Err(source.experiment_error(
            "the SLO has `load passes`, the exit code of a load command, but there is no such command",
            "let a program make the load: --load 'k6 run checkout.js' (command of [load]), or without a URL --drive (drive)",
        ));
    }
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
