//! From a squeezed start to the limit that ships.
//!
//! Owns how far above the wall an answer stands. Fresh starts read their jar and JDK through the room
//! that a warm service does not need: of 44 fresh starts none with this room stormed (DESIGN: 8 MiB of
//! read-ahead 13 of 13, 128 KiB 4 of 4), and C × 1.03 held in 7 of 7.

use loadline_sizing::Bytes;

use super::expect::{Expectation, expected_lines, passing_growth};
use super::{Budget, BudgetLine, BurstMemory, MemoryPart, OverCommitted, need_of};
use crate::record::{Evidence, MemoryParts, SqueezeEnd, SqueezeStep};

/// The answer is at least this factor above the calm limit.
const ABOVE_CALM: (u64, u64) = (103, 100);
const ROOMS: [(f64, f64); 2] = [(128.0 * 1024.0, 8.0), (8192.0 * 1024.0, 23.0)];
pub(super) const ASSUMED_READ_AHEAD: Bytes = Bytes::from_kib(8192);
/// A start that is squeezed gets more than its budget: what the budget does not know comes out there.
const STUDY_FACTOR: (u64, u64) = (5, 4);
const STUDY_ROOM: Bytes = Bytes::from_mib(48);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryWall<'a> {
    pub calm: &'a SqueezeStep,
    pub storm: Option<&'a SqueezeStep>,
    pub unreclaimable: Bytes,
    /// Room above `unreclaimable` with which fresh starts work.
    pub start_room: Bytes,
}

impl<'a> MemoryWall<'a> {
    /// The wall; `None` where no limit was calm or the aged parts are not known.
    pub fn of_start(evidence: &'a Evidence) -> Option<Self> {
        let squeeze = evidence.squeeze.as_ref()?;
        let aged = squeeze.aged.as_ref()?;
        let all = squeeze.steps.as_slice();
        let (steps, killed) = match (&squeeze.end, all.split_last()) {
            (SqueezeEnd::NotPossible(_), _) => return None,
            // The step that was killed need not show it otherwise.
            (SqueezeEnd::Killed, Some((last, before))) => (before, Some(last)),
            _ => (all, None),
        };
        let calm = steps.iter().take_while(|step| step.is_calm());
        let calm = calm.min_by_key(|step| step.limit)?;
        let storm = steps.iter().find(|step| !step.is_calm()).or(killed);
        let until_calm = steps.iter().filter(|step| step.is_calm());
        let most = until_calm.map(|step| step.unreclaimable).max();
        let start_room = start_room(squeeze.read_ahead.unwrap_or(ASSUMED_READ_AHEAD));
        Some(Self {
            calm,
            storm: storm.filter(|step| step.limit < calm.limit),
            unreclaimable: aged.unreclaimable().max(most.unwrap_or_default()),
            start_room: start_room.min(file_pages(evidence, aged)),
        })
    }

    fn fresh_limit(&self) -> Bytes {
        let above = self.calm.limit.mul_ratio(ABOVE_CALM.0, ABOVE_CALM.1);
        above.max(self.unreclaimable.saturating_add(self.start_room))
    }

    pub fn warm_room(&self) -> Bytes {
        self.calm.limit.saturating_sub(self.calm.unreclaimable)
    }
}

/// Most file pages that a start has held: a fresh start reads no more. Pages charged to other
/// groups count where they are mapped. No bound if the peak does not show it.
fn file_pages(evidence: &Evidence, aged: &MemoryParts) -> Bytes {
    let held = aged.unreclaimable();
    match evidence.cgroup.peak_memory {
        Some(peak) if peak > held => peak.saturating_sub(held).max(aged.files),
        _ => Bytes::from_bytes(u64::MAX),
    }
}

pub fn start_room(read_ahead: Bytes) -> Bytes {
    let [(small, least), (large, most)] = ROOMS;
    let bytes = (read_ahead.as_bytes() as f64).clamp(small, large);
    let share = (bytes / small).log2() / (large / small).log2();
    let mib = least + share * (most - least);
    Bytes::from_bytes((mib * f64::from(1 << 20)) as u64)
}

/// The limit for the load after a squeeze: the answer's limit less its expected growth. `None` if
/// the squeeze found no wall.
pub fn limit_after_squeeze(evidence: &Evidence) -> Option<Bytes> {
    MemoryWall::of_start(evidence).map(|wall| wall.fresh_limit())
}

