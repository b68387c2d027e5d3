//! The answer on a host with another number of CPUs: what changes there, and what keeps it as it was
//! measured.
//!
//! Owns the sentences, and which values the emitted files pin. The prediction is
//! `loadline_sizing::hotspot::node`'s.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::TrialRecord;
use loadline_sizing::hotspot::node::{ARENAS, HostChange, MeasuredContainer, predict_move};
use loadline_sizing::{Bytes, JavaVersion, JdkRelease, JvmOptionSet, OptionOrigin};

use super::groups;
use crate::format;
use crate::view::{ResultView, TargetNode};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePins {
    pub options: Vec<String>,
    pub arenas: Option<u32>,
    pub because: String,
}

pub fn pins(view: &ResultView) -> NodePins {
    let Some((node, Ok(moved))) = asked_node(view) else {
        return NodePins::default();
    };
    NodePins {
        options: moved.pins(),
        arenas: arenas(view, node, &moved),
        because: format!("as it was measured, also on a host with {} CPUs", node.cpus),
    }
}

pub fn node_sentences(view: &ResultView) -> Vec<String> {
    let Some(node) = &view.node else {
        return Vec::new();
    };
    let cpus = format::count_of(node.cpus as usize, "CPU");
    let on = format!("On a host with {cpus}");
    let moved = match asked_node(view) {
        Some((_, Ok(moved))) => moved,
        Some((_, Err(why))) => return vec![format!("{on} the JVM would not start: {why}.")],
        None => {
            return vec![format!(
                "{on} nothing is predicted: the records do not name a HotSpot JVM."
            )];
        }
    };
    let mut said = vec![differences(view, &moved, &on)];
    if let Some(why) = &moved.heap_follows_host {
        said.push(format!(
            "Its heap follows that host's memory, because {why}: the emitted files keep the {} it had here.",
            moved.here.heap.max
        ));
    }
    if let Some(arenas) = arenas(view, node, &moved) {
        said.push(format!(
            "glibc's malloc may make {} arenas there, whatever the limits, instead of {arenas}: the emitted image and manifests set {ARENAS}={arenas}.",
            moved.arenas.1
        ));
    }
    said
}

/// `On a host with 64 CPUs it sees 64 processors instead of 2: ...`
fn differences(view: &ResultView, moved: &HostChange, on: &str) -> String {
    let (here, there) = (&moved.here, &moved.there);
    let limit = view.recommendation.as_ref();
    let limit = limit.and_then(|r| r.configuration.cpu);
    if !moved.changes_processors() {
        let why = limit.map_or_else(
            || "its options decide".to_owned(),
            |cpu| format!("its CPU limit of {cpu} hides the host"),
        );
        let processors = format::count_of(here.machine.cpus as usize, "processor");
        return format!("{on} the JVM chooses the same: {why}, so it sees {processors}.");
    }
    let mut changes = Vec::new();
    let mut changed = |there: &dyn ToString, here: &dyn ToString, what: &str| {
        let (there, here) = (there.to_string(), here.to_string());
        if there != here {
            changes.push(format!("{there}{what} instead of {here}"));
        }
    };
    changed(&there.collector, &here.collector, "");
    let threads = |e: &loadline_sizing::hotspot::HotSpotErgonomics| {
        format!("{} + {}", e.gc_threads.parallel, e.gc_threads.concurrent)
    };
    changed(&threads(there), &threads(here), " collector threads");
    let compilers = (there.compilers.count, here.compilers.count);
    changed(&compilers.0, &compilers.1, " compiler threads");
    let pools = (there.common_pool, here.common_pool);
    changed(&pools.0, &pools.1, " threads of the common pool");
    changed(&there.heap.max, &here.heap.max, " of heap");
    let more = moved.more_gc_native();
    let native = if more > Bytes::from_mib(1) {
        format!(
            ", and up to {} more native memory of the collector",
            format::measured_bytes(more)
        )
    } else {
        String::new()
    };
    let why = match limit {
        Some(cpu) => format!("its CPU limit of {cpu} is more than it could use here"),
        None => "it has no CPU limit".to_owned(),
    };
    format!(
        "{on} the JVM sees {} instead of {}, because {why}: {}{native}. It was not measured so: the emitted files set {}.",
        format::count_of(there.machine.cpus as usize, "processor"),
        here.machine.cpus,
        changes.join(", "),
        moved.pins().join(" "),
    )
}

/// The limit on malloc arenas that keeps the measured number, if the host would allow more.
fn arenas(view: &ResultView, node: &TargetNode, moved: &HostChange) -> Option<u32> {
    let is_set = |r: &Recommendation| r.configuration.env.contains_key(ARENAS);
    let is_set = node.has_arenas || view.recommendation.as_ref().is_some_and(is_set);
    let (here, there) = moved.arenas;
    (!is_set && there > here).then_some(here)
}

fn asked_node(
    view: &ResultView,
) -> Option<(
    &TargetNode,
    Result<HostChange, loadline_sizing::hotspot::HotSpotRefusal>,
)> {
    let (node, answer) = (view.node.as_ref()?, view.recommendation.as_ref()?);
    let configuration = &answer.configuration;
    let group = groups::group_of(view, configuration)?;
    let trials = || group.trials.iter().copied();
    let jdk = |t: &TrialRecord| {
        let gc = t.evidence.gc.as_ref()?;
        gc.jdk.as_ref()?.parse::<JavaVersion>().ok()
    };
    let jdk = JdkRelease::for_hotspot(trials().find_map(jdk)?);
    let cpus = trials().find_map(|t| t.evidence.cgroup.cpus);
    let container = MeasuredContainer {
        memory: configuration.memory,
        host_memory: view.machine.memory.or(configuration.memory)?,
        cpu: configuration.cpu,
        shares: configuration.cpu_shares,
        cpus: cpus.unwrap_or(view.machine.cpus),
    };
    // As in trials: the configuration's stand before those of the command.
    let own = configuration.jvm_options.iter();
    let own = own.map(|o| (o.text.clone(), OptionOrigin::CommandLine));
    let given = node.options.option_texts();
    let given = given.map(|(text, from)| (text.to_owned(), from));
    let options = JvmOptionSet::merge(own.chain(given));
    Some((node, predict_move(jdk, &container, &options, node.cpus)))
}
