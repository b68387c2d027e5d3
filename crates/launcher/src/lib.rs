//! `loadline-launch`: starts java in a container with options computed from the real limits.
//!
//! [`run`] reads as the data flow: arguments, plan, explanation, exec. Owns reading the container
//! and starting the JVM; every formula is in `loadline-sizing`. Never writes a file, never opens a
//! connection, never starts a shell, never re-parses a word it passes on.
//!
//! Facts: [`REFERENCE`] has the settings; PID 1 duties are in [`init`].

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

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;

use arguments::{LauncherAction, LauncherArguments};
use calc::CalculatorCase;
use environment::{Environment, LauncherMode, LogMode};
use plan::StartPlan;

/// Every environment variable the launcher reads; `loadline-launch variables` prints it.
pub const REFERENCE: &str = include_str!("../../../docs/reference/launcher.md");

const USAGE: i32 = 2;
/// `LOADLINE_STRICT` refuses: EX_CONFIG of sysexits.h.
const REFUSED: i32 = 78;
const NOT_FOUND: i32 = 127;

/// Runs the launcher with these words, its own name first. Returns its exit code; as `exec` it only returns when something failed.
pub fn run(words: Vec<OsString>, inherited: &sys::InheritedSignals) -> i32 {
    let mut words = words.into_iter();
    let own_name = words.next().unwrap_or_default();
    let arguments = match arguments::read(words.collect(), is_java(&own_name)) {
        Ok(arguments) => arguments,
        Err(error) => {
            return complain(format_args!("{error}\nhint: loadline-launch --help"), USAGE);
        }
    };
    let environment = Environment::from_process().with_flags(&arguments.variables);
    match arguments.action {
        LauncherAction::Help => print_to_stdout(arguments::HELP),
        LauncherAction::Version => {
            print_to_stdout(concat!("loadline-launch ", env!("LOADLINE_VERSION"), "\n"))
        }
        LauncherAction::Variables => print_to_stdout(REFERENCE),
        LauncherAction::Calc => print_calculation(&arguments, &environment),
        LauncherAction::Options | LauncherAction::Launch => {
            launch_application(arguments, &environment, inherited)
        }
    }
}

fn launch_application(
    arguments: LauncherArguments,
    environment: &Environment,
    inherited: &sys::InheritedSignals,
) -> i32 {
    let command = match start_command(&arguments, environment) {
        Ok(command) => command,
        Err(error) => return complain(error, NOT_FOUND),
    };
    if !is_java(&command[0]) {
        if environment.log_mode() == LogMode::Text {
            let name = command[0].to_string_lossy();
            complain(
                format_args!("{name} is not java; it is started unchanged"),
                0,
            );
        }
        let variables = &environment.variables;
        return start_program(&command[0], &command, variables, environment, inherited);
    }
    let plan = match plan::plan_start(environment, &command, arguments.is_java) {
        Ok(plan) => plan,
        Err(error) => return complain(error, NOT_FOUND),
    };
    tell_plan(&plan, environment);
    if environment.is_on("LOADLINE_STRICT")
        && let Some(refusal) = plan.strict_refusal()
    {
        let why = format_args!("refused by LOADLINE_STRICT: {refusal}");
        return complain(why, REFUSED);
    }
    if arguments.action == LauncherAction::Options {
        let options = plan.added.iter();
        let options = options.map(|chosen| format!("{}\n", chosen.option));
        return print_to_stdout(&options.collect::<String>());
    }
    let variables = plan.start_environment(environment);
    let java = plan.java.path.as_os_str();
    start_program(java, &plan.words, &variables, environment, inherited)
}

