//! Which heap an answer ships, from one start with room.
//!
//! Owns the choice and the options that ship with it. GC CPU at a heap M over a live set L falls as
//! 1/(M − L) (the law of [`crate::heap`] without its floor); one start gives its slope. Money decides
//! between that CPU and memory ([`price::GIB_PER_CPU`]).

use std::fmt;
use std::time::Duration;

use loadline_sizing::Bytes;
use loadline_sizing::hotspot::collector::SERVER_CLASS_MEMORY;

use super::answer::{ASSUMED_READ_AHEAD, start_room};
use crate::price;
use crate::record::{
    Configuration, Evidence, GcEvidence, JvmOption, TrialPhase, TrialRecord, ValueProvenance,
};
use crate::sli;
use crate::verdict::was_disturbed;

/// Most of the heap that the live set may take. Measured on a Spring Boot service: from 0.65 on GC took
/// 19 % of the CPU and more, at 0.5 under 3 %.
const MOST_LIVE: f64 = 0.7;
/// A heap is at least this many live sets, because the law is too optimistic close to the live set.
const LEAST_LIVE_SETS: f64 = 2.0;
/// The same for concurrent collectors, because the application allocates during a collection.
/// Chosen.
const LEAST_BESIDE: f64 = 3.0;
/// Free heap with which even a large live set is far from that cliff.
const ENOUGH_FREE: Bytes = Bytes::from_mib(64);
const HEAP_GRAIN: Bytes = Bytes::from_mib(4);
/// No JVM takes less outside its heap: code, metaspace and internal tables.
const LEAST_BESIDE_HEAP: Bytes = Bytes::from_mib(16);
/// Resolution of the CPU times in a GC log.
const CPU_TICK_MS: u64 = 10;
/// The flag that bounds direct memory; without it the heap does.
pub const DIRECT_MEMORY: &str = "-XX:MaxDirectMemorySize=";
/// With it Shenandoah keeps a heap that it does not use.
const NO_UNCOMMIT: &str = "-XX:-ShenandoahUncommit";
/// What malloc holds in a small service without direct buffers (Tomcat: 25 MiB, records/endurance).
const LEAST_MALLOC: Bytes = Bytes::from_mib(24);
/// Less is not worth a question: a start alone needs more.
const SMALLEST_HEAP: Bytes = Bytes::from_mib(16);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeapPolicy {
    #[default]
    Auto,
    Keep,
    /// Chosen and run with; only the largest heap ships, so that memory is given back.
    Grow,
    Fixed(Bytes),
}

impl fmt::Display for HeapPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Keep => f.pad("keep"),
            Self::Grow => f.pad("grow"),
            Self::Fixed(heap) => fmt::Display::fmt(heap, f),
        }
    }
}

/// Live data of a start: after a collection that was asked for, else the most after any.
pub fn live_set(evidence: &Evidence) -> Option<Bytes> {
    let asked = evidence.memory.as_ref().and_then(|parts| parts.live_set);
    let logged = evidence.gc.as_ref().and_then(|gc| gc.heap_after_max);
    asked.or(logged).filter(|live| *live > Bytes::default())
}

pub fn choose_heap(room: &Evidence) -> Option<Bytes> {
    let live = live_set(room)?;
    let share = |factor: f64| Bytes::from_bytes((live.as_bytes() as f64 * factor) as u64);
    let least = share(1.0 / MOST_LIVE);
    let is_beside = |gc: &GcEvidence| matches!(gc.collector.as_str(), "ZGC" | "Shenandoah");
    let usual = if room.gc.as_ref().is_some_and(is_beside) {
        share(LEAST_BESIDE)
    } else {
        share(LEAST_LIVE_SETS).min(live.saturating_add(ENOUGH_FREE))
    };
    let wanted = cheapest_heap(room, live).map_or(usual, |cheapest| cheapest.max(usual));
    let gc = room.gc.as_ref();
    let allowed = gc.and_then(|gc| gc.heap_max).unwrap_or(wanted);
    let heap = wanted.min(allowed).max(least).max(SMALLEST_HEAP);
    Some(heap.round_up(HEAP_GRAIN))
}

