//! The command line: arguments to engine, records to text. The only crate that prints.
//!
//! One file a subcommand in [`commands`]; stdout is data, stderr is talk; the exit code says how
//! it ended ([`error::FailureKind`]).

#![deny(clippy::print_stderr, clippy::print_stdout)]

#[macro_use]
mod say;

mod away;
mod called;
mod commands;
mod enough;
mod error;
mod experiment;
mod extract;
mod files;
mod grpc;
mod images;
mod load_flags;
mod measuring;
mod notify;
mod output;
mod result;
mod signals;
mod today;
mod ui;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use loadline_trial::entry;

use crate::commands::help;
use crate::error::Error;
use crate::output::AnswerPrinter;

/// Finds how much CPU and memory a JVM in a container needs.
#[derive(Parser)]
#[command(name = "loadline", version = env!("LOADLINE_VERSION"), args_override_self = true)]
struct CommandLine {
    /// Print only answers, warnings and errors
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Global",
        display_order = 1000
    )]
    quiet: bool,
    /// Also print each start, how long each trial took, and the directories of results and raw
    /// events
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "quiet",
        help_heading = "Global",
        display_order = 1001
    )]
    verbose: bool,
    /// When to colour verdicts; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Global",
        display_order = 1002
    )]
    color: clap::ColorChoice,
    #[command(subcommand)]
    command: Option<commands::LoadlineCommand>,
}

fn main() -> ExitCode {
    if entry::is_in_image()
        && let Err(refusal) = entry::step_out()
    {
        return Error::from_refusal(&refusal).report();
    }
    let command = help::group_commands(CommandLine::command());
    for flag in usage::repeated_flags(&command) {
        say!("warning: {flag} is given more than once: the last one counts");
    }
    let matches = command.try_get_matches_from(called::parsed_words());
    let parsed = matches.and_then(|found| Ok((CommandLine::from_arg_matches(&found)?, found)));
    let (arguments, found) = match parsed {
        Ok(parsed) => parsed,
        Err(refusal) => return usage::usage_refused(&refusal),
    };
    say::set_verbosity(arguments.quiet, arguments.verbose);
    ui::colour::choose(arguments.color);
    ui::next::keep_state_flag(&found);
    let mut out = AnswerPrinter::for_command(&found);
    let refusal = usage::measuring_refused(std::env::consts::OS, &found);
    let ended = match (refusal, arguments.command) {
        (Some(refusal), _) => Err(refusal),
        (None, Some(command)) => commands::run(command, &mut out),
        (None, None) => help::first_steps(),
    };
    let written = out.write_file();
    match ended.and_then(|outcome| written.map(|()| outcome)) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => error.report(),
    }
}
