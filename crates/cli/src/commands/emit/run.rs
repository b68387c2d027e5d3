//! `loadline emit` for a run.

use std::path::Path;

use loadline_experiment::Experiment;
use loadline_report::emit::{RunShape, emit_run, slug};
use loadline_report::{ResultView, redact};

use super::{EmitArguments, EmitTarget, emit_refused, write};
use crate::error::{CommandOutcome, Error};
use crate::images;
use crate::output::AnswerPrinter;

/// Where the lines of a file belong.
const PLACES: [(&str, &str); 5] = [
    ("jvm.config", "add its lines to .mvn/jvm.config"),
    ("surefire.xml", "into <build><plugins> of the pom.xml"),
    ("gradle.properties", "add its lines to the project's"),
    ("spark-defaults.conf", "spark-submit --properties-file"),
    ("github-job.yaml", "into a workflow in .github/workflows"),
];

pub(super) fn write_run(
    arguments: &EmitArguments,
    to: &Path,
    (view, experiment): (&ResultView, &Experiment),
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let is_other = |target: &EmitTarget| !matches!(target, EmitTarget::Kubernetes);
    let for_services = [
        ("--for", arguments.purposes.iter().any(is_other)),
        ("--manifest", arguments.existing.is_given()),
        ("--replicas", arguments.replicas.is_some()),
        ("--max-replicas", arguments.max_replicas.is_some()),
        ("--cache", arguments.cache.is_some()),
    ];
    if let Some((flag, _)) = for_services.iter().find(|(_, is_given)| *is_given) {
        let refusal = format!("{flag}: a job is shipped as a separate Kubernetes Job");
        return Err(
            Error::usage(refusal).with_hint("leave it out, and copy what you need from job.yaml")
        );
    }
    let measured = images::measured_image(&view.machine, experiment);
    let name = arguments.name.as_deref().unwrap_or(&view.title);
    let reference = measured.map(|image| image.reference.clone());
    let image = arguments.image.clone().or(reference);
    let image = image.unwrap_or_else(|| format!("{}:latest", slug(name)));
    let shape = RunShape {
        name,
        image: &image,
        command: &redact::redact_command(&experiment.app.command),
        is_image: experiment.app.image.is_some(),
        schedule: arguments.schedule.as_deref(),
    };
    let artefacts = emit_run(view, &shape).map_err(emit_refused)?;
    write(arguments, to, view, &artefacts, out)?;
    let job = to.join("job.yaml");
    let cluster = experiment.cluster.as_ref();
    match cluster.and_then(|cluster| cluster.from.as_ref()) {
        // Its pods have more than is known here.
        Some(from) => talk!(
            "next: copy resources and env of {} to {}",
            job.display(),
            from.workload
        ),
        None => talk!("next: kubectl apply -f {}", job.display()),
    }
    for artefact in &artefacts {
        if let Some((_, place)) = PLACES.iter().find(|(name, _)| *name == artefact.name) {
            talk!("      {}: {place}", to.join(artefact.name).display());
        }
    }
    Ok(CommandOutcome::Done)
}
