//! What the artefacts need to know about the application besides the recommendation.
//!
//! Owns [`ProductionApplication`] and the reading of a measured command: which part are JVM options, which
//! the jar, which arguments, which files its options name. Never looks at a file.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use loadline_analysis::record::StartCache;

use super::base_image::BaseImage;
use super::error::EmitError;
use super::liberty;
use crate::redact;
use crate::text;

/// Options that name a file and nothing but, and then perhaps what is for the agent: `PATH=options`.
const AGENTS: [&str; 2] = ["-javaagent:", "-agentpath:"];

/// Options that name files which have no place in the image: paths of many, and archives that the
/// JVM takes only where and as they were made.
const FILES: [&str; 9] = [
    "-Xbootclasspath",
    "--class-path=",
    "--module-path=",
    "--upgrade-module-path=",
    "--patch-module=",
    "-XX:SharedArchiveFile=",
    "-XX:AOTCache=",
    "-XX:Flags=",
    "-XX:VMOptionsFile=",
];

/// What the records do not know about the application in production.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductionApplication {
    /// Name of the workload; made a DNS label where it must be one.
    pub name: String,
    /// The image with its tag or digest, as the cluster pulls it.
    pub image: String,
    /// Where that image is the one that was measured: whether its name has its digest. `None` is an
    /// image that is built from the emitted Dockerfile.
    pub measured_image: Option<ImagePinning>,
    /// The image the Dockerfile builds on.
    pub base_image: BaseImage,
    /// The command that was measured, taken apart.
    pub command: StartCommand,
    /// Environment of the application; the configuration's is added to it.
    pub env: BTreeMap<String, String>,
    /// Port the application listens on.
    pub port: u16,
    /// When it is ready.
    pub ready: ReadinessCheck,
    /// How many pods.
    pub replicas: u32,
    /// Bounds of an autoscaler; `None` emits none.
    pub scaling: Option<AutoscalerNeeds>,
    /// Feature release of the JDK (8, 17, 25); decides the form of the options.
    pub jdk: u32,
    /// Start through `loadline-launch`.
    pub launcher: bool,
    /// Start-up cache that the image builds for itself, and how often its training asks; `None`
    /// builds none.
    pub cache: Option<StartCache>,
}

/// Whether a cluster gets just this image by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePinning {
    /// It has its digest, and a registry has it.
    Yes,
    /// It has no digest, or is only on the machine that built it.
    No,
}

/// When a pod takes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessCheck {
    /// A request is answered with a status below 400.
    Http {
        /// Port it is sent to.
        port: u16,
        /// Path and query, with the leading slash.
        path: String,
    },
    /// A connection is accepted.
    Tcp {
        /// The port.
        port: u16,
    },
}

/// What an autoscaler needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoscalerNeeds {
    /// Largest rate at which one pod was seen to keep the SLO, requests a second.
    pub max_rate: u32,
    /// Whether this result's trials found it; else the user gave it.
    pub is_measured: bool,
    /// Most pods.
    pub max_replicas: u32,
}

/// `java OPTIONS -jar JAR ARGUMENTS` or `wlp/bin/server run NAME ARGUMENTS`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCommand {
    /// JVM options between `java` and `-jar`; files that they name have their place in the image.
    pub options: Vec<String>,
    /// The jar, as it was given.
    pub jar: String,
    /// Arguments after the jar.
    pub arguments: Vec<String>,
    /// Files and directories beside the jar that its manifest and the options need, relative to the
    /// jar's directory and below it; whoever can read the jar adds those of the manifest.
    pub beside: Vec<String>,
    /// Whether the jar's manifest was read.
    pub is_read: bool,
    /// The jar that loadline took this one out of, with its libraries beside it.
    pub extracted_from: Option<String>,
    /// The server of an Open Liberty that its start script starts; `jar` is its installation then.
    pub liberty: Option<String>,
}

impl StartCommand {
    /// Of an image that was measured: what it starts stays its own, behind it these arguments.
    pub fn in_image(arguments: &[String]) -> Self {
        Self {
            options: Vec::new(),
            jar: String::new(),
            arguments: arguments.to_vec(),
            beside: Vec::new(),
            is_read: true,
            extracted_from: None,
            liberty: None,
        }
    }

    /// Reads a measured command.
    ///
    /// # Errors
    /// [`EmitError::Command`] when it is of neither form: where its files are cannot be known then. [`EmitError::File`] when an option names a file that an image would not
    /// have.
    pub fn read(words: &[String]) -> Result<Self, EmitError> {
        if let Some(server) = liberty::parse_command(words) {
            return Ok(server);
        }
        let refused = || EmitError::Command {
            command: words.join(" "),
        };
        let (program, rest) = words.split_first().ok_or_else(refused)?;
        let is_java = program.rsplit('/').next() == Some("java");
        let at = rest.iter().position(|word| word == "-jar");
        let (Some(at), true) = (at, is_java) else {
            return Err(refused());
        };
        let (options, rest) = rest.split_at(at);
        // `-cp DIR` and its like take the next word, which is no option then.
        if options.iter().any(|o| !o.starts_with('-')) {
            return Err(refused());
        }
        let jar = rest.get(1).ok_or_else(refused)?.clone();
        let mut beside = Vec::new();
        let mut in_image = Vec::with_capacity(options.len());
        for option in options {
            match parse_agent(option, &jar) {
                Some(agent) => {
                    in_image.push(agent.option);
                    if !beside.contains(&agent.beside) {
                        beside.push(agent.beside);
                    }
                }
                None => {
                    names_no_file(option)?;
                    in_image.push(option.clone());
                }
            }
        }
        Ok(Self {
            options: in_image,
            jar,
            arguments: rest[2..].to_vec(),
            beside,
            is_read: false,
            extracted_from: None,
            liberty: None,
        })
    }

