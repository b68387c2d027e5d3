//! Where a pause came from: GC, throttling, or something else, in milliseconds of each.
//!
//! Owns the classes of a pause. Where the group stood throttled comes from [`crate::estimate`].
//! A GC log alone explains about half of the long pauses of a throttled JVM, and blames GC for
//! time in which no GC thread was allowed to run. Everything is on CLOCK_MONOTONIC.

use crate::span::{TimeSpan, TimeSpans};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PauseSources {
    /// Stop-the-world safepoints from request to release ([end − Total, end] of the log line; the
    /// pause line alone is too short).
    pub safepoints: TimeSpans,
    /// Of them, the part until all threads had stopped ("Reaching safepoint").
    pub reaching: TimeSpans,
    /// Throttling, from [`crate::estimate`] or a tracer.
    pub throttled: TimeSpans,
    /// Of it, the part in which the group ran on another CPU: a collection goes on there.
    pub partly: TimeSpans,
    /// Stalls of the pausing thread on allocation (ZGC) or pacing (Shenandoah).
    pub allocation_stalls: TimeSpans,
    /// Waits for a CPU that were not throttling, where a tracer tells them apart in time.
    pub contention: TimeSpans,
    /// Times without the samples that were due: what happened in them is a guess.
    pub gaps: TimeSpans,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PauseClass {
    Gc,
    /// Collection, standing because the quota was used up.
    GcThrottled,
    /// The application's own threads, standing because the quota was used up.
    MutatorThrottled,
    AllocationStall,
    SafepointSync,
    CpuContention,
    Other,
}

impl PauseClass {
    pub const ALL: [Self; 7] = [
        Self::Gc,
        Self::GcThrottled,
        Self::MutatorThrottled,
        Self::AllocationStall,
        Self::SafepointSync,
        Self::CpuContention,
        Self::Other,
    ];

    pub fn class_name(self) -> &'static str {
        match self {
            Self::Gc => "gc",
            Self::GcThrottled => "gc_throttled",
            Self::MutatorThrottled => "mutator_throttled",
            Self::AllocationStall => "allocation_stall",
            Self::SafepointSync => "safepoint_sync",
            Self::CpuContention => "cpu_contention",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    pub pause: TimeSpan,
    /// Nanoseconds of each class, in the order of [`PauseClass::ALL`]; they add up to the pause.
    pub ns: [u64; 7],
    /// Sampling error of each figure, ns: one interval for each edge of a throttled span within the
    /// pause, plus all time in gaps.
    pub error_ns: u64,
}

impl Attribution {
    pub fn class_ns(&self, class: PauseClass) -> u64 {
        self.ns[class as usize]
    }

    pub fn dominant(&self) -> PauseClass {
        // The first of equals.
        let classes = PauseClass::ALL.into_iter().rev();
        let most = classes.max_by_key(|class| self.class_ns(*class));
        most.unwrap_or(PauseClass::Gc)
    }

    pub fn covered_share(&self) -> f64 {
        match self.pause.length_ns() {
            0 => 1.0,
            length => 1.0 - self.class_ns(PauseClass::Other) as f64 / length as f64,
        }
    }
}

/// Explains one pause.
///
/// With S the safepoints, T the throttling, P its part in which another CPU ran, A the allocation
/// stalls and W the waits for a CPU: gc_throttled = S ∩ (T \ P), gc = S less that (and less the
/// time to reach the safepoint, which is safepoint_sync), mutator_throttled = T \ S,
/// allocation_stall = A \ S \ T, cpu_contention = W \ the rest. Another running CPU does not help
/// an application thread that is stopped, but it does help a collection, because collector threads
/// share the work.
pub fn attribute_pause(pause: TimeSpan, sources: &PauseSources, sampling_ns: u64) -> Attribution {
    let s = sources.safepoints.within(pause);
    let t = sources.throttled.within(pause);
    let a = sources.allocation_stalls.within(pause);
    let w = sources.contention.within(pause);
    let standing = s.intersection(&t.difference(&sources.partly));
    let running = s.difference(&standing);
    let sync = running.intersection(&sources.reaching);
    let known = s.union(&t);
    let stalls = a.difference(&known);
    let known = known.union(&a);
    let contention = w.difference(&known);
    let known = known.union(&w);
    let ns = [
        running.len_ns() - sync.len_ns(),
        standing.len_ns(),
        t.difference(&s).len_ns(),
        stalls.len_ns(),
        sync.len_ns(),
        contention.len_ns(),
        pause.length_ns() - known.len_ns(),
    ];
    let edges = 2 * t.as_slice().len() as u64;
    let error = edges * sampling_ns + sources.gaps.within(pause).len_ns();
    Attribution {
        pause,
        ns,
        error_ns: error.min(pause.length_ns()),
    }
}

pub fn sum_by_class(attributions: &[Attribution]) -> [u64; 7] {
    let mut total = [0; 7];
    for attribution in attributions {
        for (sum, ns) in total.iter_mut().zip(attribution.ns) {
            *sum += ns;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::{CounterSample, FlatlineRule, throttled_spans};
    use crate::random::RandomStream;

    const MS: u64 = 1_000_000;

    fn ms(pairs: &[(u64, u64)]) -> TimeSpans {
        pairs
            .iter()
            .map(|(a, b)| TimeSpan::new(a * MS, b * MS))
            .collect()
    }

    /// Samples every `interval` ms of a group that is stopped in these spans and otherwise uses
    /// `cpus`.
    fn sampled(stands: &TimeSpans, cpus: u64, until: u64, interval: u64) -> Vec<CounterSample> {
        let everything = TimeSpan::new(0, until * MS);
        let up_to = |t: u64| TimeSpan::new(0, t);
        (0..=until / interval)
            .map(|index| {
                let at = index * interval * MS;
                let stood = stands.within(up_to(at)).len_ns();
                // The counter moves when a stop is over.
                let ended = stands.as_slice().iter().filter(|s| s.end <= at);
                CounterSample {
                    at,
                    usage: (at.min(everything.end) - stood) * cpus,
                    per_cpu: Vec::new(),
                    throttled: ended.map(TimeSpan::length_ns).sum::<u64>() * cpus,
                }
            })
            .collect()
    }

    #[test]
    fn every_class_gets_its_time() {
        let sources = PauseSources {
            safepoints: ms(&[(10, 50)]),
            reaching: ms(&[(10, 15)]),
            throttled: ms(&[(35, 70)]),
            partly: ms(&[(35, 40), (50, 55)]),
            allocation_stalls: ms(&[(60, 80)]),
            contention: ms(&[(75, 90)]),
            gaps: ms(&[(95, 98)]),
        };
        let got = attribute_pause(TimeSpan::new(0, 100 * MS), &sources, MS);
        let text: Vec<String> = PauseClass::ALL
            .map(|class| format!("{} {}", class.class_name(), got.class_ns(class) / MS))
            .into();
        insta::assert_snapshot!(text.join(", "), @"gc 25, gc_throttled 10, mutator_throttled 20, allocation_stall 10, safepoint_sync 5, cpu_contention 10, other 20");
        assert_eq!(got.dominant(), PauseClass::Gc);
        assert!((got.covered_share() - 0.8).abs() < 1e-12);
        assert_eq!(got.error_ns, 5 * MS);
    }

    /// The study's stop: 30 ms of work and 60 ms of GC CPU on 4 threads, then 255 ms of nothing.
    #[test]
    fn a_log_alone_would_blame_gc_for_the_study_s_stop() {
        let sources = PauseSources {
            safepoints: ms(&[(30, 45)]),
            throttled: ms(&[(45, 300)]),
            ..PauseSources::default()
        };
        let got = attribute_pause(TimeSpan::new(30 * MS, 300 * MS), &sources, MS);
        assert_eq!(got.dominant(), PauseClass::MutatorThrottled);
        assert_eq!(got.class_ns(PauseClass::MutatorThrottled), 255 * MS);
        assert_eq!(got.covered_share(), 1.0);
    }

    /// Known stalls, sampled at 1 ms: at least 90 % of the time gets its class back.
    #[test]
    fn simulated_stalls_get_their_label_back() {
        let mut random = RandomStream::from_seed(9);
        let (mut right, mut total) = (0, 0);
        for _ in 0..200 {
            let run = 20 + random.uniform_below(60) as u64;
            let truth = ms(&[(run, 100), (100 + run, 200), (200 + run, 300)]);
            let gc = random.uniform_below(200) as u64;
            let safepoints = ms(&[(gc, gc + 60)]);
            let sources = |throttled: TimeSpans| PauseSources {
                safepoints: safepoints.clone(),
                throttled,
                ..PauseSources::default()
            };
            let estimate = throttled_spans(sampled(&truth, 1, 320, 1), FlatlineRule::default());
            let pause = TimeSpan::new(gc * MS, (gc + 80) * MS);
            let wanted = attribute_pause(pause, &sources(truth), MS);
            let got = attribute_pause(pause, &sources(estimate), MS);
            total += pause.length_ns();
            right += wanted
                .ns
                .iter()
                .zip(got.ns)
                .map(|(a, b)| b.min(*a))
                .sum::<u64>();
        }
        assert!(right as f64 >= 0.9 * total as f64, "{right} of {total}");
    }

    proptest! {
        #[test]
        fn classes_add_up_to_the_pause(
            cuts in prop::collection::vec((0_u64..100, 0_u64..40), 15),
            from in 0_u64..60, length in 0_u64..80,
        ) {
            let set = |n: usize| -> TimeSpans {
                cuts[3 * n..3 * n + 3].iter().map(|(a, l)| TimeSpan::new(*a, a + l)).collect()
            };
            let sources = PauseSources {
                safepoints: set(0), reaching: set(1), throttled: set(2), partly: set(0),
                allocation_stalls: set(3), contention: set(4), gaps: set(1),
            };
            let got = attribute_pause(TimeSpan::new(from, from + length), &sources, 1);
            prop_assert_eq!(got.ns.iter().sum::<u64>(), length);
        }
    }
}
