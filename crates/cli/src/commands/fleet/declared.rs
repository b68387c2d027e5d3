//! The workloads of a cluster from their manifests.
//!
//! Owns the way from the API server's objects to a fleet's workloads. `lint` decides which
//! containers run a JVM and finds their problems; `loadline_kubernetes` talks to the API server.

use std::path::PathBuf;

use loadline_analysis::lint::{self, MeasuredNeeds, Severity};
use loadline_experiment::advice::manifest;
use loadline_experiment::manifest::ManifestFile;
use loadline_fleet::workload::{DeclaredWorkload, FleetContainerKey, InstanceResources, Objection};
use loadline_kubernetes::workload;
use serde_json::Value;

use crate::error::Error;

pub fn read(context: Option<&str>, namespaces: &[String]) -> Result<Vec<DeclaredWorkload>, Error> {
    let objects = workload::list_workloads(context, namespaces)
        .map_err(|refusal| Error::environment(&refusal).with_hint(&refusal.hint))?;
    Ok(objects.into_iter().flat_map(containers).collect())
}

fn containers(object: Value) -> Vec<DeclaredWorkload> {
    let word = |place: &str| {
        let word = object.pointer(place).and_then(Value::as_str);
        word.unwrap_or_default().to_owned()
    };
    let of = (
        word("/metadata/namespace"),
        word("/kind"),
        word("/metadata/name"),
    );
    let source = ManifestFile {
        path: PathBuf::new(),
        documents: vec![object],
    };
    let found = manifest::containers(&[source]).into_iter();
    found.map(|found| declare_container(&of, found)).collect()
}

fn declare_container(
    (namespace, kind, name): &(String, String, String),
    found: manifest::ManifestContainer,
) -> DeclaredWorkload {
    let container = &found.container;
    let wrong = match found.skipped {
        None => lint::lint(container, MeasuredNeeds::default()),
        Some(_) => Vec::new(),
    };
    let wrong = wrong.into_iter().filter(|f| f.severity == Severity::Error);
    let resources = |of: lint::ContainerResources| InstanceResources {
        cpu: of.cpu,
        memory: of.memory,
    };
    DeclaredWorkload {
        name: FleetContainerKey {
            namespace: namespace.clone(),
            kind: kind.clone(),
            name: name.clone(),
            container: container.name.clone(),
        },
        request: resources(container.requests),
        limit: resources(container.limits),
        is_jvm: !container.jvm.is_empty(),
        objections: wrong
            .map(|finding| Objection {
                problem: finding.problem,
                hint: finding.hint,
            })
            .collect(),
    }
}
