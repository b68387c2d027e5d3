//! `-o FILE`: writes a command's output to a file, for every command that prints a text or JSON.
//!
//! Owns the flag and the buffer until the command has ended: a file is written whole or not at all,
//! and also if the command fails after it has printed. Also the other output flags.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, value_parser};
use loadline_report::text::harmless;

use crate::error::Error;
use crate::files;
use crate::say::write_stdout;
use crate::ui::colour;

/// The heading of flags about where results are kept and how they are shown.
pub const RESULT: &str = "Result";

const ID: &str = "printed-to";

/// Commands that print a text or JSON, and have no special `-o`.
const PRINTING: [&str; 20] = [
    "size", "verify", "run", "judge", "lint", "soak", "drill", "plan", "resume", "show", "explain",
    "compare", "list", "load", "merge", "gc", "predict", "doctor", "schema", "clean",
];

/// Where a result goes at the end.
#[derive(Args, Debug, Default, Clone)]
pub struct OutputFlags {
    /// Print the result as JSON
    #[arg(long, help_heading = RESULT)]
    pub json: bool,

    /// Print everything in the records, not only the first screen
    #[arg(long, conflicts_with = "json", help_heading = RESULT)]
    pub full: bool,

    /// Also write the HTML report to this file
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub report: Option<PathBuf>,
}

pub fn with_flag(command: Command) -> Command {
    PRINTING.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |one| {
            one.arg(
                Arg::new(ID)
                    .short('o')
                    .long("output")
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help_heading(RESULT)
                    .help("Output file [default: -, standard output]"),
            )
        })
    })
}

#[derive(Debug, Default)]
pub struct AnswerPrinter {
    file: Option<PathBuf>,
    kept: String,
}

impl AnswerPrinter {
    pub fn for_command(matches: &ArgMatches) -> Self {
        let called = matches.subcommand();
        let called = called.filter(|(name, _)| PRINTING.contains(name));
        let file = called.and_then(|(_, arguments)| arguments.get_one::<PathBuf>(ID));
        Self {
            file: file.filter(|path| !files::is_standard(path)).cloned(),
            kept: String::new(),
        }
    }

    pub fn print_answer(&mut self, text: &str) -> Result<(), Error> {
        let text = harmless(text);
        if self.file.is_none() {
            return write_stdout(&colour::paint_for(&std::io::stdout(), &text));
        }
        self.kept.push_str(&text);
        if !text.ends_with('\n') {
            self.kept.push('\n');
        }
        Ok(())
    }

    pub fn write_file(self) -> Result<(), Error> {
        match self.file {
            Some(path) if !self.kept.is_empty() => files::write(&path, &self.kept),
            _ => Ok(()),
        }
    }
}
