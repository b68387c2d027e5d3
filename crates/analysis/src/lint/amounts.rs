//! Requests and limits of a container: amounts that are none, and memory that does not suffice.
//!
//! Owns their rules.

use loadline_sizing::compat::calculator::{CalculatorInput, Flavour, calculate_memory};
use loadline_sizing::hotspot::collector::choose;
use loadline_sizing::hotspot::heap::size_heap;
use loadline_sizing::hotspot::{CollectorKind, HotSpotHeap, MachineSize};
use loadline_sizing::regions::heap::check_container;
use loadline_sizing::{Bytes, Cpus, JvmOptionSet};

use super::container::{ContainerNeeds, ContainerResources, ImageHeap, LintedContainer, SMALLEST};
use super::options::SHARES;
use super::{LintFinding, MeasuredNeeds, Severity, finding};

/// From this number of CPUs on, thousandths were probably meant.
const MANY_CPUS: u32 = 100;

pub(super) fn check_quantities(container: &LintedContainer) -> impl Iterator<Item = LintFinding> {
    container.unreadable.iter().map(|text| {
        if text.contains(['$', '{']) {
            let problem = format!("{text} is a placeholder and was not checked");
            let hint = "fill it in first: envsubst < FILE | loadline lint -; of a Template: oc process -f FILE -p NAME=VALUE -o yaml | loadline lint -";
            return finding(Severity::Warning, problem, hint);
        }
        let problem = format!("{text} is no quantity, and the API server refuses it");
        let meant = meant_quantity(text).map(|meant| format!("did you mean {meant}?"));
        let usual = || "write 512Mi, 1Gi, 1G, 250m or 1.5".to_owned();
        finding(Severity::Error, problem, &meant.unwrap_or_else(usual))
    })
}

/// `limits.memory `512 mb`` means 512Mi.
fn meant_quantity(text: &str) -> Option<String> {
    let (place, rest) = text.split_once('`')?;
    let given = rest.strip_suffix('`')?;
    if place.contains("cpu") {
        let parsed = given.parse::<Cpus>().map(|cpu| cpu.to_string());
        parsed.map_or_else(|error| error.meant(), Some)
    } else {
        let parsed = given.parse::<Bytes>().map(|memory| memory.to_string());
        parsed.map_or_else(|error| error.meant(), Some)
    }
}

/// Amounts with a wrong suffix or none: `100m` of memory is a tenth of a byte, `1000` are as many CPUs.
pub(super) fn check_amounts(container: &LintedContainer) -> Vec<LintFinding> {
    let ContainerNeeds { requests, limits } = container.own_needs();
    let both = || [("limit", limits), ("request", requests)].into_iter();
    let tiny = |(kind, amount): (&str, ContainerResources)| {
        let bytes = amount.memory?.as_bytes();
        let plural = if bytes == 1 { "" } else { "s" };
        let hint =
            "a number without a unit is bytes, and m a thousandth of one: write 512Mi or 512M";
        let problem = format!("the memory {kind} is {bytes} byte{plural}: no JVM starts in it");
        (bytes < SMALLEST).then(|| finding(Severity::Error, problem, hint))
    };
    let huge = |(kind, amount): (&str, ContainerResources)| {
        let cpus = amount.cpu?.as_millis() / 1000;
        let problem = format!("the CPU {kind} is {cpus} CPUs, more than most nodes have");
        let hint = format!("if a thousandth of a CPU each was meant: write {cpus}m");
        (cpus >= MANY_CPUS).then(|| finding(Severity::Warning, problem, &hint))
    };
    let tiny = both().filter_map(tiny);
    tiny.chain(both().filter_map(huge)).collect()
}

/// What a JVM that ends before the service starts needs outside its heap at the least.
const SHORT_LIVED: Bytes = Bytes::from_mib(64);

pub fn over_commitment(
    container: &LintedContainer,
    measured: MeasuredNeeds,
) -> Option<LintFinding> {
    let limit = container.sound_limit()?;
    let machine = MachineSize {
        memory: limit,
        ..container.machine()
    };
    let jdk = container.jdk();
    let options = container.options();
    // The calculator leaves the heap what its own regions do not take.
    let is_chosen = options.is_set("MaxHeapSize") || options.is_set("MaxRAMPercentage");
    if container.calculator.is_some() && !is_chosen {
        return None;
    }
    let measured = measured.rest.or(container.rest);
    let least = Some(SHORT_LIVED).filter(|_| container.is_init);
    // What was measured had its files, too.
    let volumes = container
        .memory_volumes
        .iter()
        .filter(|_| measured.is_none());
    let volumes = volumes.filter_map(|volume| Some((volume, volume.most?)));
    let files = volumes.clone().map(|(_, most)| most);
    let files = files.fold(Bytes::default(), Bytes::saturating_add);
    let overrun = check_container(jdk, machine, &options, (measured.or(least), files))?;
    let mut hint = overrun.suggest_change();
    let mut whose = match (measured, least) {
        (Some(_), _) => "as it was measured, growth included".to_owned(),
        (None, Some(_)) => "at the least".to_owned(),
        (None, None) => {
            hint.push_str("; --measured RESULT takes the service's own");
            "for a typical service".to_owned()
        }
    };
    for (volume, most) in volumes {
        whose.push_str(&format!(
            ", with {most} of files in the emptyDir {}",
            volume.name
        ));
    }
    if let Some(ImageHeap { variable, options }) = container.image_heap {
        whose.push_str(&format!("; without {variable} the image takes {options}"));
    }
    let problem = format!("over-committed: {overrun} ({whose})");
    Some(finding(Severity::Error, problem, &hint))
}

