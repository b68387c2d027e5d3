//! Services of a compose file as tables of an experiment.
//!
//! Owns how they are embedded, so that a stored experiment needs the compose file only for its
//! credentials. [`super::compose`] reads services.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_protocol::RunRefusal;

use super::compose::{self, ComposeService, ServiceReadiness};
use super::said::{Text, ValueWithOrigin};
use super::wire::{AppTable, ComposeTable, DependencyTable, ExperimentFile, ReadyTable};

const ORIGIN: &str = "the compose file";

impl ExperimentFile {
    /// Embeds its services of a compose file; the file is relative to `base`. Errors: [`RunRefusal`]
    /// names the service and the unsupported key.
    pub fn settle_compose(&mut self, base: &Path) -> Result<(), RunRefusal> {
        let Some(table) = self.compose.take() else {
            return Ok(());
        };
        let path = base
            .join(&table.file)
            .components()
            .collect::<std::path::PathBuf>();
        refuse_nothing(&table, &path)?;
        let taken = compose::take_services(&path, table.service.as_deref(), &table.services)?;
        if let Some(service) = taken.application {
            if self.limits.shm.is_none() {
                self.limits.shm = service.shm.clone().map(compose_text);
            }
            become_app(&mut self.app, service)?;
        }
        refuse_unknown(&table, &taken.dependencies, &path)?;
        let tables: Result<Vec<_>, RunRefusal> = taken
            .dependencies
            .into_iter()
            .map(|service| {
                let of = |all: &BTreeMap<String, Vec<String>>| {
                    all.get(&service.name).cloned().unwrap_or_default()
                };
                let (seed, reset) = (of(&table.seed), of(&table.reset));
                Ok(DependencyTable {
                    seed,
                    scope: table.scope.clone(),
                    reset,
                    ..dependency_from_service(service, &path)?
                })
            })
            .collect();
        self.dependency.splice(0..0, tables?);
        Ok(())
    }
}

/// Refuses a seed or reset for a service that does not run next to the application.
fn refuse_unknown(
    table: &ComposeTable,
    taken: &[ComposeService],
    path: &Path,
) -> Result<(), RunRefusal> {
    let of = |key: &'static str, all: &BTreeMap<String, Vec<String>>| {
        let unknown = (all.keys()).find(|name| taken.iter().all(|one| one.name != **name));
        unknown.map(|name| (key, name.clone()))
    };
    let unknown = of("seed", &table.seed).or_else(|| of("reset", &table.reset));
    let Some((key, name)) = unknown else {
        return Ok(());
    };
    let names: Vec<&str> = taken.iter().map(|one| one.name.as_str()).collect();
    Err(RunRefusal::new(
        format!("the compose file {}", path.display()),
        format!(
            "compose.{key} names `{name}`, which is not one of the services that run next to the application"
        ),
        if names.is_empty() {
            "none does: name them with services = [\"db\"]".to_owned()
        } else {
            format!("these do: {}", names.join(", "))
        },
    ))
}

fn refuse_nothing(table: &ComposeTable, path: &Path) -> Result<(), RunRefusal> {
    if table.service.is_some() || !table.services.is_empty() {
        Ok(())
    } else {
        Err(RunRefusal::new(
            format!("the compose file {}", path.display()),
            "no service is named",
            "name the application (service = \"orders\", --service orders), or its dependencies (services = [\"db\"])",
        ))
    }
}

fn compose_text(text: String) -> Text {
    ValueWithOrigin::from_flag(ORIGIN, text)
}

fn become_app(app: &mut AppTable, service: ComposeService) -> Result<(), RunRefusal> {
    if let Some(image) = &app.image {
        return Err(RunRefusal::new(
            format!("the service `{}` is the application", service.name),
            format!("the experiment names the image {image} too"),
            "leave one out: app.image (--image) or service (--service)",
        ));
    }
    app.image = Some(compose_text(service.image));
    if app.command.is_empty() {
        app.command = service.command;
    }
    for (name, value) in service.env {
        app.env.entry(name).or_insert(value);
    }
    app.volumes
        .extend(service.volumes.into_iter().map(compose_text));
    if app.user.is_none() {
        app.user = service.user.map(compose_text);
    }
    Ok(())
}

fn dependency_from_service(
    service: ComposeService,
    path: &Path,
) -> Result<DependencyTable, RunRefusal> {
    let Some(ready) = service.ready else {
        return Err(RunRefusal::new(
            format!("`{}` of the compose file {}", service.name, path.display()),
            "it does not say when it is ready",
            "give it a `healthcheck`, or the port that it listens on: `expose`",
        ));
    };
    Ok(DependencyTable {
        name: compose_text(service.name),
        command: service.command,
        image: Some(compose_text(service.image)),
        volumes: service.volumes.into_iter().map(compose_text).collect(),
        ready: Some(match ready {
            ServiceReadiness::Command(command) => ReadyTable {
                command,
                ..ReadyTable::default()
            },
            ServiceReadiness::Tcp(port) => ReadyTable {
                tcp: Some(port),
                ..ReadyTable::default()
            },
        }),
        env: service.env,
        start_deadline: service
            .start_deadline
            .map(|time| compose_text(format!("{}ms", time.as_millis()))),
        user: service.user.map(compose_text),
        cpu: service.cpu.map(compose_text),
        cpuset: service.cpuset.map(compose_text),
        memory: service.memory.map(compose_text),
        shm: service.shm.map(compose_text),
        ..DependencyTable::default()
    })
}
