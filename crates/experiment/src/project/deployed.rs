//! How a project is shipped: its manifest, its compose file.

use std::path::{Path, PathBuf};

use loadline_protocol::RunRefusal;
use loadline_sizing::Bytes;
use serde_json::{Map, Value};

use super::{ProjectDirectory, ProjectGuess};
use crate::advice::image_jdk::is_image_name;
use crate::advice::manifest::{ManifestContainer, containers, image_without_jvm};
use crate::compose::{guess_ports, memory_text, scalar};
use crate::manifest::{self, MANIFEST};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedManifest {
    pub file: PathBuf,
    pub workload: String,
    pub container: Option<String>,
    pub image: Option<String>,
    pub has_memory: bool,
    /// Whether its pods run to their end.
    pub ends: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedApp {
    pub file: String,
    pub application: Option<String>,
    pub image: Option<String>,
    pub ports: Vec<u16>,
    pub needs: Vec<String>,
    /// CPU and memory limit, as far as the file states them.
    pub limits: [Option<String>; 2],
}

const DIRECTORIES: [&str; 8] = [
    "k8s",
    "kubernetes",
    "deploy",
    "deployment",
    "manifests",
    "k8s/base",
    "deploy/base",
    ".",
];

const COMPOSE: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
];

/// The manifest that is given, else the only one with a container of a JVM and a memory limit.
pub(super) fn find_manifest(
    place: &ProjectDirectory<'_>,
    given: Option<&Path>,
    takes_jobs: bool,
    left_out: &mut Vec<String>,
) -> Result<Option<ProjectGuess<DeployedManifest>>, RunRefusal> {
    if let Some(file) = given {
        let path = place.directory.join(file);
        let sources = manifest::read(&path)?;
        let found = jvm_containers(&sources);
        return match found.as_slice() {
            [] => Err(manifest::other_kind(&path, MANIFEST).unwrap_or_else(|| {
                RunRefusal::new(
                    file.display().to_string(),
                    "no container in it looks like a JVM",
                    "give the manifest with your Deployment, StatefulSet or Job",
                )
            })),
            [one] => Ok(Some(ProjectGuess::new(
                to_deployed_manifest(place, one, false),
                "given",
            ))),
            several => Err(RunRefusal::new(
                file.display().to_string(),
                format!("it has several containers: {}", container_names(several)),
                "keep one workload per file, or set workload and container in loadline.toml",
            )),
        };
    }
    for directory in DIRECTORIES {
        let path = place.directory.join(directory);
        if !path.is_dir() {
            continue;
        }
        let sources = match manifest::read(&path) {
            Ok(sources) => sources,
            Err(_) => one_by_one(&path),
        };
        let found = jvm_containers(&sources);
        match found.as_slice() {
            [] => {}
            [one] if is_job(one) && !takes_jobs => left_out.push(format!(
                "{} in {directory}: it runs to its end; if it is the application: --job",
                one.workload
            )),
            [one] => {
                let file = to_deployed_manifest(place, one, sources.len() > 1);
                let from = format!("{} in {}", one.workload, file.file.display());
                return Ok(Some(ProjectGuess::new(file, from)));
            }
            several => left_out.push(format!(
                "manifests in {directory}: they have several containers ({}); take one with --manifest",
                container_names(several)
            )),
        }
    }
    Ok(None)
}

/// The files of a directory with an unreadable file in it: a chart's template next to a manifest.
fn one_by_one(directory: &Path) -> Vec<manifest::ManifestFile> {
    let files = manifest::manifest_files(directory).unwrap_or_default();
    files
        .iter()
        .filter_map(|f| manifest::read_manifest_file(f).ok())
        .collect()
}

fn jvm_containers(sources: &[manifest::ManifestFile]) -> Vec<ManifestContainer> {
    let all = containers(sources).into_iter();
    // The pods of a workflow have no place in an experiment.
    let is_workflow = |found: &ManifestContainer| workload_kind(found).contains("Workflow");
    all.filter(|found| found.skipped.is_none() && !is_workflow(found))
        .collect()
}

fn workload_kind(found: &ManifestContainer) -> &str {
    found.workload.split('/').next().unwrap_or_default()
}

fn is_job(found: &ManifestContainer) -> bool {
    ["CronJob", "Job", "ScaledJob"].contains(&workload_kind(found))
}

