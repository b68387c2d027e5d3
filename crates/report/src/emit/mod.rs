//! What a user ships: JVM options, Dockerfile, Compose file, Kubernetes manifests.
//!
//! Owns the text of the artefacts, pure functions of a recommendation. Every value carries a comment
//! with its evidence; nothing is set that was not measured or asked for. Never holds a secret:
//! variables with a secret's name become references. Read [`Application`], then [`emit`].

mod application;
mod cache;
mod compose;
mod container;
mod facts;
mod given;
mod jvm_options;
mod kubernetes;
mod profile;
mod scaling;
mod yaml;

pub use application::{Application, Command, Ready, Scaling};
pub use cache::{CacheStage, REQUESTS as CACHE_REQUESTS, cache_stage, script as cache_script};
pub use facts::slug;
pub use given::{Secret, secret};

use crate::view::ResultView;
use facts::Facts;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefact {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// What the artefacts are for; decides which files there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A Deployment with its Service and what belongs to them. The JVM options are in the image where
    /// that is emitted too, else in the pod.
    Kubernetes,
    /// An image.
    Docker,
    /// One machine with Compose; builds the image.
    Compose,
    /// The JVM options alone.
    Options,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Options, Self::Docker, Self::Compose, Self::Kubernetes];
}

/// Why nothing can be emitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The result recommends nothing.
    #[error(
        "result {result} has no recommendation to emit\nhint: `loadline size` makes one; `loadline report {result}` says why this result has none"
    )]
    NoRecommendation {
        /// Id of the result.
        result: String,
    },
    /// An option names a file that the image would not have.
    #[error(
        "the option {option} names a file that the image would not have\nhint: an agent comes along when it lies below the jar's directory and both paths begin alike; a class archive is made anew with --cache instead; what is on a class or module path belongs into the jar's manifest. Measure it in that form"
    )]
    File {
        /// The option, without its secrets.
        option: String,
    },
    /// A pod of an image that is not emitted would start without the options that were measured.
    #[error(
        "the measured JVM options cannot be said in JAVA_TOOL_OPTIONS: one has both kinds of quotes, or the environment sets the variable to a secret\nhint: let the image's command have them: --for docker,kubernetes"
    )]
    ToolOptions,
    /// The command is not `java ... -jar JAR`.
    #[error(
        "cannot tell the jar of the command that was measured: {command}\nhint: the files are made for `java [options] -jar JAR [arguments]`; measure it in this form: a main class with -cp packed into a jar whose manifest names it, an @file written out, a start script replaced by what it starts"
    )]
    Command {
        /// The command.
        command: String,
    },
}

/// The artefacts of a result's recommendation, each once, in the order in which they are read.
///
/// # Errors
/// [`EmitError`] when the result has no recommendation, or one without a memory limit, or when its
/// options would have no place in the files.
pub fn emit(
    view: &ResultView,
    application: &Application,
    purposes: &[Purpose],
) -> Result<Vec<Artefact>, EmitError> {
    let facts = Facts::of(view, application, purposes)?;
    let is_alone = purposes.contains(&Purpose::Kubernetes) && !facts.has_image;
    if is_alone && jvm_options::tool_options(&facts).is_none() {
        return Err(EmitError::ToolOptions);
    }
    let mut artefacts = Vec::new();
    for purpose in Purpose::ALL.iter().filter(|p| purposes.contains(p)) {
        for artefact in files(*purpose, &facts) {
            if !artefacts.contains(&artefact) {
                artefacts.push(artefact);
            }
        }
    }
    Ok(artefacts)
}

/// The files for one purpose.
fn files(purpose: Purpose, facts: &Facts<'_>) -> Vec<Artefact> {
    let artefact = |name, text| Artefact { name, text };
    let argument_file = || artefact("jvm.options", jvm_options::argument_file(facts));
    let profile = || artefact("loadline.profile", profile::profile(facts));
    let image = || {
        let mut files = vec![artefact("Dockerfile", container::dockerfile(facts))];
        if container::uses_file(facts) {
            files.push(argument_file());
        }
        if facts.application.launcher {
            files.push(profile());
        }
        files
    };
    match purpose {
        Purpose::Options => {
            let variables = jvm_options::environment_file(facts);
            vec![
                argument_file(),
                artefact("java-tool-options.env", variables),
                profile(),
            ]
        }
        Purpose::Docker => image(),
        Purpose::Compose => {
            let mut files = image();
            files.push(artefact("compose.yaml", compose::compose(facts)));
            files
        }
        Purpose::Kubernetes => vec![artefact("kubernetes.yaml", kubernetes::manifests(facts))],
    }
}
