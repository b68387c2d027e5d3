//! The parts of an experiment that go to a cluster, and refusals of local ones.
//!
//! Owns the rule: the text goes, with every profile and price list that is part of it, and the
//! values of its variables go as a Secret. Files that trials read while they run stay here.

use std::collections::{BTreeMap, BTreeSet};

use loadline_experiment::ClusterSettings;
use loadline_runner::store::AwayLocation;
use toml::Value;

use crate::error::Error;
use crate::experiment::LoadedExperiment;
use crate::measuring::MeasureFlags;
use crate::notify;
use crate::output::OutputFlags;

const NOTIFY: &str = "LOADLINE_NOTIFY";

pub(super) const OF_FILES: [&str; 3] = ["{file:", "{compose:", "{env-file:"];

pub fn checked_cluster(
    given: &LoadedExperiment,
    flags: &MeasureFlags,
    output: &OutputFlags,
) -> Result<ClusterSettings, Error> {
    let Some(cluster) = &given.experiment.cluster else {
        return Err(Error::usage(
            "--in-cluster: its trials run on this machine, so loadline must too",
        )
        .with_hint("run them as pods: --kubernetes"));
    };
    if flags.reuse {
        return Err(
            Error::usage("--in-cluster and --reuse: earlier results are on this machine")
                .with_hint("leave one out"),
        );
    }
    if output.report.is_some() || output.json {
        return Err(
            Error::usage("--in-cluster: this returns before there is a result")
                .with_hint("pass --report and --json to `loadline resume`, which fetches it"),
        );
    }
    let dependencies = given.experiment.dependencies.len() + given.experiment.stubs.len();
    if dependencies > 0 {
        return Err(Error::usage(
            "--in-cluster: trials as pods cannot have dependencies or stubs yet",
        )
        .with_hint("measure on this machine, without --kubernetes"));
    }
    Ok(cluster.clone())
}

/// The values of the variables that the experiment refers to.
/// Errors: One that is not set, and whatever it reads from files of this machine.
pub fn variables(given: &LoadedExperiment) -> Result<BTreeMap<String, String>, Error> {
    if let Some(file) = given.experiment.load.spec.content_files().first() {
        return Err(Error::usage(format!(
            "--in-cluster: the load reads the file {} of this machine while it runs",
            file.display()
        ))
        .with_hint("only a profile and an inline body are sent along: --body TEXT"));
    }
    let spec = &given.experiment.load.spec;
    let mut credentials = [&spec.basic, &spec.bearer].into_iter().flatten();
    if let Some(file) = credentials.find(|text| text.starts_with('@')) {
        return Err(Error::usage(format!(
            "--in-cluster: the load reads a credential from a file of this machine: {file}"
        ))
        .with_hint("use a variable, which is sent along: {env:NAME}"));
    }
    if !given.experiment.app.volumes.is_empty() {
        return Err(Error::usage(
            "--in-cluster: trials as pods cannot mount volumes of this machine",
        )
        .with_hint(
            "measure on this machine, without --kubernetes; or put the files into the image",
        ));
    }
    let parsed = given.text.parse::<toml::Table>();
    let table = parsed.map_err(Error::internal)?;
    let mut texts = BTreeSet::new();
    strings(&Value::Table(table), &mut texts);
    let mut all = BTreeMap::new();
    for text in &texts {
        let of_file = OF_FILES.iter().find(|kind| text.contains(**kind));
        if of_file.is_some() || text.starts_with("@/") {
            return Err(Error::usage(format!(
                "--in-cluster: the experiment refers to a file of this machine: {text}"
            ))
            .with_hint("use a variable, which is sent along: --env NAME, or {env:NAME}"));
        }
        for name in variable_names(text) {
            let value = std::env::var(name).map_err(|_| {
                Error::usage(format!(
                    "the experiment refers to the variable `{name}`, which is not set"
                ))
                .with_hint("set it in loadline's environment; it is sent along as a Secret")
            })?;
            all.insert(name.to_owned(), value);
        }
    }
    Ok(all)
}

pub(super) fn strings(of: &Value, to: &mut BTreeSet<String>) {
    match of {
        Value::String(text) => {
            to.insert(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|value| strings(value, to)),
        Value::Table(table) => table.values().for_each(|value| strings(value, to)),
        _ => {}
    }
}

pub(super) fn variable_names(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("{env:").skip(1);
    behind.filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// The remote form of `--notify`: its address goes along as a variable. Errors: Its source cannot
/// be read.
pub fn notify(text: &str, variables: &mut BTreeMap<String, String>) -> Result<String, Error> {
    variables.insert(NOTIFY.to_owned(), notify::address(text)?);
    Ok(format!("{{env:{NOTIFY}}}"))
}

pub fn placed_text(given: &mut LoadedExperiment, place: &AwayLocation) -> Result<String, Error> {
    let table = given.file.kubernetes.get_or_insert_default();
    table.context = Some(place.context.clone());
    table.namespace = Some(place.namespace.clone());
    // An image is called in no directory.
    given.file.app.directory = None;
    let text = given.file.to_toml();
    text.map_err(|e| Error::internal(format!("the experiment cannot be written: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_of_a_text_is_found() {
        let all = |text: &str| variable_names(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(all("x{env:A}y{env:B}"), ["A", "B"]);
        assert_eq!(all("{env:A"), [""; 0]);
        assert_eq!(all("plain {file:/a}"), [""; 0]);
    }

    #[test]
    fn texts_are_found_wherever_they_stand() {
        let table: toml::Table = "a = 'x'\n[b]\nc = ['y', { d = 'z' }]\ne = 1"
            .parse()
            .expect("a table");
        let mut all = BTreeSet::new();
        strings(&Value::Table(table), &mut all);
        assert_eq!(Vec::from_iter(all), ["x", "y", "z"]);
    }

    #[test]
    fn the_address_of_a_webhook_goes_as_a_variable() {
        let mut variables = BTreeMap::new();
        let flag = notify("https://hooks.example/secret", &mut variables).expect("an address");
        assert_eq!(flag, "{env:LOADLINE_NOTIFY}");
        assert_eq!(variables[NOTIFY], "https://hooks.example/secret");
    }
}
