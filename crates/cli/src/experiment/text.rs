//! The text of an experiment file, or what the file is in its place.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::{Error, FailureKind};
use crate::files;

const FORMAT: &str = "the experiments that come with loadline are in experiments/; the format is in docs/reference/experiment.schema.json (loadline schema experiment)";

pub(super) fn read_experiment(path: &Path) -> Result<String, Error> {
    let name = path.display();
    if path.extension().is_some_and(|e| e == "jar") {
        let hint = "the application's command stands last, after --: -- java -jar app.jar";
        return Err(other_kind(path, "a jar", hint));
    }
    let is_packed = File::open(path).is_ok_and(|mut file| {
        let mut first = [0; 2];
        file.read_exact(&mut first).is_ok() && first == [0x1f, 0x8b]
    });
    if is_packed {
        let hint = format!("a result is shown by: loadline show {name}");
        return Err(other_kind(path, "a packed file", &hint));
    }
    let text = files::read(path).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => {
            let hint = format!(
                "name the file in it: {}",
                path.join("loadline.toml").display()
            );
            other_kind(path, "a directory", &hint)
        }
        ErrorKind::InvalidData => other_kind(path, "no UTF-8 text", "save it as UTF-8"),
        _ => {
            let problem = format!("cannot read the experiment {name}: {error}");
            Error::new(FailureKind::Usage, problem).with_hint(FORMAT)
        }
    })?;
    match kind_of_text(&text) {
        Some((kind, hint)) => Err(other_kind(
            path,
            kind,
            &hint.replace("FILE", &name.to_string()),
        )),
        None => Ok(text),
    }
}

fn other_kind(path: &Path, kind: &str, hint: &str) -> Error {
    let problem = format!("{} is {kind}, not an experiment", path.display());
    Error::new(FailureKind::Usage, problem).with_hint(hint)
}

/// What it is, and what to do with it; `FILE` stands for its name.
fn kind_of_text(text: &str) -> Option<(&'static str, &'static str)> {
    let start = text.trim_start();
    let has_line = |begin: &str| text.lines().any(|line| line.starts_with(begin));
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines
        .find(|line| !line.starts_with('#'))
        .unwrap_or_default();
    let kinds = [
        (
            has_line("kind:") && has_line("apiVersion:"),
            "a Kubernetes manifest",
            "check it: loadline lint FILE; or begin with it: loadline init --manifest FILE",
        ),
        (
            has_line("services:"),
            "a compose file",
            "name it with the service to measure: --compose FILE --service NAME",
        ),
        (
            start.starts_with('{'),
            "JSON",
            "a result is shown by: loadline show FILE",
        ),
        (
            start.starts_with('<') && start.contains("<project"),
            "a Maven project",
            "begin with it, in its directory: loadline init",
        ),
        (
            start.starts_with('<'),
            "XML or HTML",
            "an experiment is TOML: `loadline init` writes one",
        ),
        (
            first.starts_with("FROM ") || first.starts_with("ARG "),
            "a Dockerfile",
            "build its image, and name that: --image NAME",
        ),
        (
            first.starts_with('[') && first.contains("]["),
            "a GC log",
            "read it: loadline gc FILE",
        ),
    ];
    let found = kinds.into_iter().find(|(is_kind, ..)| *is_kind);
    found.map(|(_, kind, hint)| (kind, hint))
}
