//! May this trial count at all? The gate against a noisy machine.
//!
//! Owns the thresholds and their comparison with the evidence; [`crate::verdict`] decides what a
//! closed gate excuses. A disturbed trial of a search counts for what noise cannot change.

use std::time::Duration;

use crate::record::{InvalidReason, NoiseEvidence};
use crate::text;

/// Above any of these a trial says more about the machine than about the application.
///
/// The figures are proposals of the project, not measured optima: steal and contention of a few
/// percent move a p99 by tens of percent, CPU-time metrics hardly at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseThresholds {
    /// Share of CPU time the hypervisor took, in [0, 1].
    pub steal: f64,
    /// CPU used outside the trial, as a share of the machine's CPUs, in [0, 1].
    pub foreign_cpu: f64,
    /// Wait for a CPU that was not the application's own throttling, in [0, 1] of the window.
    pub contention: f64,
    pub swap_in_pages: u64,
    /// Disagreement of the clocks; a second means a suspend or a step of the clock.
    pub clock_jump: Duration,
    pub outer_throttled: Duration,
}

impl Default for NoiseThresholds {
    fn default() -> Self {
        Self {
            steal: 0.01,
            foreign_cpu: 0.05,
            contention: 0.02,
            swap_in_pages: 0,
            clock_jump: Duration::from_secs(1),
            outer_throttled: Duration::from_millis(10),
        }
    }
}

impl NoiseThresholds {
    /// Accepts other programs on the machine, however much they take. Stepped clocks and a
    /// throttled cgroup around loadline still count: they break the measurement itself.
    pub fn accepting_neighbours() -> Self {
        Self {
            steal: f64::INFINITY,
            foreign_cpu: f64::INFINITY,
            contention: f64::INFINITY,
            swap_in_pages: u64::MAX,
            ..Self::default()
        }
    }
}

pub fn why_too_noisy(
    noise: &NoiseEvidence,
    limits: &NoiseThresholds,
) -> Option<(InvalidReason, String)> {
    if let Some(jump) = noise.clock_jump.filter(|jump| *jump > limits.clock_jump) {
        let jump = text::short_duration(jump);
        let reason = format!("the clocks disagreed by {jump}: suspended, or a clock was set");
        return Some((InvalidReason::ClockJump, reason));
    }
    let outer = noise.outer_throttled;
    if let Some(time) = outer.filter(|time| *time > limits.outer_throttled) {
        let time = text::short_duration(time);
        let reason = format!("a cgroup around loadline was throttled for {time}");
        return Some((InvalidReason::OuterThrottle, reason));
    }
    let share = |who: &str, of: &str, value: Option<f64>, limit: f64| {
        let value = value.filter(|value| *value > limit)?;
        let value = text::percent_beside(value, limit);
        let limit = text::percent_bound(limit);
        Some(format!("{who} {value} of {of} (at most {limit})"))
    };
    let swapped = || {
        let pages = noise.swap_in_pages.filter(|p| *p > limits.swap_in_pages)?;
        let pages = text::short_count(pages);
        Some(format!("the machine swapped in {pages} pages"))
    };
    let held = "the time for a CPU that others held";
    share("the hypervisor took", "the CPUs", noise.steal, limits.steal)
        .or_else(|| {
            let who = "other programs used";
            share(who, "the CPUs", noise.foreign_cpu, limits.foreign_cpu)
        })
        .or_else(|| {
            let who = "the application waited";
            share(who, held, noise.contention, limits.contention)
        })
        .or_else(swapped)
        .map(|reason| (InvalidReason::Noise, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(noise: NoiseEvidence) -> String {
        match why_too_noisy(&noise, &NoiseThresholds::default()) {
            Some((cause, reason)) => format!("{}: {reason}", cause.reason_name()),
            None => "quiet".to_owned(),
        }
    }

    #[test]
    fn each_disturbance_is_named_with_its_number() {
        let quiet = NoiseEvidence::default;
        let lines = [
            reason(NoiseEvidence {
                steal: Some(0.031),
                ..quiet()
            }),
            reason(NoiseEvidence {
                foreign_cpu: Some(0.5),
                ..quiet()
            }),
            reason(NoiseEvidence {
                contention: Some(0.19),
                ..quiet()
            }),
            reason(NoiseEvidence {
                swap_in_pages: Some(4096),
                ..quiet()
            }),
            reason(NoiseEvidence {
                clock_jump: Some(Duration::from_secs(90)),
                ..quiet()
            }),
            reason(NoiseEvidence {
                outer_throttled: Some(Duration::from_millis(300)),
                ..quiet()
            }),
            reason(quiet()),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        noise: the hypervisor took 3.10 % of the CPUs (at most 1 %)
        noise: other programs used 50 % of the CPUs (at most 5 %)
        noise: the application waited 19 % of the time for a CPU that others held (at most 2 %)
        noise: the machine swapped in 4.10 k pages
        clock_jump: the clocks disagreed by 90s: suspended, or a clock was set
        outer_throttle: a cgroup around loadline was throttled for 300ms
        quiet
        ");
    }

    #[test]
    fn neighbours_can_be_accepted_but_not_a_broken_measurement() {
        let limits = NoiseThresholds::accepting_neighbours();
        let neighbours = NoiseEvidence {
            steal: Some(0.9),
            foreign_cpu: Some(0.9),
            contention: Some(0.9),
            swap_in_pages: Some(1 << 40),
            ..NoiseEvidence::default()
        };
        assert_eq!(why_too_noisy(&neighbours, &limits), None);
        let suspended = NoiseEvidence {
            clock_jump: Some(Duration::from_secs(90)),
            ..NoiseEvidence::default()
        };
        assert!(why_too_noisy(&suspended, &limits).is_some());
    }

    #[test]
    fn a_value_at_its_threshold_is_still_quiet() {
        let noise = NoiseEvidence {
            steal: Some(0.01),
            foreign_cpu: Some(0.05),
            contention: Some(0.02),
            swap_in_pages: Some(0),
            clock_jump: Some(Duration::from_secs(1)),
            outer_throttled: Some(Duration::from_millis(10)),
            host_cpu_pressure: Some(0.9),
        };
        assert_eq!(why_too_noisy(&noise, &NoiseThresholds::default()), None);
    }
}
