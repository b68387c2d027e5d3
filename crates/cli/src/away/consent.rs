//! The question before anything from a cluster runs.
//!
//! Owns the prompt: which images run, where, under which service account, and which variables of
//! this environment they get. Nothing is pulled, made or read before the answer.

use std::io::{IsTerminal, stderr, stdin};
use std::path::Path;

use clap::Args;
use loadline_experiment::{ClusterSettings, Experiment};
use loadline_kubernetes::workload;
use loadline_report::text::one_line;
use loadline_runner::store::{ResultRow, Store};

use super::arriving::referenced_variables;
use crate::error::Error;
use crate::images;
use crate::measuring::{experiment_of, open_store};
use crate::say::write_stderr;

/// The answer, given before the question.
#[derive(Args, Debug, Default, Clone, Copy)]
pub struct ConsentFlags {
    /// Run a result that came from a cluster without asking; its image, namespace and service
    /// account are still shown
    #[arg(long)]
    pub yes: bool,
}

/// Asks before running a result with an experiment from a cluster, and stores the answer. Local
/// results need no confirmation. Errors: The user says no, or there is no terminal and no `--yes`;
/// the store; a workload that cannot be read.
pub fn confirm_run(store: &Store, row: &ResultRow, flags: ConsentFlags) -> Result<(), Error> {
    let confirmed = store.is_confirmed(&row.id);
    let Some(is_confirmed) = confirmed? else {
        return Ok(());
    };
    let experiment = experiment_of(row)?;
    let none = "an experiment that came from a cluster names none";
    let cluster = experiment.cluster.as_ref();
    let cluster = cluster.ok_or_else(|| Error::internal(none))?;
    say!("the experiment of this result came from the cluster. It runs:");
    for (what, value) in lines_to_show(&experiment, cluster, row)? {
        say!("  {what:<17} {}", one_line(&value));
    }
    if is_confirmed {
        return Ok(());
    }
    ask_user(flags)?;
    store.set_confirmed(&row.id).map_err(Error::from)
}

/// The same for a command that reads a result and starts a new one with its experiment; opens its
/// store for writing only if it must ask.
pub fn confirm_experiment(
    reading: &Store,
    row: &ResultRow,
    (state, flags): (Option<&Path>, ConsentFlags),
) -> Result<(), Error> {
    let confirmed = reading.is_confirmed(&row.id);
    match confirmed? {
        Some(false) => confirm_run(&open_store(state)?, row, flags),
        Some(true) | None => confirm_run(reading, row, flags),
    }
}

fn lines_to_show(
    experiment: &Experiment,
    cluster: &ClusterSettings,
    row: &ResultRow,
) -> Result<Vec<(&'static str, String)>, Error> {
    let or_default = |text: &Option<String>| text.clone().unwrap_or_else(|| "default".to_owned());
    let namespace = or_default(&cluster.namespace);
    let context = or_default(&cluster.context);
    let mut all = vec![
        ("image", images::only_image(experiment)?),
        ("loadline's image", cluster.trial_image.clone()),
        ("namespace", format!("{namespace} (context {context})")),
    ];
    all.extend(account_of_pods(cluster)?);
    let variables = referenced_variables(&row.experiment)?;
    if !variables.is_empty() {
        let text = format!("{}, read from this environment", variables.join(", "));
        all.push(("variables", text));
    }
    Ok(all)
}

fn account_of_pods(cluster: &ClusterSettings) -> Result<Vec<(&'static str, String)>, Error> {
    let account = "service account";
    let Some(from) = &cluster.from else {
        return Ok(vec![(account, "default, without a token".to_owned())]);
    };
    let name: workload::WorkloadName = from.workload.parse().map_err(|why: String| {
        Error::environment(one_line(&why)).with_hint(
            "the experiment in the cluster names no workload that can be read: start a new result",
        )
    })?;
    let object = workload::read(cluster, &name)?;
    let template = workload::extract_template(&name, &object, &from.container)?;
    let own = template.pod.get("serviceAccountName");
    let own = own.and_then(|name| name.as_str()).unwrap_or("default");
    let mut all = vec![(account, format!("{own}, as in {name}"))];
    let before = template.before.iter();
    let images = before.filter_map(|c| c.get("image")?.as_str());
    all.extend(images.map(|image| ("init container", image.to_owned())));
    let access = template.production_access();
    all.extend(access.into_iter().map(|what| ("of production", what)));
    Ok(all)
}

/// Asks on a terminal; elsewhere `--yes` is the answer.
fn ask_user(flags: ConsentFlags) -> Result<(), Error> {
    if flags.yes {
        return Ok(());
    }
    if !stdin().is_terminal() || !stderr().is_terminal() {
        let problem =
            "an experiment from a cluster needs confirmation, and there is no terminal to ask on";
        return Err(Error::usage(problem)
            .with_hint("if the lines above are as expected, repeat the command with --yes"));
    }
    write_stderr(format_args!("run it? [y/N] "));
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.map_err(Error::environment)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Error::usage("not confirmed: nothing was run")
            .with_hint("the Job in the cluster is unchanged; `kubectl describe job` shows more")),
    }
}
