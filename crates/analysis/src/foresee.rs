//! Predicts throttling for a trial that was not throttled: the share of CFS periods throttled, and
//! how long requests would wait.
//!
//! Owns the fluid model: the CPU time used in each 10 ms arrives evenly and is served at once until
//! the quota of the period is used up; the remainder waits for the next period. A request ends when
//! all work up to its end is done. The model ignores the 5 ms slices and that long requests wait
//! more often. Its error: METHODOLOGY, "Throttling".
//!
//! Source: kernel Documentation/scheduler/sched-bwc.rst. Single bursts: [`crate::throttle`].

use std::time::Duration;

use loadline_sizing::Cpus;

use crate::interval::median;
use crate::latency::Latency;
use crate::record::{TrialPhase, TrialRecord, USE_EVERY};
use crate::slo::Quantile;

const STEP: Duration = Duration::from_millis(1);

const EACH: usize = (USE_EVERY.as_millis() / STEP.as_millis()) as usize;

/// From this use on, in thousandths, no CPU was idle: counters lag by a tick of the kernel.
const BUSY: u16 = 900;

/// Where in a period of the kernel the record begins is not known: as many places are tried.
const PHASES: usize = 5;

/// Least backlog that counts as work, of a step of one CPU: what rounding leaves.
const WORK: f64 = 1e-9;

#[derive(Debug, Clone, PartialEq)]
pub struct ForeseenThrottling {
    /// Share of the periods with work that would have been throttled, in [0, 1].
    pub throttled: f64,
    /// Share of the work by how many steps of a period it would have waited.
    waits: Vec<f64>,
}

/// Foresees what a quota does to CPU time that was used without being throttled: `used` in thousandths
/// of a CPU over each [`USE_EVERY`]; `cpus` is how many the application may run on. `None` where
/// nothing was used.
pub fn foresee(
    used: &[u16],
    period: Duration,
    quota: Cpus,
    cpus: u32,
) -> Option<ForeseenThrottling> {
    let arriving = spread_evenly(used);
    model_waits(&arriving, &arriving, (quota, period), cpus, add_waits)
}

/// Upper bound of a quota's effect on a host with this many CPUs, for an application that had no
/// more CPUs than its quota. There its threads waited for each other: while no CPU was idle, all
/// their work might run at once on more CPUs, use up the quota early in the period, and stop all
/// later work until the period ends.
pub fn at_most(
    used: &[u16],
    period: Duration,
    quota: Cpus,
    cpus: u32,
) -> Option<ForeseenThrottling> {
    let arriving = spread_evenly(used);
    model_waits(&arriving, &at_once(used), (quota, period), cpus, add_stops)
}

fn spread_evenly(used: &[u16]) -> Vec<f64> {
    let each = used.iter().map(|u| f64::from(*u) / 1000.0);
    each.flat_map(|u| std::iter::repeat_n(u, EACH)).collect()
}

/// The same with all work of a busy stretch (no CPU idle) moved to its begin.
fn at_once(used: &[u16]) -> Vec<f64> {
    let mut steps = vec![0.0; used.len() * EACH];
    let mut begin = None;
    for (slot, use_of) in used.iter().enumerate() {
        let work = f64::from(*use_of) / 1000.0;
        if *use_of < BUSY {
            begin = None;
            steps[slot * EACH..][..EACH].fill(work);
            continue;
        }
        let begin = *begin.get_or_insert(slot * EACH);
        steps[begin] += work * EACH as f64;
    }
    steps
}

/// Serves what `arrives` at every place of the period; `add` counts the waits of the work that was
/// done, `seen`.
fn model_waits(
    seen: &[f64],
    arrives: &[f64],
    (quota, period): (Cpus, Duration),
    cpus: u32,
    add: fn(&mut Vec<f64>, &[f64], &ServedWork),
) -> Option<ForeseenThrottling> {
    let steps = usize::try_from(period.as_millis()).ok()?;
    if steps == 0 || seen.iter().all(|u| *u <= WORK) {
        return None;
    }
    let quota = f64::from(quota.as_millis()) / 1000.0 * steps as f64;
    let (mut periods, mut throttled) = (0, 0);
    let mut waits = Vec::new();
    for phase in 0..PHASES {
        let offset = phase * steps / PHASES;
        let served = serve_work(arrives, (quota, steps), f64::from(cpus.max(1)), offset);
        periods += served.periods;
        throttled += served.throttled;
        add(&mut waits, seen, &served);
    }
    let all: f64 = waits.iter().sum();
    Some(ForeseenThrottling {
        throttled: f64::from(throttled) / f64::from(periods.max(1)),
        waits: waits.iter().map(|share| share / all).collect(),
    })
}

