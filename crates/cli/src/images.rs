//! Images as commands need them: found before anything is assembled, reported, and recorded.
//!
//! Owns the messages about them. Crate `trial` finds which engine has an image.

use loadline_analysis::record::{ImageIdentity, MachineDescription};
use loadline_experiment::Experiment;
use loadline_kubernetes::KubernetesHost;
use loadline_protocol::{ContainerEngine, EngineKind};
use loadline_trial::oci;
use loadline_trial::oci::image::ImageNotFound;

use crate::error::Error;

/// `registry:5000/team/orders:1.4` is `orders`.
pub fn short_name(reference: &str) -> String {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    last.split([':', '@']).next().unwrap_or(last).to_owned()
}

pub fn found_in_cluster(experiment: &mut Experiment, host: &KubernetesHost) -> Result<(), Error> {
    let image = host.image_of_application();
    talk!("image: {}, started by the cluster", image.reference);
    if let Some(of_app) = experiment.app.image.as_mut() {
        of_app.found = Some(image);
    }
    Ok(())
}

pub fn only_image(experiment: &Experiment) -> Result<String, Error> {
    let refused = |problem: &str, hint: &str| Err(Error::usage(problem).with_hint(hint));
    let Some(image) = &experiment.app.image else {
        let problem = "--kubernetes: a cluster runs images, not commands of this machine";
        let hint = "build an image and name it: --image registry/name:tag";
        return refused(problem, hint);
    };
    if image.engine.is_some() {
        let problem = "--kubernetes and --engine: the cluster starts the image";
        return refused(problem, "leave --engine out");
    }
    if experiment.images().count() > 1 {
        let problem = "--kubernetes: trials as pods run a single image so far, but the experiment has several";
        return refused(problem, "measure on this machine, without --kubernetes");
    }
    Ok(image.reference.clone())
}

/// Finds all images of an experiment that were not found yet; reports which engine has them.
/// Errors: An image that cannot be started here.
pub fn find_images(experiment: &mut Experiment) -> Result<(), Error> {
    if experiment.images().all(|image| image.found.is_some()) {
        return Ok(());
    }
    experiment.find_images().map_err(|error| match error {
        ImageNotFound::Wrong(refusal) => Error::from_wrong_input(refusal),
        ImageNotFound::Here(refusal) => Error::from_refusal(&refusal),
    })?;
    let mut said = Vec::new();
    for found in experiment.images().filter_map(|image| image.found.as_ref()) {
        let (id, kind) = (short_id(&found.id), found.engine.kind);
        let line = format!("image: {} ({id}), started by {kind}", found.reference);
        // A level may name the image of the application once more.
        if !said.contains(&line) {
            talk!("{line}");
            said.push(line);
        }
    }
    for engine in engines(experiment) {
        if let Some(why) = &engine.apart {
            let kind = engine.kind;
            talk!("{kind}: {why}; a second container next to the application's measures it");
        }
    }
    let port = experiment.load.spec.port();
    let of_application = experiment.app.image.iter().chain(&experiment.level_images);
    for found in of_application.filter_map(|image| image.found.as_ref()) {
        if found.ports.is_empty() || found.ports.contains(&port) {
            continue;
        }
        let ports: Vec<String> = found.ports.iter().map(u16::to_string).collect();
        let ports = ports.join(", ");
        say!("warning: the load goes to port {port}, and the image exposes {ports}");
    }
    Ok(())
}

pub fn engines(experiment: &Experiment) -> Vec<ContainerEngine> {
    let found = experiment.images().filter_map(|image| image.found.as_ref());
    let mut engines: Vec<ContainerEngine> = Vec::new();
    for engine in found.map(|found| &found.engine) {
        if !engines.contains(engine) {
            engines.push(engine.clone());
        }
    }
    engines
}

pub fn images_apart(experiment: &Experiment) -> Option<Vec<&oci::image::EngineImage>> {
    let found = experiment.images().filter_map(|image| image.found.as_ref());
    let found: Vec<_> = found.collect();
    let is_any = found.iter().any(|found| found.engine.apart.is_some());
    is_any.then_some(found)
}

fn short_id(id: &str) -> &str {
    let id = id.strip_prefix("sha256:").unwrap_or(id);
    id.get(..12).unwrap_or(id)
}

pub fn image_record(found: &oci::image::EngineImage) -> ImageIdentity {
    ImageIdentity {
        engine: found.engine.kind.to_string(),
        reference: found.reference.clone(),
        id: found.id.clone(),
        pinned: found.pinned.clone(),
        tool_options: found.env.get("JAVA_TOOL_OPTIONS").cloned(),
        version: found.version.clone(),
        revision: found.revision.clone(),
    }
}

pub fn measured_image<'a>(
    machine: &'a MachineDescription,
    experiment: &Experiment,
) -> Option<&'a ImageIdentity> {
    let wanted = experiment.app.image.as_ref()?;
    let is_it = |known: &&ImageIdentity| {
        let is_engine = |kind: EngineKind| kind.program_name() == known.engine;
        known.reference == wanted.reference && wanted.engine.is_none_or(is_engine)
    };
    let mut images = machine.image.iter().chain(&machine.level_images);
    images.find(is_it)
}
