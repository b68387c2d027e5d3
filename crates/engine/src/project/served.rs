//! Where a project's service answers: its port, and the path that says that it is ready.
//!
//! Owns the names of the settings. What a manifest's probe asks is what production asks, so it comes
//! first; then the settings of Spring Boot, Quarkus and Micronaut, the compose file, the Dockerfile.

use serde_json::Value;

use super::deployed::{Composed, Manifest};
use super::{Guess, Place};
use crate::experiment::shipped;
use crate::manifest;

/// Where the service answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub port: Guess<u16>,
    pub ready: Option<Guess<String>>,
}

/// What all three frameworks listen on unless told otherwise.
const PORT: u16 = 8080;

/// Files of settings, as they are found beside the sources or the jar.
const SETTINGS: [&str; 8] = [
    "src/main/resources/application.properties",
    "src/main/resources/application.yml",
    "src/main/resources/application.yaml",
    "application.properties",
    "application.yml",
    "application.yaml",
    "config/application.properties",
    "config/application.yml",
];

/// Settings of the port.
const PORTS: [&str; 3] = ["server.port", "quarkus.http.port", "micronaut.server.port"];

/// A library in a build file and the path that it answers health at.
const HEALTH: [(&str, &str); 3] = [
    ("spring-boot-starter-actuator", "/actuator/health"),
    ("quarkus-smallrye-health", "/q/health/ready"),
    ("micronaut-management", "/health"),
];

pub(super) fn look(
    place: &Place<'_>,
    manifest: Option<&Guess<Manifest>>,
    composed: Option<&Guess<Composed>>,
) -> Served {
    let settings: Vec<Settings> = SETTINGS
        .iter()
        .filter_map(|name| Settings::read(place, name))
        .collect();
    let probe = manifest.and_then(|m| {
        let path = place.directory.join(&m.value.file);
        let probe = shipped::probe(&path, &m.value.workload, m.value.container.as_deref())?;
        Some((probe, m.value.file.display().to_string()))
    });
    let of_probe = probe.as_ref().and_then(|((_, port), from)| {
        let from = format!("the probe in {from}");
        port.map(|port| Guess::new(port, from))
    });
    let of_settings = || {
        settings.iter().find_map(|s| {
            let text = PORTS.iter().find_map(|name| s.get(name))?;
            // `${PORT:8080}` is 8080 unless the environment says otherwise.
            let text = text.strip_prefix("${").and_then(|t| t.strip_suffix('}'));
            let text = text
                .and_then(|t| t.split_once(':'))
                .map(|(_, t)| t.to_owned());
            let whole = PORTS.iter().find_map(|name| s.get(name))?;
            let port = text.unwrap_or(whole).trim().parse().ok()?;
            Some(Guess::new(port, s.name))
        })
    };
    let of_compose = || composed.and_then(|c| Some(Guess::new(c.value.port?, c.from.clone())));
    let port = of_probe.or_else(of_settings).or_else(of_compose);
    let port = port.or_else(|| exposed(place));
    let port = port.unwrap_or_else(|| Guess::new(PORT, "default"));
    let ready = probe.map(|((path, _), from)| Guess::new(path, format!("the probe in {from}")));
    Served {
        port,
        ready: ready.or_else(|| health(place, &settings)),
    }
}

/// The path of the health library that a build file names, below the application's own paths.
fn health(place: &Place<'_>, settings: &[Settings]) -> Option<Guess<String>> {
    let files = ["pom.xml", "build.gradle.kts", "build.gradle"];
    let (name, library, path) = files.iter().find_map(|name| {
        let text = place.text(name)?;
        let found = HEALTH.iter().find(|(library, _)| text.contains(library))?;
        Some((*name, found.0, found.1))
    })?;
    let setting = |name: &str| settings.iter().find_map(|s| s.get(name));
    // A management port of its own is not the load's; the readiness would ask the wrong one.
    if setting("management.server.port").is_some() {
        return None;
    }
    let below = setting("server.servlet.context-path").unwrap_or_default();
    let path = match setting("management.endpoints.web.base-path") {
        Some(base) if path.starts_with("/actuator") => path.replacen("/actuator", &base, 1),
        _ => path.to_owned(),
    };
    let path = format!("{}{path}", below.trim_end_matches('/'));
    Some(Guess::new(path, format!("{library} in {name}")))
}

/// The port that a Dockerfile exposes.
fn exposed(place: &Place<'_>) -> Option<Guess<u16>> {
    let text = place.text("Dockerfile")?;
    let port = text.lines().find_map(|line| {
        let (word, rest) = line.trim().split_once(char::is_whitespace)?;
        let first = rest.split_whitespace().next()?.split('/').next()?;
        word.eq_ignore_ascii_case("EXPOSE")
            .then(|| first.parse().ok())?
    });
    port.map(|port| Guess::new(port, "EXPOSE in Dockerfile"))
}

/// A file of settings.
struct Settings {
    name: &'static str,
    form: Form,
}

enum Form {
    Properties(String),
    Yaml(Vec<Value>),
}

impl Settings {
    fn read(place: &Place<'_>, name: &'static str) -> Option<Self> {
        let text = place.text(name)?;
        let form = match name.ends_with(".properties") {
            true => Form::Properties(text),
            false => Form::Yaml(manifest::documents(&text, name).ok()?),
        };
        Some(Self { name, form })
    }

    /// A setting by its dotted name; of YAML the first document is the one without a profile.
    fn get(&self, key: &str) -> Option<String> {
        match &self.form {
            Form::Properties(text) => text.lines().find_map(|line| {
                let line = line.trim();
                let at = line.find(['=', ':'])?;
                (line[..at].trim() == key).then(|| line[at + 1..].trim().to_owned())
            }),
            Form::Yaml(documents) => {
                let document = documents.first()?;
                let whole = document.get(key);
                let nested = || key.split('.').try_fold(document, |at, part| at.get(part));
                let value = whole.or_else(nested)?;
                match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                }
            }
        }
    }
}
