//! The list in `loadline --help`, grouped by purpose, and the output of `loadline` alone.
//!
//! Owns the groups only: [`super::LoadlineCommand`] declares each command's sentence.

use std::fmt::Write as _;

use clap::Command;
use loadline_report::table::wrap;
use loadline_sizing::options::words::has_word;

use super::doctor;
use crate::error::{CommandOutcome, Error};
use crate::output;
use crate::say::{print_data, width};

const GROUPS: [(&str, &str); 6] = [
    (
        "Measure",
        "init size verify run judge lint soak drill plan resume",
    ),
    ("Read", "show report explain compare list serve fleet"),
    ("Ship", "emit export"),
    ("Load", "load profile merge"),
    ("JVM", "cache gc predict footprint"),
    ("Upkeep", "doctor clean schema completion help"),
];

const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}";

/// Flags that `-h` shows of a command that measures; `--help` has all.
const FIRST: &str = "slo rate url ready cpu memory max_memory jvm jdk image compose service report";

const LONG: [&str; 6] = ["size", "run", "verify", "judge", "drill", "plan"];

/// Each belongs to the command that it names.
const EXAMPLES: &[&str] = &[
    "loadline size --slo 'p99<250ms' --rate 100/s --url http://localhost:8080/ -- java -jar app.jar",
    "loadline size --image orders:1.4 --slo 'p99<250ms' --rate 100/s --url http://localhost:8080/",
    "loadline size loadline.toml --prices fargate",
    "loadline init",
    "loadline init --image registry/orders:1.4 --url /orders",
    "loadline init --job -- mvn -o -q package",
    "loadline verify",
    "loadline verify --accept",
    "loadline run --memory 512Mi --repeats 20",
    "loadline run experiments/ci-gate.toml",
    "loadline judge --manifest deploy.yaml loadline.toml",
    "loadline judge --advice percent=75 --memory 512Mi",
    "loadline lint deploy.yaml",
    "helm template CHART | loadline lint -",
    "loadline soak last --for 30m",
    "loadline drill experiments/postgresql-slow.toml",
    "loadline plan",
    "loadline plan loadline.toml --cpu 1,2",
    "loadline resume last",
    "loadline show",
    "loadline show result.json.gz --full",
    "loadline report last -o report.html",
    "loadline explain last",
    "loadline compare 01a 01b",
    "loadline list",
    "loadline serve --listen 127.0.0.1:7007",
    "loadline fleet --prometheus http://localhost:9090",
    "loadline emit --to ship",
    "loadline emit --to patch --manifest deploy.yaml",
    "loadline export last -o result.json.gz",
    "loadline export last -o trials.csv",
    "loadline load --rate 100/s --duration 30s http://localhost:8080/",
    "loadline profile access.log -o load.toml",
    "loadline merge part1.json part2.json",
    "loadline cache -- java -jar app.jar",
    "loadline gc gc.log",
    "loadline predict --memory 512Mi --cpu 1 --jdk 21",
    "loadline footprint PID",
    "loadline doctor",
    "loadline schema result",
    "source <(loadline completion bash)",
];

fn named_command(line: &str) -> Option<&str> {
    line.split("loadline ").nth(1)?.split([' ', ')']).next()
}

fn with_examples(command: Command) -> Command {
    let command = EXAMPLES
        .chunk_by(|line, next| named_command(line) == named_command(next))
        .fold(command, |command, lines| {
            let text = format!("Examples:\n  {}", lines.join("\n  "));
            command.mut_subcommand(named_command(lines[0]).unwrap_or_default(), |one| {
                one.after_help(text)
            })
        });
    let is_first =
        |id: &str| has_word(FIRST, id) || ["quiet", "verbose", "color", "help"].contains(&id);
    LONG.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |one| {
            one.mut_args(|arg| {
                let is_shown = is_first(arg.get_id().as_str()) || arg.is_positional();
                arg.hide_short_help(!is_shown)
            })
        })
    })
}

pub fn group_commands(command: Command) -> Command {
    let mut command = with_examples(output::with_flag(command));
    // Without it the command `help` is not there yet.
    command.build();
    let groups = list_commands(&command);
    command
        .override_usage("loadline <COMMAND>")
        .help_template(TEMPLATE)
        .after_help(groups)
}

fn list_commands(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.split(' '));
    let column = names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for name in names.split(' ') {
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
        "loadline finds how much CPU and memory a JVM in a container needs.

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
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|g| g.1.split(' ')).collect();
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
            .filter(|f| !["help", "quiet", "verbose", "color"].contains(&f.get_id().as_str()));
        let shown = flags.filter(|f| !f.is_hide_set());
        let bare = shown.filter(|f| f.get_help_heading().is_none());
        let bare: Vec<_> = bare.map(clap::Arg::get_id).collect();
        assert!(bare.is_empty(), "without a group: {bare:?}");
    }

    #[test]
    fn short_help_is_one_screen_with_examples() {
        let mut command = group_commands(CommandLine::command());
        for name in LONG {
            let one = command.find_subcommand_mut(name).expect("it is there");
            let short = one.render_help().to_string();
            assert!(
                short.lines().count() <= 60,
                "{name}: {}\n{short}",
                short.lines().count()
            );
            assert!(
                one.render_long_help().to_string().len() > 2 * short.len(),
                "{name}"
            );
        }
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
        for one in visible.filter(|c| !["help", "clean"].contains(&c.get_name())) {
            let after = one.get_after_help().map(ToString::to_string);
            assert!(
                after.is_some_and(|text| text.starts_with("Examples:")),
                "{}",
                one.get_name()
            );
        }
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