/// M* = L + √(price · c · (M − L)): where another MiB costs what it saves of the collector's CPU c.
fn cheapest_heap(room: &Evidence, live: Bytes) -> Option<Bytes> {
    let gc = room.gc.as_ref()?;
    let time = measured_seconds(room)?;
    let cpus = collector_cpu(gc, pause_sum(room, gc), enlargements(room, gc))?.as_secs_f64() / time;
    let parts = room.memory.as_ref();
    let committed = parts.and_then(|parts| parts.heap_committed);
    let heap = judged_heap(room, gc).or(committed).or(gc.heap_max)?;
    let free = heap.saturating_sub(live).as_gib();
    let more = (price::GIB_PER_CPU * cpus * free).max(0.0).sqrt();
    Some(live.saturating_add(Bytes::from_bytes((more * (1_u64 << 30) as f64) as u64)))
}

/// A job is judged from start to exit.
fn is_judged(room: &Evidence, at_ns: u64) -> bool {
    let judged = room.span_of(TrialPhase::Measure);
    room.run.is_some() || judged.is_some_and(|span| (span.start..span.end).contains(&at_ns))
}

/// The heap behind most collections of the judged phase: a heap that grows late was smaller until then.
fn judged_heap(room: &Evidence, gc: &GcEvidence) -> Option<Bytes> {
    let heaps = gc.heaps_after.iter();
    let judged = heaps.filter(|heap| is_judged(room, heap.at_ns));
    let mut sizes: Vec<Bytes> = judged.filter_map(|heap| heap.committed).collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied()
}

/// Judged full collections that enlarged the heap, and their length. The heap that ships is large
/// from the start: one of 77 ms in 10 s made it 100 MiB instead of 56.
fn enlargements(room: &Evidence, gc: &GcEvidence) -> (u64, Duration) {
    let (mut count, mut length) = (0, Duration::ZERO);
    for pair in gc.heaps_after.windows(2) {
        let after = &pair[1];
        let is_larger = after.is_full && after.committed > pair[0].committed;
        if is_larger && is_judged(room, after.at_ns) {
            let span = gc.pause_spans_ns.iter().find(|span| span.1 == after.at_ns);
            count += 1;
            length += span.map_or(Duration::ZERO, |(start, end)| {
                Duration::from_nanos(end.saturating_sub(*start))
            });
        }
    }
    (count, length)
}

/// The judged pauses. Other programs stretch pauses and never shorten them, so of a disturbed start each
/// young one counts as the shortest quarter: next to a build seven pauses took 31 ms instead of 20, and
/// the heap became 64 MiB instead of 56.
fn pause_sum(room: &Evidence, gc: &GcEvidence) -> Option<Duration> {
    let all = gc.measure_pause_sum?;
    let mut judged = gc.pause_spans_ns.clone();
    judged.retain(|span| is_judged(room, span.1));
    let is_whole = Some(judged.len() as u64) == gc.measure_pauses;
    if !was_disturbed(room) || !is_whole {
        return Some(all);
    }
    let ends_full = |span: &(u64, u64)| {
        let mut heaps = gc.heaps_after.iter();
        heaps.any(|after| after.is_full && after.at_ns == span.1)
    };
    let length = |span: (u64, u64)| Duration::from_nanos(span.1.saturating_sub(span.0));
    let (full, young): (Vec<_>, Vec<_>) = judged.into_iter().partition(ends_full);
    let full: Duration = full.into_iter().map(length).sum();
    let mut young: Vec<Duration> = young.into_iter().map(length).collect();
    young.sort_unstable();
    let short = young.get(young.len() / 4).copied().unwrap_or_default();
    Some((full + short * young.len() as u32).min(all))
}

/// A JVM logs CPU times in ticks, so short pauses have none or one each: two equal starts of a Spring
/// Boot service had 0 and 40 ms for pauses of 19 and 22 ms. Those pauses are taken for one CPU.
fn collector_cpu(
    gc: &GcEvidence,
    pause_sum: Option<Duration>,
    (left_out, length): (u64, Duration),
) -> Option<Duration> {
    let tick_each = |pauses: u64| {
        let counted = pauses.saturating_sub(left_out);
        Duration::from_millis(CPU_TICK_MS.saturating_mul(counted))
    };
    let ticks = gc.measure_pauses.map(tick_each);
    let pauses = pause_sum.map(|sum| sum.saturating_sub(length));
    let share = match (pauses, pause_sum) {
        (Some(counted), Some(all)) if !all.is_zero() => counted.div_duration_f64(all),
        _ => 1.0,
    };
    let logged = gc.measure_gc_cpu.map(|cpu| cpu.mul_f64(share));
    match (logged, ticks) {
        (Some(cpu), Some(ticks)) if cpu < ticks => pauses.or(logged),
        _ => logged.or(pauses),
    }
}

