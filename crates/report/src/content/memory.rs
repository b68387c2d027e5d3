//! "Where the memory goes": what the cgroup charged against the limit, at its fullest second.
//!
//! Owns [`MemoryFill`]: the parts of one second add up to the limit, which peaks of different moments do
//! not. Parts inside the JVM (metaspace, code cache, stacks) are not in these counters.

use loadline_analysis::record::{SecondEvidence, TrialRecord};
use loadline_sizing::Bytes;

use super::groups::{self, ConfigurationGroup, ConfigurationNames};
use super::section::Section;
use crate::figures::spread;
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

const MOST: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFill {
    pub limit: Bytes,
    /// Anonymous memory: heap, metaspace, stacks and all else the JVM wrote to.
    pub anon: Bytes,
    /// The rest of the working set: file pages in use, kernel memory.
    pub in_use: Bytes,
    /// Page cache that the kernel can drop without harm.
    pub droppable: Bytes,
}

impl MemoryFill {
    pub fn fullest_second(trial: &TrialRecord) -> Option<Self> {
        // The seconds are those of all instances, and so is the limit.
        let instances = u64::from(trial.configuration.instances);
        let limit = trial.configuration.memory?.mul_ratio(instances, 1);
        let full = |s: &&SecondEvidence| s.memory.is_some() && s.anon.is_some();
        let seconds = trial.evidence.seconds.iter().filter(full);
        let second = seconds.max_by_key(|s| s.working_set.map(|w| w.as_bytes()))?;
        let (usage, anon) = (second.memory?, second.anon?);
        let working = second.working_set?.max(anon);
        Some(Self {
            limit,
            anon,
            in_use: working.saturating_sub(anon),
            droppable: usage.saturating_sub(working),
        })
    }

    pub fn free(&self) -> Bytes {
        let used = self.anon.saturating_add(self.in_use);
        let used = used.saturating_add(self.droppable);
        self.limit.saturating_sub(used)
    }
}

/// The configurations of the section: name and the fullest second of its fullest trial. The
/// recommended one first, then by size.
pub fn fills(view: &ResultView) -> Vec<(String, MemoryFill)> {
    let rows = rows(view).into_iter();
    rows.map(|(name, fill, _)| (name, fill)).collect()
}

fn rows<'a>(view: &'a ResultView) -> Vec<(String, MemoryFill, ConfigurationGroup<'a>)> {
    let names = ConfigurationNames::for_result(view);
    let is_chosen = |g: &ConfigurationGroup<'_>| groups::is_chosen(view, g.configuration);
    let mut groups = groups::group_trials(view);
    groups.sort_by_key(|g| (!is_chosen(g), std::cmp::Reverse(g.configuration.memory)));
    groups.retain(|g| g.configuration.memory.is_some());
    let row = |group: ConfigurationGroup<'a>| {
        let trials = group.evidence_trials();
        let fills = trials.filter_map(MemoryFill::fullest_second);
        let fill = fills.max_by_key(|f| f.anon.saturating_add(f.in_use).as_bytes())?;
        let mut name = names.cell_name(group.configuration);
        if is_chosen(&group) {
            name.push_str(&format!(", {}", view.chosen_as()));
        }
        Some((name, fill, group))
    };
    groups.into_iter().map(row).take(MOST).flatten().collect()
}

pub fn memory_section(view: &ResultView) -> Option<Section> {
    let rows = rows(view);
    if rows.is_empty() {
        return None;
    }
    let mut table = Table::new()
        .wrapping("Configuration")
        .right("Anonymous | Files in use | Can be dropped | Free | Heap after GC | Heap allowed");
    for (name, fill, group) in &rows {
        let share = |part: Bytes| {
            let share = part.as_bytes() as f64 / fill.limit.as_bytes().max(1) as f64;
            TableCell::from(format!(
                "{} ({:.0} %)",
                format::measured_bytes(Bytes::from_mib(part.as_mib().round() as u64)),
                share * 100.0
            ))
        };
        let logs = || {
            group
                .evidence_trials()
                .filter_map(|t| t.evidence.gc.as_ref())
        };
        let after = spread(logs().filter_map(|gc| gc.heap_after_max));
        let allowed = spread(logs().filter_map(|gc| gc.heap_max));
        table.add_row([
            name.clone().into(),
            share(fill.anon),
            share(fill.in_use),
            share(fill.droppable),
            share(fill.free()),
            format::bytes_or(after.map(|s| s.high)).into(),
            format::bytes_or(allowed.map(|s| s.median)).into(),
        ]);
    }
    let words = "The fullest second of each size, as the kernel counts it. Anonymous memory is the heap and all else the JVM wrote to; it cannot be dropped. Files in use are code and jars: when they no longer fit they are read again and again, and the service thrashes long before the kernel kills it. Heap after GC is what the application keeps; heap allowed is what the JVM may grow to.";
    let section = Section::new("memory", "Where the memory goes").in_depth();
    Some(section.with_paragraph(words).with_table(table))
}
