//! CFS bandwidth control, period by period: how long work takes under a quota, and where it stops.
//!
//! Owns the model that advice rests on. Work runs at `threads` CPUs until the quota of the period
//! is used, then every thread stands until the next period. Long work runs at quota/period CPUs
//! whatever the number of threads; more GC threads only move the stop onto the application.
//!
//! Source: kernel Documentation/scheduler/sched-bwc.rst; slices of 5 ms and the quota that CPUs
//! keep are left out, which costs about 2 to 9 ms against a real kernel.

use std::time::Duration;

use crate::record::Configuration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimit {
    pub period: Duration,
    pub quota: Duration,
    /// CPU time that idle periods may save up on top of the quota (`cpu.cfs_burst_us`).
    pub burst: Duration,
}

impl QuotaLimit {
    pub fn for_configuration(configuration: &Configuration) -> Option<Self> {
        let period = configuration.cpu_period;
        Some(Self {
            period,
            quota: period.mul_f64(configuration.cpu?.as_f64()),
            burst: configuration.cpu_burst.unwrap_or_default(),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadWork {
    /// Runnable threads, at most the CPUs there are; at least 1.
    pub threads: u32,
    pub cpu: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeriodStart {
    pub phase: Duration,
    pub used: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThrottledWork {
    pub wall: Duration,
    /// Of that, stopped: `wall` less what the work takes without a limit.
    pub stall: Duration,
    pub stops: Vec<(Duration, Duration)>,
    /// What the kernel's throttled time would show: the stops, summed over the threads' CPUs.
    pub throttled_time: Duration,
    /// How long whatever comes next has to wait, because the work ended with the quota used up.
    pub wait_after: Duration,
}

/// Most periods that are gone through, many minutes: a foreign record may say anything.
const MOST_PERIODS: f64 = 10_000.0;

/// Lets the works run one after the other. `None` for a limit without a period or quota, and for work of
/// too many periods.
pub fn simulate(
    limit: QuotaLimit,
    works: &[ThreadWork],
    start: PeriodStart,
) -> Option<ThrottledWork> {
    if limit.period.is_zero() || limit.quota.is_zero() {
        return None;
    }
    let periods = |work: &ThreadWork| {
        let all = limit.period.saturating_mul(work.threads.max(1));
        work.cpu.div_duration_f64(limit.quota.min(all))
    };
    if works.iter().map(periods).sum::<f64>() > MOST_PERIODS {
        return None;
    }
    let mut state = PeriodState {
        limit,
        now: start.phase,
        period_end: limit.period,
        left: limit.quota.saturating_sub(start.used),
    };
    let mut throttled = ThrottledWork::default();
    let mut ideal = Duration::ZERO;
    for work in works {
        ideal += work.cpu / work.threads.max(1);
        state.run(work, start.phase, &mut throttled);
    }
    throttled.wall = state.now - start.phase;
    throttled.stall = throttled.wall.saturating_sub(ideal);
    if state.left.is_zero() && state.now < state.period_end {
        throttled.wait_after = state.period_end - state.now;
    }
    Some(throttled)
}

struct PeriodState {
    limit: QuotaLimit,
    now: Duration,
    period_end: Duration,
    left: Duration,
}

impl PeriodState {
    fn run(&mut self, work: &ThreadWork, origin: Duration, throttled: &mut ThrottledWork) {
        let threads = work.threads.max(1);
        let mut todo = work.cpu;
        while !todo.is_zero() {
            if self.now == self.period_end {
                self.refill();
            }
            if self.left.is_zero() {
                let stop = (self.now - origin, self.period_end - origin);
                throttled.stops.push(stop);
                throttled.throttled_time += (stop.1 - stop.0) * threads;
                self.now = self.period_end;
                self.refill();
            }
            let possible = (self.period_end - self.now) * threads;
            let done = todo.min(self.left).min(possible);
            // Rounded up: a nanosecond divided by threads must still let time pass.
            let nanos = u64::try_from(done.as_nanos()).unwrap_or(u64::MAX);
            let took = Duration::from_nanos(nanos.div_ceil(u64::from(threads)));
            self.now = (self.now + took).min(self.period_end);
            self.left -= done;
            todo -= done;
        }
    }

    fn refill(&mut self) {
        let full = self.limit.quota + self.limit.burst;
        self.left = (self.left + self.limit.quota).min(full);
        self.period_end += self.limit.period;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same wall time without a loop, where the quota runs out before the first period does:
    /// T = (P−t0) + (k−1)·P + (W−r−(k−1)·Q)/n with r = Q − u and k = ⌈(W−r)/Q⌉. `None` elsewhere.
    /// In seconds; no burst.
    fn closed_form(limit: QuotaLimit, work: ThreadWork, start: PeriodStart) -> Option<f64> {
        let (p, q) = (limit.period.as_secs_f64(), limit.quota.as_secs_f64());
        let (w, n) = (work.cpu.as_secs_f64(), f64::from(work.threads.max(1)));
        let to_end = p - start.phase.as_secs_f64();
        let r = q - start.used.as_secs_f64();
        // Subtraction is off by some 1e-16: work that just fits must not wait a period.
        let just_within = 1.0 + 1e-12;
        if w <= r * just_within && w / n <= to_end * just_within {
            return Some(w / n);
        }
        if r > n * to_end || n * p < q {
            return None;
        }
        let k = ((w - r) / q * (1.0 - 1e-12)).ceil();
        Some(to_end + (k - 1.0) * p + (w - r - (k - 1.0) * q) / n)
    }

    fn ms(value: f64) -> Duration {
        Duration::from_nanos((value * 1e6) as u64)
    }

    fn limit(period: f64, quota: f64) -> QuotaLimit {
        QuotaLimit {
            period: ms(period),
            quota: ms(quota),
            burst: Duration::ZERO,
        }
    }

    fn run(
        period: f64,
        quota: f64,
        threads: u32,
        cpu: f64,
        phase: f64,
        used: f64,
    ) -> ThrottledWork {
        let work = ThreadWork {
            threads,
            cpu: ms(cpu),
        };
        let start = PeriodStart {
            phase: ms(phase),
            used: ms(used),
        };
        simulate(limit(period, quota), &[work], start).unwrap()
    }

    #[test]
    fn work_of_a_foreign_record_takes_no_memory() {
        let work = ThreadWork {
            threads: 1,
            cpu: Duration::MAX,
        };
        let start = PeriodStart::default();
        assert_eq!(simulate(limit(100.0, 0.001), &[work], start), None);
    }

    #[test]
    fn the_golden_cases() {
        // (period, quota, threads, work, phase, used) -> (wall, stall), in ms.
        let cases = [
            ((300.0, 90.0, 4, 60.0, 30.0, 30.0), (15.0, 0.0)),
            ((300.0, 90.0, 4, 61.0, 30.0, 30.0), (270.25, 255.0)),
            ((100.0, 20.0, 1, 90.0, 0.0, 0.0), (410.0, 320.0)),
            ((100.0, 20.0, 2, 90.0, 0.0, 0.0), (405.0, 360.0)),
            ((100.0, 50.0, 4, 200.0, 20.0, 10.0), (382.5, 332.5)),
            ((100.0, 25.0, 2, 80.0, 40.0, 5.0), (265.0, 225.0)),
            ((100.0, 100.0, 2, 90.0, 80.0, 30.0), (45.0, 0.0)),
            ((100.0, 150.0, 2, 200.0, 50.0, 20.0), (100.0, 0.0)),
        ];
        for ((p, q, n, w, t0, u), (wall, stall)) in cases {
            let throttled = run(p, q, n, w, t0, u);
            assert_eq!(
                (throttled.wall, throttled.stall),
                (ms(wall), ms(stall)),
                "{p} {q} {n} {w}"
            );
        }
    }

    /// The study's application: period 300 ms, quota 90 ms.
    #[test]
    fn the_study_s_stops_are_predicted() {
        // 30 ms of work three times a period, evenly: nothing stops, 70 ms between works.
        let even = run(300.0, 90.0, 1, 30.0, 200.0, 60.0);
        assert_eq!((even.stall, even.wait_after), (ms(0.0), ms(70.0)));
        // The same 90 ms at once: a stop of 210 ms.
        let burst = run(300.0, 90.0, 1, 90.0, 0.0, 0.0);
        assert_eq!((burst.wall, burst.wait_after), (ms(90.0), ms(210.0)));
        // 30 ms of work, then 60 ms of GC on 4 threads: over after 45 ms, then 255 ms of nothing.
        let works = [
            ThreadWork {
                threads: 1,
                cpu: ms(30.0),
            },
            ThreadWork {
                threads: 4,
                cpu: ms(60.0),
            },
        ];
        let gc = simulate(limit(300.0, 90.0), &works, PeriodStart::default()).unwrap();
        assert_eq!(
            (gc.wall, gc.stall, gc.wait_after),
            (ms(45.0), ms(0.0), ms(255.0))
        );
    }

    #[test]
    fn throttled_time_adds_up_over_cpus() {
        // Why the kernel's counter is no wall time: two threads stand, it counts twice.
        let one = run(100.0, 20.0, 1, 90.0, 0.0, 0.0);
        let two = run(100.0, 20.0, 2, 90.0, 0.0, 0.0);
        assert_eq!(one.throttled_time, ms(320.0));
        assert_eq!(two.throttled_time, ms(720.0));
        assert_eq!(two.stops.len(), 4);
        assert_eq!(two.stops[0], (ms(10.0), ms(100.0)));
    }

    #[test]
    fn a_burst_spends_what_idle_periods_saved() {
        let saved = QuotaLimit {
            burst: ms(20.0),
            ..limit(100.0, 20.0)
        };
        // Begins at the very end of a period in which nothing was used.
        let start = PeriodStart {
            phase: ms(100.0),
            used: Duration::ZERO,
        };
        let work = [ThreadWork {
            threads: 1,
            cpu: ms(40.0),
        }];
        let with = simulate(saved, &work, start).unwrap();
        let without = simulate(limit(100.0, 20.0), &work, start).unwrap();
        assert_eq!((with.stall, without.stall), (ms(0.0), ms(80.0)));
    }

    #[test]
    fn no_period_is_no_limit() {
        assert!(simulate(limit(0.0, 10.0), &[], PeriodStart::default()).is_none());
    }

    proptest! {
        #[test]
        fn the_simulation_agrees_with_the_closed_form(
            period in 20_u64..400,
            quota_share in 5_u64..300,
            threads in 1_u32..9,
            cpu in 1_u64..1000,
            phase_share in 0_u64..100,
            used_share in 0_u64..100,
        ) {
            let limit = QuotaLimit {
                period: Duration::from_millis(period),
                quota: Duration::from_micros(period * quota_share * 10),
                burst: Duration::ZERO,
            };
            let phase = limit.period * u32::try_from(phase_share).unwrap() / 100;
            // No more can have been used than the threads of the machine could in that time.
            let used = (limit.quota * u32::try_from(used_share).unwrap() / 100).min(phase * 8);
            let work = ThreadWork { threads, cpu: Duration::from_millis(cpu) };
            let start = PeriodStart { phase, used };
            let throttled = simulate(limit, &[work], start).unwrap();
            if let Some(wall) = closed_form(limit, work, start) {
                let got = throttled.wall.as_secs_f64();
                prop_assert!((got - wall).abs() < 1e-6, "{} {}", got, wall);
            }
            let stopped: Duration = throttled.stops.iter().map(|(a, b)| *b - *a).sum();
            prop_assert!(stopped.abs_diff(throttled.stall) < Duration::from_micros(1));
        }

        #[test]
        fn enough_quota_never_stops(threads in 1_u32..9, cpu in 1_u64..1000) {
            let quota = limit(100.0, 100.0 * f64::from(threads));
            let work = ThreadWork { threads, cpu: Duration::from_millis(cpu) };
            let throttled = simulate(quota, &[work], PeriodStart::default()).unwrap();
            prop_assert!(throttled.stops.is_empty());
        }
    }
}
