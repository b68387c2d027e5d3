//! More CPU until ready: the least that halves the start of a size that was found.
//!
//! Owns which amounts are tried, in rising order because the least costs least, and when one is enough.
//! A start that misses the SLO rules its amount out.

use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::Cpus;

use super::size::proof_ask;
use super::{Next, SeenTrials, TrialSearch, read_records};
use crate::interval::median;
use crate::record::{Configuration, TrialRecord, TrialVerdict};
use crate::startup::ready_seconds;

/// Times the CPU limit.
const FACTORS: [u32; 2] = [2, 4];

/// Starts of each amount. A start's CPU time strays by a few percent, and the bound is half.
pub const STARTS: u32 = 3;

/// The share of the plain start that is fast enough, in [0, 1].
const ENOUGH: f64 = 0.5;

#[derive(Debug, Clone, PartialEq)]
pub struct StartCpuSearch {
    /// The found size, without CPU for its start.
    pub found: Configuration,
    /// Its start, s.
    pub plain: f64,
    pub machine: Cpus,
    pub start_deadline: Duration,
}

impl TrialSearch for StartCpuSearch {
    /// What to ship; `None` where no amount is enough.
    type Answer = Option<Configuration>;

    fn next(&self, seen: &SeenTrials) -> Next<Self::Answer> {
        for start in self.amounts() {
            let boosted = self.found.with_start_cpu(start);
            let first = proof_ask(&boosted, 1, self.start_deadline);
            let asks = first.repeats(STARTS).collect();
            if self.is_enough(&read_records(seen, asks)?) {
                return Ok(Some(boosted));
            }
        }
        Ok(None)
    }
}

impl StartCpuSearch {
    /// Above the limit and within the machine. Empty without a limit, or if the machine has no more.
    pub fn amounts(&self) -> Vec<Cpus> {
        let Some(limit) = self.found.cpu else {
            return Vec::new();
        };
        let times = |factor| Cpus::from_millis(limit.as_millis().saturating_mul(factor));
        let amounts = FACTORS.map(|factor| times(factor).min(self.machine));
        let mut amounts = amounts.to_vec();
        amounts.dedup();
        amounts.retain(|amount| *amount > limit);
        amounts
    }

    fn is_enough(&self, starts: &[Arc<TrialRecord>]) -> bool {
        let times = starts.iter().filter_map(|start| ready_seconds(start));
        let time = median(&times.collect::<Vec<_>>());
        let has_passed = |start: &Arc<TrialRecord>| start.verdict == TrialVerdict::Pass;
        starts.iter().all(has_passed) && time.is_some_and(|time| time <= ENOUGH * self.plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn search(limit: u32, machine: u32) -> StartCpuSearch {
        StartCpuSearch {
            found: Configuration {
                cpu: Some(Cpus::from_millis(limit)),
                ..fixture::configuration(256)
            },
            plain: 12.0,
            machine: Cpus::from_whole(machine),
            start_deadline: Duration::from_secs(60),
        }
    }

    #[test]
    fn amounts_stay_within_the_machine() {
        let amounts = |limit, machine| {
            let amounts = search(limit, machine).amounts();
            amounts.iter().map(|a| a.as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(amounts(500, 8), [1000, 2000]);
        assert_eq!(amounts(1000, 3), [2000, 3000]);
        assert_eq!(amounts(1000, 2), [2000]);
        assert_eq!(amounts(2000, 2), [0; 0]);
    }

    #[test]
    fn the_least_that_halves_the_start_is_taken() {
        let search = search(500, 8);
        let answer = |seconds: [f64; 2], verdict| {
            let mut seen = SeenTrials::default();
            let mut asked = 0;
            loop {
                let open = match search.next(&seen) {
                    Ok(answer) => break (answer.and_then(|c| c.start_cpu), asked),
                    Err(open) => open,
                };
                for ask in open.wanted {
                    let is_first = ask.configuration.start_cpu == Some(Cpus::from_whole(1));
                    let mut record = fixture::trial_record("t", ask.purpose, 256, verdict);
                    let time = if is_first { seconds[0] } else { seconds[1] };
                    record.evidence.start.ready = Some(Duration::from_secs_f64(time));
                    seen.add_record(&ask, record, Duration::ZERO);
                    asked += 1;
                }
            }
        };
        let (pass, miss) = (TrialVerdict::Pass, TrialVerdict::SloMiss);
        assert_eq!(answer([6.0, 3.0], pass), (Some(Cpus::from_whole(1)), 3));
        assert_eq!(answer([6.1, 3.0], pass), (Some(Cpus::from_whole(2)), 6));
        assert_eq!(answer([9.0, 8.0], pass), (None, 6));
        assert_eq!(answer([6.0, 3.0], miss), (None, 6));
    }
}