fn measured_seconds(evidence: &Evidence) -> Option<f64> {
    let length = sli::judged_time(evidence)?;
    Some(length.as_secs_f64()).filter(|seconds| *seconds > 0.0)
}

/// Options for trials at this heap, all of which is touched at start. `room` is the start with
/// room: if that JVM chose its collector as a server, the answer's JVM must not choose another one.
pub fn heap_options(heap: Bytes, room: &Evidence, room_limit: Option<Bytes>) -> Vec<JvmOption> {
    let size = heap.to_jvm_size();
    let mut texts = vec![format!("-Xms{size}"), format!("-Xmx{size}")];
    texts.push("-XX:+AlwaysPreTouch".to_owned());
    let collector = room.gc.as_ref().map(|gc| gc.collector.as_str());
    if collector == Some("Shenandoah") {
        texts.push(NO_UNCOMMIT.to_owned());
    }
    let is_server = room_limit.is_none_or(|limit| limit >= SERVER_CLASS_MEMORY);
    if let (true, Some("Serial" | "Parallel" | "G1")) = (is_server, collector) {
        texts.push(format!("-XX:+Use{}GC", collector.unwrap_or_default()));
    }
    texts.extend(direct_memory_option(heap, room));
    let option = |text| JvmOption {
        text,
        provenance: ValueProvenance::Measured,
    };
    texts.into_iter().map(option).collect()
}

/// A JVM allows itself as much direct memory as heap, and collects the whole heap whenever that is
/// used up. So a smaller heap may not take direct memory away that the start with room had: what malloc
/// held there. Fuseki at -Xmx56m held 222 MiB and spent 60 % of its CPU in such collections.
fn direct_memory_option(heap: Bytes, room: &Evidence) -> Option<String> {
    let malloc = room.memory.as_ref()?.malloc;
    let is_possible = malloc > heap.saturating_add(LEAST_MALLOC);
    let most = malloc.round_up(HEAP_GRAIN).to_jvm_size();
    is_possible.then(|| format!("{DIRECT_MEMORY}{most}"))
}

pub fn named_heap(configuration: &Configuration) -> Option<Bytes> {
    let options = configuration.jvm_options.iter().rev();
    let named = options.filter_map(|option| option.text.strip_prefix("-Xmx"));
    named.filter_map(|size| size.parse().ok()).next()
}

/// The largest heap of a trial: its configuration's, else the JVM's own default.
pub fn allowed_heap(trial: &TrialRecord) -> Option<Bytes> {
    let logged = trial.evidence.gc.as_ref().and_then(|gc| gc.heap_max);
    named_heap(&trial.configuration).or(logged)
}

/// A run's JVM memory outside a fully touched heap, plus the file pages that a start reads, if it
/// held them. `None` if it did not live long enough.
pub fn need_beside_heap(run: &Evidence, heap: Bytes) -> Option<Bytes> {
    let resident = run.run.as_ref()?.jvms.iter().map(|jvm| jvm.rss).max()?;
    let with_room = resident.saturating_add(start_room(ASSUMED_READ_AHEAD));
    let held = run.cgroup.peak_memory.unwrap_or(with_room);
    let resident = with_room.min(held.max(resident));
    Some(resident.saturating_sub(heap)).filter(|beside| *beside >= LEAST_BESIDE_HEAP)
}

pub fn resize_heap(options: &[JvmOption], heap: Bytes) -> Vec<JvmOption> {
    let heap = Bytes::from_mib(heap.as_bytes() >> 20).max(SMALLEST_HEAP);
    let size = heap.to_jvm_size();
    let resize = |option: &JvmOption| {
        let mut flags = ["-Xms", "-Xmx"].into_iter();
        let flag = flags.find(|flag| option.text.starts_with(flag));
        let mut resized = option.clone();
        if let Some(flag) = flag.filter(|_| option.provenance == ValueProvenance::Measured) {
            resized.text = format!("{flag}{size}");
        }
        resized
    };
    options.iter().map(resize).collect()
}

