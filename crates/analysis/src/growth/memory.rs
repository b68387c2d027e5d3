//! Heap and native memory of a soak.
//!
//! Owns what counts as each and what must agree before growth is called a leak.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_sizing::Bytes;

use super::trend::Trend;
use super::{COUNT_FLOOR, GrowingPart, GrowthJudge, GrowthVerdict, PartGrowth};
use crate::record::SoakLook;

/// Growth of native memory in the second cycle that matters, of the limit.
const NATIVE_FLOOR: f64 = 0.002;
const LIVE_FLOOR: f64 = 0.02;

/// Of the growth of the live heap in the first cycle: less than this in the second is settling.
const SETTLING: f64 = 0.5;

/// Second-cycle growth of native memory, as a share of the first cycle's, from which it is steady.
/// Growth that is faster in the second cycle by the same factor comes from late JIT compilation,
/// not from a leak per request.
const STEADY: f64 = 0.75;

/// A first cycle of at least this length may include a start that the second lacks.
const LONG: Duration = Duration::from_secs(7200);

/// At least this share of the lows' growth must also appear in the looks.
const AGREE: f64 = 0.4;

/// Growth below this is never called one, bytes.
const FLOOR: f64 = 256.0 * 1024.0;

struct SoakLooks<'a> {
    begin: &'a SoakLook,
    rest: &'a SoakLook,
    end: &'a SoakLook,
}

impl SoakLooks<'_> {
    fn in_order(&self) -> [&SoakLook; 3] {
        [self.begin, self.rest, self.end]
    }

    fn second_cycle_requests(&self) -> f64 {
        let requests = self.end.requests.saturating_sub(self.rest.requests);
        requests.max(1) as f64
    }

    fn has_more_buffers(&self) -> bool {
        let counts = self.in_order().map(|look| look.direct_buffers.unwrap_or(0));
        let grown = counts.windows(2).map(|two| two[1].saturating_sub(two[0]));
        grown.min() >= Some(COUNT_FLOOR as u64)
    }

    fn growth_rates(&self, get: impl Fn(&SoakLook) -> f64) -> (f64, f64) {
        let rate = |from: &SoakLook, to: &SoakLook| {
            let requests = to.requests.saturating_sub(from.requests).max(1);
            (get(to) - get(from)) / requests as f64
        };
        (rate(self.begin, self.rest), rate(self.rest, self.end))
    }
}

type Region = (GrowingPart, fn(&SoakLook) -> Bytes);

const REGIONS: [Region; 6] = [
    (GrowingPart::Direct, |l| l.direct.unwrap_or_default()),
    (GrowingPart::Threads, |l| l.stacks),
    (GrowingPart::Metaspace, |l| l.metaspace),
    (GrowingPart::CodeCache, |l| l.code_cache),
    (GrowingPart::Jvm, |l| l.jvm),
    (GrowingPart::Malloc, |l| l.malloc),
];

