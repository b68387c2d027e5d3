//! Compose files: services as parts of an experiment.
//!
//! Owns which services are used, their start order, and which features loadline supports: it
//! refuses every unsupported feature by name, and never ignores one. Runs no compose tool: a
//! dependency has its own cgroup, is measured, and ends with its trial, which such a tool cannot
//! promise. Facts: the Compose Specification (compose-spec), `05-services.md` and
//! `12-interpolation.md`.

mod ports;
mod service;
mod variables;
pub mod words;

use std::collections::BTreeSet;
use std::path::Path;

use loadline_protocol::RunRefusal;
use serde_json::{Map, Value};

pub(crate) use ports::guess_ports;
use service::RefusalCollector;
pub use service::{ComposeService, ServicePort, ServiceReadiness};
pub(crate) use service::{memory_text, scalar};
use variables::ComposeVariables;

use crate::manifest;

const COMPOSE: &str = "a compose file";
/// Longest chain of services that wait one for another.
const MOST_ABOVE: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeServices {
    pub application: Option<ComposeService>,
    pub dependencies: Vec<ComposeService>,
}

/// Takes a service with all its dependencies, and `others` too. Errors: [`RunRefusal`] names the
/// service and the unsupported key.
pub fn take_services(
    path: &Path,
    application: Option<&str>,
    others: &[String],
) -> Result<ComposeServices, RunRefusal> {
    let file = ComposeFile::read(path)?;
    let mut order = Vec::new();
    let wanted = application
        .into_iter()
        .chain(others.iter().map(String::as_str));
    let mut problems = Vec::new();
    for name in wanted {
        let found = file.after_its_dependencies(name, &mut order, &mut Vec::new(), &mut problems);
        problems.extend(found.err());
    }
    let mut taken = ComposeServices {
        application: None,
        dependencies: Vec::new(),
    };
    for name in &order {
        let service = file.read_service(name, &mut problems);
        if application == Some(name.as_str()) {
            taken.application = Some(service)
        } else {
            taken.dependencies.push(service)
        }
    }
    if let Some(refusal) = service::join_refusals(path, problems) {
        return Err(refusal);
    }
    file.refuse_shared(&taken)?;
    Ok(taken)
}

/// The value of one variable of a service: for credentials, which no experiment may hold. Errors:
/// [`RunRefusal`] if it no longer exists.
pub fn service_variable(path: &Path, service: &str, name: &str) -> Result<String, RunRefusal> {
    let file = ComposeFile::read(path)?;
    let all = service::service_environment(
        file.service_table(service)?,
        &file.service_location(service),
    )?;
    let found = all.into_iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.text).ok_or_else(|| {
        let why = format!("its service {service} no longer has a variable {name}");
        RunRefusal::new(
            file.shown_path(),
            why,
            "start a new result with the current file",
        )
    })
}

/// Parses any text as a compose file and takes all its services, for the fuzzer.
#[cfg(fuzzing)]
pub fn parse_anything(text: &str) {
    let path = Path::new("/fuzzed/compose.yaml");
    let Ok(file) =
        manifest::documents(text, "fuzzed").and_then(|all| ComposeFile::from_documents(path, all))
    else {
        return;
    };
    for name in file.services.keys() {
        let mut order = Vec::new();
        let _ = file.after_its_dependencies(name, &mut order, &mut Vec::new(), &mut Vec::new());
        let _ = file.read_service(name, &mut Vec::new());
    }
}

struct ComposeFile<'a> {
    path: &'a Path,
    services: Map<String, Value>,
    volumes: Map<String, Value>,
    variables: ComposeVariables,
}

impl<'a> ComposeFile<'a> {
    fn read(path: &'a Path) -> Result<Self, RunRefusal> {
        if !path.exists() {
            return Err(RunRefusal::new(
                format!("the compose file {}", path.display()),
                "it does not exist",
                "name the file that has your services: --compose compose.yaml",
            ));
        }
        Self::from_documents(path, manifest::read_yaml_file(path, COMPOSE)?.documents)
    }

    fn from_documents(path: &'a Path, documents: Vec<Value>) -> Result<Self, RunRefusal> {
        let refuse = |why: &str, hint: &str| {
            RunRefusal::new(format!("the compose file {}", path.display()), why, hint)
        };
        let Some(Value::Object(document)) = documents.into_iter().next() else {
            return Err(refuse(
                "it is empty",
                "name the file that has your services",
            ));
        };
        for key in ["include", "extends"] {
            if document.contains_key(key) {
                return Err(refuse(
                    &format!("`{key}` takes services of other files, which loadline does not read"),
                    "write it as one file: docker compose config > whole.yaml",
                ));
            }
        }
        let table = |key: &str| document.get(key).and_then(Value::as_object).cloned();
        let services = table("services").ok_or_else(|| {
            let other = manifest::other_kind(path, COMPOSE);
            other.unwrap_or_else(|| {
                refuse(
                    "it has no `services`",
                    "name the file that has your services; files of compose 1 need them indented below `services:`",
                )
            })
        })?;
        Ok(Self {
            path,
            services,
            volumes: table("volumes").unwrap_or_default(),
            variables: ComposeVariables::from_env_beside(path)?,
        })
    }

