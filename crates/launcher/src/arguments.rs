//! The launcher's own command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LauncherAction {
    #[default]
    Launch,
    Options,
    Calc,
    Variables,
    Version,
    Help,
}

#[derive(Debug, Clone, Default)]
pub struct LauncherArguments {
    pub action: LauncherAction,
    /// Flags of the launcher that stand for variables, as name and value; they win over these.
    pub variables: Vec<(&'static str, OsString)>,
    pub inputs: Vec<(String, String)>,
    pub command: Vec<OsString>,
    pub is_java: bool,
}

pub const HELP: &str = "\
Computes JVM options from the container's real limits and starts java.

Usage:
  loadline-launch [flags] [--] java -jar app.jar ...   start the application
  loadline-launch [flags]                              find the application and start it
  loadline-launch options [flags] [-- java ...]        print the options, one a line
  loadline-launch calc [--memory 1Gi] [--cpus 2] [--jdk 17] [--classes N] [--threads N]
                                                       ours next to other launchers'
  loadline-launch variables                            all environment variables

Flags (each has a variable, see `variables`):
  --explain          print limits, decisions and reasons to stderr
  --mode MODE        apply, report or off
  --compat NAME      paketo, cf or fabric8: reproduce their options
  --profile FILE     the measured profile
  --memory SIZE, --cpus CPUS
                     plan for these instead of the limits found
  --init, --no-init  act as init, or not; default: as PID 1
  --strict           refuse to start when the limit is too small
  --help, --version
";

/// Reads it. `is_java` is the launcher under the name `java`: every word is java's.
pub fn read(words: Vec<OsString>, is_java: bool) -> Result<LauncherArguments, String> {
    let mut arguments = LauncherArguments {
        is_java,
        ..LauncherArguments::default()
    };
    if is_java {
        arguments.command.push("java".into());
        arguments.command.extend(words);
        return Ok(arguments);
    }
    let mut words = words.into_iter().peekable();
    arguments.action = match words.peek().map(|word| word.as_bytes()) {
        Some(b"options") => LauncherAction::Options,
        Some(b"calc") => LauncherAction::Calc,
        Some(b"variables") => LauncherAction::Variables,
        _ => LauncherAction::Launch,
    };
    if arguments.action != LauncherAction::Launch {
        words.next();
    }
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            arguments.command.extend(words);
            break;
        }
        if !text.starts_with('-') {
            arguments.command.push(word);
            arguments.command.extend(words);
            break;
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(OsString::from(value))),
            None => (text.clone(), None),
        };
        let mut value = || {
            let value = value.clone().or_else(|| words.next());
            value.ok_or_else(|| format!("{name} needs a value"))
        };
        match name.as_str() {
            "--explain" => arguments.variables.push(("LOADLINE_EXPLAIN", "1".into())),
            "--strict" => arguments.variables.push(("LOADLINE_STRICT", "1".into())),
            "--init" => arguments.variables.push(("LOADLINE_INIT", "always".into())),
            "--no-init" => arguments.variables.push(("LOADLINE_INIT", "never".into())),
            "--mode" => arguments.variables.push(("LOADLINE_MODE", value()?)),
            "--compat" => arguments.variables.push(("LOADLINE_COMPAT", value()?)),
            "--profile" => arguments.variables.push(("LOADLINE_PROFILE", value()?)),
            "--memory" => arguments.variables.push(("LOADLINE_MEMORY", value()?)),
            "--cpus" | "--cpu" => arguments.variables.push(("LOADLINE_CPUS", value()?)),
            "--jdk" | "--classes" | "--threads" if arguments.action == LauncherAction::Calc => {
                let value = value()?.to_string_lossy().into_owned();
                let name = name.trim_start_matches('-').to_owned();
                arguments.inputs.push((name, value));
            }
            "--help" | "-h" => arguments.action = LauncherAction::Help,
            "--version" | "-V" => arguments.action = LauncherAction::Version,
            _ => {
                return Err(format!(
                    "{text} is no flag of loadline-launch; java's options stand after `--`"
                ));
            }
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(words: &[&str]) -> Result<LauncherArguments, String> {
        read(words.iter().map(OsString::from).collect(), false)
    }

    #[test]
    fn the_command_starts_after_two_dashes_or_at_the_first_word() {
        let arguments = read_words(&["--explain", "--", "java", "--version"]).unwrap();
        assert_eq!(arguments.command, ["java", "--version"]);
        let arguments = read_words(&["--mode=report", "java", "-jar", "--explain"]).unwrap();
        assert_eq!(arguments.command, ["java", "-jar", "--explain"]);
        assert_eq!(arguments.variables[0], ("LOADLINE_MODE", "report".into()));
        assert!(read_words(&["--what"]).is_err());
        assert!(read_words(&["--mode"]).is_err());
    }

    #[test]
    fn under_the_name_java_every_word_is_javas() {
        let arguments = read(vec!["--version".into()], true).unwrap();
        assert_eq!(arguments.command, ["java", "--version"]);
        assert_eq!(arguments.action, LauncherAction::Launch);
    }
}
