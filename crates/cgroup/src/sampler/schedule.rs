//! When the next sample is due. Pure: the clock is an input, so tests need none.
//!
//! Phase locking: the CFS period timer of a group keeps its phase for the life of the group, also
//! across idle times. `nr_periods` grows when it fires. So 1 ms samples around one step of
//! `nr_periods` give the boundary, and then one sample per period, shortly after it, sees every
//! period's counters at once.

use std::time::Duration;

use super::saturating_nanos;

const LEARN_INTERVAL: u64 = 1_000_000;

/// How long it is looked for at 1 ms: two periods of the usual 100 ms.
const LEARN_FOR: u64 = 200_000_000;

/// A step seen between samples further apart than this says too little.
const LEARN_PRECISION: u64 = 2_500_000;
const AFTER_BOUNDARY: u64 = 1_500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Every so often, at least 100 microseconds.
    Every(Duration),
    /// Once in each CFS period of this length, 1.5 ms after its boundary. Until the boundary is
    /// known: every 1 ms for at most 200 ms, then once a period until the group is active.
    PhaseLocked(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleGap {
    /// The sample before it, CLOCK_MONOTONIC ns.
    pub from_ns: u64,
    /// The sample after it, CLOCK_MONOTONIC ns.
    pub to_ns: u64,
}

impl SampleGap {
    pub fn gap_length(self) -> Duration {
        Duration::from_nanos(self.to_ns.saturating_sub(self.from_ns))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseLock {
    /// A boundary, CLOCK_MONOTONIC ns; the others are whole periods away.
    pub boundary_ns: u64,
    /// The boundary is at most this far away, on either side.
    pub uncertainty: Duration,
}

#[derive(Debug)]
pub(super) struct SampleSchedule {
    due: u64,
    interval: u64,
    last: Option<(u64, Option<u64>)>,
    phase: PeriodPhase,
}

#[derive(Debug)]
enum PeriodPhase {
    Off,
    /// 1 ms samples until this time.
    Learning {
        period: u64,
        until: u64,
    },
    /// Not found while the group was idle; learning starts again when it is active.
    Waiting {
        period: u64,
    },
    Locked {
        lock: PhaseLock,
        period: u64,
    },
}

impl SampleSchedule {
    pub fn new(pace: Pace, now: u64) -> Self {
        let (interval, phase) = match pace {
            Pace::Every(interval) => (saturating_nanos(interval).max(100_000), PeriodPhase::Off),
            Pace::PhaseLocked(period) => {
                let period = saturating_nanos(period).max(LEARN_INTERVAL);
                let until = now + LEARN_FOR;
                (LEARN_INTERVAL, PeriodPhase::Learning { period, until })
            }
        };
        Self {
            due: now,
            interval,
            last: None,
            phase,
        }
    }

    pub fn next(&self) -> u64 {
        self.due
    }

    pub fn interval(&self) -> u64 {
        self.interval
    }

    pub fn phase_lock(&self) -> Option<PhaseLock> {
        match self.phase {
            PeriodPhase::Locked { lock, .. } => Some(lock),
            _ => None,
        }
    }

    /// A sample was taken at `at` and handled by `now`. Returns the gap before it, if samples
    /// were missed.
    pub fn note_sample(&mut self, at: u64, now: u64, nr_periods: Option<u64>) -> Option<SampleGap> {
        let last = self.last.replace((at, nr_periods));
        let gap = last
            .filter(|(before, _)| at.saturating_sub(*before) >= 2 * self.interval)
            .map(|(before, _)| SampleGap {
                from_ns: before,
                to_ns: at,
            });
        let step = last.and_then(|(before, periods)| Some((before, nr_periods? > periods?)));
        self.change_phase(at, step);
        self.due = self.due_after(now.max(at));
        gap
    }

    /// `step`: the time of the sample before, and whether `nr_periods` grew since.
    fn change_phase(&mut self, at: u64, step: Option<(u64, bool)>) {
        match (&self.phase, step) {
            (&PeriodPhase::Learning { period, .. }, Some((before, true)))
                if at - before <= LEARN_PRECISION =>
            {
                let half = (at - before) / 2;
                let lock = PhaseLock {
                    boundary_ns: before + half,
                    uncertainty: Duration::from_nanos(half),
                };
                self.interval = period;
                self.phase = PeriodPhase::Locked { lock, period };
            }
            (&PeriodPhase::Learning { period, until }, _) if at >= until => {
                self.interval = period;
                self.phase = PeriodPhase::Waiting { period };
            }
            (&PeriodPhase::Waiting { period }, Some((_, true))) => {
                self.interval = LEARN_INTERVAL;
                self.phase = PeriodPhase::Learning {
                    period,
                    until: at + LEARN_FOR,
                };
                self.due = at;
            }
            _ => {}
        }
    }

    fn due_after(&self, now: u64) -> u64 {
        match &self.phase {
            PeriodPhase::Locked { lock, period } => {
                let first = lock.boundary_ns + AFTER_BOUNDARY.min(period / 2);
                next_on_grid(first, *period, now)
            }
            _ => next_on_grid(self.due, self.interval, now),
        }
    }
}

/// The first of `start`, `start + step`, ... after `now`.
fn next_on_grid(start: u64, step: u64, now: u64) -> u64 {
    if now < start {
        return start;
    }
    start + ((now - start) / step + 1) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs a schedule against a clock without delay and a group with a period that ends at
    /// `boundary` mod 100 ms, active from `active` on. Returns the sample times.
    fn simulate(pace: Pace, boundary: u64, active: u64, until: u64) -> (Vec<u64>, SampleSchedule) {
        let mut schedule = SampleSchedule::new(pace, 0);
        let mut times = Vec::new();
        while schedule.next() < until {
            let at = schedule.next() + 60_000;
            let periods = |t: u64| (t + 100 * MS - boundary) / (100 * MS);
            let nr = if at < active {
                0
            } else {
                periods(at) - periods(active)
            };
            assert_eq!(schedule.note_sample(at, at + 20_000, Some(nr)), None);
            times.push(at);
        }
        (times, schedule)
    }

    #[test]
    fn a_fixed_interval_keeps_its_grid_and_tells_gaps() {
        let mut schedule = SampleSchedule::new(Pace::Every(Duration::from_millis(1)), 5 * MS);
        assert_eq!(schedule.note_sample(5 * MS + 10, 5 * MS + 20, None), None);
        assert_eq!(schedule.next(), 6 * MS);
        assert_eq!(
            schedule.note_sample(6 * MS + 900_000, 7 * MS + 1, None),
            None
        );
        assert_eq!(schedule.next(), 8 * MS);
        let gap = schedule.note_sample(12 * MS, 12 * MS, None).unwrap();
        assert_eq!(gap.gap_length(), Duration::from_nanos(5 * MS + 100_000));
        assert_eq!(schedule.next(), 13 * MS);
    }

    #[test]
    fn the_phase_is_learnt_and_kept() {
        let pace = Pace::PhaseLocked(Duration::from_millis(100));
        let (times, schedule) = simulate(pace, 37 * MS, 0, 2_000 * MS);
        let lock = schedule.phase_lock().unwrap();
        let error = (lock.boundary_ns % (100 * MS)).abs_diff(37 * MS);
        assert!(error <= lock.uncertainty.as_nanos() as u64, "{lock:?}");
        assert!(times.len() < 38 + 21, "{}", times.len());
        for at in times.iter().filter(|t| **t > 100 * MS) {
            let after = (at + 100 * MS - 37 * MS) % (100 * MS);
            assert!((MS..=2 * MS + 100_000).contains(&after), "{after}");
        }
    }

    #[test]
    fn an_idle_group_is_polled_fast_only_until_it_is_given_up_and_again_when_active() {
        let pace = Pace::PhaseLocked(Duration::from_millis(100));
        let (times, schedule) = simulate(pace, 37 * MS, 5_000 * MS, 6_000 * MS);
        assert!(schedule.phase_lock().is_some());
        let idle = times.iter().filter(|t| **t < 5_000 * MS).count();
        assert!((240..=255).contains(&idle), "{idle}");
    }
}
