//! Where a project's service answers: its port, and the path that says that it is ready.
//!
//! Owns the names of the settings. What a manifest's probe asks is what production asks, so it comes
//! first; then the settings of Spring Boot, Quarkus and Micronaut, the compose file, the Dockerfile.

use serde_json::Value;

use super::deployed::{ComposedApp, DeployedManifest};
use super::{ProjectDirectory, ProjectGuess};
use crate::compose::scalar;
use crate::{manifest, shipped};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServedEndpoint {
    pub port: ProjectGuess<u16>,
    pub ready: Option<ProjectGuess<String>>,
    /// The path above all of the application's own, without a slash at its end.
    pub root: String,
}

/// What all three frameworks listen on unless told otherwise.
const PORT: u16 = 8080;

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

const PORTS: [&str; 3] = ["server.port", "quarkus.http.port", "micronaut.server.port"];

const ROOTS: [&str; 4] = [
    "server.servlet.context-path",
    "spring.webflux.base-path",
    "quarkus.http.root-path",
    "micronaut.server.context-path",
];

/// A library in a build file and the path that it answers health at.
const HEALTH: [(&str, &str); 3] = [
    ("spring-boot-starter-actuator", "/actuator/health"),
    ("quarkus-smallrye-health", "/q/health/ready"),
    ("micronaut-management", "/health"),
];

pub(super) fn find_endpoint(
    place: &ProjectDirectory<'_>,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
    composed: Option<&ProjectGuess<ComposedApp>>,
) -> ServedEndpoint {
    let settings: Vec<SettingsFile> = SETTINGS
        .iter()
        .filter_map(|name| SettingsFile::read(place, name))
        .collect();
    let probe = manifest.and_then(|m| {
        let path = place.directory.join(&m.value.file);
        let probe = shipped::find_probe(&path, &m.value.workload, m.value.container.as_deref())?;
        Some((probe, m.value.file.display().to_string()))
    });
    let of_http = manifest.and_then(|m| {
        let path = place.directory.join(&m.value.file);
        let port = shipped::find_http_port(&path, &m.value.workload, m.value.container.as_deref())?;
        let from = format!("the port of {}", m.value.file.display());
        Some(ProjectGuess::new(port, from))
    });
    let of_probe = probe.as_ref().and_then(|((_, port), from)| {
        let from = format!("the probe in {from}");
        port.map(|port| ProjectGuess::new(port, from))
    });
    let of_settings = || {
        settings.iter().find_map(|s| {
            let text = PORTS.iter().find_map(|name| s.get_setting(name))?;
            let port = default_value(&text).parse().ok()?;
            Some(ProjectGuess::new(port, s.name))
        })
    };
    let of_compose = || {
        let composed = composed?;
        let ports = &composed.value.ports;
        let from = match ports.len() {
            0 | 1 => composed.from.clone(),
            several => format!("the first of {several} of {}", composed.from),
        };
        Some(ProjectGuess::new(*ports.first()?, from))
    };
    let http = of_http.as_ref().map(|http| http.value);
    let is_same = |probe: &ProjectGuess<u16>| http.is_none_or(|http| http == probe.value);
    let port = of_probe.filter(is_same).or(of_http);
    let port = port.or_else(of_settings).or_else(of_compose);
    let port = port.or_else(|| exposed_port(place));
    let port = port.unwrap_or_else(|| ProjectGuess::new(PORT, "default"));
    let ready = probe.map(|((path, own), from)| {
        let path = match own.filter(|own| *own != port.value) {
            Some(own) => format!(":{own}{path}"),
            None => path,
        };
        ProjectGuess::new(path, format!("the probe in {from}"))
    });
    let root = settings
        .iter()
        .find_map(|s| ROOTS.iter().find_map(|name| s.get_setting(name)));
    let root = root.as_deref().map_or("", default_value);
    let root = match root.trim_matches('/') {
        "" => String::new(),
        root => format!("/{root}"),
    };
    ServedEndpoint {
        port,
        ready: ready.or_else(|| health_path(place, &settings, &root)),
        root,
    }
}

fn default_value(text: &str) -> &str {
    let inner = text.trim().strip_prefix("${");
    let inner = inner.and_then(|t| t.strip_suffix('}')?.split_once(':'));
    inner.map_or(text, |(_, value)| value).trim()
}

fn health_path(
    place: &ProjectDirectory<'_>,
    settings: &[SettingsFile],
    root: &str,
) -> Option<ProjectGuess<String>> {
    let files = ["pom.xml", "build.gradle.kts", "build.gradle"];
    let (name, library, path) = files.iter().find_map(|name| {
        let text = place.read_small_text(name)?;
        let found = HEALTH.iter().find(|(library, _)| text.contains(library))?;
        Some((*name, found.0, found.1))
    })?;
    let setting = |name: &str| settings.iter().find_map(|s| s.get_setting(name));
    let base = setting("management.endpoints.web.base-path");
    let path = match base {
        Some(base) if path.starts_with("/actuator") => path.replacen("/actuator", &base, 1),
        _ => path.to_owned(),
    };
    // A separate management port is not the load's, and has no context path.
    let quarkus = || {
        let is_separate = setting("quarkus.management.enabled").as_deref() == Some("true");
        let port = || setting("quarkus.management.port").unwrap_or("9000".to_owned());
        is_separate.then(port)
    };
    if let Some(port) = setting("management.server.port").or_else(quarkus) {
        let from = format!("{library} in {name}, at the management port");
        return Some(ProjectGuess::new(
            format!(":{}{path}", default_value(&port)),
            from,
        ));
    }
    let path = format!("{root}{path}");
    Some(ProjectGuess::new(path, format!("{library} in {name}")))
}

fn exposed_port(place: &ProjectDirectory<'_>) -> Option<ProjectGuess<u16>> {
    let text = place.read_small_text("Dockerfile")?;
    let port = text.lines().find_map(|line| {
        let (word, rest) = line.trim().split_once(char::is_whitespace)?;
        let first = rest.split_whitespace().next()?.split('/').next()?;
        word.eq_ignore_ascii_case("EXPOSE")
            .then(|| first.parse().ok())?
    });
    port.map(|port| ProjectGuess::new(port, "EXPOSE in Dockerfile"))
}

struct SettingsFile {
    name: &'static str,
    form: SettingsFormat,
}

enum SettingsFormat {
    Properties(String),
    Yaml(Vec<Value>),
}

impl SettingsFile {
    fn read(place: &ProjectDirectory<'_>, name: &'static str) -> Option<Self> {
        let text = place.read_small_text(name)?;
        let form = if name.ends_with(".properties") {
            SettingsFormat::Properties(text)
        } else {
            SettingsFormat::Yaml(manifest::documents(&text, name).ok()?)
        };
        Some(Self { name, form })
    }

    /// A setting by its dotted name; of YAML the first document is the one without a profile.
    fn get_setting(&self, key: &str) -> Option<String> {
        match &self.form {
            SettingsFormat::Properties(text) => text.lines().find_map(|line| {
                let line = line.trim();
                let at = line.find(['=', ':'])?;
                (line[..at].trim() == key).then(|| line[at + 1..].trim().to_owned())
            }),
            SettingsFormat::Yaml(documents) => {
                let document = documents.first()?;
                let whole = document.get(key);
                let nested = || key.split('.').try_fold(document, |at, part| at.get(part));
                scalar(whole.or_else(nested)?)
            }
        }
    }
}
