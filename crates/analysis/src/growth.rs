//! Whether memory keeps growing under load: the judgement of a soak.
//!
//! Owns the verdict ([`judge_soak`]) and its rules; [`trend`] fits a line through lows. Pure: the
//! series comes from the record of a soak, the randomness from a seed.
//!
//! A soak has two cycles of the same load with a rest between them. The second is judged: start,
//! JIT and caches have taken their memory by then, and growth in the first cycle only is retention,
//! not a leak. Lows separate growth from noise, because a line through raw memory takes each
//! sawtooth of a collector for a leak, and each low is compared with the low at the same place of
//! the previous cycle. The growing part and its rate come from the JVM's own exact account at the
//! rest and at the end; the lows tell whether to believe it.

mod memory;
#[cfg(test)]
mod tests;
mod trend;

use std::fmt;
use std::time::Duration;

use loadline_sizing::Bytes;

use crate::record::{SoakEvidence, SoakPoint, TrialPhase};

use trend::Trend;

/// Unseen growth that would need at least this long to fill the limit is ignored: no soak of hours
/// can exclude slower growth.
const EXCLUDED: Duration = Duration::from_secs(24 * 3600);

/// Growth of a count (threads, descriptors) in the second cycle that matters.
const COUNT_FLOOR: f64 = 8.0;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ceilings {
    pub memory: Option<Bytes>,
    pub heap: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrowingPart {
    Heap,
    /// NIO buffers outside of the heap.
    Direct,
    Threads,
    Metaspace,
    CodeCache,
    Jvm,
    /// Memory of native libraries, and what malloc keeps.
    Malloc,
    /// Anonymous memory of unknown origin.
    Native,
    Descriptors,
    Sockets,
}

impl GrowingPart {
    pub fn part_name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Direct => "direct buffers",
            Self::Threads => "threads",
            Self::Metaspace => "metaspace",
            Self::CodeCache => "code cache",
            Self::Jvm => "the JVM's own memory",
            Self::Malloc => "malloc",
            Self::Native => "native memory",
            Self::Descriptors => "descriptors",
            Self::Sockets => "sockets",
        }
    }

    /// Whether it is counted, not weighed.
    pub fn is_count(self) -> bool {
        matches!(self, Self::Threads | Self::Descriptors | Self::Sockets)
    }
}

impl fmt::Display for GrowingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.part_name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GrowthVerdict {
    /// No growth, or growth so slow that the limit lasts longer than a day. `at_least` is the time
    /// to the limit at the fastest growth that would have gone unnoticed.
    Stable {
        /// `None` without a limit, or if no growth is possible.
        at_least: Option<Duration>,
    },
    Growing,
    /// The soak was too short to exclude harmful growth.
    TooShort {
        needs: Duration,
        /// It still grows, and less than at first.
        is_settling: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartGrowth {
    pub part: GrowingPart,
    pub verdict: GrowthVerdict,
    /// Bytes, or a count, per million good responses in the second cycle.
    pub per_million: f64,
    /// The same in the first cycle, where it is known.
    pub first_cycle: Option<f64>,
    /// Bytes that a growing count takes per million responses, where they are known.
    pub bytes_per_million: Option<f64>,
    /// Time until its limit is full, of what grows and has one.
    pub full_in: Option<Duration>,
    /// Of malloc: what it gave back when it was asked, as a share of what it held.
    pub given_back: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SoakGrowth {
    /// Of all parts: growing if one grows.
    pub verdict: GrowthVerdict,
    pub soaked: Duration,
    pub requests: u64,
    /// Heap and native memory always, other parts when they grow; sorted by which fills up first.
    pub parts: Vec<PartGrowth>,
}

impl PartGrowth {
    fn for_part(part: GrowingPart, trend: Option<&Trend>) -> Self {
        Self {
            part,
            verdict: GrowthVerdict::Stable { at_least: None },
            per_million: trend.map_or(0.0, |trend| trend.slope * 1e6),
            first_cycle: None,
            bytes_per_million: None,
            full_in: None,
            given_back: None,
        }
    }
}

impl SoakGrowth {
    pub fn growing(&self) -> impl Iterator<Item = &PartGrowth> {
        let is_it = |part: &&PartGrowth| part.verdict == GrowthVerdict::Growing;
        self.parts.iter().filter(is_it)
    }
}

struct SoakCycles<'a> {
    first: Vec<&'a SoakPoint>,
    judged: Vec<&'a SoakPoint>,
    has_second: bool,
}

impl<'a> SoakCycles<'a> {
    fn from_soak(soak: &'a SoakEvidence) -> Self {
        let first: Vec<_> = soak.points_in(TrialPhase::Measure).collect();
        let second: Vec<_> = soak.points_in(TrialPhase::Again).collect();
        // A cycle that had only begun says less than the end of the one before it.
        if second.len() * 2 >= first.len() && !second.is_empty() {
            return Self {
                first,
                judged: second,
                has_second: true,
            };
        }
        Self {
            judged: first[first.len() / 2..].to_vec(),
            first: Vec::new(),
            has_second: false,
        }
    }

    /// Good responses a second in the judged part; `None` where none came.
    fn response_rate(&self) -> Option<f64> {
        let (first, last) = (self.judged.first()?, self.judged.last()?);
        let seconds = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
        let requests = last.requests.saturating_sub(first.requests) as f64;
        (seconds > 0.0 && requests > 0.0).then(|| requests / seconds)
    }
}

pub fn judge_soak(soak: &SoakEvidence, ceilings: Ceilings, seed: u64) -> SoakGrowth {
    let cycles = SoakCycles::from_soak(soak);
    let soaked = soak.time_under_load();
    let judging = GrowthJudge {
        soak,
        cycles: &cycles,
        ceilings,
        soaked,
        rate: cycles.response_rate().unwrap_or(0.0),
        seed,
    };
    let mut parts = vec![judging.heap_growth(), judging.native_growth()];
    let counts = judging.growing_counts();
    // Stacks are what threads take: one part, told once.
    let is_told = |p: &PartGrowth| p.part == parts[1].part;
    let counts: Vec<PartGrowth> = counts.into_iter().filter(|p| !is_told(p)).collect();
    parts.extend(counts);
    parts.sort_by_key(|p| {
        let is_growing = p.verdict == GrowthVerdict::Growing;
        (!is_growing, p.full_in.unwrap_or(Duration::MAX), p.part)
    });
    SoakGrowth {
        verdict: overall_verdict(&parts),
        soaked,
        requests: soak.points.last().map_or(0, |p| p.requests),
        parts,
    }
}

fn overall_verdict(parts: &[PartGrowth]) -> GrowthVerdict {
    if parts.iter().any(|p| p.verdict == GrowthVerdict::Growing) {
        return GrowthVerdict::Growing;
    }
    let short = parts.iter().filter_map(|p| match p.verdict {
        GrowthVerdict::TooShort { needs, is_settling } => Some((needs, is_settling)),
        _ => None,
    });
    if let Some((needs, is_settling)) = short.max() {
        return GrowthVerdict::TooShort { needs, is_settling };
    }
    let lasts = parts.iter().filter_map(|p| match p.verdict {
        GrowthVerdict::Stable { at_least } => at_least,
        _ => None,
    });
    let at_least = lasts.min();
    GrowthVerdict::Stable { at_least }
}

struct GrowthJudge<'a> {
    soak: &'a SoakEvidence,
    cycles: &'a SoakCycles<'a>,
    ceilings: Ceilings,
    soaked: Duration,
    rate: f64,
    seed: u64,
}

impl GrowthJudge<'_> {
    fn growing_counts(&self) -> Vec<PartGrowth> {
        type Count = fn(&SoakPoint) -> Option<u64>;
        let kinds: [(GrowingPart, Count); 3] = [
            (GrowingPart::Threads, |p| p.threads),
            (GrowingPart::Descriptors, |p| p.descriptors),
            (GrowingPart::Sockets, |p| p.sockets),
        ];
        let grown = kinds.into_iter().filter_map(|(part, count)| {
            let trend = self.fit_trend(|p| count(p).map(|n| n as f64))?;
            let is_growing = trend.is_growing() && trend.cycle_growth() >= COUNT_FLOOR;
            is_growing.then(|| PartGrowth {
                verdict: GrowthVerdict::Growing,
                bytes_per_million: self.stack_growth().filter(|_| part == GrowingPart::Threads),
                ..PartGrowth::for_part(part, Some(&trend))
            })
        });
        let mut grown: Vec<PartGrowth> = grown.collect();
        // Each socket is also a descriptor: keep the more specific finding.
        if grown.iter().any(|p| p.part == GrowingPart::Sockets) {
            grown.retain(|p| p.part != GrowingPart::Descriptors);
        }
        grown
    }