    /// Where the jar lies in the image: `/app/app.jar`, unless another file has that name.
    pub fn jar_path(&self) -> String {
        let is_taken = self.beside.iter().any(|name| name == "app.jar");
        let name = if is_taken { self.jar_name() } else { "app.jar" };
        format!("/app/{name}")
    }

    /// The jar's name without its directory: how it lies beside the Dockerfile.
    pub fn jar_name(&self) -> &str {
        self.jar.rsplit('/').next().unwrap_or(&self.jar)
    }
}

/// An agent that lies below the jar's directory.
struct JavaAgent {
    /// The option with its file's place in the image.
    option: String,
    /// What to copy.
    beside: String,
}

/// Reads the option of an agent; `None` for any other, and for one that lies elsewhere.
fn parse_agent(option: &str, jar: &str) -> Option<JavaAgent> {
    let (prefix, rest) = AGENTS
        .iter()
        .find_map(|prefix| Some((prefix, option.strip_prefix(prefix)?)))?;
    let end = rest.find('=').unwrap_or(rest.len());
    let (path, own) = rest.split_at(end);
    let here = |c: &Component<'_>| *c != Component::CurDir;
    let parts = |path: &'_ str| -> Vec<String> {
        let parts = Path::new(path).components().filter(here);
        parts
            .map(|c| c.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    let mut home = parts(jar);
    home.pop();
    let path = parts(path);
    let below = path.strip_prefix(home.as_slice())?;
    let beside = below.first().filter(|part| *part != "/")?;
    if below.iter().any(|part| part == "..") {
        return None;
    }
    Some(JavaAgent {
        option: format!("{prefix}/app/{}{own}", below.join("/")),
        beside: beside.clone(),
    })
}

/// Refuses an option that names a file: the image would not have it.
///
/// # Errors
/// [`EmitError::File`].
pub(super) fn names_no_file(option: &str) -> Result<(), EmitError> {
    let mut known = AGENTS.iter().chain(&FILES);
    if known.any(|prefix| option.starts_with(prefix)) {
        return Err(EmitError::File {
            option: text::label(&redact::redact_line(option)),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_java_command_is_taken_apart() {
        let read = StartCommand::read(&words(
            "/opt/jdk/bin/java -Xss512k -jar build/a.jar --port 1",
        ));
        let read = read.expect("it has a jar");
        assert_eq!(read.options, ["-Xss512k"]);
        assert_eq!(
            (read.jar.as_str(), read.jar_name()),
            ("build/a.jar", "a.jar")
        );
        assert_eq!(read.arguments, ["--port", "1"]);
    }

    #[test]
    fn the_file_of_an_agent_comes_into_the_image() {
        let read = |text: &str| StartCommand::read(&words(text));
        let agents = read("java -javaagent:./build/agents/otel.jar=a=b -jar build/a.jar");
        let agents = agents.expect("it lies below");
        assert_eq!(agents.options, ["-javaagent:/app/agents/otel.jar=a=b"]);
        assert_eq!(agents.beside, ["agents"]);
        let beside = read("java -agentpath:/srv/lib.so -Xss1m -jar /srv/a.jar").expect("it does");
        assert_eq!(beside.options, ["-agentpath:/app/lib.so", "-Xss1m"]);
        assert_eq!(beside.beside, ["lib.so"]);
        for elsewhere in [
            "java -javaagent:/opt/otel.jar -jar a.jar",
            "java -javaagent:otel.jar -jar build/a.jar",
            "java -javaagent:../otel.jar -jar a.jar",
            "java -javaagent: -jar a.jar",
            "java -Xbootclasspath/a:b.jar -jar a.jar",
            "java --module-path=mods -jar a.jar",
            "java -XX:SharedArchiveFile=a.jsa -jar a.jar",
            "java -XX:AOTCache=a.aot -jar a.jar",
        ] {
            let error = read(elsewhere).expect_err(elsewhere);
            assert!(matches!(error, EmitError::File { .. }), "{error}");
            assert!(!error.emit_hint().is_empty(), "{error}");
        }
    }

    #[test]
    fn the_jar_keeps_its_name_where_another_file_is_called_app_jar() {
        let mut read = StartCommand::read(&words("java -jar build/run.jar")).expect("it has a jar");
        assert_eq!(read.jar_path(), "/app/app.jar");
        read.beside = vec!["app.jar".to_owned(), "lib".to_owned()];
        assert_eq!(read.jar_path(), "/app/run.jar");
    }

    #[test]
    fn other_commands_are_refused_with_a_hint() {
        for command in [
            "./run.sh",
            "java -cp lib Main",
            "java -cp lib -jar",
            "java -jar",
            "java @options -jar a.jar",
            "java -m app/app.Main",
        ] {
            let error = StartCommand::read(&words(command)).expect_err(command);
            assert!(!error.emit_hint().is_empty(), "{error}");
        }
        assert!(StartCommand::read(&[]).is_err());
    }
}
