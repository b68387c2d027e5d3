//! What the artefacts need to know about the application besides the recommendation.
//!
//! Owns [`Application`] and the reading of a measured command: which part are JVM options, which
//! the jar, which arguments. Never looks at a file.

use std::collections::BTreeMap;

use loadline_sizing::cache::Kind;

use super::EmitError;

/// What the records do not know about the application in production.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Name of the workload; made a DNS label where it must be one.
    pub name: String,
    /// The image with its tag or digest, as the cluster pulls it.
    pub image: String,
    /// The image the Dockerfile builds on: a JRE of the JDK that was measured.
    pub base_image: String,
    /// The command that was measured, taken apart.
    pub command: Command,
    /// Environment of the application; the configuration's is added to it.
    pub env: BTreeMap<String, String>,
    /// Port the application listens on.
    pub port: u16,
    /// When it is ready.
    pub ready: Ready,
    /// How many pods.
    pub replicas: u32,
    /// Bounds of an autoscaler; `None` emits none.
    pub scaling: Option<Scaling>,
    /// Feature release of the JDK (8, 17, 25); decides the form of the options.
    pub jdk: u32,
    /// Start through `loadline-launch`.
    pub launcher: bool,
    /// Start-up cache that the image builds for itself; `None` builds none.
    pub cache: Option<Kind>,
}

/// When a pod takes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
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
pub struct Scaling {
    /// Largest rate at which one pod keeps the SLO, requests a second.
    pub max_rate: u32,
    /// Most pods.
    pub max_replicas: u32,
}

/// `java OPTIONS -jar JAR ARGUMENTS`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// JVM options between `java` and `-jar`.
    pub options: Vec<String>,
    /// The jar, as it was given.
    pub jar: String,
    /// Arguments after the jar.
    pub arguments: Vec<String>,
}

impl Command {
    /// Reads a measured command.
    ///
    /// # Errors
    /// [`EmitError::Command`] when it is not of the form `java ... -jar JAR ...`: where its files are
    /// cannot be known then.
    pub fn read(words: &[String]) -> Result<Self, EmitError> {
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
        Ok(Self {
            options: options.to_vec(),
            jar: rest.get(1).ok_or_else(refused)?.clone(),
            arguments: rest[2..].to_vec(),
        })
    }

    /// The jar's name without its directory: how it lies beside the Dockerfile.
    pub fn jar_name(&self) -> &str {
        self.jar.rsplit('/').next().unwrap_or(&self.jar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_java_command_is_taken_apart() {
        let read = Command::read(&words(
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
    fn other_commands_are_refused_with_a_hint() {
        for command in [
            "./run.sh",
            "java -cp lib Main",
            "java -cp lib -jar",
            "java -jar",
        ] {
            let error = Command::read(&words(command)).expect_err(command);
            assert!(error.to_string().contains("\nhint: "), "{error}");
        }
        assert!(Command::read(&[]).is_err());
    }
}