/// Without what makes the heap large from the first second on and keeps it so: what ships where a
/// service is to give memory back.
pub fn without_pretouch(mut configuration: Configuration) -> Configuration {
    let keeps_large = |option: &JvmOption| {
        let words = ["-Xms", "-XX:+AlwaysPreTouch", NO_UNCOMMIT];
        let is_own = option.provenance == ValueProvenance::Measured;
        is_own && words.iter().any(|word| option.text.starts_with(word))
    };
    let options = &mut configuration.jvm_options;
    options.retain(|option| !keeps_large(option));
    configuration
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{HeapAfter, MemoryParts, PhaseSpan, RunEvidence};

    /// A start of 10 s with this live set, heap in use (of 256 MiB) and GC CPU time.
    fn room(live: u64, committed: u64, gc_ms: u64) -> Evidence {
        Evidence {
            memory: Some(MemoryParts {
                live_set: Some(Bytes::from_mib(live)),
                heap_committed: Some(Bytes::from_mib(committed)),
                ..MemoryParts::default()
            }),
            gc: Some(GcEvidence {
                heap_max: Some(Bytes::from_mib(256)),
                measure_gc_cpu: Some(Duration::from_millis(gc_ms)),
                ..fixture::empty_gc_log()
            }),
            ..fixture::passing_evidence()
        }
    }

    #[test]
    fn the_heap_is_between_cliff_and_waste() {
        let heap = |live, committed, gc| choose_heap(&room(live, committed, gc)).map(Bytes::as_mib);
        // A Spring Boot service at 100 requests a second: 0.07 ms of GC for each.
        assert_eq!(heap(25, 64, 70), Some(76.0));
        assert_eq!(heap(25, 64, 0), Some(52.0), "no GC was seen");
        assert_eq!(heap(100, 160, 0), Some(164.0), "64 MiB are free");
        assert_eq!(heap(100, 200, 5000), Some(256.0), "no more than it had");
        assert_eq!(heap(200, 256, 5000), Some(288.0), "but the live set fits");
        assert_eq!(heap(2, 16, 0), Some(16.0));
        let mut beside = room(25, 64, 0);
        beside.gc.as_mut().expect("a log").collector = "ZGC".to_owned();
        assert_eq!(choose_heap(&beside).map(Bytes::as_mib), Some(76.0));
        let mut none = room(25, 64, 0);
        none.memory = None;
        assert_eq!(choose_heap(&none), None);
        none.gc.as_mut().expect("a log").heap_after_max = Some(Bytes::from_mib(30));
        assert_eq!(choose_heap(&none).map(Bytes::as_mib), Some(60.0));
    }

    #[test]
    fn ticks_of_short_pauses_do_not_choose_the_heap() {
        let start = |cpu_ms, pauses_us| {
            let mut room = room(25, 44, cpu_ms);
            let gc = room.gc.as_mut().expect("a log");
            gc.measure_pauses = Some(7);
            gc.measure_pause_sum = Some(Duration::from_micros(pauses_us));
            choose_heap(&room).map(Bytes::as_mib)
        };
        assert_eq!(start(0, 19_344), start(10, 19_348));
        assert_eq!(start(40, 22_103), start(10, 22_103));
        assert!(
            start(700, 22_103) > start(40, 22_103),
            "long enough to count"
        );
    }

    /// The pauses of two starts of a Spring Boot service, the second next to a build. Those took 4 s.
    #[test]
    fn pauses_that_others_stretch_do_not_enlarge_the_heap() {
        let start = |pauses_ms: [f64; 7], foreign_cpu| {
            let pauses_ms = pauses_ms.map(|ms| ms * 2.5);
            let mut room = room(25, 44, 0);
            room.noise.foreign_cpu = foreign_cpu;
            room.phases = vec![PhaseSpan {
                phase: TrialPhase::Measure,
                start: 0,
                end: 10_000_000_000,
            }];
            let gc = room.gc.as_mut().expect("a log");
            let ends = (1..=7_u64).map(|n| n * 500_000_000);
            let spans = ends.zip(pauses_ms);
            gc.pause_spans_ns = spans
                .map(|(end, ms)| (end - (ms * 1e6) as u64, end))
                .collect();
            gc.measure_pauses = Some(7);
            let sum: f64 = pauses_ms.iter().sum();
            gc.measure_pause_sum = Some(Duration::from_secs_f64(sum / 1e3));
            choose_heap(&room).map(Bytes::as_mib)
        };
        let stretched = [7.1, 3.0, 6.8, 5.9, 3.5, 2.2, 2.5];
        let quiet = start([3.0, 2.3, 2.7, 2.6, 3.2, 2.9, 3.2], None);
        assert_eq!(start(stretched, Some(0.6)), quiet);
        assert!(start(stretched, None) > quiet, "a quiet start's own pauses");
    }

    #[test]
    fn a_heap_that_grew_during_the_judged_phase_ships_no_larger_one() {
        let mut steady = room(25, 43, 0);
        steady.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 10_000_000_000,
        }];
        let mut grown = steady.clone();
        let pause = |at: u64, ms: u64, committed, is_full| {
            let after = HeapAfter {
                at_ns: at,
                bytes: Bytes::from_mib(27),
                committed: Some(Bytes::from_mib(committed)),
                is_full,
            };
            (after, (at - ms * 1_000_000, at))
        };
        // Of a Spring Boot service: a young collection every half second, one full one.
        let young = (1..=18).map(|n| pause(n * 500_000_000, 3, 43, false));
        let full = [pause(9_100_000_000, 77, 67, true)];
        for (evidence, all) in [
            (&mut steady, young.clone().collect::<Vec<_>>()),
            (&mut grown, young.chain(full).collect()),
        ] {
            let gc = evidence.gc.as_mut().expect("a log");
            gc.measure_pauses = Some(all.len() as u64);
            let length = |(start, end): &(u64, u64)| Duration::from_nanos(end - start);
            (gc.heaps_after, gc.pause_spans_ns) = all.into_iter().unzip();
            gc.measure_pause_sum = Some(gc.pause_spans_ns.iter().map(length).sum());
        }
        assert_eq!(choose_heap(&grown), choose_heap(&steady));
        assert_eq!(choose_heap(&steady).map(Bytes::as_mib), Some(56.0));
    }

    /// The launcher of Maven tests: 36 pauses of 3.3 ms in 10 s, while its heap grew from 8 to 28 MiB.
    #[test]
    fn a_run_counts_the_heap_that_it_had_and_not_the_one_it_may_have() {
        let mut launcher = room(17, 28, 119);
        launcher.memory = None;
        launcher.phases.clear();
        launcher.run = Some(RunEvidence {
            expected_exit: 0,
            out_of_memory: None,
            missing: Vec::new(),
            reference: None,
            jvms: Vec::new(),
        });
        let gc = launcher.gc.as_mut().expect("a log");
        gc.heap_after_max = Some(Bytes::from_mib(17));
        gc.heaps_after = (0..36_u64)
            .map(|n| HeapAfter {
                at_ns: n * 250_000_000,
                bytes: Bytes::from_mib(5 + n / 3),
                committed: Some(Bytes::from_mib(8 + n * 20 / 35)),
                is_full: false,
            })
            .collect();
        assert_eq!(choose_heap(&launcher).map(Bytes::as_mib), Some(36.0));
    }

    #[test]
    fn what_ships_is_the_whole_heap_and_the_collector_of_a_server() {
        let texts = |evidence: &Evidence, limit| {
            let options = heap_options(Bytes::from_mib(96), evidence, Some(Bytes::from_mib(limit)));
            let texts: Vec<String> = options.into_iter().map(|o| o.text).collect();
            texts.join(" ")
        };
        let mut evidence = room(25, 64, 0);
        assert_eq!(
            texts(&evidence, 1024),
            "-Xms96m -Xmx96m -XX:+AlwaysPreTouch"
        );
        evidence.gc.as_mut().expect("a log").collector = "G1".to_owned();
        assert!(texts(&evidence, 2048).ends_with(" -XX:+UseG1GC"));
        evidence.gc.as_mut().expect("a log").collector = "Shenandoah".to_owned();
        assert!(texts(&evidence, 1024).ends_with(" -XX:-ShenandoahUncommit"));
        let malloc = |mib| {
            let mut evidence = room(25, 64, 0);
            evidence.memory.as_mut().expect("parts").malloc = Bytes::from_mib(mib);
            texts(&evidence, 1024)
        };
        assert!(malloc(120).ends_with("PreTouch"), "it may be all malloc");
        assert!(malloc(121).ends_with(" -XX:MaxDirectMemorySize=124m"));
    }

    #[test]
    fn a_heap_that_grows_ships_its_largest_size_alone() {
        let mut configuration = fixture::configuration(256);
        let user = JvmOption {
            text: "-Xmx512m".to_owned(),
            provenance: ValueProvenance::User,
        };
        configuration.jvm_options = vec![user];
        let mut room = room(25, 64, 0);
        room.gc.as_mut().expect("a log").collector = "Shenandoah".to_owned();
        let own = heap_options(Bytes::from_mib(96), &room, Some(Bytes::from_mib(512)));
        configuration.jvm_options.extend(own);
        assert_eq!(named_heap(&configuration), Some(Bytes::from_mib(96)));
        let shipped = without_pretouch(configuration);
        let texts: Vec<_> = shipped
            .jvm_options
            .iter()
            .map(|o| o.text.as_str())
            .collect();
        assert_eq!(texts, ["-Xmx512m", "-Xmx96m"]);
    }
}
