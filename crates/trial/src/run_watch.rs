//! The watch on a run: its JVMs, and whether it ended as expected.
//!
//! Owns the looks at its processes and the report about its end. A run may start further JVMs
//! (compilers, test JVMs, daemons), each with its own heap. In a pod only its kubelet, or its engine,
//! has its exit code and its output: [`crate::run_output`] completes the report with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_analysis::foreign_text::indented_line;
use loadline_analysis::record::{JvmProcess, RunEvidence};
use loadline_jvm::hsperf::HsperfCounters;
use loadline_protocol::RunSpec;
use loadline_sizing::Bytes;

use crate::container::AppContainer;
use crate::output::AppOutput;
use crate::process_text::{kib_field, read_status, status_number};
use crate::run_output::{MAVEN_OUT_OF_MEMORY, OUT_OF_MEMORY, lacks_text};
use crate::soaking::heap_committed;

const LOOK: Duration = Duration::from_millis(500);
const MOST_JVMS: usize = 64;
const LONGEST_NAME: usize = 120;
const OUTPUT: Duration = Duration::from_secs(1);

const HEAP_OPTIONS: [&str; 4] = [
    "-Xmx",
    "-XX:MaxHeapSize=",
    "-XX:MaxRAMPercentage=",
    "-XX:MaxRAMFraction=",
];

#[derive(Debug, Default)]
pub(crate) struct RunWatch {
    jvms: BTreeMap<u32, JvmProcess>,
    looked: Option<Instant>,
    missing: Vec<String>,
}

impl RunWatch {
    /// Looks at the JVMs among these processes, twice a second; `elapsed` is from the begin of the run.
    pub(crate) fn look_at_jvms(&mut self, processes: impl Fn() -> Vec<u32>, elapsed: Duration) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        let begin = Instant::now();
        self.looked = Some(begin);
        // Each may have made its reading slow.
        let in_time = processes().into_iter();
        for pid in in_time.take_while(|_| begin.elapsed() < LOOK) {
            let read = HsperfCounters::for_jvm(pid).ok().zip(read_status(pid));
            let has_room = self.jvms.len() < MOST_JVMS || self.jvms.contains_key(&pid);
            let Some((counters, status)) = read.filter(|_| has_room) else {
                continue;
            };
            let parent = status_number(&status, "PPid:").and_then(|pid| u32::try_from(pid).ok());
            let parent = parent.and_then(|pid| Some(self.jvms.get(&pid)?.main.clone()));
            let rss = kib_field(&status, "VmRSS:");
            let jvm = self.jvms.entry(pid).or_insert_with(|| JvmProcess {
                main: main_name(&counters),
                parent,
                from: elapsed,
                until: elapsed,
                heap_max: None,
                heap_option: heap_option(&counters),
                heap_committed: None,
                heap_after: None,
                rss: Bytes::default(),
            });
            jvm.until = elapsed;
            jvm.heap_max = jvm.heap_max.max(heap_max(&counters));
            let committed = heap_committed(&counters).map(Bytes::from_bytes);
            jvm.heap_committed = jvm.heap_committed.max(committed);
            jvm.heap_after = jvm.heap_after.max(heap_after(&counters));
            jvm.rss = jvm.rss.max(rss.unwrap_or_default());
        }
    }

    /// Whether a run with this exit code has ended as expected; remembers what it lacks.
    pub(crate) fn is_success(
        &mut self,
        spec: &RunSpec,
        code: Option<i32>,
        (output, container): (&AppOutput, &dyn AppContainer),
    ) -> bool {
        output.wait_for_end(OUTPUT);
        let mut missing = Vec::new();
        let is_said = |text: &&String| output.first_line_with(text).is_some();
        if let Some(text) = spec.output.as_ref().filter(|text| !is_said(text)) {
            missing.push(lacks_text(text));
        }
        let is_written = |path: &&PathBuf| is_written(container, path);
        if let Some(path) = spec.file.as_ref().filter(|path| !is_written(path)) {
            missing.push(format!("{} is not there, or empty", path.display()));
        }
        let is_expected = code == Some(spec.exit);
        self.missing = if is_expected { missing } else { Vec::new() };
        is_expected && self.missing.is_empty()
    }

    pub(crate) fn into_evidence(self, spec: &RunSpec, output: &AppOutput) -> RunEvidence {
        let mut jvms: Vec<JvmProcess> = self.jvms.into_values().collect();
        jvms.sort_by_key(|jvm| jvm.from);
        let mut texts = [OUT_OF_MEMORY, MAVEN_OUT_OF_MEMORY].into_iter();
        RunEvidence {
            expected_exit: spec.exit,
            reference: spec.reference,
            out_of_memory: texts.find_map(|text| output.first_line_with(text)),
            missing: self.missing,
            jvms,
        }
    }
}

fn is_written(container: &dyn AppContainer, path: &Path) -> bool {
    let found = container.open_file(path).and_then(|file| file.metadata());
    found.is_ok_and(|found| found.len() > 0)
}

/// The main class or the file name of the jar, without arguments: those may hold secrets.
fn main_name(counters: &HsperfCounters) -> String {
    let command = counters.counter_text("sun.rt.javaCommand");
    let command = command.unwrap_or_default();
    let first = command.split_whitespace().next().unwrap_or("a JVM");
    let name = first.rsplit('/').next().unwrap_or(first);
    let name = indented_line(name);
    name.chars().take(LONGEST_NAME).collect()
}

/// Of the options that set the largest heap, the last: it wins.
fn heap_option(counters: &HsperfCounters) -> Option<String> {
    let given = counters.counter_text("java.rt.vmArgs")?;
    let sets_heap = |word: &&str| HEAP_OPTIONS.iter().any(|flag| word.starts_with(flag));
    let option = given.split_whitespace().rfind(sets_heap)?;
    Some(indented_line(option).chars().take(LONGEST_NAME).collect())
}

/// The largest heap that a collector's generations may have together.
fn heap_max(counters: &HsperfCounters) -> Option<Bytes> {
    let of = |n| counters.counter_number(&format!("sun.gc.generation.{n}.maxCapacity"));
    let policy = counters.counter_text("sun.gc.policy.name");
    let policy = policy.unwrap_or_default();
    let sizes: Vec<u64> = (0..2).filter_map(of).collect();
    // Each generation of G1 may have the whole heap.
    let bytes = if policy.starts_with("G1") || policy == "GarbageFirst" {
        sizes.into_iter().max()
    } else {
        sizes.into_iter().reduce(|a, b| a.saturating_add(b))
    };
    bytes.map(Bytes::from_bytes)
}

/// What the last collection left: HotSpot writes these counters at its end. `None` before the first.
fn heap_after(counters: &HsperfCounters) -> Option<Bytes> {
    let spaces = ["0.space.1", "0.space.2", "1.space.0"];
    let of = |space: &str| counters.counter_number(&format!("sun.gc.generation.{space}.used"));
    // ZGC and Shenandoah have no survivor spaces, and write what is in use at other times.
    let add = |sum: u64, space| Some(sum.saturating_add(of(space)?));
    let used = spaces.into_iter().try_fold(0, add)?;
    (used > 0).then(|| Bytes::from_bytes(used))
}
