//! Where a result was measured: the machine, or the cluster and its nodes, and how they held limits.
//!
//! Owns the sentence. Everything in it comes from the record of the machine and of the trials' nodes.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analysis::record::{
    EnforcedLimits, ImageIdentity, LoadCommandEvidence, LoadFrom, MachineDescription,
    ObservedModel, TrialRecord,
};

use crate::content::groups::ConfigurationNames;
use crate::figures::unique;
use crate::view::ResultView;
use crate::{format, text};

fn nodes(view: &ResultView, looked: &str) -> String {
    let of_trials = view.trials.iter().filter_map(|t| t.evidence.node.as_ref());
    let mut names: BTreeSet<&str> = of_trials.map(|node| node.name.as_str()).collect();
    if names.is_empty() {
        names.insert(looked);
    }
    match names.len() {
        1 => format!("node {}", names.into_iter().collect::<String>()),
        2..=4 => format!("nodes {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        count => format!("{count} nodes"),
    }
}

fn limits_held(view: &ResultView) -> Option<String> {
    let first = view.machine.first_node();
    let of_trials = view.trials.iter().filter_map(|t| t.evidence.node.as_ref());
    let looked: BTreeMap<&str, &EnforcedLimits> = of_trials
        .chain(&first)
        .filter_map(|node| Some((node.name.as_str(), node.enforced.as_ref()?)))
        .collect();
    let seen = looked.values();
    let periods = seen.clone().filter_map(|e| e.throttled_periods).min();
    let code = seen.map(|e| e.memory_exit_code).max()?;
    let throttled = match periods.map(|least| format::count_of(least as usize, "period")) {
        Some(periods) => format!("was throttled ({periods})"),
        None => "got no more than its limit".to_owned(),
    };
    let nodes = match looked.len() {
        1 => "on its node".to_owned(),
        nodes => format!("on each of {nodes} nodes"),
    };
    Some(format!(
        "Before the first trial, {nodes}, a container above its CPU limit {throttled}, and one above its memory limit was killed (exit code {code})."
    ))
}

/// Where the load came from, in a cluster; old records do not have it.
fn load_from(view: &ResultView) -> Option<String> {
    let loads = view.trials.iter().flat_map(|t| &t.evidence.load);
    let loads: Vec<&LoadFrom> = loads.filter_map(|load| load.load_from.as_ref()).collect();
    let all: Vec<_> = loads
        .iter()
        .filter_map(|from| match from {
            LoadFrom::Generators { generators } => Some(generators),
            LoadFrom::OwnPod | LoadFrom::Command { .. } => None,
        })
        .collect();
    let is_command = |from: &&LoadFrom| matches!(from, LoadFrom::Command { .. });
    if loads.iter().any(is_command) {
        return None;
    }
    let Some(each) = all.iter().map(|generators| generators.len()).max() else {
        let own =
            "The load came from loadline's container in the pod of each trial, over localhost.";
        return (!loads.is_empty()).then(|| own.to_owned());
    };
    let single = || all.iter().copied().flatten();
    let names: BTreeSet<&str> = single().map(|g| g.node.as_str()).collect();
    let nodes = match names.len() {
        1..=4 => names.iter().copied().collect::<Vec<_>>().join(", "),
        count => format!("{count} nodes"),
    };
    let of_trials = view.trials.iter().filter_map(|t| t.evidence.node.as_ref());
    let mut shared = of_trials.filter(|node| names.contains(node.name.as_str()));
    let apart = match shared.next() {
        None => "none of them with a trial",
        Some(_) => "also with trials, whose CPU they took",
    };
    let error = single().map(|g| g.offset_error).max().unwrap_or_default();
    let lag = single().map(|g| g.send_lag_p99).max().unwrap_or_default();
    Some(format!(
        "The load of each trial came from {} on {nodes}, {apart}: 99 % of the requests of each left at most {} late, and their clocks were known to {}.",
        format::count_of(each, "generator pod"),
        format::measured_time(lag),
        format::measured_time(error),
    ))
}

/// Who made the load, if a command did, and whether it waits for answers.
pub(super) fn load_command_sentence(view: &ResultView) -> Option<String> {
    let loads = view.trials.iter().flat_map(|t| &t.evidence.load);
    let commands = loads.filter_map(|load| match load.load_from.as_ref()? {
        LoadFrom::Command { command } => Some(command.as_ref()),
        LoadFrom::Generators { .. } | LoadFrom::OwnPod => None,
    });
    let all = commands.cloned().reduce(|sum, next| LoadCommandEvidence {
        stalled: sum.stalled + next.stalled,
        arrived_in_stalls: sum.arrived_in_stalls + next.arrived_in_stalls,
        expected_in_stalls: sum.expected_in_stalls + next.expected_in_stalls,
        cpu_wait: Some(sum.cpu_wait.unwrap_or_default() + next.cpu_wait.unwrap_or_default()),
        ..sum
    })?;
    let stalls = format!(
        "while the service answered nothing ({} in all), {} of {:.0} expected requests came",
        format::measured_time(all.stalled),
        all.arrived_in_stalls,
        all.expected_in_stalls
    );
    let model = match all.observed_model() {
        ObservedModel::NoStall => {
            "The service did not stall, so it does not matter whether the command waits for answers"
                .to_owned()
        }
        ObservedModel::Open => format!("Its load is open: {stalls}"),
        ObservedModel::Closed => format!(
            "Its load is closed: {stalls}, so these percentiles leave out most of what users would have waited"
        ),
        ObservedModel::Unclear => format!("Whether it waits for answers is not clear: {stalls}"),
    };
    Some(format!(
        "The load was made by `{}` and timed by loadline before the service; when it meant to send is not measured. {model}.",
        text::label(&all.words.join(" "))
    ))
}

/// How many trials ran in the shipped pod layout.
fn as_shipped(view: &ResultView) -> Option<String> {
    let count = view.trials.iter().filter(|t| t.evidence.as_shipped).count();
    (count > 0).then(|| {
        format!(
            "{} ran as shipped, without the PID namespace that the containers of the others shared: its CPU, memory and throttling were not counted.",
            format::count_of(count, "trial")
        )
    })
}

fn image_words(view: &ResultView, image: &ImageIdentity) -> String {
    let name = image.pinned.as_ref().unwrap_or(&image.reference);
    let runs = |trial: &&TrialRecord| {
        let other = trial.configuration.application.as_ref();
        other.is_some_and(|other| other.image.as_ref() == Some(&image.reference))
    };
    let names = ConfigurationNames::for_result(view);
    let labels = view.trials.iter().filter(runs);
    let labels: BTreeSet<&str> = labels
        .filter_map(|trial| names.label(&trial.configuration))
        .collect();
    let of = match labels.len() {
        0 => String::new(),
        _ => format!(" ({})", labels.into_iter().collect::<Vec<_>>().join(", ")),
    };
    format!("; image {name}{of}, started by {}", image.engine)
}

pub(super) fn measured_where(view: &ResultView) -> String {
    let MachineDescription {
        kernel,
        cpu_model,
        cpus,
        memory,
        cgroup,
        architecture: _,
        jdks,
        loadline,
        image,
        level_images,
        cluster,
        apart,
        version: _,
    } = &view.machine;
    let version = view.machine.version_in_words();
    let version = version.map_or_else(String::new, |v| format!("; version {}", text::label(&v)));
    let when = view.trials.iter().map(|t| t.started_at_unix_ms).min();
    let when = when.map_or_else(String::new, |ms| format!(", {}", format::date(ms)));
    let memory = memory.map_or_else(String::new, |m| format!(", {}", format::measured_bytes(m)));
    let jdks = if jdks.is_empty() {
        String::new()
    } else {
        format!("; JDK {}", jdks.join(", "))
    };
    // A level may name the image of the application once more.
    let images = image.iter().chain(level_images);
    let image = unique(images.map(|image| image_words(view, image))).concat();
    let cluster = cluster.as_ref().map_or_else(String::new, |cluster| {
        let (context, version, runtime) = (&cluster.context, &cluster.version, &cluster.runtime);
        let at_once = match cluster.slots.get() {
            1 => String::new(),
            slots => format!(", {slots} at once"),
        };
        let nodes = nodes(view, &cluster.node);
        let class = cluster.runtime_class.as_ref();
        let class = class.map_or_else(String::new, |name| {
            format!(", runtime class {}", text::label(name))
        });
        let os = cluster.os.as_ref();
        let os = os.map_or_else(String::new, |os| format!(", {}", text::label(os)));
        format!(
            "as pods of the cluster {context} ({version}, {runtime}{class}{os}){at_once}, {nodes}: "
        )
    });
    let apart = apart.as_ref().map_or_else(String::new, |why| {
        format!(
            "; from a container next to the application's, because of the engine: {}",
            text::label(why)
        )
    });
    let sentences = limits_held(view).into_iter().chain(load_from(view));
    let sentences = sentences.chain(as_shipped(view));
    let sentences: String = sentences.map(|said| format!(" {said}")).collect();
    format!(
        "Measured by {} in {}{when}, {cluster}on {} of {cpu_model}{memory}, {kernel}, cgroup {cgroup}{jdks}{image}{apart}{version}; loadline {loadline}.{sentences}",
        format::count_of(view.trials.len(), "trial"),
        format::elapsed(view.elapsed()),
        format::count_of(*cpus as usize, "CPU"),
    )
}
