//! JVM options of a container: refused ones, and ones without the effect that was meant.
//!
//! Owns their rules. Facts: HotSpot rounds a CPU quota up to whole processors and takes as many GC
//! threads.

use loadline_sizing::hotspot;
use loadline_sizing::hotspot::collector::choose;
use loadline_sizing::hotspot::heap::{idle_percentage, size_heap};
use loadline_sizing::hotspot::refusal::HotSpotRefusal::{
    self, BadValue, ConcurrentAboveParallel, HeapTooSmall, InitialAboveMax, LockedFlag,
    TwoCollectors, UnknownFlag,
};
use loadline_sizing::hotspot::refusal::tiny_percentages;
use loadline_sizing::hotspot::threads::collector_threads;
use loadline_sizing::regions::heap::object_to_small;
use loadline_sizing::sight::{blind_places, without_container_support};
use loadline_sizing::{JavaVersion, JdkRelease, JvmOptionSet};

use super::amounts::heap_of;
use super::container::LintedContainer;
use super::{LintFinding, Severity, finding};

/// Where the JDK is not known, an option is an error only if both of these refuse it.
const USUAL_JDKS: [u32; 2] = [17, 25];

const HEAP_HINT: &str = "write -Xmx512m or -XX:MaxRAMPercentage=75.0";

pub(super) const SHARES: [&str; 3] = ["MaxRAMPercentage", "MinRAMPercentage", "MaxRAMFraction"];

/// Options that no JVM starts with, such as `-Xmx80%`. Which flags it knows depends on its version.
pub fn check_refused_options(container: &LintedContainer) -> Option<LintFinding> {
    let all = container.jvm.iter().chain(&container.long_options);
    let known = all.filter(|option| !option.contains(['$', '{']));
    let options = JvmOptionSet::from_words(known.cloned());
    let refused = match container.jdk {
        Some(jdk) => hotspot::predict(jdk, container.machine(), &options).err(),
        // Of an unknown JDK, what both the older and the newer one refuse.
        None => {
            let mut refused = USUAL_JDKS.map(|jdk| refused_by_any(container, jdk, options.clone()));
            let [first, last] = &mut refused;
            first.take().filter(|_| last.is_some())
        }
    }?;
    let parts = ["-Xm", "RAM", "HeapSize"];
    let is_heap = |option: &str| parts.iter().any(|part| option.contains(part));
    let hint = match &refused {
        UnknownFlag { .. } => "take it out, or name the image of a JDK that knows it",
        TwoCollectors { .. } => "keep one",
        BadValue { option, .. } if option.contains(char::is_whitespace) => {
            "quotes make a single option: take them out, or give each option its own entry"
        }
        BadValue { option, .. } if is_heap(option) => HEAP_HINT,
        HeapTooSmall { .. } | InitialAboveMax { .. } => HEAP_HINT,
        _ => "java ends at once, and the pod restarts for ever",
    };
    let problem = format!("the JVM does not start with these options: {refused}");
    Some(finding(Severity::Error, problem, hint))
}

/// What a JDK refuses, apart from what depends on its version.
fn refused_by_any(
    container: &LintedContainer,
    feature: u32,
    mut options: JvmOptionSet,
) -> Option<HotSpotRefusal> {
    let jdk = JdkRelease::for_hotspot(JavaVersion::from_feature(feature));
    let machine = container.machine();
    loop {
        let count = options.option_texts().count();
        let refused = hotspot::predict(jdk, machine, &options).err()?;
        let (UnknownFlag { option, .. } | LockedFlag { option, .. }) = &refused else {
            let by_threads = matches!(refused, ConcurrentAboveParallel { .. });
            return Some(refused).filter(|_| !by_threads);
        };
        let others = options.option_texts().filter(|(text, _)| text != option);
        let others: Vec<String> = others.map(|(text, _)| text.to_owned()).collect();
        options = JvmOptionSet::from_words(others);
        if options.option_texts().count() == count {
            return None;
        }
    }
}

