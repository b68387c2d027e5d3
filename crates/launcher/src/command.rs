//! The command line of java: which words are the JVM's, and which options they and the
//! environment set. Words are passed on as they are; this is only a reading.

use std::ffi::OsString;
use std::path::Path;

use loadline_sizing::options::words;
use loadline_sizing::{Options, Origin};

use crate::environment::Environment;
use crate::files;

/// Options of `java` whose value is the next word.
const WITH_VALUE: &[&str] = &[
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--enable-native-access",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--limit-modules",
    "--patch-module",
    "-d",
    "--describe-module",
    "--source",
];

/// What starts after the JVM's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `-jar FILE`.
    Jar(OsString),
    /// A main class, a module or a source file.
    Main(OsString),
    /// Nothing: `java -version`.
    Nothing,
}

/// The words read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The JVM's options among the words, `@files` expanded.
    pub options: Vec<String>,
    /// What starts.
    pub target: Target,
    /// What could not be read.
    pub notes: Vec<String>,
}

/// Reads the words after `java`.
pub fn read(words: &[OsString]) -> Reading {
    let mut reading = Reading {
        options: Vec::new(),
        target: Target::Nothing,
        notes: Vec::new(),
    };
    let mut texts: Vec<String> = Vec::new();
    for word in words {
        let text = word.to_string_lossy().into_owned();
        match text.strip_prefix('@') {
            Some(file) if !file.starts_with('@') => match files::read_text(Path::new(file)) {
                Ok(content) => texts.extend(words::argument_file(&content)),
                Err(_) => reading.notes.push(format!("{text} could not be read")),
            },
            _ => texts.push(text),
        }
    }
    let mut texts = texts.into_iter();
    while let Some(text) = texts.next() {
        if text == "-jar" {
            reading.target = texts.next().map_or(Target::Nothing, |jar| Target::Jar(jar.into()));
            break;
        }
        if text == "-m" || text == "--module" {
            reading.target = texts.next().map_or(Target::Nothing, |m| Target::Main(m.into()));
            break;
        }
        if !text.starts_with('-') {
            reading.target = Target::Main(text.into());
            break;
        }
        let takes_value = WITH_VALUE.contains(&text.as_str());
        reading.options.push(text);
        if takes_value {
            // The value of a class path or module option is never an option itself.
            texts.next();
        }
    }
    reading
}

/// The options of the environment and of the command line, merged as the JVM merges them. The
/// second value are the words of `JAVA_OPTS` and `JAVA_OPTIONS`, which only a launcher reads.
pub fn options(
    environment: &Environment,
    reading: &Reading,
    reads_jdk_java_options: bool,
    notes: &mut Vec<String>,
) -> (Options, Vec<String>) {
    let mut words = |name: &str| match words::environment(&environment.text(name).unwrap_or_default()) {
        Ok(words) => words,
        Err(error) => {
            notes.push(format!("{name}: {error}; it was passed over"));
            Vec::new()
        }
    };
    let mut own = words("JAVA_OPTS");
    own.extend(words("JAVA_OPTIONS"));
    let mut all: Vec<(String, Origin)> = Vec::new();
    let mut add = |words: Vec<String>, origin| all.extend(words.into_iter().map(|w| (w, origin)));
    add(words("JAVA_TOOL_OPTIONS"), Origin::ToolOptions);
    add(words("OPENJ9_JAVA_OPTIONS"), Origin::ToolOptions);
    if reads_jdk_java_options {
        add(words("JDK_JAVA_OPTIONS"), Origin::JdkJavaOptions);
    }
    add(own.clone(), Origin::JavaOpts);
    add(reading.options.clone(), Origin::CommandLine);
    add(words("_JAVA_OPTIONS"), Origin::UnderscoreJavaOptions);
    (Options::merge(all), own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[test]
    fn options_end_where_the_application_begins() {
        let reading = read(&words(&["-Xmx1g", "-cp", "-Xodd", "Main", "-Xmx9g"]));
        assert_eq!(reading.options, ["-Xmx1g", "-cp"]);
        assert_eq!(reading.target, Target::Main("Main".into()));
        let reading = read(&words(&["-jar", "app.jar", "-Xmx9g"]));
        assert!(reading.options.is_empty());
        assert_eq!(reading.target, Target::Jar("app.jar".into()));
        assert_eq!(read(&words(&["-version"])).target, Target::Nothing);
    }

    #[test]
    fn argument_files_are_read_and_missing_ones_noted() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("args");
        std::fs::write(&file, "-Xmx1g\n-jar \"a b.jar\"\n").unwrap();
        let reading = read(&words(&[&format!("@{}", file.display())]));
        assert_eq!(reading.target, Target::Jar("a b.jar".into()));
        assert_eq!(reading.options, ["-Xmx1g"]);
        assert_eq!(read(&words(&["@/no/such/file"])).notes.len(), 1);
    }

    #[test]
    fn java_opts_stand_below_the_command_line() {
        let environment = Environment::of(&[
            ("JAVA_OPTS", "-Xmx1g -Dx='a b'"),
            ("JAVA_TOOL_OPTIONS", "-Xss512k"),
            ("_JAVA_OPTIONS", "\"unclosed"),
        ]);
        let reading = read(&words(&["-Xmx2g", "Main"]));
        let mut notes = Vec::new();
        let (options, own) = super::options(&environment, &reading, true, &mut notes);
        assert_eq!(options.setting("MaxHeapSize").unwrap().value, "2g");
        assert_eq!(options.count("ThreadStackSize"), Some(512));
        assert_eq!(own, ["-Xmx1g", "-Dx=a b"]);
        assert_eq!(notes.len(), 1);
    }
}
