//! What a cgroup used of the CPU around a pause, step by step.
//!
//! Owns the thinning of samples to what can be looked at. Samples come from the raw evidence of a
//! trial, at the distance at which they were taken; nothing here is an estimate.

use std::time::Duration;

use crate::estimate::CounterSample;
use crate::span::TimeSpan;

/// Most steps: a line of a terminal, with room for words.
const STEPS: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimelineStep {
    pub from_ns: u64,
    pub to_ns: u64,
    pub cpus: f64,
    /// Growth of throttled time: a sum over CPUs, told when the throttling is over.
    pub throttled: Duration,
}

/// A pause with a quarter of its length before and after.
pub fn span_around(pause: TimeSpan) -> TimeSpan {
    let more = pause.length_ns() / 4;
    let from = pause.start.saturating_sub(more);
    TimeSpan::new(from, pause.end.saturating_add(more))
}

pub fn to_steps(samples: &[CounterSample]) -> Vec<TimelineStep> {
    let between = samples.len().saturating_sub(1);
    let each = between.div_ceil(STEPS).max(1);
    let step = |index: usize| {
        let (first, last) = (&samples[index], &samples[(index + each).min(between)]);
        let wall = last.at.saturating_sub(first.at).max(1);
        TimelineStep {
            from_ns: first.at,
            to_ns: last.at,
            cpus: last.usage.saturating_sub(first.usage) as f64 / wall as f64,
            throttled: Duration::from_nanos(last.throttled.saturating_sub(first.throttled)),
        }
    };
    (0..between).step_by(each).map(step).collect()
}

pub fn bars(steps: &[TimelineStep]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = steps.iter().map(|step| step.cpus).fold(0.0, f64::max);
    let bar = |step: &TimelineStep| {
        let share = if most > 0.0 { step.cpus / most } else { 0.0 };
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    steps.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One CPU runs for 50 ms of 100, then stands throttled.
    fn samples(milliseconds: u64) -> Vec<CounterSample> {
        let sample = |ms: u64| CounterSample {
            at: ms * 1_000_000,
            usage: (ms / 100 * 50 + (ms % 100).min(50)) * 1_000_000,
            throttled: ms / 100 * 50_000_000,
            ..CounterSample::default()
        };
        (0..=milliseconds).map(sample).collect()
    }

    #[test]
    fn few_samples_are_shown_as_they_are_and_many_in_groups() {
        assert_eq!(to_steps(&samples(0)), []);
        let few = to_steps(&samples(10));
        assert_eq!((few.len(), few[0].to_ns, few[0].cpus), (10, 1_000_000, 1.0));
        let many = to_steps(&samples(400));
        assert_eq!((many.len(), many[0].to_ns), (40, 10_000_000));
        let throttled: Duration = many.iter().map(|step| step.throttled).sum();
        assert_eq!(throttled, Duration::from_millis(200));
        insta::assert_snapshot!(bars(&many), @"█████▁▁▁▁▁█████▁▁▁▁▁█████▁▁▁▁▁█████▁▁▁▁▁");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn around_a_pause_is_a_quarter_more_on_each_side() {
        let span = span_around(TimeSpan::new(100, 200));
        assert_eq!(span, TimeSpan::new(75, 225));
        assert_eq!(span_around(TimeSpan::new(1, 101)).start, 0);
    }
}
