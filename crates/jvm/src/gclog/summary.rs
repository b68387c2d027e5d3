//! Counts and sums of a log, in constant memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::event::{GcCpuTimes, HeapChange};
use super::names::PauseName;
use super::tally::DurationTally;

/// Most distinct names; all others are counted as `other`.
const NAMES_LIMIT: usize = 128;
const NAME_LENGTH: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByName(BTreeMap<Arc<str>, DurationTally>);

impl ByName {
    pub(super) fn add_named(&mut self, name: &[u8], duration: Duration) -> Arc<str> {
        let text = String::from_utf8_lossy(&name[..name.len().min(NAME_LENGTH)]);
        let known = self.0.get_key_value(&*text).map(|(name, _)| name.clone());
        let printable = || text.chars().filter(|c| !c.is_control()).collect::<String>();
        let name: Arc<str> = match known {
            Some(known) => known,
            None if self.0.len() < NAMES_LIMIT => printable().into(),
            None => "other".into(),
        };
        let tally = self.0.entry(name.clone()).or_default();
        tally.add_duration(duration);
        name
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &DurationTally)> {
        self.0.iter().map(|(name, tally)| (name.as_ref(), tally))
    }

    pub fn merged_tally(&self) -> DurationTally {
        let mut all = DurationTally::default();
        self.0.values().for_each(|tally| all.merge(tally));
        all
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GcSummary {
    pub jvm_starts: u64,
    /// From the first to the last line with a time, summed over JVMs; ns.
    pub logged: Duration,
    pub stw: DurationTally,
    pub by_name: BTreeMap<PauseName, DurationTally>,
    pub full: u64,
    /// Largest heap in use before a collection, bytes; `None` when no line has a heap, as below.
    pub heap_before_max: Option<u64>,
    pub heap_after_max: Option<u64>,
    /// Largest heap in use after a full collection: at least the live set.
    pub heap_after_full_max: Option<u64>,
    pub heap_committed_max: Option<u64>,
    /// Bytes allocated between the first and the last figure of the heap. A lower bound for
    /// concurrent collectors.
    pub allocated: u64,
    /// What the heap after a pause rose by from each to the next, but to a full collection: near
    /// what came into the old generation, survivors of the last one included; `None` when no pause
    /// has a heap.
    pub promoted: Option<u64>,
    /// CPU time of the collections that report it. Concurrent work is not in it.
    pub cpu: GcCpuTimes,
    /// Collections that report it.
    pub cpu_count: u64,
    /// Pauses of at least 20 ms with CPU times.
    pub long_with_cpu: u64,
    /// Long pauses that got less than 70 % of the CPU they could use.
    pub starved: u64,
    /// Collections that ran out of room to copy to.
    pub evacuation_failures: u64,
    pub safepoints: ByName,
    /// Time to safepoint: from the request until the last thread stood.
    pub reaching: DurationTally,
    /// Parts of the pauses, if a log lists them separately (OpenJ9: mark, sweep, compact,
    /// scavenge).
    pub phases: ByName,
    /// Concurrent phases. Phases may be parts of others: no sum over names makes sense.
    pub concurrent: ByName,
    pub stalls: ByName,
}

impl GcSummary {
    pub(super) fn add_heap(&mut self, heap: HeapChange, is_full: bool) {
        raise(&mut self.heap_before_max, heap.before);
        raise(&mut self.heap_after_max, heap.after);
        if is_full {
            raise(&mut self.heap_after_full_max, heap.after);
        }
        if let Some(committed) = heap.committed {
            raise(&mut self.heap_committed_max, committed);
        }
    }

    /// Share of the logged time in stop-the-world pauses, in [0, 1]; `None` without clocks.
    pub fn paused_share(&self) -> Option<f64> {
        let logged = self.logged.as_secs_f64();
        (logged > 0.0).then(|| (self.stw.total.as_secs_f64() / logged).min(1.0))
    }

    /// Allocated bytes a second; `None` without clocks or with less than two heap figures.
    pub fn allocation_rate(&self) -> Option<f64> {
        let logged = self.logged.as_secs_f64();
        (logged > 0.0 && self.allocated > 0).then(|| self.allocated as f64 / logged)
    }

    pub fn count_of_cause(&self, cause: &str) -> u64 {
        self.count_where(|name| name.cause.as_deref() == Some(cause))
    }

    pub(super) fn count_where(&self, is_counted: impl Fn(&PauseName) -> bool) -> u64 {
        let counted = self.by_name.iter().filter(|(name, _)| is_counted(name));
        counted.map(|(_, tally)| tally.count).sum()
    }
}

fn raise(highest: &mut Option<u64>, value: u64) {
    *highest = Some(highest.map_or(value, |known| known.max(value)));
}
