//! A run: its expected end and the files restored, and the settings that it excludes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::slo::{RunObjective, Slo};
use loadline_load::LoadSpec;
use loadline_protocol::RunSpec;
use loadline_sizing::options::words::TOOL_OPTIONS;

use super::super::checked::Checked;
use super::super::said::Text;
use crate::Experiment;
use crate::error::ExperimentSource;
use crate::program::build_tool;
use crate::wire::{AppTable, ExperimentFile};

const LONGEST_RUN: Duration = Duration::from_secs(600);
pub(super) const PROVE_RUN: u32 = 5;

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
                &file.slo,
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
            &file.slo,
            format!("`{slo}` has an objective about requests, and a run that ends gets none"),
            "write time<60s, cpu<300s, slower<10%, exit=0, heap<80% or gc<10%; a service that answers requests is measured without --job",
        ));
    }
    if file.load != LoadSpec::default() {
        return Err(source.experiment_error(
            "the application is a job, and a load is given",
            "leave out the load (--url, --rate, --load, --peak, --warm-up, --duration), or measure a service: leave out ends = true (--job)",
        ));
    }
    if app.ready.is_some() {
        let hint = "leave out ready (--ready); a service is measured without ends = true (--job)";
        return Err(
            source.experiment_error("ready is given, but a job is never ready: it ends", hint)
        );
    }
    let expect = app.expect.clone().unwrap_or_default();
    let mut copies = app.fresh.clone().unwrap_or_default();
    // A reset would change the user's own files.
    let is_reset = !app.reset.is_empty() && !copies.contains(&PathBuf::from("."));
    let is_built = app.image.is_none() && build_tool(&app.command).is_some();
    if is_reset || (app.fresh.is_none() && is_built) {
        copies.push(PathBuf::from("."));
    }
    if app.image.is_some() && !(copies.is_empty() && app.reset.is_empty() && expect.file.is_none())
    {
        return Err(source.experiment_error(
            "fresh, reset and expect.file are for files of this machine, but an image has its own",
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

/// The variable that takes loadline's JVM options; `None` is where they go without being asked.
pub(super) fn options_variable(
    app: &AppTable,
    source: &ExperimentSource<'_>,
) -> Checked<Option<String>> {
    let Some(to) = &app.options_to else {
        return Ok(None);
    };
    let refuse = |problem: String, hint: &str| Err(source.error_at(to, problem, hint));
    let program = app.command.first().map_or("", String::as_str);
    if app.image.is_some()
        || Path::new(program)
            .file_name()
            .is_some_and(|name| name == "java")
    {
        let problem = "options-to is for a program that starts its JVMs itself";
        let hint =
            "leave it out: options follow `java`, and those of an image are in JAVA_TOOL_OPTIONS";
        return refuse(problem.to_owned(), hint);
    }
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    match to.as_str() {
        "all" => Ok(Some(TOOL_OPTIONS.to_owned())),
        "launcher" => match build_tool(&app.command).and_then(|tool| tool.options_variable) {
            Some(variable) => Ok(Some(variable.to_owned())),
            None => refuse(
                format!("`{program}` is not a launcher that loadline knows"),
                "known are mvn, gradle, sbt and ant; name the variable that it reads: --options-to JAVA_OPTS, or --options-to all for every JVM",
            ),
        },
        name if name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit()) => {
            Ok(Some(name.to_owned()))
        }
        other => refuse(
            format!("`{other}` is not a place for JVM options"),
            "write launcher, all, or a variable in capital letters: MAVEN_OPTS",
        ),
    }
}

fn refuse_run_keys(app: &AppTable, source: &ExperimentSource<'_>) -> Checked<()> {
    let given = [
        ("fresh", app.fresh.is_some()),
        ("reset", !app.reset.is_empty()),
        ("options-to", app.options_to.is_some()),
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
            experiment
                .cluster
                .as_ref()
                .is_some_and(|c| c.generators.is_some()),
            "generators, which send a load",
            "leave out generators (--generators)",
        ),
        (
            configurations.iter().any(|c| c.instances > 1),
            "several instances",
            "size one run: leave out instances",
        ),
        (
            experiment.search.soak.is_some(),
            "a soak",
            "leave it out: a run is always measured from start to end",
        ),
        (
            experiment.has_outages(),
            "an outage, which is judged by requests",
            "leave out the outage",
        ),
    ];
    source.refuse_asked("the application is a job", &refused)
}
