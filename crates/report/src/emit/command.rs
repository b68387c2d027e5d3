//! A measured command taken apart: which part are JVM options, which the jar, which arguments, which
//! files its options name. Never looks at a file.

use std::path::{Component, Path};

use super::error::EmitError;
use crate::{redact, text};

/// Options with one file name, perhaps followed by agent options: `PATH=options`.
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

const DEFAULT_SERVER: &str = "defaultServer";

/// `java OPTIONS -jar JAR ARGUMENTS` or `wlp/bin/server run NAME ARGUMENTS`, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartCommand {
    /// JVM options between `java` and `-jar`; files that they name have their place in the image.
    pub options: Vec<String>,
    pub jar: String,
    pub arguments: Vec<String>,
    /// Files and directories next to the jar that its manifest and the options need, relative to
    /// the jar's directory and below it; the reader of the jar adds those in the manifest.
    pub beside: Vec<String>,
    pub is_read: bool,
    /// The jar from which loadline extracted this one, with its libraries next to it.
    pub extracted_from: Option<String>,
    /// The server of an Open Liberty that its start script starts; `jar` is its installation then.
    pub liberty: Option<String>,
}

impl StartCommand {
    /// For a measured image: its own entry point, followed by these arguments.
    pub fn in_image(arguments: &[String]) -> Self {
        Self {
            arguments: arguments.to_vec(),
            is_read: true,
            ..Self::default()
        }
    }

    /// Reads a measured command.
    /// Errors: [`EmitError::Command`] when it is of neither form: where its files are cannot be
    /// known then. [`EmitError::File`] when an option names a file that an image would not have.
    pub fn read(words: &[String]) -> Result<Self, EmitError> {
        if let Some(server) = parse_liberty(words) {
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
            ..Self::default()
        })
    }

    pub fn jar_path(&self) -> String {
        let is_taken = self.beside.iter().any(|name| name == "app.jar");
        let name = if is_taken { self.jar_name() } else { "app.jar" };
        format!("/app/{name}")
    }

    pub fn jar_name(&self) -> &str {
        self.jar.rsplit('/').next().unwrap_or(&self.jar)
    }
}

fn parse_liberty(words: &[String]) -> Option<StartCommand> {
    let (program, rest) = words.split_first()?;
    let home = program.strip_suffix("/bin/server")?;
    let (action, rest) = rest.split_first()?;
    let (server, arguments) = match rest.split_first() {
        Some((name, rest)) if !name.starts_with('-') => (name.clone(), rest),
        _ => (DEFAULT_SERVER.to_owned(), rest),
    };
    let is_name = |c: char| c.is_alphanumeric() || "_-+.".contains(c);
    (action == "run" && !home.is_empty() && server.chars().all(is_name)).then(|| StartCommand {
        liberty: Some(server),
        arguments: arguments.to_vec(),
        jar: home.to_owned(),
        ..StartCommand::in_image(&[])
    })
}

struct JavaAgent {
    option: String,
    beside: String,
}

/// Reads the option of an agent; `None` for other options, and for an agent outside the jar's
/// directory.
fn parse_agent(option: &str, jar: &str) -> Option<JavaAgent> {
    let mut agents = AGENTS.iter();
    let (prefix, rest) = agents.find_map(|agent| Some((agent, option.strip_prefix(agent)?)))?;
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

    #[test]
    fn the_start_script_is_read_and_nothing_else() {
        let read = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            parse_liberty(&words)
                .map(|read| (read.jar, read.liberty.unwrap_or_default(), read.arguments))
        };
        let one = |jar: &str, name: &str, rest: &[&str]| {
            let rest = rest.iter().map(|word| (*word).to_owned()).collect();
            Some((jar.to_owned(), name.to_owned(), rest))
        };
        assert_eq!(
            read("build/wlp/bin/server run orders -- --http.port=1"),
            one("build/wlp", "orders", &["--", "--http.port=1"])
        );
        assert_eq!(
            read("/wlp/bin/server run"),
            one("/wlp", "defaultServer", &[])
        );
        for other in [
            "wlp/bin/server start orders",
            "wlp/bin/server",
            "/bin/server run orders",
            "wlp/bin/server run ../orders",
            "bin/catalina.sh run",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
