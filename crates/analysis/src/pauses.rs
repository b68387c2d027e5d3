//! What a trial keeps to say later why the application stood still.
//!
//! Owns the stored form: when threads stood at a safepoint (from the JVM's log), when the cgroup
//! stood throttled (from its counters), when the application itself stood (if it writes that down),
//! and what watching it cost. Everything is [start, end) on CLOCK_MONOTONIC in ns; each list is
//! sorted and holds at most [`KEPT`] entries, those of the measure phase before others.
//! [`crate::explain`] reads it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attribution::PauseSources;
use crate::span::{TimeSpan, TimeSpans};
use crate::wire;

/// Entries of each list that are kept; a trial of minutes has far fewer.
pub const KEPT: usize = 10_000;

pub fn no_room(lists: &[(&str, u64)]) -> Option<String> {
    let lacking = lists.iter().filter(|(_, lost)| *lost > 0);
    let told = lacking.map(|(what, lost)| format!("{lost} {what}"));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "{} found no room in the record, which keeps {KEPT} of each, those of the measure phase first: counts and sums are of all, but `explain` cannot give this cause to pauses that come later",
            told.join(" and ")
        )
    })
}

/// When the application was stopped, and the known causes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct PauseEvidence {
    /// How the cgroup was watched, and what that cost.
    pub sampler: SamplerEvidence,
    /// When the cgroup stood throttled.
    pub throttled_ns: Vec<(u64, u64)>,
    /// Of that, when it ran on another CPU; empty where samples do not tell CPUs apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partly_throttled_ns: Vec<(u64, u64)>,
    /// Stop-the-world safepoints from request to release, each [start, end, time until all threads
    /// had stopped].
    pub safepoints_ns: Vec<(u64, u64, u64)>,
    /// Times a thread waited for the collector to free memory (ZGC).
    pub stalls_ns: Vec<(u64, u64)>,
    /// What the application saw; `None` where it writes nothing down.
    pub application: Option<ApplicationPauses>,
}

/// How a cgroup's counters were sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct SamplerEvidence {
    /// How throttled spans were found: `flatline-per-cpu`, `flatline`, `phase-locked`, or `none`
    /// where the samples are too far apart to find them.
    pub estimator: String,
    /// Distance of samples once it had settled.
    #[serde(rename = "interval_ns", with = "wire::nanos")]
    pub interval: Duration,
    /// Samples taken.
    pub samples: u64,
    /// How long it sampled.
    #[serde(rename = "wall_ns", with = "wire::nanos")]
    pub wall: Duration,
    /// CPU time it took, outside the application's cgroup.
    #[serde(rename = "cpu_ns", with = "wire::nanos")]
    pub cpu: Duration,
    /// Whether it ran at a real-time priority; else samples are late while CPUs are busy.
    #[serde(default)]
    pub is_realtime: bool,
    /// Times at which samples that were due are missing.
    pub gaps: u64,
    /// The longest gap.
    #[serde(rename = "longest_gap_ns", with = "wire::nanos")]
    pub longest_gap: Duration,
    /// The gaps.
    pub gaps_ns: Vec<(u64, u64)>,
    /// A boundary of the CFS period, CLOCK_MONOTONIC, when it was learnt.
    pub boundary_ns: Option<u64>,
    /// How far the boundary may be off.
    #[serde(rename = "boundary_uncertainty_ns", with = "wire::nanos_opt", default)]
    pub boundary_uncertainty: Option<Duration>,
}

impl SamplerEvidence {
    pub fn cpu_share(&self) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| self.cpu.as_secs_f64() / wall)
    }

    pub fn edge_error(&self) -> Duration {
        match self.estimator.as_str() {
            // One sample a period says how long, not when within some milliseconds.
            "phase-locked" => Duration::from_millis(4),
            _ => self.interval,
        }
    }
}

/// What an application wrote down about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub struct ApplicationPauses {
    /// Who wrote it: `allocation`, `hiccup`.
    pub source: String,
    /// Each time something took too long: [start, end).
    pub pauses_ns: Vec<(u64, u64)>,
    /// Pauses that found no room in the list.
    pub lost: u64,
    /// Operations done so far at some moments: [at, count].
    pub done: Vec<(u64, u64)>,
    /// Lines that were not understood.
    pub unknown_lines: u64,
}

impl ApplicationPauses {
    /// Operations a second between the first and the last moment within a window; `None` when
    /// fewer than two lie in it.
    pub fn operations_per_second(&self, window: TimeSpan) -> Option<f64> {
        let inside = |(at, _): &&(u64, u64)| window.start <= *at && *at <= window.end;
        let first = self.done.iter().find(inside)?;
        let last = self.done.iter().rev().find(inside)?;
        let seconds = last.0.checked_sub(first.0).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(last.1.saturating_sub(first.1) as f64 / seconds)
    }
}

impl PauseEvidence {
    pub fn sources(&self) -> PauseSources {
        let spans =
            |pairs: &[(u64, u64)]| pairs.iter().map(|(a, b)| TimeSpan::new(*a, *b)).collect();
        let safepoints = self.safepoints_ns.iter();
        let reaching = safepoints.clone();
        let reaching =
            reaching.map(|(a, b, sync)| TimeSpan::new(*a, a.saturating_add(*sync).min(*b)));
        PauseSources {
            safepoints: safepoints.map(|(a, b, _)| TimeSpan::new(*a, *b)).collect(),
            reaching: reaching.collect(),
            throttled: spans(&self.throttled_ns),
            partly: spans(&self.partly_throttled_ns),
            allocation_stalls: spans(&self.stalls_ns),
            contention: TimeSpans::default(),
            gaps: spans(&self.sampler.gaps_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_window() {
        let second = 1_000_000_000;
        let seen = ApplicationPauses {
            done: (0..10).map(|n| (n * second, n * n * 100)).collect(),
            ..ApplicationPauses::default()
        };
        let rate = |from, to| seen.operations_per_second(TimeSpan::new(from * second, to * second));
        assert_eq!(rate(2, 4), Some(600.0));
        assert_eq!(rate(0, 100), Some(900.0));
        assert_eq!(rate(4, 4), None);
        assert_eq!(rate(20, 30), None);
    }

    #[test]
    fn what_found_no_room_is_told_in_one_sentence() {
        assert_eq!(no_room(&[("safepoints", 0), ("stalls", 0)]), None);
        let told = no_room(&[("safepoints", 7), ("stalls", 0), ("GC pauses", 2)]).unwrap();
        assert!(
            told.starts_with("7 safepoints and 2 GC pauses found no room in the record, which keeps 10000 of each"),
            "{told}"
        );
    }

    #[test]
    fn reaching_a_safepoint_is_its_first_part() {
        let evidence = PauseEvidence {
            safepoints_ns: vec![(100, 200, 30), (300, 310, 50)],
            throttled_ns: vec![(150, 250)],
            ..PauseEvidence::default()
        };
        let sources = evidence.sources();
        assert_eq!(sources.safepoints.len_ns(), 110);
        assert_eq!(sources.reaching.len_ns(), 40);
        assert_eq!(sources.throttled.len_ns(), 100);
    }
}
