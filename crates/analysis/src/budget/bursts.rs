//! The memory that starts hold in and behind a burst, and the limit that it needs.
//!
//! Owns that rule. Compilers work differently in each start: the bursts of aged starts of WireMock added
//! 18 to 77 MiB. So each fresh start gets a burst too, and all starts decide together.

use loadline_sizing::Bytes;

use super::MemoryWall;
use super::expect::aged_seconds;
use crate::record::{AppKo, SecondEvidence, TrialPhase, TrialPurpose, TrialRecord, TrialVerdict};

/// How far starts differ, while few ran: by this share of their memory, more than any measured service did
/// without a burst, and by this share of the memory that bursts added.
const MEMORY_STRAYS: f64 = 0.023;
const BURST_STRAYS: f64 = 0.33;
/// Starts that this knowledge is worth.
const KNOWN_STARTS: f64 = 8.0;
/// 95 % of a normal distribution lie below this many standard deviations above its mean.
const MOST_STARTS: f64 = 1.645;
/// A limit is raised where it is less than this share of [`BurstMemory::factor`] away.
const NEAR: f64 = 0.9;
/// Less than this factor waits for more starts, which may show that the limit suffices ...
const MUCH: (u64, u64) = (104, 100);
/// ... up to the squeezed start and three fresh ones.
const ENOUGH: usize = 4;

/// Anonymous memory of starts at its most, MiB.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstMemory {
    /// Of each start, the squeezed one first.
    most: Vec<f64>,
    /// What a burst added on average.
    added: f64,
    /// Also within the limit: kernel and shared memory, and files that a warm service reads.
    beside: f64,
}

/// Most anonymous memory of a start, MiB: up to the end of its judged load, and over all of it.
struct StartMemory {
    judged: f64,
    most: f64,
}

impl BurstMemory {
    /// From a squeezed start and the fresh ones with its options that had a burst. If none had, each counts
    /// as if a burst had added as much as the squeezed one's. `None` without a wall, or without samples.
    pub fn from_starts<'a>(
        squeezed: &TrialRecord,
        fresh: impl IntoIterator<Item = &'a TrialRecord>,
    ) -> Option<Self> {
        let evidence = &squeezed.evidence;
        let wall = MemoryWall::of_start(evidence)?;
        let aged = evidence.squeeze.as_ref()?.aged.as_ref()?;
        let judged = evidence.cgroup.peak_anon?.as_mib();
        let seconds = aged_seconds(evidence, aged).filter_map(|second| second.anon);
        let held: Vec<f64> = seconds.map(Bytes::as_mib).collect();
        let last = held.last().copied().unwrap_or(judged);
        let own = StartMemory {
            judged,
            most: held.into_iter().fold(judged, f64::max),
        };
        let not_anonymous = (aged.unreclaimable().as_mib() - last).max(0.0);
        let added = own.most - own.judged;
        let is_alike = |start: &&TrialRecord| {
            let (one, other) = (&start.configuration, &squeezed.configuration);
            start.purpose == TrialPurpose::Prove
                && one.jvm_options == other.jvm_options
                && one.jdk == other.jdk
        };
        let fresh: Vec<&TrialRecord> = fresh.into_iter().filter(is_alike).collect();
        let has_burst = |start: &&TrialRecord| most_in_burst(start).is_some();
        let is_any = fresh.iter().any(has_burst);
        let fresh = fresh
            .into_iter()
            .filter(|start| !is_any || has_burst(start));
        let fresh = fresh.filter_map(|start| StartMemory::of_fresh(start, added, not_anonymous));
        let all: Vec<StartMemory> = [own].into_iter().chain(fresh).collect();
        let added: f64 = all.iter().map(|start| start.most - start.judged).sum();
        Some(Self {
            added: added / all.len() as f64,
            most: all.iter().map(|start| start.most).collect(),
            beside: wall.warm_room().as_mib() + not_anonymous,
        })
    }

    /// The limit that bursts of 95 % of all starts need; `None` while this one is far enough above.
    pub fn limit_above(&self, limit: Bytes) -> Option<Bytes> {
        let needed = self.needed_limit();
        let is_short = needed >= limit.mul_ratio(MUCH.0, MUCH.1) || self.most.len() >= ENOUGH;
        (is_short && !self.is_far_from(limit)).then_some(needed)
    }

    pub fn needed_limit(&self) -> Bytes {
        let most = self.mean() + self.factor() * self.deviation() + self.beside;
        Bytes::from_bytes((most * f64::from(1 << 20)) as u64)
    }

    /// How far the limit is above the mean of the bursts, in standard deviations.
    pub fn deviations(&self, limit: Bytes) -> f64 {
        (limit.as_mib() - self.beside - self.mean()) / self.deviation()
    }

    pub fn is_far_from(&self, limit: Bytes) -> bool {
        self.deviations(limit) >= NEAR * self.factor()
    }

    /// `bursts of 4 starts held 133 to 190 MiB`, where two starts show it.
    pub(super) fn range_text(&self) -> Option<String> {
        let least = self.most.iter().copied().fold(f64::MAX, f64::min);
        let most = self.most.iter().copied().fold(0.0, f64::max);
        let starts = self.most.len();
        (starts > 1).then(|| format!("bursts of {starts} starts held {least:.0} to {most:.0} MiB"))
    }

    fn mean(&self) -> f64 {
        self.most.iter().sum::<f64>() / self.most.len() as f64
    }

    /// Combines the starts that ran with the known spread of others.
    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let known = (MEMORY_STRAYS * mean).powi(2) + (BURST_STRAYS * self.added).powi(2);
        let squares = self.most.iter().map(|most| (most - mean).powi(2));
        let own: f64 = squares.sum();
        let starts = KNOWN_STARTS + self.most.len() as f64 - 1.0;
        ((KNOWN_STARTS * known + own) / starts).sqrt()
    }

    /// Standard deviations above the mean of these starts, below which 95 % of all are.
    fn factor(&self) -> f64 {
        MOST_STARTS * (1.0 + 1.0 / (self.most.len() as f64).sqrt())
    }
}

