//! The command line of java: which words are the JVM's, and which options they and the
//! environment set. Words are passed on as they are; this is only a reading.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use loadline_sizing::options::words;
use loadline_sizing::{JvmOptionSet, OptionOrigin};

use crate::environment::Environment;
use crate::files;

/// What `java` refuses in `JDK_JAVA_OPTIONS`, as it does a main class (args.c, `isTerminalOpt`).
const ENDING: &str = "-jar -m --module --dry-run -h -? -help --help -X --help-extra -version \
    --version -fullversion --full-version";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StartTarget {
    /// `-jar FILE`.
    Jar(OsString),
    Main(OsString),
    /// Nothing: `java -version`.
    #[default]
    Nothing,
}

#[derive(Debug, Clone, Default)]
pub struct CommandReading {
    pub options: Vec<(String, OptionOrigin)>,
    /// The words of `JAVA_OPTS` and `JAVA_OPTIONS`, as they are passed on: only a launcher reads
    /// these.
    pub own: Vec<String>,
    pub target: StartTarget,
    pub class_path: Option<String>,
    pub doubts: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct OptionReader {
    /// The `java` launcher has `@argument` files and `JDK_JAVA_OPTIONS`, the JVM VMOptionsFile:
    /// since 9.
    pub is_9: bool,
    /// Whether `JAVA_OPTS` is added here. Under the name `java` a start script has used it already.
    pub uses_java_opts: bool,
}

/// Reads the words after `java`, and every variable that holds options.
pub fn read(words: &[OsString], environment: &Environment, reader: OptionReader) -> CommandReading {
    let mut reading = CommandReading::default();
    let jvm = |name: &str, origin, reading: &mut CommandReading| {
        let words = reading.variable_words(name, environment);
        let words = words.into_iter().map(|word| (word, origin));
        reading.options.extend(words);
    };
    jvm("JAVA_TOOL_OPTIONS", OptionOrigin::ToolOptions, &mut reading);
    let origin = OptionOrigin::ToolOptions;
    jvm("OPENJ9_JAVA_OPTIONS", origin, &mut reading);
    if reader.is_9 {
        let words = reading.variable_words("JDK_JAVA_OPTIONS", environment);
        let mut ending = words.iter().filter(|word| words::has_word(ENDING, word));
        let ending = ending.next().cloned();
        let mut variable = CommandLineParser::new(reader);
        variable.read(words, OptionOrigin::JdkJavaOptions, &mut reading);
        if ending.is_some() || variable.target != StartTarget::Nothing {
            let word = ending.unwrap_or_else(|| "a word that does not begin with -".to_owned());
            reading.doubts.push(format!("JDK_JAVA_OPTIONS: java does not start with {word} there; name what starts on the command line, and quote values that contain blanks"));
        }
    }
    if reader.uses_java_opts {
        for name in ["JAVA_OPTS", "JAVA_OPTIONS"] {
            let words = reading.variable_words(name, environment);
            reading.own.extend(words);
        }
    }
    let mut line = CommandLineParser::new(reader);
    line.read(reading.own.clone(), OptionOrigin::JavaOpts, &mut reading);
    if line.target != StartTarget::Nothing {
        reading.doubts.push("JAVA_OPTS: java would start a word that does not begin with - as a class or a file; quote values that contain blanks".to_owned());
    }
    let texts = words.iter().map(|word| word.to_string_lossy().into_owned());
    line.read(texts.collect(), OptionOrigin::CommandLine, &mut reading);
    reading.target = line.target;
    reading.class_path = line.class_path;
    let origin = OptionOrigin::UnderscoreJavaOptions;
    jvm("_JAVA_OPTIONS", origin, &mut reading);
    reading.expand_files_of_the_jvm(reader);
    reading
}

#[derive(Debug, Clone, Copy)]
enum OptionValue {
    Module,
    ClassPath,
    Other,
}

/// A command line on its way: what the next word will be.
///
/// Source: java.c, `ParseArguments`; args.c, `checkArg` and `JLI_PreprocessArg`.
#[derive(Default)]
struct CommandLineParser {
    expands: bool,
    value_of: Option<OptionValue>,
    class_path: Option<String>,
    is_jar: bool,
    target: StartTarget,
}

impl CommandLineParser {
    fn new(reader: OptionReader) -> Self {
        Self {
            expands: reader.is_9,
            ..Self::default()
        }
    }