fn container_names(found: &[ManifestContainer]) -> String {
    let name = |f: &ManifestContainer| format!("{} {}", f.workload, f.container.name);
    found.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn to_deployed_manifest(
    place: &ProjectDirectory<'_>,
    found: &ManifestContainer,
    is_one_of_several: bool,
) -> DeployedManifest {
    let file = found.path.strip_prefix(place.directory);
    let file = file.map_or(found.path.clone(), Path::to_owned);
    let file = file.strip_prefix(".").map_or(file.clone(), Path::to_owned);
    // What an ImageStream or a parameter of a Template sets is not in the manifest.
    let image = found.raw["image"].as_str().filter(|i| is_image_name(i));
    DeployedManifest {
        file,
        workload: found.workload.clone(),
        container: is_one_of_several.then(|| found.container.name.clone()),
        image: image.map(str::to_owned),
        has_memory: found.container.limits.memory.is_some(),
        ends: is_job(found),
    }
}

/// The application and what it needs, as far as the first compose file there tells.
pub(super) fn read_compose(
    place: &ProjectDirectory<'_>,
    left_out: &mut Vec<String>,
) -> Option<ProjectGuess<ComposedApp>> {
    let file = COMPOSE.iter().find(|name| place.has_file(name))?;
    let text = place.read_small_text(file)?;
    let documents = manifest::documents(&text, file);
    let documents = documents.map_err(|refusal| left_out.push(refusal.to_string()));
    let documents = documents.ok()?;
    let services = documents.first()?.get("services")?.as_object()?;
    let builds = |service: &Value| service.get("build").is_some();
    let mut own = services.iter().filter(|(_, service)| builds(service));
    let found = match (own.next(), own.next()) {
        (Some(one), None) => Some(one),
        (Some(_), Some(_)) => {
            left_out.push(format!("{file}: it builds several services"));
            return None;
        }
        // No service is built here: the application is the only service that may have a JVM and
        // that no other service needs. If there are several, they are all dependencies of a program
        // that the developer starts.
        (None, _) => only_application(services),
    };
    let (application, table) = found.map(|(name, table)| (name.clone(), table)).unzip();
    let needs = table.map_or_else(Vec::new, dependency_names);
    let unused: Vec<&str> = services
        .keys()
        .filter(|name| Some(*name) != application.as_ref() && !needs.contains(name))
        .map(String::as_str)
        .collect();
    if !unused.is_empty() {
        left_out.push(format!(
            "services of {file} that nothing it builds depends on: {}; list the ones the application needs in [compose] services = [..]",
            unused.join(", ")
        ));
    }
    let image = table.and_then(|t| t.get("image")?.as_str());
    Some(ProjectGuess::new(
        ComposedApp {
            file: (*file).to_owned(),
            image: image.map(str::to_owned),
            ports: table.map_or_else(Vec::new, guess_ports),
            application: application.clone(),
            needs,
            limits: table.map_or([None, None], composed_limits),
        },
        match application {
            Some(name) => format!("the service {name} of {file}"),
            None => (*file).to_owned(),
        },
    ))
}

fn only_application(services: &Map<String, Value>) -> Option<(&String, &Value)> {
    let may_have_jvm = |service: &Value| {
        service["image"]
            .as_str()
            .is_some_and(|image| image_without_jvm(image).is_none())
    };
    let needed: Vec<String> = services.values().flat_map(dependency_names).collect();
    let is_main =
        |(name, service): &(&String, &Value)| may_have_jvm(service) && !needed.contains(name);
    let mut found = services.iter().filter(is_main);
    match (found.next(), found.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

pub(super) fn compose_services(
    place: &ProjectDirectory<'_>,
) -> Option<(&'static str, Vec<String>)> {
    let file = COMPOSE.iter().find(|name| place.has_file(name))?;
    let documents = manifest::documents(&place.read_small_text(file)?, file).ok()?;
    let services = documents.first()?.get("services")?.as_object()?;
    Some((*file, services.keys().cloned().collect()))
}

fn composed_limits(service: &Value) -> [Option<String>; 2] {
    let limit = |own: &str, of_deploy: &str| {
        let deployed = || service.pointer(&format!("/deploy/resources/limits/{of_deploy}"));
        let text = scalar(service.get(own).or_else(deployed)?)?;
        (!text.contains('$')).then_some(text)
    };
    let memory = limit("mem_limit", "memory").map(|memory| memory_text(&memory));
    let in_mebibytes = |text: String| {
        text.parse::<Bytes>()
            .map_or(text, |bytes| bytes.to_string())
    };
    [limit("cpus", "cpus"), memory.map(in_mebibytes)]
}

fn dependency_names(service: &Value) -> Vec<String> {
    match service.get("depends_on") {
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        }
        Some(Value::Object(names)) => names.keys().cloned().collect(),
        _ => Vec::new(),
    }
}
