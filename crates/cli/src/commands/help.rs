//! What `loadline --help` lists, by what people want to do, and what `loadline` alone says.
//!
//! Owns the groups only: a command's sentence is that of its declaration in [`super::LoadlineCommand`].

use std::fmt::Write as _;

use clap::Command;
use loadline_report::table::wrap;

use super::doctor;
use crate::error::{CommandOutcome, Error};
use crate::output;
use crate::say::{print_data, width};

/// The commands by purpose; every visible one stands in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Measure",
        &[
            "init", "size", "verify", "run", "judge", "lint", "soak", "drill", "plan", "resume",
        ],
    ),
    (
        "Read",
        &[
            "show", "report", "explain", "compare", "list", "serve", "fleet",
        ],
    ),
    ("Ship", &["emit", "export"]),
    ("Load", &["load", "profile", "merge"]),
    ("JVM", &["cache", "gc", "predict", "footprint"]),
    ("Upkeep", &["doctor", "clean", "schema", "help"]),
];

const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}";

pub fn group_commands(command: Command) -> Command {
    let mut command = output::with_flag(command);
    // Without it the command `help` is not there yet.
    command.build();
    let groups = list_commands(&command);
    command
        .override_usage("loadline <COMMAND>")
        .help_template(TEMPLATE)
        .after_help(groups)
}

fn list_commands(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let column = names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let indent = column + 4;
            let lines = wrap(&about, width().saturating_sub(indent));
            let about = lines.join(&format!("\n{:indent$}", ""));
            let _ = writeln!(text, "  {name:column$}  {about}");
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

pub fn first_steps() -> Result<CommandOutcome, Error> {
    print_data(&format!(
        "loadline finds how much a JVM in a container can carry.

{}

size an image      loadline size --image REF --slo 'p99<250ms' --rate 100/s --url http://localhost:8080/
or a command       loadline size --slo 'p99<250ms' --rate 100/s --url http://localhost:8080/ -- java -jar app.jar
how long it takes  loadline plan, with the same flags
read the answer    loadline show, loadline report -o report.html
ship it            loadline emit --to DIR
all commands       loadline --help
",
        doctor::in_short()
    ))?;
    Ok(CommandOutcome::Done)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::CommandLine;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut command = CommandLine::command();
        command.build();
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|g| g.1).copied().collect();
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(visible, listed);
    }

    #[test]
    fn every_flag_of_size_stands_in_a_group() {
        let command = group_commands(CommandLine::command());
        let size = command.find_subcommand("size").expect("it is there");
        let flags = size
            .get_opts()
            .filter(|f| !["help", "quiet", "verbose"].contains(&f.get_id().as_str()));
        let bare = flags.filter(|f| f.get_help_heading().is_none());
        let bare: Vec<_> = bare.map(clap::Arg::get_id).collect();
        assert!(bare.is_empty(), "without a group: {bare:?}");
    }

    #[test]
    fn a_default_is_printed_in_one_form() {
        let command = group_commands(CommandLine::command());
        for sub in command.get_subcommands() {
            for flag in sub.get_arguments().filter(|f| !f.is_hide_set()) {
                let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
                let (said, form) = (help.matches("default:"), help.matches("[default: "));
                assert_eq!(
                    said.count(),
                    form.count(),
                    "{} {}",
                    sub.get_name(),
                    flag.get_id()
                );
                assert!(!help.contains("(the default)"), "{}", flag.get_id());
            }
        }
    }
}
