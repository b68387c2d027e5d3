//! `loadline pages`: generates the files that packages install with the program: man pages and
//! shell completions. Hidden: `cargo xtask release` calls it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::error::{CommandOutcome, Error};
use crate::say::print_data;
use crate::{CommandLine, output};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

#[derive(Args)]
pub struct PagesArguments {
    /// Directory for `man` and `completions`
    directory: PathBuf,
}

#[derive(Args)]
pub struct CompletionArguments {
    /// The shell; in bash: source <(loadline completion bash)
    shell: Shell,
}

pub fn complete_shell(arguments: &CompletionArguments) -> Result<CommandOutcome, Error> {
    let mut text = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut visible_commands(),
        "loadline",
        &mut text,
    );
    print_data(&String::from_utf8_lossy(&text))?;
    Ok(CommandOutcome::Done)
}

pub fn run(arguments: &PagesArguments) -> Result<CommandOutcome, Error> {
    let written = write(&arguments.directory);
    written.map_err(|e| {
        let directory = arguments.directory.display();
        Error::environment(format!("{directory}: {e}"))
    })?;
    Ok(CommandOutcome::Done)
}

fn write(directory: &Path) -> io::Result<()> {
    let (man, completions) = (directory.join("man"), directory.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(visible_commands(), &man)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut visible_commands(), "loadline", &completions)?;
    }
    Ok(())
}

fn visible_commands() -> Command {
    let all = output::with_flag(CommandLine::command());
    let subcommands = all.get_subcommands().filter(|c| !c.is_hide_set());
    let about = all.get_about().cloned().unwrap_or_default();
    Command::new("loadline")
        .version(env!("LOADLINE_VERSION"))
        .about(about)
        .args(all.get_arguments())
        .subcommands(subcommands)
}