    fn shown_path(&self) -> String {
        format!("the compose file {}", self.path.display())
    }

    fn refuse_file(&self, why: impl std::fmt::Display, hint: impl std::fmt::Display) -> RunRefusal {
        RunRefusal::new(self.shown_path(), why, hint)
    }

    fn service_location<'b>(&'b self, name: &'b str) -> service::ServiceLocation<'b> {
        service::ServiceLocation {
            file: self.path,
            name,
            variables: &self.variables,
        }
    }

    fn service_table(&self, name: &str) -> Result<&Map<String, Value>, RunRefusal> {
        let names: Vec<&str> = self.services.keys().map(String::as_str).collect();
        match self.services.get(name) {
            Some(Value::Object(table)) => Ok(table),
            Some(_) => Err(self.refuse_file(
                format!("its service `{name}` is not a table of keys"),
                "write its keys below it: image: NAME:TAG",
            )),
            None => Err(self.refuse_file(
                format!("it has no service `{name}`"),
                format!("its services are {}", names.join(", ")),
            )),
        }
    }

    fn read_service(&self, name: &str, problems: &mut Vec<RunRefusal>) -> ComposeService {
        let table = RefusalCollector(problems).value(self.service_table(name).map(Some));
        let place = self.service_location(name);
        table.map_or_else(ComposeService::default, |table| {
            ComposeService::read(table, &place, problems)
        })
    }

    /// Its own problems come back, those of what it needs are added.
    fn after_its_dependencies(
        &self,
        name: &str,
        order: &mut Vec<String>,
        above: &mut Vec<String>,
        problems: &mut Vec<RunRefusal>,
    ) -> Result<(), RunRefusal> {
        if order.iter().any(|known| known == name) {
            return Ok(());
        }
        if above.iter().any(|one| one == name) {
            let circle = [above.as_slice(), &[name.to_owned()]].concat().join(" -> ");
            let why = format!("its services wait for each other: {circle}");
            return Err(self.refuse_file(why, "take one `depends_on` out"));
        }
        if above.len() == MOST_ABOVE {
            let why = format!("more than {MOST_ABOVE} of its services wait one for another");
            return Err(self.refuse_file(why, "take one `depends_on` out"));
        }
        let table = self.service_table(name)?;
        let needed = service::depends_on(table, &self.services, &self.service_location(name));
        above.push(name.to_owned());
        for needed in RefusalCollector(problems).value(needed) {
            let found = self.after_its_dependencies(&needed, order, above, problems);
            problems.extend(found.err());
        }
        above.pop();
        order.push(name.to_owned());
        Ok(())
    }

    fn refuse_shared(&self, taken: &ComposeServices) -> Result<(), RunRefusal> {
        let all = taken.application.iter().chain(&taken.dependencies);
        let all: Vec<&ComposeService> = all.collect();
        for (index, one) in all.iter().enumerate() {
            for other in &all[..index] {
                self.refuse_same_port(other, one)?;
                if let Some(volume) = one.named.intersection(&other.named).next() {
                    let (one, other) = (&one.name, &other.name);
                    let why = format!("`{other}` and `{one}` share the volume `{volume}`");
                    let hint = "each has its own files in a trial; put what both read into a directory: ./shared:/seen:ro";
                    return Err(self.refuse_file(why, hint));
                }
            }
        }
        let named: BTreeSet<&String> = all.iter().flat_map(|service| &service.named).collect();
        let is_external = |name: &&&String| {
            let volume = self.volumes.get(name.as_str());
            let external = volume.and_then(|volume| volume.get("external"));
            external.is_some_and(|value| *value != Value::Bool(false))
        };
        match named.iter().find(is_external) {
            None => Ok(()),
            Some(name) => Err(self.refuse_file(
                format!("the volume `{name}` is `external`: no trial can start with a fresh copy"),
                "start the service empty and fill it: [[dependency]] with a `seed` in an experiment file",
            )),
        }
    }

    fn refuse_same_port(
        &self,
        one: &ComposeService,
        other: &ComposeService,
    ) -> Result<(), RunRefusal> {
        let names = format!("`{}` and `{}`", one.name, other.name);
        for port in &one.ports {
            let mut others = other.ports.iter();
            let published = port.published.as_ref();
            let is_same = |p: &ServicePort| p.published.as_ref() == published;
            if let Some(number) = published.filter(|_| others.any(is_same)) {
                let why = format!("{names} publish port {number}");
                let hint = "change one of the ports: nothing is published in a trial, but they share one network";
                return Err(self.refuse_file(why, hint));
            }
            if other.ports.iter().any(|p| p.target == port.target) {
                let why = format!("{names} listen on port {}", port.target);
                let hint = "they share one network in a trial: have one listen on another port";
                return Err(self.refuse_file(why, hint));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