impl StartMemory {
    fn of_fresh(start: &TrialRecord, added: f64, not_anonymous: f64) -> Option<Self> {
        let judged = start.evidence.cgroup.peak_anon?.as_mib();
        let in_burst = most_in_burst(start).unwrap_or(judged + added);
        // A killed start would have taken more than its limit.
        let least = match (start.verdict, start.configuration.memory) {
            (TrialVerdict::AppKo(AppKo::CgroupOom), Some(limit)) => limit.as_mib() - not_anonymous,
            _ => 0.0,
        };
        Some(Self {
            judged,
            most: judged.max(in_burst).max(least),
        })
    }
}

fn most_in_burst(start: &TrialRecord) -> Option<f64> {
    let begin = start.evidence.span_of(TrialPhase::Age)?.start;
    let behind = |second: &&SecondEvidence| second.at_ns > begin;
    let seconds = start.evidence.seconds.iter().filter(behind);
    let most = seconds.filter_map(|second| second.anon).max()?;
    Some(most.as_mib())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(most: &[f64], added: f64) -> BurstMemory {
        BurstMemory {
            most: most.to_vec(),
            added,
            beside: 14.0,
        }
    }

    /// Nine starts of WireMock: a search for each start that came first, with the next three as fresh ones.
    #[test]
    fn four_starts_answer_alike_whichever_of_them_is_squeezed() {
        let held = [
            169.0, 190.0, 146.0, 133.0, 175.0, 179.0, 182.0, 160.0, 176.0,
        ];
        let next = |first: usize| -> Vec<f64> {
            held.iter().copied().cycle().skip(first).take(4).collect()
        };
        let limits =
            (0..held.len()).map(|first| bursts(&next(first), 56.0).needed_limit().as_mib());
        let limits: Vec<f64> = limits.collect();
        let most = limits.iter().copied().fold(0.0, f64::max);
        let least = limits.iter().copied().fold(f64::MAX, f64::min);
        assert!(least > 214.0 && most < 238.0, "{limits:?}");
    }

    #[test]
    fn a_limit_that_bursts_come_near_is_raised_to_where_they_do_not() {
        let calm = bursts(&[200.0, 201.0, 199.0, 200.0], 4.0);
        let mib = Bytes::from_mib;
        assert_eq!(calm.limit_above(mib(230)), None);
        assert!(calm.limit_above(mib(222)) > Some(mib(224)));
        assert!(calm.needed_limit() < mib(230));
        let alone = bursts(&[200.0], 4.0);
        assert!(alone.needed_limit() > calm.needed_limit());
        assert_eq!(alone.range_text(), None);
        let wild = bursts(&[133.0, 190.0], 45.0);
        assert!(wild.needed_limit() > mib(220));
        assert_eq!(
            wild.range_text().as_deref(),
            Some("bursts of 2 starts held 133 to 190 MiB")
        );
    }
}
