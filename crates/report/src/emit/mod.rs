//! What a user ships: JVM options, Dockerfile, Compose file, Kubernetes manifests, alerts; or what
//! changes in the manifest ([`patch()`]) or chart ([`values()`]) that there is.
//!
//! Owns the text of the artefacts, pure functions of a recommendation. Every value carries a comment
//! with its evidence, in YAML a short one next to `evidence.md`; nothing is set that was not measured or asked for. Never holds a secret:
//! variables with a secret's name become references. Read [`ProductionApplication`], then [`emit`].

mod alerts;
mod application;
mod base_image;
mod bounds;
mod builds;
mod cache;
mod change;
mod command;
mod compose;
mod container;
mod dashboard;
mod error;
mod evidence;
mod facts;
mod given;
mod jvm_options;
mod kubernetes;
mod liberty;
mod merge;
mod names;
mod patch;
mod profile;
mod purpose;
mod run;
mod scaling;
mod start_cpu;
mod values;
mod words;
mod workload;
mod yaml;

pub use application::{AutoscalerNeeds, ImagePinning, ProductionApplication, ReadinessCheck};
pub use base_image::{BaseImage, Likeness, OPENJ9};
pub use builds::RunShape;
pub use cache::{
    CacheStage, ImageCache, REQUESTS as CACHE_REQUESTS, cache_stage, cached_image,
    shared::shared_cache_script, training_script as cache_script,
};
pub use command::StartCommand;
pub use error::EmitError;
pub use given::{Secret, secret};
pub use names::slug;
pub use patch::{PatchFiles, patch};
pub use purpose::{Artefact, EmitPurpose};
pub use run::emit_run;
pub use values::{ChartField, ValuePath, values};
pub use workload::EmittedWorkload;

use crate::view::ResultView;
use facts::EmitFacts;

/// The artefacts of a result's recommendation, each once, in the order in which they are read.
/// Errors: [`EmitError`] when the result has no recommendation, or when its options would have no
/// place in the files.
pub fn emit(
    view: &ResultView,
    application: &ProductionApplication,
    purposes: &[EmitPurpose],
) -> Result<Vec<Artefact>, EmitError> {
    let facts = EmitFacts::from_result(view, application, purposes)?;
    let is_alone = purposes.contains(&EmitPurpose::Kubernetes) && !facts.has_image;
    if is_alone && jvm_options::tool_options(&facts).is_none() {
        return Err(EmitError::ToolOptions);
    }
    if facts.has_keda && application.port.is_none() && facts.triggers.is_empty() {
        return Err(EmitError::NoTrigger);
    }
    let mut artefacts = Vec::new();
    let others = [EmitPurpose::Alerts, EmitPurpose::Grafana, EmitPurpose::Keda];
    let in_order = EmitPurpose::ALL.into_iter().chain(others);
    for purpose in in_order.filter(|p| purposes.contains(p)) {
        for artefact in files_for(purpose, &facts) {
            if !artefacts.contains(&artefact) {
                artefacts.push(artefact);
            }
        }
    }
    let is_yaml = |p: &EmitPurpose| matches!(p, EmitPurpose::Kubernetes | EmitPurpose::Compose);
    if purposes.iter().any(is_yaml) {
        artefacts.push(Artefact {
            name: yaml::EVIDENCE_FILE,
            text: evidence::evidence(&facts),
        });
    }
    Ok(artefacts)
}

fn files_for(purpose: EmitPurpose, facts: &EmitFacts<'_>) -> Vec<Artefact> {
    let artefact = |name, text| Artefact { name, text };
    let is_liberty = facts.application.command.liberty.is_some();
    let argument_file = || {
        if is_liberty {
            artefact("jvm.options", liberty::jvm_options(facts))
        } else {
            artefact("jvm.options", jvm_options::argument_file(facts))
        }
    };
    let profile = || artefact("loadline.profile", profile::profile(facts));
    let image = || {
        let mut files = vec![artefact("Dockerfile", container::dockerfile(facts))];
        if is_liberty {
            files.push(artefact("loadline.xml", liberty::server_xml(facts)));
        }
        if container::uses_file(facts) {
            files.push(argument_file());
        }
        if facts.application.launcher {
            files.push(profile());
        }
        files
    };
    match purpose {
        EmitPurpose::Options => {
            let variables = jvm_options::environment_file(facts);
            let variables = artefact("java-tool-options.env", variables);
            vec![argument_file(), variables, profile()]
        }
        EmitPurpose::Docker => image(),
        EmitPurpose::Compose => {
            let mut files = image();
            files.push(artefact("compose.yaml", compose::compose(facts)));
            files
        }
        EmitPurpose::Kubernetes => {
            let mut files = vec![artefact("kubernetes.yaml", kubernetes::manifests(facts))];
            let boosts = start_cpu::boosts(facts).into_iter();
            files.extend(boosts.map(|(name, text)| artefact(name, text)));
            files
        }
        EmitPurpose::Alerts => vec![artefact("alerts.yaml", alerts::alerts(facts))],
        EmitPurpose::Grafana => vec![artefact("dashboard.json", dashboard::dashboard(facts))],
        EmitPurpose::Keda => match facts.application.scaling {
            Some(needs) => vec![artefact("keda.yaml", scaling::scaled_object(facts, needs))],
            None => Vec::new(),
        },
    }
}