impl GrowthJudge<'_> {
    fn soak_looks(&self) -> Option<SoakLooks<'_>> {
        match self.soak.looks.as_slice() {
            [begin, rest, end] if self.cycles.has_second => Some(SoakLooks { begin, rest, end }),
            _ => None,
        }
    }

    /// Bytes of stacks per million responses in the second cycle.
    pub(super) fn stack_growth(&self) -> Option<f64> {
        let looks = self.soak_looks()?;
        Some(looks.growth_rates(|l| bytes_as_f64(l.stacks)).1 * 1e6)
    }

    /// What stays alive in the heap: weighed at the looks; lows after young collections rise with
    /// garbage that only an old one finds.
    pub(super) fn heap_growth(&self) -> PartGrowth {
        let trend = self.fit_trend(|p| p.heap_after.map(bytes_as_f64));
        let last = self.cycles.judged.iter().rev();
        let last = last.clone().find_map(|p| p.heap_after);
        let room = |kept: Option<Bytes>| {
            let heap = self.ceilings.heap?;
            Some(heap.saturating_sub(kept.unwrap_or_default()))
        };
        let live = |look: &SoakLook| look.live_heap.map_or(0.0, bytes_as_f64);
        let looks = self.soak_looks();
        let Some(looks) = looks.filter(|l| l.in_order().iter().all(|l| live(l) > 0.0)) else {
            let verdict = match &trend {
                Some(trend) if trend.low > 0.0 => self.too_short(2.0, trend.is_settling),
                trend => self.quiet_verdict(trend.as_ref(), room(last)),
            };
            return PartGrowth {
                verdict,
                ..PartGrowth::for_part(GrowingPart::Heap, trend.as_ref())
            };
        };
        let room = room(looks.end.live_heap);
        let (before, now) = looks.growth_rates(live);
        let floor = (LIVE_FLOOR * live(looks.end)).max(FLOOR);
        let grown = live(looks.end) - live(looks.rest);
        let had_grown = live(looks.rest) - live(looks.begin);
        let is_growing = grown > floor && had_grown > floor / 2.0;
        let hidden = now.max(0.0) + floor / 4.0 / looks.second_cycle_requests();
        let full_in = room.and_then(|room| self.full_in(room, now));
        PartGrowth {
            verdict: match is_growing {
                true if now < SETTLING * before => self.too_short(2.0, true),
                true => GrowthVerdict::Growing,
                false => self.hidden_verdict(room, hidden),
            },
            per_million: now * 1e6,
            first_cycle: Some(before * 1e6),
            full_in: full_in.filter(|_| is_growing),
            ..PartGrowth::for_part(GrowingPart::Heap, None)
        }
    }

    /// All anonymous memory outside the heap, and which part grows.
    pub(super) fn native_growth(&self) -> PartGrowth {
        let touched = self.touched_heap();
        let trend = self.fit_trend(|p| {
            let heap = touched.get(&p.at_ns).copied().unwrap_or_default();
            Some(bytes_as_f64(p.anon?) - bytes_as_f64(heap))
        });
        let last = self.cycles.judged.iter().rev().find_map(|p| p.working_set);
        let room = self.ceilings.memory;
        let room = room.map(|limit| limit.saturating_sub(last.unwrap_or_default()));
        let mut growth = PartGrowth {
            verdict: self.quiet_verdict(trend.as_ref(), room),
            ..PartGrowth::for_part(GrowingPart::Native, trend.as_ref())
        };
        let Some(trend) = trend else { return growth };
        let limit = self.ceilings.memory.map_or(0.0, bytes_as_f64);
        if let (GrowthVerdict::TooShort { .. }, true) = (growth.verdict, trend.is_settling) {
            growth.verdict = self.too_short(2.0, true);
        } else if trend.is_growing() && trend.cycle_growth() >= (NATIVE_FLOOR * limit).max(FLOOR) {
            growth.verdict = GrowthVerdict::Growing;
            self.name_part(&mut growth);
            if !self.is_steady(&growth, &trend) {
                let before = growth.first_cycle.unwrap_or(f64::MAX);
                growth.verdict = self.too_short(2.0, growth.per_million < before);
                return growth;
            }
            let per_million = growth.bytes_per_million.unwrap_or(growth.per_million);
            growth.full_in = room.and_then(|room| self.full_in(room, per_million / 1e6));
        }
        growth
    }

    fn is_steady(&self, growth: &PartGrowth, trend: &Trend) -> bool {
        if self.soak_looks().is_none() {
            return true;
        }
        // Growth that is in no part of the JVM's own account is not understood.
        let Some(before) = growth.first_cycle else {
            return false;
        };
        let now = growth.per_million;
        let is_long = self.soaked >= LONG;
        let weighed = growth.bytes_per_million.unwrap_or(now);
        let is_same = now >= STEADY * before && (is_long || before >= STEADY * now);
        is_same || (is_long && weighed >= AGREE * trend.slope * 1e6)
    }

    fn name_part(&self, growth: &mut PartGrowth) {
        let Some(looks) = self.soak_looks() else {
            return;
        };
        let rate = |(part, get): &Region| {
            let rates = looks.growth_rates(|look| bytes_as_f64(get(look)));
            (*part, rates)
        };
        let most = REGIONS.iter().map(rate);
        let most = most.max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let Some((part, (before, now))) = most.filter(|m| m.1.1 * 1e6 > growth.per_million / 2.0)
        else {
            return;
        };
        growth.part = match part {
            // They are malloc's, or mapped one by one.
            GrowingPart::Malloc | GrowingPart::Jvm if looks.has_more_buffers() => {
                GrowingPart::Direct
            }
            part => part,
        };
        let (before, now) = match part {
            GrowingPart::Threads => {
                growth.bytes_per_million = Some(now * 1e6);
                looks.growth_rates(|look| look.threads as f64)
            }
            _ => (before, now),
        };
        (growth.per_million, growth.first_cycle) = (now * 1e6, Some(before * 1e6));
        if growth.part == GrowingPart::Malloc {
            let held = bytes_as_f64(looks.end.malloc).max(1.0);
            let trimmed = looks.end.malloc_trimmed;
            growth.given_back = trimmed.map(|left| (1.0 - bytes_as_f64(left) / held).max(0.0));
        }
    }

    /// The resident part of the heap at each point: pages used before a collection stay resident
    /// until the heap shrinks. Empty if the heap is not known.
    fn touched_heap(&self) -> BTreeMap<u64, Bytes> {
        let mut touched = Bytes::default();
        let points = self.soak.points.iter();
        let known = points.filter(|p| p.heap_committed.is_some());
        let at = known.map(|point| {
            touched = touched.max(point.heap_before.unwrap_or_default());
            touched = touched.min(point.heap_committed.unwrap_or_default());
            (point.at_ns, touched)
        });
        at.collect()
    }
}

fn bytes_as_f64(bytes: Bytes) -> f64 {
    bytes.as_bytes() as f64
}