pub fn of_trial(record: &TrialRecord, quota: Cpus, cpus: u32) -> Option<ForeseenThrottling> {
    let used = &record.evidence.cgroup.measure_used;
    foresee(used, record.configuration.cpu_period, quota, cpus)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThrottlingElsewhere {
    pub starts: usize,
    /// Share of the periods that would be throttled, the median of the starts.
    pub throttled: f64,
    /// The latency then, the median of the starts; `None` where it lies in requests that failed.
    pub latency: Option<Duration>,
}

/// [`at_most`] of these starts at their own quotas; `None` where they do not hold the use of the CPU.
pub fn foresee_elsewhere<'a>(
    starts: impl IntoIterator<Item = &'a TrialRecord>,
    cpus: u32,
    quantile: Quantile,
) -> Option<ThrottlingElsewhere> {
    let of = |record: &'a TrialRecord| {
        let (used, configuration) = (&record.evidence.cgroup.measure_used, &record.configuration);
        let bound = at_most(used, configuration.cpu_period, configuration.cpu?, cpus)?;
        // A request that failed is slower than every other.
        let latency = bound.latency_of(record, quantile);
        Some((
            bound.throttled,
            latency.map_or(f64::INFINITY, |l| l.as_secs_f64()),
        ))
    };
    let bounds: Vec<(f64, f64)> = starts.into_iter().filter_map(of).collect();
    let shares: Vec<f64> = bounds.iter().map(|b| b.0).collect();
    let latencies: Vec<f64> = bounds.iter().map(|b| b.1).collect();
    Some(ThrottlingElsewhere {
        starts: bounds.len(),
        throttled: median(&shares)?,
        latency: median(&latencies).and_then(|s| Duration::try_from_secs_f64(s).ok()),
    })
}

struct ServedWork {
    /// Work done in each step; the list ends when all work is done.
    work: Vec<f64>,
    /// After each step: how many steps everything stands still.
    stopped: Vec<usize>,
    periods: u32,
    throttled: u32,
}

/// Serves the work that arrives, at most the quota per period.
fn serve_work(
    arriving: &[f64],
    (quota, period): (f64, usize),
    cpus: f64,
    offset: usize,
) -> ServedWork {
    let mut served = ServedWork {
        work: Vec::with_capacity(arriving.len()),
        stopped: Vec::with_capacity(arriving.len()),
        periods: 0,
        throttled: 0,
    };
    let (mut backlog, mut left) = (0.0, quota);
    let (mut has_work, mut is_throttled) = (false, false);
    let mut step = 0;
    // No quota at all would never end.
    while (step < arriving.len() || backlog > WORK) && quota > WORK {
        if (step + offset).is_multiple_of(period) && step > 0 {
            served.periods += u32::from(has_work);
            served.throttled += u32::from(is_throttled);
            (left, has_work, is_throttled) = (quota, false, false);
        }
        backlog += arriving.get(step).copied().unwrap_or(0.0);
        let done = backlog.min(left).min(cpus);
        has_work |= backlog > WORK;
        backlog -= done;
        left -= done;
        is_throttled |= backlog > WORK && left <= WORK;
        served.work.push(done);
        let to_refill = period - (step + offset) % period - 1;
        served
            .stopped
            .push(if left <= WORK { to_refill } else { 0 });
        step += 1;
    }
    served.periods += u32::from(has_work);
    served.throttled += u32::from(is_throttled);
    served
}

/// Adds the work that arrived in each step to the wait until as much was done.
fn add_waits(waits: &mut Vec<f64>, arriving: &[f64], served: &ServedWork) {
    let (mut arrived, mut done, mut at) = (0.0, 0.0, 0);
    for (step, amount) in arriving.iter().enumerate().filter(|(_, a)| **a > WORK) {
        arrived += amount;
        while let Some(work) = served.work.get(at)
            && (done + work < arrived - WORK || at < step)
        {
            done += work;
            at += 1;
        }
        add_amount(waits, at.saturating_sub(step), *amount);
    }
}