    fn read(&mut self, words: Vec<String>, origin: OptionOrigin, reading: &mut CommandReading) {
        for word in words {
            let file = word.strip_prefix('@').filter(|file| {
                let is_file = !file.is_empty() && !file.starts_with('@');
                is_file && self.expands && self.target == StartTarget::Nothing
            });
            let Some(file) = file else {
                self.take_word(word, origin, reading);
                continue;
            };
            match files::read_text(Path::new(file)) {
                // A file's words are not expanded again.
                Ok(text) => {
                    for word in words::split_argument_file(&text) {
                        self.take_word(word, origin, reading);
                    }
                }
                Err(_) => reading.doubts.push(format!("{word} could not be read")),
            }
        }
    }

    fn take_word(&mut self, word: String, origin: OptionOrigin, reading: &mut CommandReading) {
        if self.target != StartTarget::Nothing {
            return;
        }
        // A value is never an option itself.
        match self.value_of.take() {
            Some(OptionValue::Module) => self.target = StartTarget::Main(word.into()),
            Some(OptionValue::ClassPath) => self.class_path = Some(word),
            Some(OptionValue::Other) => {}
            None => self.option_or_target(word, origin, reading),
        }
    }

    fn option_or_target(
        &mut self,
        word: String,
        origin: OptionOrigin,
        reading: &mut CommandReading,
    ) {
        match word.as_str() {
            "-jar" => self.is_jar = true,
            "-m" | "--module" => self.value_of = Some(OptionValue::Module),
            "--disable-@files" => self.expands = false,
            text if text.starts_with("--module=") => {
                let module = text.trim_start_matches("--module=");
                self.target = StartTarget::Main(module.into());
            }
            text if text.starts_with('-') => {
                if let Some(path) = text.strip_prefix("--class-path=") {
                    self.class_path = Some(path.to_owned());
                } else if words::has_word(words::CLASS_PATH_OPTIONS, text) {
                    self.value_of = Some(OptionValue::ClassPath);
                } else if words::has_word(words::OPTIONS_WITH_VALUE, text) {
                    self.value_of = Some(OptionValue::Other);
                }
                reading.options.push((word, origin));
            }
            _ if self.is_jar => self.target = StartTarget::Jar(word.into()),
            _ => self.target = StartTarget::Main(word.into()),
        }
    }
}

impl CommandReading {
    /// The words of a variable; none, and a doubt, when they cannot be told apart.
    fn variable_words(&mut self, name: &str, environment: &Environment) -> Vec<String> {
        let text = environment.text_value(name).unwrap_or_default();
        let is_own = matches!(name, "JAVA_OPTS" | "JAVA_OPTIONS");
        let words = words::split_environment(&text).unwrap_or_else(|error| {
            let then = if is_own {
                "it was passed over"
            } else {
                "java does not start with it; close the quote"
            };
            self.doubts.push(format!("{name}: {error}; {then}"));
            Vec::new()
        });
        let is_jvm = matches!(name, "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS");
        let misread = |word: &String| {
            let (why, hint) = words::misread_word(word, is_jvm)?;
            Some(format!("{name}: {why}; {hint}"))
        };
        self.doubts.extend(words.iter().filter_map(misread));
        words
    }

