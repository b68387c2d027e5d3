//! `loadline-launch`: starts java in a container with options computed from the real limits.
//!
//! [`run`] reads as the data flow: arguments, plan, explanation, exec. Owns reading the container
//! and starting the JVM; every formula is in `loadline-sizing`. Never writes a file, never opens a
//! connection, never starts a shell, never re-parses a word it passes on.
//!
//! Facts: the table of [`variables`] is the reference; PID 1 duties are in [`init`].

pub mod application;
pub mod arguments;
pub mod cache;
pub mod calc;
pub mod command;
pub mod compatible;
pub mod diagnostics;
pub mod environment;
pub mod explain;
pub mod files;
pub mod init;
pub mod java;
pub mod json;
pub mod plan;
pub mod secret;
pub mod shared_classes;
pub mod sys;
pub mod variables;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;

use arguments::{Action, Arguments};
use calc::Case;
use environment::{Environment, Log, Mode};
use plan::StartPlan;

/// Wrong usage.
const USAGE: i32 = 2;
/// `LOADLINE_STRICT` refuses: EX_CONFIG of sysexits.h.
const REFUSED: i32 = 78;
/// No java, no application: as shells have it.
const NOT_FOUND: i32 = 127;

/// Runs the launcher with these words, its own name first. Returns its exit code; as `exec` it only returns when something failed.
pub fn run(words: Vec<OsString>, inherited: &sys::Inherited) -> i32 {
    let mut words = words.into_iter();
    let own_name = words.next().unwrap_or_default();
    let is_java = Path::new(&own_name).file_name() == Some(OsStr::new("java"));
    let arguments = match arguments::read(words.collect(), is_java) {
        Ok(arguments) => arguments,
        Err(error) => {
            say(&format!(
                "loadline-launch: {error}\nhint: loadline-launch --help\n"
            ));
            return USAGE;
        }
    };
    let environment = Environment::real().with(&arguments.variables);
    match arguments.action {
        Action::Help => print(arguments::HELP),
        Action::Version => print(concat!("loadline-launch ", env!("LOADLINE_VERSION"), "\n")),
        Action::Variables => print(&variables::reference()),
        Action::Calc => calculate(&arguments, &environment),
        Action::Options | Action::Launch => launch(arguments, &environment, inherited),
    }
}

fn launch(arguments: Arguments, environment: &Environment, inherited: &sys::Inherited) -> i32 {
    let command = match command(&arguments, environment) {
        Ok(command) => command,
        Err(error) => {
            say(&format!("loadline-launch: {error}\n"));
            return NOT_FOUND;
        }
    };
    if !is_java(&command[0]) {
        if environment.log() == Log::Text {
            say(&format!(
                "loadline-launch: {} is not java; it is started unchanged\n",
                command[0].to_string_lossy()
            ));
        }
        return start(
            &command[0],
            &command,
            environment.all(),
            environment,
            inherited,
        );
    }
    let plan = match plan::plan(environment, &command, arguments.is_java) {
        Ok(plan) => plan,
        Err(error) => {
            say(&format!("loadline-launch: {error}\n"));
            return NOT_FOUND;
        }
    };
    if arguments.action == Action::Options {
        return print(
            &plan
                .added
                .iter()
                .map(|chosen| format!("{}\n", chosen.option))
                .collect::<String>(),
        );
    }
    tell(&plan, environment);
    let refusal = plan
        .refusal()
        .filter(|_| environment.is_on("LOADLINE_STRICT"));
    if let Some(refusal) = refusal {
        say(&format!(
            "loadline-launch: refused by LOADLINE_STRICT: {refusal}\n"
        ));
        return REFUSED;
    }
    let variables = plan.environment(environment);
    start(
        plan.java.path.as_os_str(),
        &plan.words,
        &variables,
        environment,
        inherited,
    )
}

/// The command given, or java with the application found.
fn command(arguments: &Arguments, environment: &Environment) -> Result<Vec<OsString>, String> {
    let mut command = arguments.command.clone();
    let first = command
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    match first.as_deref() {
        None if arguments.action == Action::Options => Ok(vec!["java".into()]),
        None => {
            command.push("java".into());
            command.extend(application::find(environment)?);
            Ok(command)
        }
        // Options alone, or a jar, are java's.
        Some(word) if word.starts_with(['-', '@']) => {
            command.insert(0, "java".into());
            Ok(command)
        }
        Some(word) if word.ends_with(".jar") || word.ends_with(".war") => {
            command.splice(0..0, ["java".into(), "-jar".into()]);
            Ok(command)
        }
        Some(_) => Ok(command),
    }
}

