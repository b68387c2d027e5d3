//! Notable facts in a log, in words: the observation, and the remedy.
//!
//! Owns the rules and their thresholds. A rule describes the log, never its possible meaning
//! elsewhere.

use loadline_sizing::hotspot::CollectorKind;
use loadline_sizing::openj9::GcPolicy;
use schemars::JsonSchema;
use serde::Serialize;

use super::GarbageCollector;
use super::log::GcLog;

/// Share of the pauses over 20 ms from which starved ones are worth a word, and how many at least.
const STARVED_SHARE: f64 = 0.10;
const STARVED_COUNT: u64 = 3;

/// A heap that is fuller than this after a full collection has no room to work.
const TIGHT_SHARE: f64 = 0.85;

/// Time to safepoint is worth a word when its longest is above this, in seconds.
const REACHING_SECONDS: f64 = 0.050;

/// A pause of this many seconds is longer than most clients and probes wait.
const LONG_SECONDS: f64 = 1.0;
const PAUSED_SHARE: f64 = 0.10;

/// Beginnings of causes of full collections that were requested, or that concern other memory than
/// the heap's (openjdk/jdk:src/hotspot/share/gc/shared/gcCause.cpp; of OpenJ9 omr
/// gc/base/gcutils.cpp).
const NOT_FOR_ROOM: &str = "explicit not aggressive|native out of memory|rasdump|vm idle|\
    prepare for checkpoint GC|System.gc()|Diagnostic Command|Heap Dump Initiated GC|\
    Heap Inspection Initiated GC|JvmtiEnv ForceGarbageCollection|WhiteBox Initiated|FullGCAlot|\
    ScavengeAlot|Allocation Profiler|GCLocker Initiated GC|G1 Periodic Collection|Metadata GC|\
    Last ditch collection|Permanent Generation Full|Codecache GC|CodeCache GC";

/// A rule that spoke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GcFinding {
    /// Which one; stable.
    pub code: FindingCode,
    /// The observation and the remedy, one or two sentences.
    pub text: String,
}

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The log is not whole.
    Incomplete,
    /// The collector writes sums of its pauses, which are not read.
    SumsOnly,
    /// GC threads waited for a CPU.
    StarvedGcThreads,
    /// The heap is full after a full collection, or collections failed for room.
    HeapTooTight,
    /// Threads waited for memory.
    AllocationStall,
    /// A concurrent collector had to stop the application to finish.
    Degenerated,
    /// Objects could not be copied.
    EvacuationFailure,
    /// Objects larger than half a region.
    Humongous,
    /// Class metadata made collections happen.
    Metaspace,
    /// The application asked for collections.
    SystemGc,
    /// Threads were slow to stop.
    TimeToSafepoint,
    /// Much of the time went to pauses.
    TimePaused,
    /// One pause was longer than most clients wait.
    LongPause,
    /// The log has no lines of the pauses that happened.
    PausesNotLogged,
}

type Rule = fn(&GcLog) -> Option<String>;

pub(super) fn all_findings(log: &GcLog) -> Vec<GcFinding> {
    let rules: [(FindingCode, Rule); 14] = [
        (FindingCode::Incomplete, incomplete_log),
        (FindingCode::SumsOnly, sums_only),
        (FindingCode::PausesNotLogged, pauses_not_logged),
        (FindingCode::LongPause, long_pause),
        (FindingCode::HeapTooTight, heap_too_tight),
        (FindingCode::StarvedGcThreads, starved_collector),
        (FindingCode::AllocationStall, stalls),
        (FindingCode::Degenerated, degenerated_collections),
        (FindingCode::EvacuationFailure, evacuation_failure),
        (FindingCode::Humongous, humongous_allocations),
        (FindingCode::Metaspace, metaspace),
        (FindingCode::SystemGc, system_gc),
        (FindingCode::TimeToSafepoint, time_to_safepoint),
        (FindingCode::TimePaused, time_paused),
    ];
    let finding =
        |(code, rule): (FindingCode, Rule)| rule(log).map(|text| GcFinding { code, text });
    rules.into_iter().filter_map(finding).collect()
}