/// The budget of the smallest limit for a squeezed start; `heap` is the largest that its JVM may have.
/// `None` where the squeeze found no wall.
pub fn answer_budget(evidence: &Evidence, heap: Option<Bytes>, step: Bytes) -> Option<Budget> {
    let lines = answer_lines(evidence, heap)?;
    let limit = need_of(&lines).round_up(step);
    Budget::new(lines, limit).ok()
}

/// The budget of this limit for the same, and for the bursts of more starts.
/// Errors: [`OverCommitted`] where the parts exceed it.
pub fn budget_at(
    evidence: &Evidence,
    heap: Option<Bytes>,
    limit: Bytes,
    bursts: Option<&BurstMemory>,
) -> Option<Result<Budget, OverCommitted>> {
    let mut lines = answer_lines(evidence, heap)?;
    let malloc = |line: &&mut BudgetLine| line.part == MemoryPart::Malloc;
    if let Some(bursts) = bursts
        && let Some(reason) = bursts.range_text()
        && let more = bursts
            .needed_limit()
            .min(limit)
            .saturating_sub(need_of(&lines))
        && more > Bytes::default()
        && let Some(malloc) = lines.iter_mut().find(malloc)
    {
        malloc.growth = malloc.growth.saturating_add(more);
        malloc.reason = reason;
    }
    Some(Budget::new(lines, limit))
}

fn answer_lines(evidence: &Evidence, heap: Option<Bytes>) -> Option<Vec<BudgetLine>> {
    let squeeze = evidence.squeeze.as_ref()?;
    let (wall, aged) = (MemoryWall::of_start(evidence)?, squeeze.aged.as_ref()?);
    let expected = Expectation::after_burst(evidence, aged);
    let mut lines = vec![heap_line(aged, heap)];
    lines.extend(expected_lines(aged, &expected));
    let room = wall.fresh_limit().saturating_sub(wall.unreclaimable);
    let measured = wall.warm_room().min(room);
    let growth = room.saturating_sub(measured);
    // What grew between the reading of the parts and the wall is nowhere else.
    let later = wall.unreclaimable.saturating_sub(aged.unreclaimable());
    // A warm service does not need the room of a fresh one.
    let passing = passing_growth(evidence, aged).saturating_sub(growth);
    if let Some(malloc) = lines.iter_mut().find(|l| l.part == MemoryPart::Malloc) {
        malloc.measured = malloc.measured.saturating_add(later);
        if passing > malloc.growth {
            malloc.growth = passing;
            malloc.reason = "it held more for a while behind the burst".to_owned();
        }
    }
    lines.push(BudgetLine {
        part: MemoryPart::Files,
        measured,
        growth,
        reason: why_more(growth, "a fresh start reads more files"),
        cap: None,
    });
    Some(lines)
}

fn heap_line(parts: &MemoryParts, heap: Option<Bytes>) -> BudgetLine {
    let growth = heap.map_or(Bytes::default(), |heap| heap.saturating_sub(parts.heap));
    BudgetLine {
        part: MemoryPart::Heap,
        measured: parts.heap,
        growth,
        reason: why_more(growth, "the JVM may take it"),
        cap: heap.map(|heap| format!("-Xmx{}", heap.to_jvm_size())),
    }
}

fn why_more(growth: Bytes, why: &str) -> String {
    let is_more = growth > Bytes::default();
    if is_more { why } else { "" }.to_owned()
}

pub fn room_need(room: &Evidence, heap: Option<Bytes>) -> Option<Bytes> {
    let parts = room.memory.as_ref()?;
    let lines = expected_lines(parts, &Expectation::after_start(parts.requests));
    let first = heap.unwrap_or(parts.heap).saturating_add(parts.files);
    Some(first.saturating_add(need_of(&lines)))
}

/// The limit for the start that is squeezed, from one with room; `None` where its parts are not known.
pub fn study_limit(room: &Evidence, heap: Option<Bytes>, step: Bytes) -> Option<Bytes> {
    let (more, of) = STUDY_FACTOR;
    // What its ageing took, the next one takes again: a leak would be killed in it otherwise.
    let aged = room.seconds.iter().filter_map(|second| second.anon).max();
    let need = room_need(room, heap)?.max(aged.unwrap_or_default());
    let need = need.mul_ratio(more, of);
    Some(need.saturating_add(STUDY_ROOM).round_up(step))
}