/// Adds the work that arrived in each step to the time for which everything stands still then.
fn add_stops(waits: &mut Vec<f64>, arriving: &[f64], served: &ServedWork) {
    for (amount, stopped) in arriving.iter().zip(&served.stopped) {
        add_amount(waits, *stopped, *amount);
    }
}

fn add_amount(waits: &mut Vec<f64>, wait: usize, amount: f64) {
    if waits.len() <= wait {
        waits.resize(wait + 1, 0.0);
    }
    waits[wait] += amount;
}

impl ForeseenThrottling {
    pub fn longest_wait(&self, quantile: Quantile) -> Duration {
        let mut sum = 0.0;
        let reached = |share: &f64| {
            sum += share;
            sum >= quantile.as_fraction() - WORK
        };
        let steps = self.waits.iter().position(reached);
        STEP * u32::try_from(steps.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// A quantile of latencies that have these waits on top, each as likely at each latency. `None`
    /// where it lies in requests that failed.
    pub fn latency_with_waits(&self, seen: &Latency, quantile: Quantile) -> Option<Duration> {
        let recorded: Vec<(u64, u64)> = seen
            .recorded_values()
            .map(|(time, count)| (saturating_nanos(time), count))
            .collect();
        let within = |limit: u64| {
            let mut good = 0.0;
            for (steps, share) in (0_u32..).zip(&self.waits).filter(|(_, s)| **s > 0.0) {
                let Some(left) = limit.checked_sub(saturating_nanos(STEP * steps)) else {
                    break;
                };
                let below = recorded.iter().take_while(|(time, _)| *time <= left);
                good += share * below.map(|(_, count)| *count as f64).sum::<f64>();
            }
            good / seen.scheduled().max(1) as f64
        };
        let slowest = recorded.last()?.0;
        let longest = saturating_nanos(STEP) * self.waits.len() as u64;
        let (mut low, mut high) = (0, slowest.saturating_add(longest));
        if within(high) < quantile.as_fraction() {
            return None;
        }
        while high - low > 1_000 {
            let middle = low + (high - low) / 2;
            match within(middle) >= quantile.as_fraction() {
                true => high = middle,
                false => low = middle,
            }
        }
        Some(Duration::from_nanos(high))
    }

    pub fn latency_of(&self, record: &TrialRecord, quantile: Quantile) -> Option<Duration> {
        let loads = record.evidence.load.iter();
        let mut measured = loads.filter(|load| load.phase == TrialPhase::Measure);
        let latency = Latency::from_load(measured.next()?).ok()?;
        self.latency_with_waits(&latency, quantile)
    }
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::empty_histogram;
    use crate::random::RandomStream;

    const PERIOD: Duration = Duration::from_millis(100);

    fn quota(millis: u32) -> Cpus {
        Cpus::from_millis(millis)
    }

    fn p99() -> Quantile {
        Quantile::from_fraction(0.99).unwrap()
    }

    #[test]
    fn a_quota_that_suffices_stops_nothing() {
        let foreseen = foresee(&[200, 300, 0, 900, 240], PERIOD, quota(500), 1).unwrap();
        assert_eq!(foreseen.throttled, 0.0);
        assert_eq!(foreseen.longest_wait(p99()), Duration::ZERO);
        assert_eq!(foresee(&[0, 0], PERIOD, quota(500), 1), None);
    }

    #[test]
    fn even_work_above_the_quota_waits_for_the_next_period() {
        // 30 ms a period of 100 ms at a quota of 25: every period is throttled, and the backlog grows.
        let foreseen = foresee(&[300; 1000], PERIOD, quota(250), 1).unwrap();
        assert!(foreseen.throttled > 0.98, "{}", foreseen.throttled);
        // 5 ms a period are left over: after 100 periods half a second, 20 periods of quota.
        let longest = foreseen.longest_wait(Quantile::from_fraction(0.999).unwrap());
        assert!(longest > Duration::from_millis(1800), "{longest:?}");
    }

    #[test]
    fn on_more_cpus_what_ran_without_an_idle_cpu_may_use_the_quota_up_early() {
        // 80 ms without an idle CPU, every 200 ms: never throttled at one CPU of quota here or there.
        let short: Vec<u16> = [[1000; 8].as_slice(), &[0; 12]].concat().repeat(20);
        let bound = at_most(&short, PERIOD, quota(1000), 64).unwrap();
        assert_eq!(
            (bound.throttled, bound.longest_wait(p99())),
            (0.0, Duration::ZERO)
        );
        // 160 ms of each 200: at once on 64 CPUs it stops, and what comes then waits.
        let long: Vec<u16> = [[1000; 16].as_slice(), &[0; 4]].concat().repeat(20);
        let bound = at_most(&long, PERIOD, quota(1000), 64).unwrap();
        assert!(bound.throttled > 0.3, "{}", bound.throttled);
        let wait = bound.longest_wait(p99());
        assert!(
            wait > Duration::from_millis(50) && wait < PERIOD,
            "{wait:?}"
        );
        assert_eq!(
            foresee(&long, PERIOD, quota(1000), 1).unwrap().throttled,
            0.0
        );
    }

    /// Requests of one thread, exactly: when each ends without a quota and with one, and the CPU time
    /// by 10 ms without.
    fn exactly(rate: f64, quota_ms: u64, seed: u64) -> (Vec<u16>, Vec<f64>, Vec<f64>, f64) {
        let mut random = RandomStream::from_seed(seed);
        let (mut arrivals, mut now) = (Vec::new(), 0.0);
        while now < 30_000.0 {
            now += -(1.0 - random.uniform()).ln() * 1000.0 / rate;
            // One in fifty takes long, as a collection does.
            let cpu = if random.chance(0.02) {
                25.0
            } else {
                random.uniform_between(1.0, 4.0)
            };
            arrivals.push((now, cpu));
        }
        // Steps of 0.1 ms.
        let run = |quota_ms: u64| {
            let (mut ends, mut used) = (Vec::new(), vec![0.0_f64; 4000]);
            let (mut periods, mut throttled) = (0_u32, 0_u32);
            let (mut queue, mut next, mut left) = (std::collections::VecDeque::new(), 0, 0.0);
            let (mut has_work, mut stopped) = (false, false);
            let mut step = 0_usize;
            while ends.len() < arrivals.len() {
                if step % 1000 == 370 || step == 0 {
                    periods += u32::from(has_work);
                    throttled += u32::from(stopped);
                    (left, has_work, stopped) = (quota_ms as f64, false, false);
                }
                let at = step as f64 / 10.0;
                while next < arrivals.len() && arrivals[next].0 <= at {
                    queue.push_back(arrivals[next]);
                    next += 1;
                }
                if let Some(front) = queue.front_mut() {
                    has_work = true;
                    if left > 0.05 {
                        front.1 -= 0.1;
                        left -= 0.1;
                        if let Some(slot) = used.get_mut(step / 100) {
                            *slot += 0.1;
                        }
                        if front.1 <= 0.0 {
                            ends.push(at - front.0);
                            queue.pop_front();
                        }
                    } else {
                        stopped = true;
                    }
                }
                step += 1;
            }
            (ends, used, f64::from(throttled) / f64::from(periods))
        };
        let (free, used, _) = run(100);
        let (limited, _, share) = run(quota_ms);
        let used = used.iter().map(|ms| (ms * 100.0).round() as u16).collect();
        (used, free, limited, share)
    }

    #[test]
    fn it_agrees_with_requests_that_are_simulated_one_by_one() {
        // CPU of 30 ms (19 %), of 60 (37 %) a second and more, at quotas that carry them.
        for (rate, quota_ms) in [(40.0, 50), (40.0, 25), (100.0, 50), (60.0, 25), (120.0, 50)] {
            let (used, free, limited, share) = exactly(rate, quota_ms, 7);
            let mut histogram = empty_histogram();
            for latency in &free {
                histogram.saturating_record((latency * 1e6) as u64);
            }
            let count = free.len() as u64;
            let seen = Latency::new(histogram, count).unwrap();
            let of = quota(quota_ms as u32 * 10);
            let foreseen = foresee(&used, PERIOD, of, 1).unwrap();
            let mut limited = limited;
            limited.sort_by(f64::total_cmp);
            let exact = limited[(limited.len() * 99).div_ceil(100) - 1];
            let model = foreseen
                .latency_with_waits(&seen, p99())
                .unwrap()
                .as_secs_f64()
                * 1e3;
            let told = format!(
                "{rate}/s at {quota_ms} ms: throttled {:.3} for {share:.3}, p99 {model:.1} for {exact:.1} ms",
                foreseen.throttled
            );
            assert!((foreseen.throttled - share).abs() < 0.1, "{told}");
            assert!((model / exact - 1.0).abs() < 0.3, "{told}");
        }
    }
}
