//! `loadline emit` for a run.

use std::path::Path;

use loadline_experiment::Experiment;
use loadline_report::emit::{RunShape, emit_run, slug};
use loadline_report::{ResultView, redact};

use super::{EmitArguments, EmitTarget, emit_refused, write};
use crate::error::{CommandOutcome, Error, FailureKind};
use crate::images;
use crate::output::AnswerPrinter;

pub(super) fn write_run(
    arguments: &EmitArguments,
    to: &Path,
    (view, experiment): (&ResultView, &Experiment),
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let is_other = |target: &EmitTarget| !matches!(target, EmitTarget::Kubernetes);
    if arguments.purposes.iter().any(is_other) || arguments.existing.is_given() {
        let refusal = "a job is shipped as a separate Kubernetes Job";
        return Err(Error::new(FailureKind::Usage, refusal)
            .with_hint("leave out --for and the manifest, and copy what you need from job.yaml"));
    }
    let measured = images::measured_image(&view.machine, experiment);
    let name = arguments.name.as_deref().unwrap_or(&view.title);
    let image = arguments
        .image
        .clone()
        .or(measured.map(|image| image.reference.clone()));
    let image = image.unwrap_or_else(|| format!("{}:latest", slug(name)));
    let shape = RunShape {
        name,
        image: &image,
        command: &redact::redact_command(&experiment.app.command),
    };
    let artefacts = emit_run(view, &shape).map_err(emit_refused)?;
    write(arguments, to, view, &artefacts, out)?;
    talk!("next: kubectl apply -f {}", to.join("job.yaml").display());
    Ok(CommandOutcome::Done)
}
