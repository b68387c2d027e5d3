//! Services of a compose file as tables of an experiment.
//!
//! Owns how they become a part of it, so that what is stored needs the compose file for nothing but
//! its credentials. What a service is: [`super::compose`].

use std::path::Path;

use loadline_trial::Refusal;

use super::compose::{self, Ready, Service};
use super::said::{Said, Text};
use super::wire::{AppTable, ComposeTable, DependencyTable, ExperimentFile, ReadyTable};

/// What a refusal of a value names.
const ORIGIN: &str = "the compose file";

impl ExperimentFile {
    /// Makes what it takes of a compose file a part of it; the file is relative to `base`. Whether
    /// that changed anything.
    ///
    /// # Errors
    /// [`Refusal`] names the service and what of it cannot be done.
    pub fn settle_compose(&mut self, base: &Path) -> Result<bool, Refusal> {
        let Some(table) = self.compose.take() else {
            return Ok(false);
        };
        let path = base
            .join(&table.file)
            .components()
            .collect::<std::path::PathBuf>();
        refuse_nothing(&table, &path)?;
        let taken = compose::take(&path, table.service.as_deref(), &table.services)?;
        if let Some(service) = taken.application {
            become_app(&mut self.app, service)?;
        }
        let tables: Result<Vec<_>, Refusal> = taken
            .dependencies
            .into_iter()
            .map(|service| dependency(service, &path))
            .collect();
        self.dependency.splice(0..0, tables?);
        Ok(true)
    }
}

fn refuse_nothing(table: &ComposeTable, path: &Path) -> Result<(), Refusal> {
    match table.service.is_some() || !table.services.is_empty() {
        true => Ok(()),
        false => Err(Refusal::new(
            format!("the compose file {}", path.display()),
            "no service of it is named",
            "name the application (service = \"orders\", --service orders), or what runs beside it (services = [\"db\"])",
        )),
    }
}

fn said(text: String) -> Text {
    Said::flag(ORIGIN, text)
}

/// The experiment's own words win.
fn become_app(app: &mut AppTable, service: Service) -> Result<(), Refusal> {
    if let Some(image) = &app.image {
        return Err(Refusal::new(
            format!("the service `{}` is the application", service.name),
            format!("the experiment names the image {} too", image.get()),
            "leave out one of them: app.image (--image) or service (--service)",
        ));
    }
    app.image = Some(said(service.image));
    if app.command.is_empty() {
        app.command = service.command;
    }
    for (name, value) in service.env {
        app.env.entry(name).or_insert(value);
    }
    app.volumes.extend(service.volumes.into_iter().map(said));
    if app.user.is_none() {
        app.user = service.user.map(said);
    }
    Ok(())
}

fn dependency(service: Service, path: &Path) -> Result<DependencyTable, Refusal> {
    let Some(ready) = service.ready else {
        return Err(Refusal::new(
            format!("`{}` of the compose file {}", service.name, path.display()),
            "it does not say when it is ready",
            "give it a `healthcheck`, or the port that it listens on: `expose`",
        ));
    };
    Ok(DependencyTable {
        name: said(service.name),
        command: service.command,
        image: Some(said(service.image)),
        engine: None,
        volumes: service.volumes.into_iter().map(said).collect(),
        ready: Some(match ready {
            Ready::Command(command) => ReadyTable {
                command,
                ..ReadyTable::default()
            },
            Ready::Tcp(port) => ReadyTable {
                tcp: Some(port),
                ..ReadyTable::default()
            },
        }),
        port: None,
        stub: None,
        answer: Vec::new(),
        toxic: Vec::new(),
        seed: Vec::new(),
        directory: None,
        env: service.env,
        start_deadline: service
            .start_deadline
            .map(|time| said(format!("{}ms", time.as_millis()))),
        user: service.user.map(said),
        directories: Vec::new(),
        cpu: service.cpu.map(said),
        cpuset: service.cpuset.map(said),
        memory: service.memory.map(said),
    })
}