    /// `-XX:VMOptionsFile=` stands for the words of its file, and `-XX:Flags=` for flags below
    /// everything else (`+UseSerialGC`, `MaxHeapSize=1g`).
    ///
    /// Source: arguments.cpp, `parse_vm_options_file` and `process_settings_file`; measured on 17
    /// and 25: both set a collector and a heap, from the environment too.
    fn expand_files_of_the_jvm(&mut self, reader: OptionReader) {
        let mut weakest = Vec::new();
        let mut all = Vec::new();
        for (option, origin) in std::mem::take(&mut self.options) {
            let file = option.strip_prefix("-XX:VMOptionsFile=");
            if let Some(file) = file.filter(|_| reader.is_9) {
                let text = self.read_option_file(&option, file);
                let words = words::split_environment(&text).unwrap_or_else(|error| {
                    self.doubts.push(format!("{option}: {error}"));
                    Vec::new()
                });
                all.extend(words.into_iter().map(|word| (word, origin)));
            } else if let Some(file) = option.strip_prefix("-XX:Flags=") {
                let text = self.read_option_file(&option, file);
                let flags = words::split_argument_file(&text);
                let flags = flags.into_iter().map(|flag| format!("-XX:{flag}"));
                weakest.extend(flags.map(|flag| (flag, OptionOrigin::ToolOptions)));
            }
            all.push((option, origin));
        }
        weakest.append(&mut all);
        self.options = weakest;
    }

    fn read_option_file(&mut self, option: &str, file: &str) -> String {
        files::read_text(Path::new(file)).unwrap_or_else(|_| {
            self.doubts.push(format!("{option} could not be read"));
            String::new()
        })
    }