fn is_java(word: &OsStr) -> bool {
    Path::new(word).file_name() == Some(OsStr::new("java"))
}

fn tell(plan: &StartPlan, environment: &Environment) {
    // A report that nobody sees is none.
    let is_report = environment.mode() == Mode::Report && environment.log() == Log::Text;
    let is_explained = environment.is_on("LOADLINE_EXPLAIN") || is_report;
    if is_explained {
        say(&explain::text(plan));
    }
    match environment.log() {
        Log::Json => say(&format!("{}\n", explain::json(plan))),
        Log::Quiet => {}
        Log::Text if is_explained => {}
        Log::Text => {
            for warning in explain::warnings(plan) {
                say(&format!("loadline-launch: warning: {warning}\n"));
            }
        }
    }
}

fn start(
    path: &OsStr,
    words: &[OsString],
    variables: &[(OsString, OsString)],
    environment: &Environment,
    inherited: &sys::Inherited,
) -> i32 {
    let path = if path.as_encoded_bytes().contains(&b'/') {
        Some(path.into())
    } else {
        in_path(path, environment)
    };
    let Some(path) = path else {
        say(&format!(
            "loadline-launch: {} was not found in PATH\n",
            words[0].to_string_lossy()
        ));
        return NOT_FOUND;
    };
    let program = match sys::Program::new(&path, words, variables) {
        Ok(program) => program,
        Err(error) => {
            say(&format!("loadline-launch: {}: {error}\n", path.display()));
            return USAGE;
        }
    };
    let is_init = match environment.text("LOADLINE_INIT").as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => sys::is_pid_one(),
    };
    if is_init {
        let options = environment.init_options();
        return mapped(init::run(&program, inherited, options, say), environment);
    }
    let error = program.exec(inherited);
    say(&program.failure(&error));
    sys::exec_failure_code(&error)
}

fn in_path(word: &OsStr, environment: &Environment) -> Option<std::path::PathBuf> {
    let directories = std::env::split_paths(environment.raw("PATH")?).collect::<Vec<_>>();
    directories
        .into_iter()
        .map(|directory| directory.join(word))
        .find(|path| path.is_file())
}

/// `LOADLINE_EXIT_ZERO`: codes that count as success.
fn mapped(code: i32, environment: &Environment) -> i32 {
    let list = environment.text("LOADLINE_EXIT_ZERO").unwrap_or_default();
    let is_listed = list.split([',', ' ']).any(|word| word.parse() == Ok(code));
    if is_listed { 0 } else { code }
}

fn calculate(arguments: &Arguments, environment: &Environment) -> i32 {
    match case(arguments, environment) {
        Ok(case) => print(&calc::table(&case)),
        Err(error) => {
            say(&format!("loadline-launch: {error}\n"));
            USAGE
        }
    }
}

fn case(arguments: &Arguments, environment: &Environment) -> Result<Case, String> {
    let input = |name: &str| {
        arguments
            .inputs
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v)
    };
    let number = |name: &str, default| match input(name) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("--{name} `{text}` is no whole number")),
        None => Ok(default),
    };
    let limits = loadline_sizing::limits::discover(&files::FileSystem::real(), sys::host());
    let jdk = match input("jdk") {
        Some(text) => text.parse().map_err(|e| format!("--jdk: {e}"))?,
        None => loadline_sizing::Version::feature(25),
    };
    Ok(Case {
        memory: environment
            .memory()?
            .unwrap_or(limits.usable_memory().value),
        cpus: environment.cpus()?.unwrap_or(limits.usable_cpus().value),
        jdk,
        classes: number("classes", 10_000)?,
        threads: number("threads", 250)?,
    })
}

/// To stderr; a closed one is no reason not to start.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// To stdout; the exit code says whether it worked.
fn print(text: &str) -> i32 {
    let mut out = std::io::stdout();
    i32::from(
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .is_err(),
    )
}
