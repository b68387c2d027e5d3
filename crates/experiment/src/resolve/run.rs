//! A run: its expected end and the files restored, and the settings that it excludes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::slo::{RunObjective, Slo};
use loadline_load::LoadSpec;
use loadline_protocol::RunSpec;

use super::super::checked::Checked;
use super::super::said::Text;
use crate::Experiment;
use crate::error::ExperimentSource;
use crate::wire::{AppTable, ExperimentFile};

const LONGEST_RUN: Duration = Duration::from_secs(600);

pub(super) const PROVE_RUN: u32 = 5;

const BUILD_TOOLS: [&str; 7] = ["ant", "gradle", "gradlew", "make", "mvn", "mvnw", "sbt"];

/// The expected end of the run; `None` for a service.
pub(super) fn check_run(
    file: &ExperimentFile,
    slo: &Slo,
    source: &ExperimentSource<'_>,
) -> Checked<Option<RunSpec>> {
    let app = &file.app;
    let of_run: Vec<RunObjective> = slo.run_objectives().collect();
    if app.ends != Some(true) {
        return match of_run.first() {
            Some(objective) => Err(source.error_at(
                file.slo.origin(),
                format!("`{objective}` is about a job, and this application is a service"),
                "say that it ends: ends = true in [app] (--job)",
            )),
            None => refuse_run_keys(app, source).map(|()| None),
        };
    }
    let is_other = of_run.len() + slo.jvm_objectives().count() < slo.objectives.len();
    let is_other = is_other || !slo.by_request.is_empty() || !slo.peak.is_empty();
    if is_other || !slo.outage.is_empty() {
        return Err(source.error_at(
            file.slo.origin(),
            format!("`{slo}` has an objective about requests, and a run that ends gets none"),
            "write time<60s, cpu<300s, slower<10%, exit=0, heap<80% or gc<10%; a service that answers requests is measured without --job",
        ));
    }
    if file.load != LoadSpec::default() {
        return Err(source.experiment_error(
            "the application is a job, and a load is given",
            "leave out the load (--url, --rate, --load), or measure a service: leave out ends = true (--job)",
        ));
    }
    let expect = app.expect.clone().unwrap_or_default();
    let mut copies = app.fresh.clone().unwrap_or_default();
    // A reset would change the user's own files.
    let is_reset = !app.reset.is_empty() && !copies.contains(&PathBuf::from("."));
    if is_reset || (app.fresh.is_none() && is_build_tool(app)) {
        copies.push(PathBuf::from("."));
    }
    if app.image.is_some() && !(copies.is_empty() && app.reset.is_empty() && expect.file.is_none())
    {
        return Err(source.experiment_error(
            "fresh, reset and expect.file are about files of this machine, and an image has its own",
            "each trial of an image starts from the image's files; leave these out",
        ));
    }
    Ok(Some(RunSpec {
        exit: slo.expected_exit(),
        output: expect.output,
        file: expect.file,
        copies,
        reset: app.reset.clone(),
        home: None,
        reference: None,
    }))
}

fn is_build_tool(app: &AppTable) -> bool {
    let program = app.command.first().map(Path::new).and_then(Path::file_name);
    let is_tool = program.is_some_and(|name| BUILD_TOOLS.iter().any(|tool| name == *tool));
    app.image.is_none() && is_tool
}

fn refuse_run_keys(app: &AppTable, source: &ExperimentSource<'_>) -> Checked<()> {
    let given = [
        ("fresh", app.fresh.is_some()),
        ("reset", !app.reset.is_empty()),
        ("expect", app.expect.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((key, _)) => Err(source.experiment_error(
            format!("{key} is for a job, and this application is a service"),
            "say that it ends: ends = true in [app] (--job), or leave it out",
        )),
    }
}

pub(super) fn run_deadline(slo: &Slo, given: Option<&Text>, named: Duration) -> Duration {
    let bounds = slo
        .run_objectives()
        .filter_map(|objective| match objective {
            RunObjective::Time { bound } => Some(bound),
            _ => None,
        });
    let longest = if given.is_some() { named } else { LONGEST_RUN };
    bounds.min().unwrap_or(longest)
}

pub(super) fn refuse_beside_run(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    if experiment.app.run.is_none() {
        return Ok(());
    }
    let configurations = experiment.configurations();
    let refused = [
        (
            experiment.cluster.is_some(),
            "trials in a cluster, whose pods are judged by their answers",
            "measure the run on this machine: leave out the cluster (--kubernetes)",
        ),
        (
            configurations.iter().any(|c| c.instances > 1),
            "several instances",
            "size one run: leave out instances",
        ),
        (
            experiment.search.pricing.is_some(),
            "prices of replicas for a rate",
            "leave out the prices; the answer names the memory and the time of a run",
        ),
        (
            experiment.search.soak.is_some(),
            "a soak",
            "leave it out: a run is measured from begin to end already",
        ),
        (
            experiment.has_outages(),
            "an outage, which is judged by requests",
            "leave out the outage",
        ),
    ];
    source.refuse_asked("the application is a job", &refused)
}