    /// The directories of the application, nearest first: the jar's; else the directory of the
    /// class path's first entry, and if that entry is a directory (`BOOT-INF/classes`, Jib's
    /// `resources`) its parent too.
    pub fn application_homes(&self) -> Vec<PathBuf> {
        let parent = |path: &Path| path.parent().map(Path::to_owned);
        match (&self.target, &self.class_path) {
            (StartTarget::Jar(jar), _) => parent(Path::new(jar)).into_iter().collect(),
            (StartTarget::Main(_), Some(path)) => {
                let first = path.split(':').find(|entry| !entry.is_empty());
                let first = Path::new(first.unwrap_or("."));
                let is_file = ["jar", "*"].map(Path::new).iter().any(|name| {
                    first.extension() == Some(name.as_os_str()) || first.ends_with(name)
                });
                let own = (!is_file).then(|| first.to_owned());
                own.into_iter().chain(parent(first)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn merged_options(&self) -> JvmOptionSet {
        JvmOptionSet::merge(self.options.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: OptionReader = OptionReader {
        is_9: true,
        uses_java_opts: true,
    };

    fn read_words(text: &[&str]) -> CommandReading {
        let words: Vec<OsString> = text.iter().map(OsString::from).collect();
        read(&words, &Environment::from_pairs(&[]), READER)
    }

    fn texts(reading: &CommandReading) -> Vec<&str> {
        reading
            .options
            .iter()
            .map(|(text, _)| text.as_str())
            .collect()
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("args");
        std::fs::write(&file, text).unwrap();
        (directory, file.display().to_string())
    }

    #[test]
    fn what_java_refuses_in_its_own_variable_is_said() {
        for (text, refused) in [
            ("-Xmx1g --add-opens java.base/java.lang=ALL-UNNAMED", None),
            ("-Xmx1g -jar x.jar", Some("-jar")),
            ("-version -Xmx1g", Some("-version")),
            ("-Dname=my app -Xmx1g", Some("a word")),
        ] {
            let environment = Environment::from_pairs(&[("JDK_JAVA_OPTIONS", text)]);
            let reading = read(&[], &environment, READER);
            let doubt = reading.doubts.first();
            let said = refused.map(|word| format!("java does not start with {word}"));
            assert_eq!(doubt.is_some(), said.is_some(), "{text}");
            assert!(
                said.is_none_or(|said| doubt.unwrap().contains(&said)),
                "{text}"
            );
        }
    }

    #[test]
    fn options_end_where_the_application_begins() {
        let reading = read_words(&["-Xmx1g", "-cp", "-Xodd", "Main", "-Xmx9g"]);
        assert_eq!(texts(&reading), ["-Xmx1g", "-cp"]);
        assert_eq!(reading.target, StartTarget::Main("Main".into()));
        let reading = read_words(&["-jar", "app.jar", "-Xmx9g"]);
        assert!(reading.options.is_empty());
        assert_eq!(reading.target, StartTarget::Jar("app.jar".into()));
        assert_eq!(read_words(&["-version"]).target, StartTarget::Nothing);
    }

    #[test]
    fn options_may_stand_between_jar_and_its_file() {
        let reading = read_words(&["-jar", "-XX:+UseParallelGC", "app.jar", "-Xmx9g"]);
        assert_eq!(texts(&reading), ["-XX:+UseParallelGC"]);
        assert_eq!(reading.target, StartTarget::Jar("app.jar".into()));
        // After a module they are the application's.
        for module in [&["-m", "a/b"][..], &["--module=a/b"]] {
            let reading = read_words(&[module, &["-Xmx9g"]].concat());
            assert!(reading.options.is_empty());
            assert_eq!(reading.target, StartTarget::Main("a/b".into()));
        }
    }

    #[test]
    fn the_applications_directories_follow_the_class_path() {
        let (_directory, file) = file("/app/resources:/app/classes:/app/libs/a.jar");
        for (words, homes) in [
            (&["-jar", "/app/a.jar"][..], &["/app"][..]),
            (&["-cp", "/app", "JarLauncher"], &["/app", "/"]),
            (&["-cp", "/app/a.jar:/x", "Main"], &["/app"]),
            (&["--class-path=:/app/libs/*", "Main"], &["/app/libs"]),
            (&["-classpath", "/x", "-cp", "lib", "Main"], &["lib", ""]),
            (
                &["-cp", &format!("@{file}"), "Main"],
                &["/app/resources", "/app"],
            ),
            (&["-cp", "/app", "-jar", "b.jar"], &[""]),
            (&["-m", "a/b"], &[]),
            (&["-cp", "/app", "-version"], &[]),
        ] {
            let homes: Vec<PathBuf> = homes.iter().map(PathBuf::from).collect();
            assert_eq!(read_words(words).application_homes(), homes, "{words:?}");
        }
    }

    #[test]
    fn argument_files_are_read_and_missing_ones_noted() {
        let (_directory, file) = file("-Xmx1g\n-jar \"a b.jar\"\n");
        let reading = read_words(&[&format!("@{file}")]);
        assert_eq!(reading.target, StartTarget::Jar("a b.jar".into()));
        assert_eq!(texts(&reading), ["-Xmx1g"]);
        assert_eq!(read_words(&["@/no/such/file"]).doubts.len(), 1);
    }

    #[test]
    fn an_applications_words_are_no_files() {
        for words in [
            &["-jar", "app.jar", "@user"][..],
            &["Main", "@user"],
            &["--disable-@files", "-cp", "@user", "Main"],
        ] {
            assert_eq!(read_words(words).doubts, [""; 0], "{words:?}");
        }
        let is_9 = false;
        let reader = OptionReader { is_9, ..READER };
        let reading = read(&["@user".into()], &Environment::from_pairs(&[]), reader);
        assert_eq!(reading.target, StartTarget::Main("@user".into()));
    }

    #[test]
    fn java_opts_stand_below_the_command_line() {
        let environment = Environment::from_pairs(&[
            ("JAVA_OPTS", "-Xmx1g -Dx='a b'"),
            ("JAVA_TOOL_OPTIONS", "-Xss512k"),
            ("_JAVA_OPTIONS", "\"unclosed"),
        ]);
        let reading = read(&["-Xmx2g".into(), "Main".into()], &environment, READER);
        let options = reading.merged_options();
        assert_eq!(options.setting("MaxHeapSize").unwrap().value, "2g");
        assert_eq!(options.count_value("ThreadStackSize"), Some(512));
        assert_eq!(reading.own, ["-Xmx1g", "-Dx=a b"]);
        assert_eq!(reading.doubts.len(), 1);
        let uses_java_opts = false;
        let reader = OptionReader {
            uses_java_opts,
            ..READER
        };
        let reading = read(&["Main".into()], &environment, reader);
        assert!(reading.own.is_empty());
        assert!(!reading.merged_options().is_set("MaxHeapSize"));
    }

    #[test]
    fn quotes_and_blanks_that_keep_java_from_starting_are_told() {
        let doubts = |name: &str, value: &str| {
            let environment = Environment::from_pairs(&[(name, value)]);
            read(&["Main".into()], &environment, READER)
                .doubts
                .join(" / ")
        };
        let starts = "java does not start with it";
        for (name, value) in [
            ("JAVA_TOOL_OPTIONS", "-Dname=\"orders -Xmx256m"),
            ("JAVA_TOOL_OPTIONS", "\"-Xmx256m -Xss512k\""),
            ("_JAVA_OPTIONS", "-Dname=orders service -Xmx256m"),
        ] {
            let said = doubts(name, value);
            assert!(said.starts_with(name) && said.contains(starts), "{said}");
        }
        for (value, hint) in [
            ("$(HEAP_OPTS) -Xss1m", "as $(NAME)"),
            ("\u{2013}Xmx256m", "type it again"),
            ("Xmx256m", "put quotes around"),
        ] {
            let said = doubts("JAVA_TOOL_OPTIONS", value);
            assert!(said.contains(hint), "{said}");
        }
        assert!(doubts("JAVA_OPTS", "-Dname='orders").ends_with("it was passed over"));
        let said = doubts("JAVA_OPTS", "-Dname=orders service");
        assert!(said.contains("quote values that contain blanks"), "{said}");
        assert_eq!(doubts("JAVA_OPTS", "-cp /app -Dname=orders"), "");
        for (name, value) in [
            (
                "JDK_JAVA_OPTIONS",
                "--add-opens java.base/java.lang=ALL-UNNAMED",
            ),
            ("JAVA_TOOL_OPTIONS", "-Dname='orders service' -Xmx256m"),
        ] {
            assert_eq!(doubts(name, value), "");
        }
    }

    #[test]
    fn variables_of_the_java_launcher_have_argument_files() {
        let (_directory, file) = file("-XX:+UseParallelGC # own\n");
        let argument = format!("@{file}");
        for name in ["JDK_JAVA_OPTIONS", "JAVA_OPTS"] {
            let environment = Environment::from_pairs(&[(name, &argument)]);
            let reading = read(&["Main".into()], &environment, READER);
            let collector = reading.merged_options().switch_value("UseParallelGC");
            assert_eq!(collector, Some(true), "{name}");
        }
        // The JVM itself does not expand them.
        let environment = Environment::from_pairs(&[("JAVA_TOOL_OPTIONS", &argument)]);
        let reading = read(&["Main".into()], &environment, READER);
        assert!(!reading.merged_options().is_set("UseParallelGC"));
    }

    #[test]
    fn files_of_the_jvm_are_read_wherever_they_are_named() {
        let (_directory, file) = file("-XX:+UseParallelGC -Xmx77m\n");
        let option = format!("-XX:VMOptionsFile={file}");
        let reading = read_words(&["-Xmx66m", &option, "Main"]);
        let options = reading.merged_options();
        assert_eq!(options.switch_value("UseParallelGC"), Some(true));
        assert_eq!(options.setting("MaxHeapSize").unwrap().value, "77m");
        let environment = Environment::from_pairs(&[("_JAVA_OPTIONS", &option)]);
        let options = read(&["-Xmx1g".into()], &environment, READER).merged_options();
        assert_eq!(options.setting("MaxHeapSize").unwrap().value, "77m");
        let doubts = read_words(&["-XX:VMOptionsFile=/no/such/file"]).doubts;
        assert!(doubts[0].contains("/no/such/file"), "{doubts:?}");
    }

    #[test]
    fn a_file_of_flags_stands_below_everything() {
        let (_directory, file) = file("+UseParallelGC # own\nMaxHeapSize=100m\n");
        let option = format!("-XX:Flags={file}");
        let environment = Environment::from_pairs(&[("JAVA_TOOL_OPTIONS", "-Xmx9m")]);
        let options = read(&[option.into()], &environment, READER).merged_options();
        assert_eq!(options.switch_value("UseParallelGC"), Some(true));
        assert_eq!(options.setting("MaxHeapSize").unwrap().value, "9m");
    }
}
