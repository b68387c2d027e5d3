//! The user's next steps with the emitted files.
//!
//! Owns the commands that it prints; runs none.

use std::path::{Component, Path, PathBuf};

use loadline_analysis::text::join_words;
use loadline_report::content::shell_quoted;
use loadline_report::emit::{Artefact, Likeness, ProductionApplication, Secret};
use loadline_sizing::Cpus;

pub(super) struct ShippingSteps<'a> {
    pub(super) to: &'a Path,
    pub(super) home: &'a Path,
    pub(super) application: &'a ProductionApplication,
    pub(super) artefacts: &'a [Artefact],
    pub(super) secret: Option<Secret>,
    pub(super) start_cpu: Option<Cpus>,
}

impl ShippingSteps<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.artefacts.iter().any(|a| a.name == name)
    }

    pub(super) fn reachable_path(&self, path: &Path) -> PathBuf {
        let path = self.home.join(path);
        let here = std::env::current_dir().unwrap_or_default();
        let path = path.strip_prefix(&here).unwrap_or(&path);
        let parts = path.components();
        parts.filter(|part| *part != Component::CurDir).collect()
    }

    pub(super) fn doubts(&self) -> Vec<String> {
        if !self.has("Dockerfile") {
            return Vec::new();
        }
        let base = &self.application.base_image;
        let is_other = base.likeness == Likeness::Feature;
        let other = is_other.then(|| {
            format!(
                "the Dockerfile builds on {}, not on the measured JDK, {}: measure with that, or give --base-image",
                base.name, base.measured
            )
        });
        let command = &self.application.command;
        let jar = self.reachable_path(Path::new(&command.jar));
        let unread = (!command.is_read).then(|| {
            format!(
                "{} cannot be read here: the Dockerfile does not copy files that its manifest may name",
                jar.display()
            )
        });
        other.into_iter().chain(unread).collect()
    }

    pub(super) fn next(&self) -> Vec<String> {
        let to = shell_quoted(&self.to.display().to_string());
        let mut steps = Vec::new();
        if self.has("Dockerfile") {
            steps.push(self.copy_command(&to));
            steps.push(format!(
                "docker build -t {} {to}",
                shell_quoted(&self.application.image)
            ));
        }
        if self.has("compose.yaml") {
            steps.push(format!("docker compose -f {to}/compose.yaml up"));
            steps.extend(self.start_cpu.map(|start| {
                format!("compose.yaml cannot give {start} CPU until ready: docker update --cpus {start} CONTAINER, and back once it is ready")
            }));
        }
        if self.has("kubernetes.yaml") {
            steps.extend(self.secret.as_ref().map(|secret| {
                let lines: Vec<String> = secret.keys.iter().map(|k| format!("{k}=...")).collect();
                format!(
                    "kubectl create secret generic {} --from-env-file=FILE   # its lines: {}",
                    secret.name,
                    lines.join(", ")
                )
            }));
            steps.push(format!("kubectl apply -f {to}/kubernetes.yaml"));
        }
        if self.has("dashboard.json") {
            steps.push(format!(
                "in Grafana: Dashboards, New, Import: {to}/dashboard.json"
            ));
        }
        for name in ["start-cpu.yaml", "alerts.yaml", "keda.yaml"]
            .into_iter()
            .filter(|name| self.has(name))
        {
            steps.push(format!("kubectl apply -f {to}/{name}"));
        }
        steps
    }

    pub(super) fn copy_command(&self, to: &str) -> String {
        let command = &self.application.command;
        let jar = Path::new(&command.jar);
        let home = jar.parent().unwrap_or(Path::new(""));
        let beside = command.beside.iter().map(|name| home.join(name));
        let files = std::iter::once(jar.to_owned()).chain(beside);
        let files = files.map(|file| self.reachable_path(&file).display().to_string());
        let files = join_words(files.map(|file| shell_quoted(&file)), " ");
        let copy = if command.beside.is_empty() && command.liberty.is_none() {
            "cp"
        } else {
            "cp -r"
        };
        let launcher = if self.application.launcher {
            " $(command -v loadline-launch)"
        } else {
            ""
        };
        format!("{copy} {files}{launcher} {to}")
    }
}
