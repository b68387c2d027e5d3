//! What a container's own command gives to java: options that no JVM gets, and a jar taken for a class.
//!
//! Owns where a command starts java itself. A start script of the image is not to be seen: it may read
//! any variable. Source: java.c, `ParseArguments`; only the variables of `OptionReader` are the JVM's.

use loadline_analysis::lint::{LintFinding, Severity};
use loadline_sizing::options::words::{TOO_LATE, find_bare_jar, find_late_options, has_word};
use serde_json::Value;

use super::fields::{last_path_segment, program_texts, variables};
use super::malformed::SHELLS;
use super::option_reader::{JVM_VARIABLES, OptionReader, meant_variable};

const OPENJ9_VARIABLES: [&str; 2] = ["OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS"];

/// Commands of a shell that run what follows them.
const PREFIXES: &str = "exec env nohup time";

/// Commands of a shell that may hand variables on unseen.
const HIDING: &str = ". source eval";

/// The command of a container that starts java without a script.
pub(super) struct JavaCommand {
    text: String,
    /// The words after each `java`.
    arguments: Vec<Vec<String>>,
}

impl JavaCommand {
    pub(super) fn of_container(container: &Value) -> Option<Self> {
        let words = program_texts(container);
        let program = last_path_segment(container["command"].get(0)?.as_str()?);
        if program == "java" {
            return Some(Self {
                text: words.join(" "),
                arguments: vec![words[1..].to_vec()],
            });
        }
        let is_flag = |word: &&String| word.starts_with('-');
        let mut flags = words[1..].iter().take_while(is_flag);
        let has_command = flags.any(|flag| flag.contains('c'));
        let script = words[1..].iter().find(|word| !is_flag(word))?;
        if !has_word(SHELLS, program) || !has_command {
            return None;
        }
        Some(Self {
            text: script.clone(),
            arguments: java_arguments(script)?,
        })
    }

    /// Whether neither java nor anything in the container names the variable.
    pub(super) fn leaves_unread(&self, container: &Value, name: &str) -> bool {
        let is_of_jvm = JVM_VARIABLES.contains(&name) || OPENJ9_VARIABLES.contains(&name);
        let mut values = variables(container).filter_map(|(_, value)| value);
        !is_of_jvm && !self.text.contains(name) && !values.any(|value| value.contains(name))
    }
}

/// The words after each java that a shell starts; `None` if it may hand variables on, or ends with
/// another program: a script may read them.
fn java_arguments(script: &str) -> Option<Vec<Vec<String>>> {
    let text = script.replace("\\\n", " ");
    let mut all = Vec::new();
    let mut is_java = false;
    for command in text.split([';', '|', '&', '\n']) {
        let words = command.split_whitespace();
        let is_before = |word: &&str| has_word(PREFIXES, word) || word.contains('=');
        let mut words = words.skip_while(is_before);
        let Some(program) = words.next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        let program = program.trim_start_matches('(');
        if has_word(HIDING, program) {
            return None;
        }
        is_java = last_path_segment(program) == "java";
        if is_java {
            let bare = |word: &str| word.trim_matches(['"', '\'']).to_owned();
            all.push(words.map(bare).collect());
        }
    }
    is_java.then_some(all)
}

pub(super) fn find_misplaced(container: &Value) -> Vec<LintFinding> {
    let command = JavaCommand::of_container(container);
    let arguments = command.iter().flat_map(|command| &command.arguments);
    let mut found: Vec<LintFinding> = arguments.flat_map(|words| misplaced_words(words)).collect();
    for (name, value) in variables(container) {
        let options = OptionReader::Script.find_options(value.as_deref().unwrap_or_default());
        let is_unread = |command: &JavaCommand| command.leaves_unread(container, name);
        let hint = if options.is_empty() {
            continue;
        } else if let Some(meant) = meant_variable(name) {
            format!("the JVM reads {meant}: name it so")
        } else if command.as_ref().is_some_and(is_unread) {
            "the command starts java itself, which does not read it: name it JAVA_TOOL_OPTIONS"
                .to_owned()
        } else {
            continue;
        };
        found.push(LintFinding {
            severity: Severity::Warning,
            problem: format!("{name} has no effect, because no JVM reads it"),
            hint,
        });
    }
    found
}

fn misplaced_words(words: &[String]) -> Vec<LintFinding> {
    let late = find_late_options(words).map(|option| LintFinding {
        severity: Severity::Warning,
        problem: format!("{option} has no effect: {TOO_LATE}"),
        hint: "write it before -jar or the main class".to_owned(),
    });
    let bare = find_bare_jar(words).map(|jar| LintFinding {
        severity: Severity::Error,
        problem: format!(
            "command: java takes {jar} for the name of a class: the container does not start"
        ),
        hint: format!("write -jar before it: java -jar {jar}"),
    });
    bare.into_iter().chain(late).collect()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::tests::linted;

    #[test]
    fn options_that_no_jvm_gets_are_named() {
        let heap = "env: [{name: JAVA_OPTS, value: -Xmx2g}]";
        let unread = "JAVA_OPTS has no effect";
        let behind = "-Xmx2g has no effect: words behind the jar";
        for (service, wanted) in [
            (format!("command: [java, -jar, a.jar], {heap}"), unread),
            (format!("command: [sh, -c, 'exec java -jar a.jar'], {heap}"), unread),
            (
                format!("command: [sh, -ec, 'sleep 1 && TZ=UTC /jre/bin/java -cp a Main'], {heap}"),
                unread,
            ),
            (format!("command: [sh, -c, 'java $JAVA_OPTS -jar a.jar'], {heap}"), "over-committed"),
            (format!("command: [sh, -c, '. /env; java -jar a.jar'], {heap}"), "over-committed"),
            (format!("command: [sh, -c, './run.sh java'], {heap}"), "over-committed"),
            (
                format!("command: [sh, -c, 'java -version && ./run.sh'], {heap}"),
                "over-committed",
            ),
            (format!("args: [-jar, a.jar], {heap}"), "over-committed"),
            (
                "command: [java, -jar, a.jar], env: [{name: JAVA_OPTS, value: -Xmx2g}, {name: JAVA_TOOL_OPTIONS, value: $(JAVA_OPTS)}]".to_owned(),
                "over-committed",
            ),
            ("command: [java, -jar, a.jar, -Xmx2g]".to_owned(), behind),
            ("command: [java, -cp, a.jar, Main, -Xmx2g]".to_owned(), behind),
            (
                "command: [sh, -c, \"java \\\\\\n -jar a.jar \\\\\\n -Xmx2g --port=1\"]".to_owned(),
                behind,
            ),
            ("command: [java, -cp, Main, -Xmx2g, a.Main]".to_owned(), "over-committed"),
            (
                "env: [{name: JAVA_TOOL_OPTS, value: -Xmx2g}]".to_owned(),
                "JAVA_TOOL_OPTS has no effect",
            ),
            ("command: [java, a.jar]".to_owned(), "java takes a.jar for the name of a class"),
            ("command: [java, -cp, a.jar]".to_owned(), ""),
            ("command: [java, -Xmx256m, '@args', -jar, a.jar, --x]".to_owned(), "not checked"),
        ] {
            let said = linted(&service, "");
            let holds = said.contains(wanted) && wanted.is_empty() == said.is_empty();
            assert!(holds && said.lines().count() < 2, "{service}: {said}");
        }
    }
}
