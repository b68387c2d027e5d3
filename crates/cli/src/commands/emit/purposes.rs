//! What the files are for: as asked, or all that the application can have.

use loadline_experiment::Experiment;
use loadline_report::emit::{EmitPurpose, ProductionApplication};

use super::{EmitArguments, EmitTarget, NO_JVM};
use crate::error::Error;

pub(super) fn choose_purposes(
    arguments: &EmitArguments,
    experiment: &Experiment,
    application: &ProductionApplication,
) -> Result<Vec<EmitPurpose>, Error> {
    let chosen = match application.measured_image {
        Some(_) => purposes_of_image(arguments, application.jdk)?,
        None => purposes(&arguments.purposes),
    };
    if experiment.load.is_timed() {
        purposes_of_consumer(chosen, application.scaling.is_some())
    } else {
        Ok(chosen)
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

/// What alerts and a dashboard compare are requests; more pods of a consumer are KEDA's.
fn purposes_of_consumer(
    mut purposes: Vec<EmitPurpose>,
    is_scaled: bool,
) -> Result<Vec<EmitPurpose>, Error> {
    let compares_requests =
        |purpose: &EmitPurpose| matches!(purpose, EmitPurpose::Alerts | EmitPurpose::Grafana);
    if purposes.iter().any(compares_requests) {
        let refusal = "--for: the application takes no requests, so there is nothing for alerts and a dashboard";
        let hint = "leave out alerts and grafana: loadline emit --for kubernetes,docker,keda --max-replicas 10";
        return Err(Error::usage(refusal).with_hint(hint));
    }
    if is_scaled && !purposes.contains(&EmitPurpose::Keda) {
        purposes.push(EmitPurpose::Keda);
    }
    Ok(purposes)
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
        return Err(Error::usage(refusal).with_hint("loadline emit --for kubernetes"));
    }
    if !(wanted.iter().any(builds) || arguments.cache.is_some()) {
        Ok(wanted)
    } else {
        Err(Error::usage("the result is for an image, and a Dockerfile would build another",
    )
    .with_hint("loadline emit --for kubernetes --for options: the image by its digest, the options in JAVA_TOOL_OPTIONS"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_is_scaled_by_keda_and_gets_no_file_about_requests() {
        let scaled = purposes_of_consumer(purposes(&[]), true).expect("all can be written");
        assert_eq!(scaled.len(), EmitPurpose::ALL.len() + 1);
        let alone = purposes_of_consumer(purposes(&[]), false).expect("all can be written");
        assert_eq!(alone, EmitPurpose::ALL);
        let refused = purposes_of_consumer(vec![EmitPurpose::Alerts], false);
        assert!(refused.is_err(), "alerts are about requests");
    }
}
