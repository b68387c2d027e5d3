//! What a user ships: JVM options, Dockerfile, Compose file, Kubernetes manifests.
//!
//! Owns the text of the artefacts, pure functions of a recommendation. Every value carries a comment
//! with its evidence; nothing is set that was not measured or asked for. Never holds a secret:
//! variables with a secret's name become references. Read [`Application`], then [`emit`].

mod compose;
mod container;
mod facts;
mod jvm_options;
mod kubernetes;
mod yaml;

pub use facts::slug;

use crate::view::ResultView;
use facts::Facts;

/// What the records do not know about the application in production.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Name of the workload; made a DNS label where it must be one.
    pub name: String,
    /// The image with its tag or digest, as the cluster pulls it.
    pub image: String,
    /// The image the Dockerfile builds on: a JRE of the JDK that was measured.
    pub base_image: String,
    /// The jar, relative to the Dockerfile.
    pub jar: String,
    /// Arguments after the jar.
    pub arguments: Vec<String>,
    /// Port the application listens on.
    pub port: u16,
    /// Path of the readiness request, with the leading slash; `None` probes the port alone.
    pub ready_path: Option<String>,
    /// How many pods.
    pub replicas: u32,
    /// Feature release of the JDK (8, 17, 25); decides the form of the options.
    pub jdk: u32,
    /// Start through `loadline-launch`, which fits the options to the limits it finds.
    pub launcher: bool,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefact {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
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
    /// The recommendation has no memory limit.
    #[error(
        "the recommendation of result {result} has no memory limit\nhint: give the search a range of memory"
    )]
    NoMemory {
        /// Id of the result.
        result: String,
    },
}

/// All artefacts of a result's recommendation.
///
/// # Errors
/// [`EmitError`] when the result has no recommendation, or one without a memory limit.
pub fn emit(view: &ResultView, application: &Application) -> Result<Vec<Artefact>, EmitError> {
    let facts = Facts::of(view, application)?;
    let artefact = |name, text| Artefact { name, text };
    Ok(vec![
        artefact("jvm.options", jvm_options::argument_file(&facts)),
        artefact(
            "java-tool-options.env",
            jvm_options::environment_file(&facts),
        ),
        artefact("Dockerfile", container::dockerfile(&facts)),
        artefact("compose.yaml", compose::compose(&facts)),
        artefact("kubernetes.yaml", kubernetes::manifests(&facts)),
    ])
}
