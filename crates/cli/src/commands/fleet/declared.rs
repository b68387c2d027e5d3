//! The workloads of a cluster as their manifests have them.
//!
//! Owns the way from the API server's objects to what a fleet takes of them. What is a JVM in a
//! manifest and what is wrong with it is `lint`'s; the API server is `loadline_kubernetes`'s.

use std::path::PathBuf;

use loadline_analysis::lint::{self, Measured, Severity};
use loadline_engine::advice::manifest;
use loadline_engine::manifest::Source;
use loadline_fleet::workload::{Declared, Name, Objection, Resources};
use loadline_kubernetes::workload;
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// Every container of these namespaces, all without one.
pub fn read(context: Option<&str>, namespaces: &[String]) -> Result<Vec<Declared>, Error> {
    let objects = workload::all(context, namespaces)
        .map_err(|refusal| Error::new(ErrorKind::Environment, &refusal).hint(&refusal.hint))?;
    Ok(objects.into_iter().flat_map(containers).collect())
}

fn containers(object: Value) -> Vec<Declared> {
    let word = |place: &str| {
        let word = object.pointer(place).and_then(Value::as_str);
        word.unwrap_or_default().to_owned()
    };
    let of = (
        word("/metadata/namespace"),
        word("/kind"),
        word("/metadata/name"),
    );
    let source = Source {
        path: PathBuf::new(),
        documents: vec![object],
    };
    let found = manifest::containers(&[source]).into_iter();
    found.map(|found| declared(&of, found)).collect()
}

fn declared(
    (namespace, kind, name): &(String, String, String),
    found: manifest::Found,
) -> Declared {
    let container = &found.container;
    let wrong = match found.skipped {
        None => lint::lint(container, Measured::default()),
        Some(_) => Vec::new(),
    };
    let wrong = wrong.into_iter().filter(|f| f.severity == Severity::Error);
    let resources = |of: lint::Resources| Resources {
        cpu: of.cpu,
        memory: of.memory,
    };
    Declared {
        name: Name {
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