/// `1 collection`, `2 collections`.
pub(super) fn count_noun(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

fn incomplete_log(log: &GcLog) -> Option<String> {
    let input = &log.input;
    let mut parts = Vec::new();
    if let Some(first) = input.first_collection {
        parts.push(format!("it begins with collection {first}"));
    }
    if input.missing_collections > 0 {
        let missing = count_noun(input.missing_collections, "collection");
        parts.push(format!("{missing} in between are not in it"));
    }
    if input.unfinished_pauses > 0 {
        let pauses = count_noun(input.unfinished_pauses, "pause");
        parts.push(format!("{pauses} began and did not end"));
    }
    if input.dropped_lines > 0 {
        let lines = count_noun(input.dropped_lines, "line");
        parts.push(format!("the JVM dropped {lines}"));
    }
    if input.counts.too_long > 0 {
        let lines = count_noun(input.counts.too_long, "line");
        parts.push(format!("{lines} over 64 KiB left out"));
    }
    if input.counts.is_cut {
        parts.push("its last line has no end and may be cut".to_owned());
    }
    if let Some(why) = &input.stopped {
        let bytes = input.counts.bytes;
        parts.push(format!("reading stopped after {bytes} bytes: {why}"));
    }
    (!parts.is_empty()).then(|| {
        let parts = parts.join("; ");
        format!("The log is not whole: {parts}. Counts and sums are of what is there.")
    })
}

/// With `-Xlog:gc` alone ZGC and Shenandoah write a line for each cycle, and none for its pauses.
fn pauses_not_logged(log: &GcLog) -> Option<String> {
    let (summary, input) = (&log.summary, &log.input);
    let is_silent = summary.stw.count == 0 && summary.safepoints.iter().next().is_none();
    let has_cycles = summary.heap_before_max.is_some()
        || input.first_collection.is_some()
        || input.missing_collections > 0;
    let concurrent = [CollectorKind::Z, CollectorKind::Shenandoah];
    let concurrent = concurrent.map(GarbageCollector::HotSpot);
    let collector = log.header.collector;
    let is_concurrent = collector.is_none_or(|collector| concurrent.contains(&collector));
    (is_silent && has_cycles && is_concurrent).then(|| {
        "The log cannot show pauses: it has the collector's cycles and no line of a pause. That it \
         counts none says nothing; log with -Xlog:gc*,safepoint."
            .to_owned()
    })
}

fn long_pause(log: &GcLog) -> Option<String> {
    let stops = log.summary.safepoints.iter().map(|(_, tally)| tally.max);
    let longest = stops.fold(log.summary.stw.max, std::cmp::max).as_secs_f64();
    (longest >= LONG_SECONDS).then(|| {
        let mut causes = log.summary.by_name.keys().filter_map(|name| name.cause.as_deref());
        let failed = causes.any(|cause| cause.eq_ignore_ascii_case("concurrent mode failure"));
        let why = if failed {
            " A concurrent collection came too late for the old generation (concurrent mode failure): more heap, an earlier start (-XX:CMSInitiatingOccupancyFraction), or another collector."
        } else {
            " A full collection, swapping or a starved CPU does that: look at its kind and at GC CPU above."
        };
        format!("The application stood still for {longest:.1} s at once.{why}")
    })
}

/// Metronome's heartbeats: minimum, maximum and mean of the slices since the last one.
fn sums_only(log: &GcLog) -> Option<String> {
    let metronome = GarbageCollector::OpenJ9(GcPolicy::Metronome);
    let is_metronome = log.header.collector == Some(metronome);
    is_metronome.then(|| {
        "The pauses of metronome are not read: it writes sums of its slices, and no slice. What \
         is here of them is not all; measure with another policy."
            .to_owned()
    })
}

/// Whether a full collection with this cause says nothing about room in the heap. All others do:
/// each collector and JDK has its own words for that, some none.
fn is_not_for_room(cause: &str) -> bool {
    let mut begins = NOT_FOR_ROOM.split('|');
    begins.any(|begin| cause.starts_with(begin))
}

fn heap_too_tight(log: &GcLog) -> Option<String> {
    let summary = &log.summary;
    let forced = summary.count_where(|name| {
        name.is_full_collection() && !name.cause.as_deref().is_some_and(is_not_for_room)
    });
    let size = log.header.heap_max_bytes.or(summary.heap_committed_max)?;
    let after = summary.heap_after_full_max?;
    let is_tight = after as f64 > TIGHT_SHARE * size as f64;
    (is_tight && forced > 0).then(|| {
        format!(
            "The heap is too tight: up to {} of {} were in use after a full collection, and {} \
             ran because there was no room. Raise -Xmx or keep less.",
            mib(after),
            mib(size),
            count_noun(forced, "full collection"),
        )
    })
}

fn starved_collector(log: &GcLog) -> Option<String> {
    let summary = &log.summary;
    let enough = summary.starved >= STARVED_COUNT
        && summary.starved as f64 >= STARVED_SHARE * summary.long_with_cpu as f64;
    enough.then(|| {
        format!(
            "GC threads were starved of CPU in {} of {} over 20 ms: a CPU quota, neighbours, or \
             more GC threads than CPUs. `loadline explain` tells throttling apart.",
            summary.starved,
            count_noun(summary.long_with_cpu, "pause"),
        )
    })
}

fn stalls(log: &GcLog) -> Option<String> {
    let stalls = log.summary.stalls.iter();
    let stalls = stalls.filter(|(name, _)| *name != "Pacing");
    let mut all = super::DurationTally::default();
    stalls.for_each(|(_, tally)| all.merge(tally));
    (all.count > 0).then(|| {
        format!(
            "Threads waited for memory {} ({:.3} s in all, longest {:.3} s): the collector could \
             not keep up. More heap, more CPU, or fewer allocations.",
            count_noun(all.count, "time"),
            all.total.as_secs_f64(),
            all.max.as_secs_f64(),
        )
    })
}

fn degenerated_collections(log: &GcLog) -> Option<String> {
    let summary = &log.summary;
    let number = summary.count_where(|name| name.kind.starts_with("Degenerated"));
    (number > 0).then(|| {
        format!(
            "{} degenerated: the application allocated faster than the collector freed, so it \
             was stopped. More heap, or more CPU for the concurrent threads.",
            count_noun(number, "collection")
        )
    })
}

fn evacuation_failure(log: &GcLog) -> Option<String> {
    let number = log.summary.evacuation_failures;
    (number > 0).then(|| {
        let lever = if log.header.is_openj9 {
            "-Xmx or -Xmn"
        } else {
            "-Xmx or -XX:G1ReservePercent"
        };
        format!(
            "{} found no room to copy live objects (evacuation failure, to-space exhausted), \
             which makes pauses long. Raise {lever}.",
            count_noun(number, "collection")
        )
    })
}

fn humongous_allocations(log: &GcLog) -> Option<String> {
    let number = log.summary.count_of_cause("G1 Humongous Allocation");
    (number > 0).then(|| {
        let region = match log.header.machine.region_bytes {
            Some(bytes) => format!(" (regions have {})", mib(bytes)),
            None => String::new(),
        };
        format!(
            "{} ran because of humongous allocations, objects of half a region or more{region}. \
             Larger regions (-XX:G1HeapRegionSize) or smaller arrays.",
            count_noun(number, "collection"),
        )
    })
}

fn metaspace(log: &GcLog) -> Option<String> {
    let number = log.summary.count_of_cause("Metadata GC Threshold");
    let all = count_noun(number, "collection");
    let hint = "Set -XX:MetaspaceSize to what the application needs.";
    (number > 0).then(|| format!("{all} ran because metaspace grew. {hint}"))
}

fn system_gc(log: &GcLog) -> Option<String> {
    let number = log.summary.count_of_cause("System.gc()");
    let levers = if log.header.is_openj9 {
        "-Xdisableexplicitgc"
    } else {
        "-XX:+ExplicitGCInvokesConcurrent or -XX:+DisableExplicitGC"
    };
    let all = count_noun(number, "collection");
    (number > 0).then(|| format!("The application called System.gc(): {all}. {levers}."))
}

fn time_to_safepoint(log: &GcLog) -> Option<String> {
    let longest = log.summary.reaching.max.as_secs_f64();
    (longest > REACHING_SECONDS).then(|| {
        format!(
            "Threads took up to {longest:.3} s to stop (time to safepoint), which no pause line \
             shows: long counted loops, page faults, or no CPU."
        )
    })
}

fn time_paused(log: &GcLog) -> Option<String> {
    let share = log.summary.paused_share()?;
    let percent = share * 100.0;
    (share > PAUSED_SHARE && log.summary.stw.count > 1)
        .then(|| format!("The application stood still for {percent:.1} % of the logged time."))
}
