//! What would refuse a measurement before its first trial, but for the machine.
//!
//! Owns that every configuration can be started and what its load names is there. Starts nothing.

use loadline_analysis::record::Configuration;
use loadline_experiment::{Experiment, SurroundingsError};
use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_report::{redact, text};
use loadline_runner::cache::application_of_command;
use loadline_runner::command::{AssembledCommand, assemble};

use crate::error::{Error, command_refused};

pub(super) fn preflight(
    experiment: &Experiment,
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> Result<(), Error> {
    let configurations = experiment.configurations();
    let is_program = |c: &Configuration| experiment.app_of(c).image.is_none();
    if configurations.iter().any(is_program) && !experiment.app.directory.is_dir() {
        return Err(Error::usage(format!("the application's directory {} does not exist", experiment.app.directory.display()))
            .with_hint("app.directory is relative to the experiment file; without it the application runs in loadline's working directory"));
    }
    // What the load names must be there, too: bodies, credentials.
    let first = Configuration::default();
    experiment.load.phases(&first, None, 0)?;
    let checked = experiment.check_surroundings(places);
    checked.map_err(|e| match &e {
        SurroundingsError::Refused(refusal) => Error::from_refusal(refusal),
        SurroundingsError::Command(error) => command_refused(error),
        other => Error::usage(other),
    })?;
    for configuration in &configurations {
        let assembled = assemble(experiment, configuration, jdks, places)?;
        detail!("{}", started_command(configuration, &assembled));
    }
    if let Some(warning) = nested_jars(experiment, jdks, places) {
        say!("warning: {warning}");
    }
    Ok(())
}

/// Said before a cache is trained for nothing: of classes in jars inside a jar it serves none.
fn nested_jars(experiment: &Experiment, jdks: &DetectedJdks, places: &JdkPlaces) -> Option<String> {
    let all = experiment.configurations();
    let cached = all.iter().find(|c| c.cache.is_some())?;
    let app = experiment.app_of(cached);
    let assembled = assemble(experiment, cached, jdks, places).ok()?;
    let application = application_of_command(&app, assembled.command_line()).ok()?;
    let jar = application.main().display();
    let (whose, way) = match &app.image {
        None => (
            jar.to_string(),
            "`loadline cache --extract` and `loadline size --extract` take it apart and measure that; other commands: name the jar that they made".to_owned(),
        ),
        Some(image) => (
            format!("the jar of {}", image.reference),
            "extract it while building the image: RUN java -Djarmode=tools -jar app.jar extract --destination extracted".to_owned(),
        ),
    };
    application.has_nested_jars.then(|| {
        format!(
            "{whose} contains the jars of its libraries, and no cache can hold classes from jars inside a jar\nhint: {way}"
        )
    })
}

fn started_command(configuration: &Configuration, assembled: &AssembledCommand) -> String {
    let jdk = assembled.jdk.as_ref();
    let jdk = jdk.map_or_else(String::new, |jdk| format!(" (JDK {})", jdk.version.full));
    let command = redact::redact_command(assembled.command_line()).join(" ");
    let told = format!("starts {}{jdk}: {command}", configuration.label);
    text::one_line(&told)
}