/// Percentages that were meant as shares, `-XX:MaxRAMPercentage=0.75`, or that do not count there.
pub(super) fn check_shares(container: &LintedContainer) -> Vec<LintFinding> {
    let options = container.options();
    let all = tiny_percentages(&options).into_iter();
    let tiny = all.map(|(option, meant)| {
        let problem = format!("{option} is less than one percent of the memory");
        let hint = format!("it is a percentage: write {meant}");
        finding(Severity::Warning, problem, &hint)
    });
    let limit = container.sound_limit();
    let idle = limit.and_then(|limit| {
        let (idle, other) = idle_percentage(container.jdk(), limit, &options)?;
        let problem = format!("{idle} is not the share of the heap in a limit of {limit}");
        let hint = format!("the JVM takes {other} there: set that, or -Xmx");
        Some(finding(Severity::Warning, problem, &hint))
    });
    tiny.chain(idle).collect()
}

pub(super) fn check_small_heap(container: &LintedContainer) -> Option<LintFinding> {
    let options = container.options();
    options.setting("MaxHeapSize")?;
    let problem = object_to_small(heap_of(container, &options)?.max)?;
    Some(finding(Severity::Warning, problem, HEAP_HINT))
}

/// A JVM that does not look at the limit takes the node for its own.
pub(super) fn check_container_support(container: &LintedContainer) -> Option<LintFinding> {
    let options = container.options();
    let bounds = ["MaxHeapSize", "MaxRAM", "UseCGroupMemoryLimitForHeap"];
    let is_bounded = bounds.iter().any(|name| options.is_set(name));
    container.limits.memory.filter(|_| !is_bounded)?;
    let Some(why) = without_container_support(container.jdk(), &options) else {
        let mut places = blind_places(container.jdk(), &options).into_iter();
        let place = places.find(|place| place.contains("cgroup v2"))?;
        let hint = "take a newer JDK, or set -Xmx";
        return Some(finding(Severity::Warning, place, hint));
    };
    let hint = if options.is_set("UseContainerSupport") {
        "leave the option out, or set -Xmx"
    } else {
        "take a newer JDK, such as 8u372, or set -Xmx"
    };
    let problem = format!(
        "{why}: the JVM takes a share of the node's memory as its heap, whatever the limit is"
    );
    Some(finding(Severity::Error, problem, hint))
}

/// Heap options that overrule each other: `-Xmx` twice, or with a percentage, in any order (measured on
/// 17 and 25).
pub(super) fn heap_options(container: &LintedContainer) -> Option<LintFinding> {
    let named = |option: &&String, names: &[&str]| {
        let own = JvmOptionSet::from_words([option.as_str()]);
        names.iter().any(|name| own.is_set(name))
    };
    let heaps = container.jvm.iter().filter(|o| named(o, &["MaxHeapSize"]));
    let heaps: Vec<&String> = heaps.filter(|o| !o.contains('$')).collect();
    let share = container.jvm.iter().find(|o| named(o, &SHARES));
    let problem = match (heaps.as_slice(), share) {
        ([.., before, last], _) => {
            format!("the heap is set twice: {before}, then {last}; the last one counts")
        }
        ([heap], Some(share)) => {
            format!("{heap} and {share} are both set: the percentage is ignored")
        }
        _ => return None,
    };
    let hint = "keep one; a percentage follows the limit, -Xmx does not";
    Some(finding(Severity::Warning, problem, hint))
}

/// As `predict` has it: with one collector thread nothing runs in parallel.
pub(super) fn check_gc_threads(container: &LintedContainer) -> Option<LintFinding> {
    let cpu = container.limits.cpu?;
    let machine = container.machine();
    let options = container.options();
    let jdk = container.jdk();
    let collector = choose(jdk, machine, &options).ok()?;
    let heap = size_heap(jdk, machine, collector, &options).ok()?;
    let threads = collector_threads(jdk, machine, collector, heap.max, &options);
    let threads = threads.ok()?.parallel;
    let is_above = threads > 1 && u64::from(threads) * 1000 > u64::from(cpu.as_millis());
    let problem = format!(
        "the CPU limit is {cpu}: {collector} runs {threads} GC threads, which use up the quota and stop the application until the next period"
    );
    let hint = "set -XX:ParallelGCThreads to the whole CPUs of the limit, or give whole CPUs";
    is_above.then(|| finding(Severity::Warning, problem, hint))
}

pub(super) fn check_unseen(container: &LintedContainer) -> Option<LintFinding> {
    let problem = format!("not checked: {}", container.unseen.join(", "));
    let hint =
        "JVM options in it count too: give it with the manifest, such as by kubectl get -o yaml";
    (!container.unseen.is_empty()).then(|| finding(Severity::Note, problem, hint))
}
