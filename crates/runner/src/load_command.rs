//! The load command of a trial, or the command that drives a consumer: its words filled in, its program
//! found, its environment.
//!
//! Owns the placeholders of a command (`{url}`) and its extra variables (`LOADLINE_URL`). It
//! inherits the same variables as an application, and no more.

use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::Configuration;
use loadline_experiment::program::{inherited_variables, locate_for};
use loadline_load::{LoadModel, LoadTarget};
use loadline_protocol::{AppSpec, LoadCommandSpec, LoadPhase};
use loadline_sizing::Bytes;

use crate::error::RunError;
use crate::measurement::Measurement;

/// Memory for a tool on a JVM or Node, which uses a quarter as heap.
const MEMORY: Bytes = Bytes::from_gib(2);

/// A file in the command's own /tmp, which goes with the trial.
const RESULTS: &str = "/tmp/loadline-results";

/// The command counts from its own start or first request, phases from the first request seen: it
/// ends this much later.
const SPARE: Duration = Duration::from_secs(2);

/// Facts for a command: `{name}` in its words, `LOADLINE_NAME` in its environment.
struct CommandFacts {
    url: Option<LoadTarget>,
    rate: Option<f64>,
    duration: Duration,
}

impl CommandFacts {
    fn all(&self) -> Vec<(&'static str, &'static str, String)> {
        let seconds = self.duration.as_secs_f64().ceil().to_string();
        let mut all = vec![
            ("{duration_s}", "LOADLINE_DURATION_SECONDS", seconds),
            ("{results}", "LOADLINE_RESULTS", RESULTS.to_owned()),
        ];
        if let Some(url) = &self.url {
            all.push(("{url}", "LOADLINE_URL", url.to_string()));
            all.push(("{host}", "LOADLINE_HOST", url.host.clone()));
            all.push(("{port}", "LOADLINE_PORT", url.port.to_string()));
        }
        let rate = self.rate.map(|rate| rate.to_string());
        all.extend(rate.map(|rate| ("{rate}", "LOADLINE_RATE", rate)));
        all
    }

    fn fill_word(&self, word: &str) -> String {
        let all = self.all().into_iter();
        all.fold(word.to_owned(), |word, (name, _, value)| {
            word.replace(name, &value)
        })
    }

    fn environment_pairs(&self) -> impl Iterator<Item = (String, String)> {
        let all = self.all().into_iter();
        all.map(|(_, variable, value)| (variable.to_owned(), value))
    }
}

/// The load command of a trial with these phases; `None` where loadline makes the load.
pub(crate) fn load_command(
    of: &Measurement<'_>,
    configuration: &Configuration,
    phases: &[LoadPhase],
) -> Result<Option<LoadCommandSpec>, RunError> {
    let spec = &of.experiment.load.spec;
    match spec.url {
        Some(_) => locate_command(of, configuration, phases, ("load", &spec.command)),
        None => locate_command(of, configuration, phases, ("drive", &spec.drive)),
    }
}

/// The command that restores the backlog before this trial, if there is one.
pub(crate) fn backlog_command(
    of: &Measurement<'_>,
    configuration: &Configuration,
    phases: &[LoadPhase],
) -> Result<Option<LoadCommandSpec>, RunError> {
    let command = ("backlog", &of.experiment.load.spec.backlog);
    locate_command(of, configuration, phases, command)
}

fn locate_command(
    of: &Measurement<'_>,
    configuration: &Configuration,
    phases: &[LoadPhase],
    (name, command): (&str, &Vec<String>),
) -> Result<Option<LoadCommandSpec>, RunError> {
    let load = &of.experiment.load;
    let url = load.spec.url.as_ref();
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let models = phases.iter().map(|phase| &phase.plan.model);
    let lengths = models.filter_map(LoadModel::scheduled_duration);
    let facts = CommandFacts {
        url: url.cloned(),
        rate: configuration.rate.or(load.model.mean_rate()),
        duration: lengths.sum::<Duration>() + SPARE,
    };
    let directory = &of.experiment.app.directory;
    let whose = format!("the {name} command");
    let found = locate_for(&whose, &facts.fill_word(program), directory, of.places)?;
    let mut env = inherited_variables();
    // Tools keep files there; it is gone with the trial.
    env.insert("HOME".to_owned(), "/tmp".to_owned());
    env.extend(facts.environment_pairs());
    let found = found.to_string_lossy().into_owned();
    let words = arguments.iter().map(|word| facts.fill_word(word));
    Ok(Some(LoadCommandSpec {
        app: AppSpec::Command {
            command: std::iter::once(found).chain(words).collect(),
            env,
            directory: directory.clone(),
        },
        words: command.clone(),
        account: of.account,
        port: url.map(|url| url.port),
        may_end: of.experiment.slo.is_drained(),
        fails_with: of.experiment.slo.failing_exit(),
        first_request: of.experiment.app.start_deadline,
        memory: MEMORY,
    }))
}

pub(crate) fn command_files(command: &[String], directory: &std::path::Path) -> Vec<PathBuf> {
    let paths = command.iter().map(|word| directory.join(word));
    paths.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_command_is_told_where_how_fast_and_how_long() {
        let facts = CommandFacts {
            url: Some("http://localhost:8080/owners?page=1".parse().unwrap()),
            rate: Some(200.0),
            duration: Duration::from_millis(22_500),
        };
        let fill = |word| facts.fill_word(word);
        assert_eq!(fill("-rate={rate}/s"), "-rate=200/s");
        assert_eq!(fill("{host}:{port}"), "localhost:8080");
        assert_eq!(fill("-Jduration={duration_s}"), "-Jduration=23");
        // Other names in braces belong to the tool.
        assert_eq!(
            fill("{{url}} ${x} {users}"),
            "{http://localhost:8080/owners?page=1} ${x} {users}"
        );
        let variables: BTreeMap<_, _> = facts.environment_pairs().collect();
        let text: Vec<_> = variables.iter().map(|(k, v)| format!("{k}={v}")).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        LOADLINE_DURATION_SECONDS=23
        LOADLINE_HOST=localhost
        LOADLINE_PORT=8080
        LOADLINE_RATE=200
        LOADLINE_RESULTS=/tmp/loadline-results
        LOADLINE_URL=http://localhost:8080/owners?page=1
        ");
    }
}
