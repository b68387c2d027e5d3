//! Where the program of an application or a dependency is, what it inherits, and why it cannot run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loadline_jvm::detect::JdkPlaces;
use loadline_protocol::RunRefusal;

const INHERITED: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TZ", "JAVA_HOME"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("cannot find the program `{program}`")]
    NoProgram { program: String },
    #[error("cannot find the jar {}", path.display())]
    NoJar { path: PathBuf },
    #[error("{why}")]
    NoJdk {
        why: String,
        hint: Option<&'static str>,
    },
    #[error(transparent)]
    Image(#[from] RunRefusal),
}

/// Build tools, with the variable that each start script reads options of its JVM from.
const BUILD_TOOLS: [(&str, Option<&str>); 7] = [
    ("ant", Some("ANT_OPTS")),
    ("gradle", Some("GRADLE_OPTS")),
    ("gradlew", Some("GRADLE_OPTS")),
    ("make", None),
    ("mvn", Some("MAVEN_OPTS")),
    ("mvnw", Some("MAVEN_OPTS")),
    ("sbt", Some("SBT_OPTS")),
];

/// Where Gradle writes in every run: the variable that names the directory, and its name in the home
/// directory without one ("Directories and Files Gradle Uses").
const GRADLE_HOME: (&str, &str) = ("GRADLE_USER_HOME", ".gradle");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildTool {
    pub options_variable: Option<&'static str>,
}

pub fn build_tool(command: &[String]) -> Option<BuildTool> {
    let name = Path::new(command.first()?).file_name()?;
    let known = BUILD_TOOLS.iter().find(|(tool, _)| name == *tool)?;
    Some(BuildTool {
        options_variable: known.1,
    })
}

/// The directory outside the project that this build must be able to write.
pub fn build_home(
    command: &[String],
    env: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let (variable, name) = GRADLE_HOME;
    build_tool(command).filter(|tool| tool.options_variable == Some("GRADLE_OPTS"))?;
    let named = env.get(variable).map(PathBuf::from);
    named.or_else(|| Some(home?.join(name)))
}

pub fn inherited_variables() -> BTreeMap<String, String> {
    let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    INHERITED.iter().filter_map(variable).collect()
}

/// Finds a program that works for the application on this machine: a probe, a load command.
pub fn locate_for(
    whose: &str,
    program: &str,
    directory: &Path,
    places: &JdkPlaces,
) -> Result<PathBuf, RunRefusal> {
    let hint = "name a program of this machine, by its path or in PATH: './work.sh 500'";
    locate(program, directory, places).map_err(|error| RunRefusal::new(whose, error, hint))
}

pub fn locate(
    program: &str,
    directory: &Path,
    places: &JdkPlaces,
) -> Result<PathBuf, CommandError> {
    let found = if program.contains('/') {
        Some(directory.join(program))
    } else {
        places.which(program)
    };
    found
        .filter(|p| p.is_file())
        .ok_or_else(|| CommandError::NoProgram {
            program: program.to_owned(),
        })
}