fn start_command(
    arguments: &LauncherArguments,
    environment: &Environment,
) -> Result<Vec<OsString>, String> {
    let mut command = arguments.command.clone();
    let first = command
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    match first.as_deref() {
        None if arguments.action == LauncherAction::Options => Ok(vec!["java".into()]),
        None => {
            command.push("java".into());
            command.extend(application::find_application(environment)?);
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

fn tell_plan(plan: &StartPlan, environment: &Environment) {
    // A report must not get lost.
    let is_report = environment.launcher_mode() == LauncherMode::Report
        && environment.log_mode() == LogMode::Text;
    let is_explained = environment.is_on("LOADLINE_EXPLAIN") || is_report;
    if is_explained {
        say_to_stderr(&explain::explain_start(plan));
    }
    match environment.log_mode() {
        LogMode::Json => say_to_stderr(&format!("{}\n", explain::start_json(plan))),
        LogMode::Quiet => {}
        LogMode::Text if is_explained => {}
        LogMode::Text => {
            for warning in explain::warnings(plan) {
                say_to_stderr(&format!("loadline-launch: warning: {warning}\n"));
            }
        }
    }
}

fn start_program(
    path: &OsStr,
    words: &[OsString],
    variables: &[(OsString, OsString)],
    environment: &Environment,
    inherited: &sys::InheritedSignals,
) -> i32 {
    let path = if path.as_encoded_bytes().contains(&b'/') {
        Some(path.into())
    } else {
        in_path(path, environment)
    };
    let Some(path) = path else {
        let name = words[0].to_string_lossy();
        return complain(format_args!("{name} was not found in PATH"), NOT_FOUND);
    };
    let program = match sys::ExecProgram::new(&path, words, variables) {
        Ok(program) => program,
        Err(error) => return complain(format_args!("{}: {error}", path.display()), USAGE),
    };
    let is_init = match environment.text_value("LOADLINE_INIT").as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => sys::is_pid_one(),
    };
    if is_init {
        let options = environment.init_options();
        let code = init::run(&program, inherited, options, say_to_stderr);
        return mapped(code, environment);
    }
    let error = program.exec(inherited);
    say_to_stderr(&program.failure_text(&error));
    sys::exec_failure_code(&error)
}

fn in_path(word: &OsStr, environment: &Environment) -> Option<std::path::PathBuf> {
    let directories = std::env::split_paths(environment.raw_value("PATH")?);
    let mut paths = directories.map(|directory| directory.join(word));
    paths.find(|path| path.is_file())
}

/// `LOADLINE_EXIT_ZERO`: codes that count as success.
fn mapped(code: i32, environment: &Environment) -> i32 {
    let list = environment
        .text_value("LOADLINE_EXIT_ZERO")
        .unwrap_or_default();
    let is_listed = list.split([',', ' ']).any(|word| word.parse() == Ok(code));
    if is_listed { 0 } else { code }
}

fn print_calculation(arguments: &LauncherArguments, environment: &Environment) -> i32 {
    match case_from_arguments(arguments, environment) {
        Ok(case) => print_to_stdout(&calc::comparison_table(&case)),
        Err(error) => complain(error, USAGE),
    }
}

fn case_from_arguments(
    arguments: &LauncherArguments,
    environment: &Environment,
) -> Result<CalculatorCase, String> {
    let input = |name: &str| {
        let found = arguments.inputs.iter().rfind(|(n, _)| n == name);
        found.map(|(_, value)| value)
    };
    let number = |name: &str, default| {
        let Some(text) = input(name) else {
            return Ok(default);
        };
        let wrong = |_| format!("--{name} `{text}` is no whole number");
        text.parse().map_err(wrong)
    };
    let limits =
        loadline_sizing::limits::discover(&files::FileSystem::from_root(), sys::read_host());
    let jdk = match input("jdk") {
        Some(text) => text.parse().map_err(|e| format!("--jdk: {e}"))?,
        None => loadline_sizing::JavaVersion::from_feature(25),
    };
    let (memory, cpus) = (environment.memory_override()?, environment.cpu_override()?);
    Ok(CalculatorCase {
        memory: memory.unwrap_or(limits.usable_memory().value),
        cpus: cpus.unwrap_or(limits.usable_cpus().value),
        jdk,
        classes: number("classes", 10_000)?,
        threads: number("threads", 250)?,
    })
}

fn complain(why: impl Display, code: i32) -> i32 {
    say_to_stderr(&format!("loadline-launch: {why}\n"));
    code
}

fn say_to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn print_to_stdout(text: &str) -> i32 {
    let mut out = std::io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    i32::from(written.is_err())
}
