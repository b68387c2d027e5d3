//! What builds a project, and the jar that it built.

use std::fs;

use loadline_protocol::RunRefusal;

use super::{ProjectDirectory, ProjectGuess};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildTool {
    Maven,
    Gradle,
}

impl BuildTool {
    pub fn tool_name(self) -> &'static str {
        match self {
            Self::Maven => "Maven",
            Self::Gradle => "Gradle",
        }
    }

    pub(super) fn build_command(self, place: &ProjectDirectory<'_>) -> &'static str {
        match self {
            Self::Maven if place.has_file("mvnw") => "./mvnw package",
            Self::Maven => "mvn package",
            Self::Gradle if place.has_file("gradlew") => "./gradlew assemble",
            Self::Gradle => "gradle assemble",
        }
    }
}

const FILES: [(&str, BuildTool); 3] = [
    ("pom.xml", BuildTool::Maven),
    ("build.gradle.kts", BuildTool::Gradle),
    ("build.gradle", BuildTool::Gradle),
];

/// Directories of built jars, and the jar that Quarkus starts from a separate directory.
const RUNNERS: [&str; 2] = [
    "target/quarkus-app/quarkus-run.jar",
    "build/quarkus-app/quarkus-run.jar",
];
const DIRECTORIES: [&str; 3] = ["target", "build/libs", "."];

/// Endings and beginnings of jars that are built in addition to the main jar.
const BESIDE: [&str; 5] = [
    "-sources.jar",
    "-javadoc.jar",
    "-tests.jar",
    "-plain.jar",
    "-stubs.jar",
];
const BEFORE: &str = "original-";
const MOST: usize = 10_000;

pub(super) fn find_tool(place: &ProjectDirectory<'_>) -> Option<ProjectGuess<BuildTool>> {
    let found = FILES.iter().find(|(name, _)| place.has_file(name));
    found.map(|(name, tool)| ProjectGuess::new(*tool, *name))
}

/// The jar, relative to the directory; `None` where none is built.
pub(super) fn find_jar(
    place: &ProjectDirectory<'_>,
    tool: Option<&ProjectGuess<BuildTool>>,
) -> Result<Option<ProjectGuess<String>>, RunRefusal> {
    if let Some(runner) = RUNNERS.iter().find(|name| place.has_file(name)) {
        return Ok(Some(ProjectGuess::new(
            (*runner).to_owned(),
            "the jar that Quarkus starts",
        )));
    }
    for directory in DIRECTORIES {
        let jars = jars(place, directory);
        let by = tool.map_or(String::new(), |tool| {
            format!(", built by {}", tool.value.tool_name())
        });
        match jars.as_slice() {
            [] => {}
            [jar] => {
                return Ok(Some(ProjectGuess::new(
                    jar.clone(),
                    format!("the only jar in {directory}{by}"),
                )));
            }
            several => {
                return Err(RunRefusal::new(
                    place.directory_name(),
                    format!(
                        "it has several jars that may be the application: {}",
                        several.join(", ")
                    ),
                    format!("say which: loadline init -- java -jar {}", several[0]),
                ));
            }
        }
    }
    Ok(None)
}

fn jars(place: &ProjectDirectory<'_>, directory: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(place.directory.join(directory)) else {
        return Vec::new();
    };
    let named = entries.take(MOST).flatten().filter_map(|entry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let name = entry.file_name().into_string().ok()?;
        let is_it = name.ends_with(".jar")
            && !name.starts_with(BEFORE)
            && !BESIDE.iter().any(|ending| name.ends_with(ending));
        (is_file && is_it).then(|| match directory {
            "." => name,
            _ => format!("{directory}/{name}"),
        })
    });
    let mut all: Vec<String> = named.collect();
    all.sort();
    all
}
