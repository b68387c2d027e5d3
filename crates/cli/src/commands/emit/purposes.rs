//! What the files are for: as asked, or all that the application can have.

use loadline_experiment::Experiment;
use loadline_report::emit::{EmitPurpose, ProductionApplication};

use super::{EmitArguments, EmitTarget, NO_JVM};
use crate::error::{Error, FailureKind};

pub(super) fn choose_purposes(
    arguments: &EmitArguments,
    experiment: &Experiment,
    application: &ProductionApplication,
) -> Result<Vec<EmitPurpose>, Error> {
    let chosen = match application.measured_image {
        Some(_) => purposes_of_image(arguments, application.jdk)?,
        None => purposes(&arguments.purposes),
    };
    match experiment.load.is_timed() {
        true => purposes_without_port(chosen, !arguments.purposes.is_empty()),
        false => Ok(chosen),
    }
}

fn purposes(given: &[EmitTarget]) -> Vec<EmitPurpose> {
    let purpose = |wanted: &EmitTarget| match wanted {
        EmitTarget::Kubernetes => EmitPurpose::Kubernetes,
        EmitTarget::Docker => EmitPurpose::Docker,
        EmitTarget::Compose => EmitPurpose::Compose,
        EmitTarget::Options => EmitPurpose::Options,
        EmitTarget::Alerts => EmitPurpose::Alerts,
        EmitTarget::Grafana => EmitPurpose::Grafana,
        EmitTarget::Keda => EmitPurpose::Keda,
    };
    if given.is_empty() {
        EmitPurpose::ALL.to_vec()
    } else {
        given.iter().map(purpose).collect()
    }
}

/// An application that takes no requests has no port that a new manifest could name.
fn purposes_without_port(
    mut purposes: Vec<EmitPurpose>,
    are_given: bool,
) -> Result<Vec<EmitPurpose>, Error> {
    let needs_port =
        |purpose: &EmitPurpose| !matches!(purpose, EmitPurpose::Options | EmitPurpose::Docker);
    if !are_given {
        purposes.retain(|purpose| !needs_port(purpose));
    }
    if !purposes.is_empty() && !purposes.iter().any(needs_port) {
        return Ok(purposes);
    }
    let refusal = "--for: the application takes no requests, and a new manifest, alerts or a dashboard would name its port";
    let hint = "patch the manifest that it has: loadline emit --manifest consumer.yaml --to deploy; or --for options,docker";
    Err(Error::new(FailureKind::Usage, refusal).with_hint(hint))
}

/// A measured image is not rebuilt, and without a JVM there are no options.
fn purposes_of_image(arguments: &EmitArguments, jdk: u32) -> Result<Vec<EmitPurpose>, Error> {
    let builds =
        |purpose: &EmitPurpose| matches!(purpose, EmitPurpose::Docker | EmitPurpose::Compose);
    let has_no_place = |purpose: &EmitPurpose| jdk == NO_JVM && *purpose == EmitPurpose::Options;
    if arguments.purposes.is_empty() {
        let all = EmitPurpose::ALL.iter().copied();
        return Ok(all.filter(|p| !builds(p) && !has_no_place(p)).collect());
    }
    let wanted = purposes(&arguments.purposes);
    if wanted.iter().any(has_no_place) {
        let refusal = "--for options: no JVM was seen in the image, so it takes no JVM options";
        return Err(
            Error::new(FailureKind::Usage, refusal).with_hint("loadline emit --for kubernetes")
        );
    }
    match wanted.iter().any(builds) || arguments.cache.is_some() {
        false => Ok(wanted),
        true => Err(Error::new(
            FailureKind::Usage,
            "the result is of an image, and a Dockerfile would build another",
        )
        .with_hint("loadline emit --for kubernetes --for options: the image by its digest, the options in JAVA_TOOL_OPTIONS")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_gets_no_file_that_names_a_port() {
        let all = purposes(&[]);
        let chosen = purposes_without_port(all, false).expect("some have none");
        assert_eq!(chosen, [EmitPurpose::Options, EmitPurpose::Docker]);
        for refused in [vec![EmitPurpose::Kubernetes], Vec::new()] {
            let refused = purposes_without_port(refused, true);
            assert!(refused.is_err(), "it has no port");
        }
    }
}
