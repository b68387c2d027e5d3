//! When a cgroup was throttled, estimated from samples of its counters.
//!
//! Owns two estimators: the flatline of usage (1 kHz samples), and one sample per CFS period
//! (phase-locked). The kernel reports throttled time only after it is over, and as a sum over CPUs, so
//! the span must be estimated. Dividing the growth by the number of CPUs looks simpler and fails if
//! only some of them are throttled. Samples are processed one by one and dropped: an hour at 1 kHz
//! does not fit into memory. All times are CLOCK_MONOTONIC.

use std::borrow::Borrow;

use crate::span::{TimeSpan, TimeSpans};

const MATCHED_CPUS: usize = 12;

/// How much the kernel's own account of throttled time may differ from wall time, ns.
const SLACK: u64 = 2_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSample {
    pub at: u64,
    /// CPU time used by all CPUs since the cgroup was made, ns.
    pub usage: u64,
    /// The same on each CPU (cgroup v1); empty where the kernel does not give it.
    pub per_cpu: Vec<u64>,
    /// Throttled time since the cgroup was made, ns, summed over CPUs. It grows when the
    /// throttling is over, not while it lasts.
    pub throttled: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlatlineRule {
    /// Usage must grow by more than this between samples to count as running, ns.
    pub running: u64,
    /// Shorter spans are not reported, ns.
    pub shortest: u64,
}

impl Default for FlatlineRule {
    fn default() -> Self {
        Self {
            running: 50_000,
            shortest: 1_500_000,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodBoundaries {
    /// One boundary, ns; the others are whole periods away.
    pub at: u64,
    pub period: u64,
}

impl PeriodBoundaries {
    fn boundary_before(self, moment: u64) -> u64 {
        let period = self.period.max(1);
        match moment.checked_sub(self.at) {
            Some(after) => moment - after % period,
            None => moment.saturating_sub((period - (self.at - moment) % period) % period),
        }
    }
}

/// Places throttled time by the flatline of usage.
///
/// If throttled time has grown by D at sample t, a CPU was stopped between the sample where its
/// usage stopped growing and the sample where it grew again. With usage per CPU, its growth between
/// two samples gives the position between them: it stopped that long after the first, or resumed
/// that long before the second. The CPUs chosen are those with lengths L that best add up to D,
/// each for L·D/ΣL. With only the total, the span begins at the last sample with growth and ends at
/// t, but lasts no longer than D.
pub fn throttled_spans(
    samples: impl IntoIterator<Item = impl Borrow<CounterSample>>,
    rule: FlatlineRule,
) -> TimeSpans {
    let mut stopped = Vec::new();
    let mut spans = Vec::new();
    each_pair(samples, |before, now| {
        let cpus = before.per_cpu.len();
        if stopped.is_empty() {
            stopped = vec![before.at; cpus.max(1)];
        }
        let throttled = now.throttled.saturating_sub(before.throttled);
        if throttled > 0 {
            let from = stopped[0].max(now.at.saturating_sub(throttled));
            let found = match cpus {
                0 => vec![TimeSpan::new(from, now.at)],
                _ => matching_stands(cpu_stands(before, now, &stopped), throttled),
            };
            spans.extend(found.into_iter().filter(|s| s.length_ns() > rule.shortest));
        }
        for (cpu, stopped) in stopped.iter_mut().enumerate() {
            let growth = usage_growth(before, now, cpu);
            if growth > rule.running {
                *stopped = match cpus {
                    0 => now.at,
                    _ => now.at.min(before.at + growth),
                };
            }
        }
    });
    spans.into_iter().collect()
}

fn each_pair(
    samples: impl IntoIterator<Item = impl Borrow<CounterSample>>,
    mut with: impl FnMut(&CounterSample, &CounterSample),
) {
    let mut samples = samples.into_iter();
    let Some(mut before) = samples.next() else {
        return;
    };
    for now in samples {
        with(before.borrow(), now.borrow());
        before = now;
    }
}

const COLLECTED: usize = 1 << 16;

/// When the group ran on some CPU within these spans, as fast samples tell it.
///
/// The kernel adds to usage at its ticks and when a thread leaves a CPU: growth by G at sample t
/// means that the CPU ran for the last G, as far as it had not been seen to run before.
pub fn ran_spans(
    samples: impl IntoIterator<Item = impl Borrow<CounterSample>>,
    rule: FlatlineRule,
    within: &TimeSpans,
) -> TimeSpans {
    let mut ran_to = Vec::new();
    let (mut spans, mut found) = (Vec::new(), TimeSpans::default());
    let joined = |found: &TimeSpans, spans: &mut Vec<TimeSpan>| {
        let more: TimeSpans = spans.drain(..).collect();
        found.union(&more.intersection(within))
    };
    each_pair(samples, |before, now| {
        if ran_to.is_empty() {
            ran_to = vec![before.at; before.per_cpu.len().max(1)];
        }
        for (cpu, ran_to) in ran_to.iter_mut().enumerate() {
            let growth = usage_growth(before, now, cpu);
            if growth > rule.running {
                let start = now.at.saturating_sub(growth).max(*ran_to);
                spans.push(TimeSpan::new(start, now.at));
                *ran_to = now.at;
            }
        }
        if spans.len() >= COLLECTED {
            found = joined(&found, &mut spans);
        }
    });
    joined(&found, &mut spans)
}

fn cpu_stands(before: &CounterSample, now: &CounterSample, stopped: &[u64]) -> Vec<TimeSpan> {
    let stand = |(cpu, from): (usize, &u64)| {
        let ran = usage_growth(before, now, cpu).min(now.at - before.at.min(now.at));
        TimeSpan::new(*from, now.at - ran)
    };
    stopped.iter().enumerate().map(stand).collect()
}

fn usage_growth(before: &CounterSample, now: &CounterSample, cpu: usize) -> u64 {
    match (before.per_cpu.get(cpu), now.per_cpu.get(cpu)) {
        (Some(before), Some(now)) => now.saturating_sub(*before),
        _ => now.usage.saturating_sub(before.usage),
    }
}

/// The stops with lengths that best add up to `sum`. Their begins are moved so that the sum is
/// exact.
fn matching_stands(mut stands: Vec<TimeSpan>, sum: u64) -> Vec<TimeSpan> {
    // A CPU that was idle for longer than everything that was throttled was idle, not throttled.
    stands.retain(|s| !s.has_no_time() && s.length_ns() <= sum + sum / 10 + SLACK);
    stands.sort_unstable_by_key(|s| std::cmp::Reverse(s.length_ns()));
    stands.truncate(MATCHED_CPUS);
    let chosen = |set: u32| {
        let of_set = move |(cpu, _): &(usize, &TimeSpan)| set & (1 << cpu) != 0;
        stands.iter().enumerate().filter(of_set).map(|(_, s)| *s)
    };
    let total = |set: u32| chosen(set).map(|s| s.length_ns()).sum::<u64>();
    let Some(best) = (1..1_u32 << stands.len()).min_by_key(|set| total(*set).abs_diff(sum)) else {
        return Vec::new();
    };
    let of = total(best);
    let fitted = |s: TimeSpan| {
        let length = scale_ratio(s.length_ns(), sum, of);
        TimeSpan::new(s.end.saturating_sub(length), s.end)
    };
    chosen(best).map(fitted).collect()
}

/// `length * by / of`, without overflow; `of` is not zero.
fn scale_ratio(length: u64, by: u64, of: u64) -> u64 {
    let result = u128::from(length) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(result).unwrap_or(u64::MAX)
}

/// Places throttled time from one sample per period, taken shortly after its boundary.
///
/// A throttled CPU is stopped until the end of the period. Usage gives the number of stopped CPUs:
/// the smallest number with enough free time in the period for the growth D. Without usage per CPU
/// they are assumed equal. Valid while throttled CPUs stop at about the same time; a CPU that was
/// idle before it was throttled seems to have stopped for longer.
pub fn phase_locked_spans(
    samples: impl IntoIterator<Item = impl Borrow<CounterSample>>,
    boundaries: PeriodBoundaries,
    cpus: usize,
) -> TimeSpans {
    let mut spans = Vec::new();
    let mut last = None;
    // The first sample after each boundary: fast samples at the begin are passed over.
    let firsts = samples.into_iter().filter(|sample| {
        let at = sample.borrow().at;
        let boundary = boundaries.boundary_before(at);
        let is_first = last.is_none_or(|last| last < boundary);
        if is_first {
            last = Some(at);
        }
        is_first
    });
    each_pair(firsts, |before, now| {
        let growth = now.throttled.saturating_sub(before.throttled);
        if growth == 0 {
            return;
        }
        let [from, to] = [before.at, now.at].map(|at| boundaries.boundary_before(at));
        let stood = longest_stand(before, now, to - from, growth, cpus);
        // Samples that were missed leave several periods in one growth: an even share each.
        let periods = (to - from) / boundaries.period.max(1);
        let each = stood / periods.max(1);
        let ends = (0..periods).map(|back| to - back * boundaries.period);
        spans.extend(ends.map(|end| TimeSpan::new(end.saturating_sub(each), end)));
    });
    spans.into_iter().collect()
}

/// Length of the longest stand of a CPU within `window` ns in which throttled time grew.
fn longest_stand(
    before: &CounterSample,
    now: &CounterSample,
    window: u64,
    growth: u64,
    cpus: usize,
) -> u64 {
    let known = now.per_cpu.len().min(before.per_cpu.len());
    let free = |cpu| window.saturating_sub(usage_growth(before, now, cpu));
    let mut free: Vec<u64> = (0..known).map(free).collect();
    if free.is_empty() {
        let used = now.usage.saturating_sub(before.usage);
        return alike_stand(used, window, growth, cpus);
    }
    free.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (index, length) in free.iter().enumerate() {
        sum += length;
        if sum + SLACK * (index as u64 + 1) >= growth {
            break;
        }
    }
    scale_ratio(free[0], growth, sum).min(growth)
}

/// The same where only the total usage is known: n CPUs that ran and stood alike.
fn alike_stand(used: u64, window: u64, growth: u64, cpus: usize) -> u64 {
    let holds = |n: &u64| n * window + n * SLACK >= growth + used;
    let n = (1..=cpus.max(1) as u64).find(holds);
    growth / n.unwrap_or(cpus.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const NOTHING: [CounterSample; 0] = [];
    const PERIOD: PeriodBoundaries = PeriodBoundaries {
        at: 0,
        period: 100 * MS,
    };

    fn ms(pairs: &[(u64, u64)]) -> TimeSpans {
        let span = |(a, b): &(u64, u64)| TimeSpan::new(a * MS, b * MS);
        pairs.iter().map(span).collect()
    }

    /// What a CPU did: when it ran, when it stood throttled. Else it was idle.
    struct Cpu {
        ran: TimeSpans,
        stood: TimeSpans,
    }

    fn sampled(
        cpus: &[Cpu],
        times: impl Iterator<Item = u64>,
        per_cpu: bool,
    ) -> Vec<CounterSample> {
        let sample = |t: u64| {
            let until = TimeSpan::new(0, t * MS);
            let usage: Vec<u64> = cpus.iter().map(|c| c.ran.within(until).len_ns()).collect();
            let over = |c: &Cpu| -> u64 {
                let ended = c.stood.as_slice().iter().filter(|s| s.end <= t * MS);
                ended.map(TimeSpan::length_ns).sum()
            };
            CounterSample {
                at: t * MS,
                usage: usage.iter().sum(),
                per_cpu: if per_cpu { usage } else { Vec::new() },
                throttled: cpus.iter().map(over).sum(),
            }
        };
        times.map(sample).collect()
    }

    /// Two CPUs, both throttled, at different moments.
    fn both() -> [Cpu; 2] {
        let cpu = |ran: &[(u64, u64)], stood: &[(u64, u64)]| Cpu {
            ran: ms(ran),
            stood: ms(stood),
        };
        [
            cpu(&[(0, 50), (100, 160), (200, 300)], &[(50, 100), (160, 200)]),
            cpu(&[(0, 50), (100, 155), (200, 220)], &[(50, 100), (155, 200)]),
        ]
    }

    /// A quarter of a core on a machine with two CPUs: one runs, the other is idle.
    fn one_of_two() -> [Cpu; 2] {
        [
            Cpu {
                ran: ms(&[(0, 25), (100, 125), (200, 225)]),
                stood: ms(&[(25, 100), (125, 200), (225, 300)]),
            },
            Cpu {
                ran: TimeSpans::default(),
                stood: TimeSpans::default(),
            },
        ]
    }

    fn near(got: &TimeSpans, truth: &TimeSpans, by: u64) {
        let all = format!("{got:?} {truth:?}");
        assert_eq!(got.as_slice().len(), truth.as_slice().len(), "{all}");
        for (span, truth) in got.as_slice().iter().zip(truth.as_slice()) {
            assert!(span.start.abs_diff(truth.start) <= by, "{all}");
            assert!(span.end.abs_diff(truth.end) <= by, "{all}");
        }
    }

    #[test]
    fn a_flatline_places_throttling_to_about_a_millisecond() {
        let truth = ms(&[(50, 100), (155, 200)]);
        for per_cpu in [false, true] {
            let got = throttled_spans(sampled(&both(), 0..310, per_cpu), FlatlineRule::default());
            near(&got, &truth, if per_cpu { MS } else { 5 * MS });
        }
    }

    #[test]
    fn a_cpu_that_is_only_idle_shortens_nothing() {
        let truth = ms(&[(25, 100), (125, 200), (225, 300)]);
        for per_cpu in [false, true] {
            let fast = sampled(&one_of_two(), 0..310, per_cpu);
            near(&throttled_spans(&fast, FlatlineRule::default()), &truth, MS);
            let locked = sampled(&one_of_two(), (1..400).step_by(100), per_cpu);
            near(&phase_locked_spans(&locked, PERIOD, 2), &truth, 2 * MS);
        }
    }

    #[test]
    fn a_cpu_that_runs_beside_one_that_stands_is_seen() {
        let cpu = |ran: &[(u64, u64)], stood: &[(u64, u64)]| Cpu {
            ran: ms(ran),
            stood: ms(stood),
        };
        let cpus = [
            cpu(&[(0, 30), (100, 130)], &[(30, 100)]),
            cpu(&[(0, 60), (100, 130)], &[(60, 100)]),
        ];
        let samples = sampled(&cpus, 0..131, true);
        let all = ms(&[(0, 200)]);
        let ran = ran_spans(&samples, FlatlineRule::default(), &all);
        near(&ran, &ms(&[(0, 60), (100, 130)]), MS);
        let stood = throttled_spans(&samples, FlatlineRule::default());
        let partly = ran_spans(&samples, FlatlineRule::default(), &stood);
        near(&partly, &ms(&[(30, 60)]), MS);
        assert_eq!(partly, stood.intersection(&ran));
        assert_eq!(
            ran_spans(NOTHING, FlatlineRule::default(), &all),
            TimeSpans::default()
        );
    }

    /// Usage says when a CPU stopped and began again, also where samples are late.
    #[test]
    fn late_samples_misplace_nothing_where_usage_is_known_per_cpu() {
        let late = [
            0, 10, 20, 30, 46, 60, 80, 97, 107, 120, 140, 150, 163, 190, 208, 215,
        ];
        let got = throttled_spans(
            sampled(&both(), late.into_iter(), true),
            FlatlineRule::default(),
        );
        near(&got, &ms(&[(50, 100), (155, 200)]), MS);
    }

    #[test]
    fn one_sample_a_period_knows_how_many_cpus_stood() {
        let truth = ms(&[(50, 100), (155, 200)]);
        for per_cpu in [false, true] {
            let locked = sampled(&both(), (1..400).step_by(100), per_cpu);
            near(&phase_locked_spans(&locked, PERIOD, 2), &truth, 3 * MS);
            // The samples that learn the phase do not confuse it.
            let learning = (1..110).chain((201..400).step_by(100));
            let locked = sampled(&both(), learning, per_cpu);
            near(&phase_locked_spans(&locked, PERIOD, 2), &truth, 3 * MS);
        }
    }

    #[test]
    fn a_missed_sample_shares_its_growth_among_the_periods() {
        let locked = sampled(&one_of_two(), [1, 301].into_iter(), true);
        let truth = ms(&[(25, 100), (125, 200), (225, 300)]);
        near(&phase_locked_spans(&locked, PERIOD, 2), &truth, MS);
    }

    #[test]
    fn no_throttling_gives_no_span_and_short_ones_are_dropped() {
        let cpu = |stood: &[(u64, u64)]| {
            [Cpu {
                ran: ms(&[(0, 100)]),
                stood: ms(stood),
            }]
        };
        let none = TimeSpans::default();
        let rule = FlatlineRule::default();
        for per_cpu in [false, true] {
            let idle = sampled(&cpu(&[]), 0..100, per_cpu);
            assert_eq!(throttled_spans(&idle, rule), none);
            assert_eq!(phase_locked_spans(&idle, PERIOD, 1), none);
            let short = sampled(&cpu(&[(50, 51)]), 0..100, per_cpu);
            assert_eq!(throttled_spans(&short, rule), none);
        }
        assert_eq!(throttled_spans(NOTHING, rule), none);
        assert_eq!(phase_locked_spans(NOTHING, PERIOD, 1), none);
    }

    #[test]
    fn boundaries_are_found_on_both_sides() {
        let boundaries = PeriodBoundaries {
            at: 250,
            period: 100,
        };
        for (moment, boundary) in [
            (250, 250),
            (349, 250),
            (350, 350),
            (249, 150),
            (50, 50),
            (20, 0),
        ] {
            assert_eq!(boundaries.boundary_before(moment), boundary, "{moment}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_counters_give_spans_and_no_panic(
            rows in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40), 0..40),
            at in 0_u64..1 << 40, period in 1_u64..1 << 30, cpus in 0_usize..20,
        ) {
            let mut samples: Vec<CounterSample> = rows
                .iter()
                .map(|(at, a, b, throttled)| CounterSample { at: *at, usage: a + b, per_cpu: vec![*a, *b], throttled: *throttled })
                .collect();
            samples.sort_by_key(|s| s.at);
            samples.dedup_by_key(|s| s.at);
            throttled_spans(&samples, FlatlineRule::default());
            let all: TimeSpans = std::iter::once(TimeSpan::new(0, u64::MAX)).collect();
            ran_spans(&samples, FlatlineRule::default(), &all);
            // A period far below the distance of samples would make as many spans as periods.
            let boundaries = PeriodBoundaries { at, period: period.max(1 << 28) };
            phase_locked_spans(&samples, boundaries, cpus);
        }
    }
}