/// Volumes in memory without a bound.
pub(super) fn check_volumes(container: &LintedContainer) -> impl Iterator<Item = LintFinding> {
    let volumes = container.memory_volumes.iter();
    volumes.filter(|volume| volume.most.is_none()).map(|volume| {
        let problem = format!(
            "the emptyDir {} is in memory and has no sizeLimit: its files count against the memory limit",
            volume.name
        );
        let hint = "set its sizeLimit, and leave as much of the limit to it";
        finding(Severity::Warning, problem, hint)
    })
}

/// What the calculator has where nothing limits the memory (paketo-buildpacks/libjvm).
const CALCULATED_MEMORY: Bytes = Bytes::from_gib(1);

/// Memory that Paketo's calculator cannot divide: the container ends before java starts.
pub(super) fn check_calculator(container: &LintedContainer) -> Option<LintFinding> {
    let settings = container.calculator?;
    let options = container.options();
    let input = CalculatorInput {
        total: container.limits.memory.unwrap_or(CALCULATED_MEMORY),
        classes: settings.classes,
        threads: settings.threads,
        headroom_percent: settings.headroom_percent,
        options: &options,
    };
    let refusal = calculate_memory(Flavour::Paketo, &input).err()?;
    let problem = format!("the image's memory calculator ends before java starts: {refusal}");
    let hint = "raise the limit, or lower what it counts: BPL_JVM_THREAD_COUNT, BPL_JVM_HEAD_ROOM, -XX:ReservedCodeCacheSize in JAVA_TOOL_OPTIONS";
    Some(finding(Severity::Error, problem, hint))
}

pub(super) fn check_memory_limit(container: &LintedContainer) -> Option<LintFinding> {
    let mut unreadable = container.unreadable.iter();
    let is_given = unreadable.any(|text| text.starts_with("limits.memory"));
    if container.limits.memory.is_some() || is_given {
        return None;
    }
    let options = container.options();
    let text = |name: &str| options.setting(name).map(|setting| setting.text.as_str());
    let share = SHARES.iter().find_map(|name| text(name));
    let bound = text("MaxHeapSize").or(text("MaxRAM"));
    let heap = match (bound, share) {
        (Some(heap), _) => format!("{heap} bounds the heap, and nothing bounds the rest"),
        (None, Some(share)) => format!("{share} is a share of the node's memory"),
        (None, None) if !container.unseen.is_empty() => {
            "whether an option bounds the heap is not to be seen here".to_owned()
        }
        (None, None) => "the JVM takes a quarter of the node's memory as its heap".to_owned(),
    };
    let may_be_bounded = bound.is_some() || share.is_none() && !container.unseen.is_empty();
    let severity = if may_be_bounded {
        Severity::Warning
    } else {
        Severity::Error
    };
    let hint = "set resources.limits.memory; `loadline size` finds it";
    Some(finding(severity, format!("no memory limit: {heap}"), hint))
}

pub(super) fn check_order(container: &LintedContainer) -> Vec<LintFinding> {
    let ContainerNeeds { requests, limits } = container.own_needs();
    let pod = container.pod.own.unwrap_or_default();
    let mut found = order_findings(("request", requests), ("the limit", limits));
    let request = ("request of the pod", pod.requests);
    found.extend(order_findings(request, ("its limit", pod.limits)));
    let bound = ("the limit of the pod", pod.limits);
    found.extend(order_findings(("limit", limits), bound));
    found
}

fn order_findings(
    (kind, amounts): (&str, ContainerResources),
    (bound, limits): (&str, ContainerResources),
) -> Vec<LintFinding> {
    let cpu = amounts.cpu.zip(limits.cpu).filter(|(a, l)| a > l);
    let cpu = cpu.map(|(a, l)| ("CPU", a.to_string(), l.to_string()));
    let memory = amounts.memory.zip(limits.memory).filter(|(a, l)| a > l);
    let memory = memory.map(|(a, l)| ("memory", a.to_short(), l.to_short()));
    let above = cpu.into_iter().chain(memory).map(|(what, amount, limit)| {
        let problem = format!(
            "the {what} {kind} {amount} is above {bound} {limit}: the API server refuses the pod"
        );
        let hint = format!("lower the {kind} to {bound}");
        finding(Severity::Error, problem, &hint)
    });
    above.collect()
}

pub(super) fn check_request(
    container: &LintedContainer,
    measured: MeasuredNeeds,
) -> Option<LintFinding> {
    let request = container.requests.memory?;
    let hint = "the scheduler counts on the request; on a full node it is the first to be evicted";
    let problem = match (measured.memory, initial_heap(container)) {
        (Some(used), _) if request < used => {
            format!("the memory request is {request}, but {used} were used when it was measured")
        }
        (None, Some((initial, option))) if request < initial => format!(
            "the memory request is {request}, less than the heap of {initial} it starts with ({option})"
        ),
        _ => return None,
    };
    Some(finding(Severity::Warning, problem, hint))
}

fn initial_heap(container: &LintedContainer) -> Option<(Bytes, String)> {
    let options = container.options();
    let setting = options.setting("InitialHeapSize");
    let setting = setting.or(options.setting("InitialRAMPercentage"));
    let setting = setting.or(options.setting("InitialRAMFraction"))?;
    let heap = heap_of(container, &options)?;
    Some((heap.initial, setting.text.clone()))
}

pub(super) fn heap_of(container: &LintedContainer, options: &JvmOptionSet) -> Option<HotSpotHeap> {
    let (jdk, machine) = (container.jdk(), container.machine());
    let collector = choose(jdk, machine, options).unwrap_or(CollectorKind::G1);
    size_heap(jdk, machine, collector, options).ok()
}