    /// Growth of a value from cycle to cycle; within the judged part if there is only one cycle.
    fn fit_trend(&self, get: impl Fn(&SoakPoint) -> Option<f64>) -> Option<Trend> {
        let values = |points: &[&SoakPoint]| -> Vec<(f64, f64)> {
            let value = |p: &&SoakPoint| Some((p.requests as f64, get(p)?));
            points.iter().filter_map(value).collect()
        };
        let judged = values(&self.cycles.judged);
        if self.cycles.has_second {
            trend::between_cycles(&values(&self.cycles.first), &judged, self.seed)
        } else {
            trend::within_cycle(&judged, self.seed)
        }
    }

    /// Time until `room` is used up; `None` if it never is.
    fn full_in(&self, room: Bytes, per_response: f64) -> Option<Duration> {
        let per_second = per_response * self.rate;
        (per_second > 0.0).then(|| {
            // A thousand years are for ever.
            let seconds = (room.as_bytes() as f64 / per_second).min(3e10);
            Duration::from_secs_f64(seconds)
        })
    }

    /// For a part without visible growth: whether harmful growth could have gone unnoticed.
    fn quiet_verdict(&self, line: Option<&Trend>, room: Option<Bytes>) -> GrowthVerdict {
        match line {
            Some(line) => self.hidden_verdict(room, line.high),
            None => self.too_short(2.0, false),
        }
    }

    /// Of growth that may hide, bytes per response: whether it matters.
    fn hidden_verdict(&self, room: Option<Bytes>, per_response: f64) -> GrowthVerdict {
        let Some(room) = room else {
            return GrowthVerdict::Stable { at_least: None };
        };
        match self.full_in(room, per_response) {
            Some(full) if full < EXCLUDED => {
                // The error of a slope falls with the length to the power of 3/2.
                let times = EXCLUDED.as_secs_f64() / full.as_secs_f64().max(1.0);
                self.too_short(times.powf(2.0 / 3.0), false)
            }
            full => GrowthVerdict::Stable { at_least: full },
        }
    }

    fn too_short(&self, times: f64, is_settling: bool) -> GrowthVerdict {
        const LEAST: Duration = Duration::from_secs(600);
        let needs = self.soaked.mul_f64(times.clamp(1.5, 100.0)).max(LEAST);
        let minutes = needs.as_secs().div_ceil(600) * 10;
        GrowthVerdict::TooShort {
            needs: Duration::from_secs(minutes * 60),
            is_settling,
        }
    }
}
