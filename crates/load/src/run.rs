//! One load run: starts threads, gathers their seconds, adds up their totals.
//!
//! Owns the order: connect, then begin, so that the schedule's first second is as good as its last.
//! Each thread ([`Shard`]) has its own connections, epoll and histograms; once a second it hands
//! its counts over here and gets an empty set back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use rustix::io::Errno;

use crate::affinity;
use crate::clock::{clock_ns, process_cpu};
use crate::error::LoadError;
use crate::health::{GeneratorUsage, Health, stolen_time, throttled_time};
use crate::outcome::{LoadSecond, LoadTotals, RequestTotals};
use crate::plan::LoadPlan;
use crate::shard::{Shard, ShardInterval};
use crate::times::RunTimes;
use crate::user::User;

#[derive(Debug)]
pub struct LoadOutcome {
    pub start_ns: u64,
    pub end_ns: u64,
    pub warmup: LoadTotals,
    pub measure: LoadTotals,
    pub health: Health,
    pub stopped: bool,
    pub users: Vec<User>,
}

impl LoadOutcome {
    pub fn measured_time(&self, plan: &LoadPlan) -> Duration {
        Duration::from_nanos(self.end_ns - self.start_ns).saturating_sub(plan.warmup)
    }
}

/// Time between the last connection and the first request due: enough to start the threads.
const LEAD_NS: u64 = 5_000_000;

/// Runs a plan. `stop` ends it early: nothing new is sent, the outcome is still complete.
/// `observe` gets every second after it has passed, and the drain's.
/// Errors: [`LoadError`] when the plan or the machine cannot; failed requests are no error.
pub fn run(
    plan: &LoadPlan,
    stop: &Arc<AtomicBool>,
    observe: &mut dyn FnMut(&LoadSecond),
) -> Result<LoadOutcome, LoadError> {
    let mut begin = |earliest: u64| earliest.max(plan.start_ns.unwrap_or(0));
    run_from(plan, stop, &mut begin, observe)
}

/// The same from a moment that `begin` returns once all connections are open; it gets the earliest
/// one. The load begins later if that moment has passed when it returns.
pub(crate) fn run_from(
    plan: &LoadPlan,
    stop: &Arc<AtomicBool>,
    begin: &mut dyn FnMut(u64) -> u64,
    observe: &mut dyn FnMut(&LoadSecond),
) -> Result<LoadOutcome, LoadError> {
    plan.check_plan()?;
    affinity::check_cpus(&plan.cpus)?;
    let (sender, intervals) = channel();
    let mut shards = Vec::new();
    let mut recyclers = Vec::new();
    for index in 0..plan.shard_count() {
        let (recycler, recycled) = channel();
        recyclers.push(recycler);
        shards.push(Shard::connect_shard(plan, index, sender.clone(), recycled)?);
    }
    drop(sender);
    let before = GeneratorUsage {
        cpu: process_cpu(),
        run_delay: Duration::ZERO,
        throttled: throttled_time(),
        stolen: stolen_time(),
    };
    let wanted = begin(clock_ns() + LEAD_NS);
    let times = RunTimes::starting_at(wanted.max(clock_ns() + LEAD_NS), plan);
    thread::scope(|scope| {
        let started: io::Result<Vec<_>> = shards
            .into_iter()
            .map(|shard| {
                let run = move || shard.run(times, stop);
                thread::Builder::new().spawn_scoped(scope, run)
            })
            .collect();
        let threads = started.map_err(|error| {
            // The threads already started have no receiver.
            stop.store(true, Ordering::Relaxed);
            LoadError::System {
                call: "clone",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
                hint: "the load needs a thread for each of its CPUs: look at ulimit -u and pids.max",
            }
        })?;
        let mut gathered = SecondGatherer::new(times, plan);
        gathered.receive_intervals(&intervals, &recyclers, observe);
        let mut usage = GeneratorUsage::default();
        let mut end_ns = times.start;
        let mut stopped = false;
        let mut users = Vec::new();
        for thread in threads {
            let ended = thread.join().map_err(|_| LoadError::Panicked)??;
            usage.run_delay += ended.run_delay;
            end_ns = end_ns.max(ended.end_ns);
            stopped |= ended.stopped;
            users.extend(ended.users);
            gathered.add_requests(ended.by_request);
            gathered.totals[1].add_seconds(&ended.by_second);
        }
        usage.cpu = process_cpu().saturating_sub(before.cpu);
        usage.throttled = throttled_time().saturating_sub(before.throttled);
        usage.stolen = stolen_time().saturating_sub(before.stolen);
        let [warmup, measure] = gathered.totals;
        warmup.check_balance()?;
        measure.check_balance()?;
        let wall = Duration::from_nanos(end_ns - times.start);
        Ok(LoadOutcome {
            start_ns: times.start,
            end_ns,
            health: Health::judge_run(plan, &measure, usage, wall),
            warmup,
            measure,
            stopped,
            users,
        })
    })
}

struct SecondGatherer<'a> {
    plan: &'a LoadPlan,
    times: RunTimes,
    pending: BTreeMap<u64, (LoadSecond, usize)>,
    totals: [LoadTotals; 2],
    last: Vec<Option<u64>>,
}

impl<'a> SecondGatherer<'a> {
    fn new(times: RunTimes, plan: &'a LoadPlan) -> Self {
        Self {
            plan,
            times,
            pending: BTreeMap::new(),
            totals: Default::default(),
            last: vec![None; plan.shard_count() as usize],
        }
    }

    fn receive_intervals(
        &mut self,
        intervals: &Receiver<Box<ShardInterval>>,
        recyclers: &[Sender<Box<ShardInterval>>],
        observe: &mut dyn FnMut(&LoadSecond),
    ) {
        while let Ok(mut interval) = intervals.recv() {
            self.add_interval(&interval);
            interval.clear();
            // A thread that has ended needs no more.
            let _ = recyclers[interval.shard as usize].send(interval);
            while let Some(second) = self.next_complete() {
                observe(&second);
            }
        }
        for (second, _) in std::mem::take(&mut self.pending).into_values() {
            observe(&second);
        }
    }

    fn add_interval(&mut self, interval: &ShardInterval) {
        let times = self.times;
        let (second, count) = self.pending.entry(interval.index).or_insert_with(|| {
            let begin = times.start + interval.index * 1_000_000_000;
            let second = LoadSecond {
                index: interval.index,
                at_ns: begin,
                length: Duration::ZERO,
                is_warmup: begin < times.warm_end,
                totals: LoadTotals::default(),
                phases: (!self.plan.warmup.is_zero()).then(Box::default),
            };
            (second, 0)
        });
        for (sum, part) in self.totals.iter_mut().zip(&interval.totals) {
            sum.add_outcomes(part);
            second.totals.add_outcomes(part);
        }
        let phases = second.phases.iter_mut();
        let phases = phases.flat_map(|phases| phases.iter_mut());
        for (sum, part) in phases.zip(&interval.totals) {
            sum.add_outcomes(part);
        }
        second.at_ns = second.at_ns.max(interval.end_ns);
        let begin = times.start + interval.index * 1_000_000_000;
        second.length = Duration::from_nanos(second.at_ns - begin);
        *count += 1;
        if interval.is_last {
            self.last[interval.shard as usize] = Some(interval.index);
        }
    }

    fn next_complete(&mut self) -> Option<LoadSecond> {
        let entry = self.pending.first_entry()?;
        let ended_before = |last: &&Option<u64>| last.is_some_and(|last| last < *entry.key());
        let ended = self.last.iter().filter(ended_before).count();
        let is_complete = entry.get().1 + ended == self.last.len();
        is_complete.then(|| entry.remove().0)
    }

    fn add_requests(&mut self, by_request: [Vec<RequestTotals>; 2]) {
        for (totals, thread) in self.totals.iter_mut().zip(by_request) {
            totals.add_requests(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LoadModel, RequestSpec};

    const SECOND: u64 = 1_000_000_000;

    /// Hands intervals over in an order, as (thread, index, whether it is its last); returns the
    /// seconds given out and how many answers each has. Every interval has one.
    fn gather(order: &[(u32, u64, bool)]) -> Vec<(u64, u64)> {
        let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(3));
        let plan = LoadPlan {
            cpus: vec![0, 1],
            ..LoadPlan::new(
                vec![([127, 0, 0, 1], 1).into()],
                RequestSpec::for_get("/"),
                model,
            )
        };
        let mut gathered = SecondGatherer::new(RunTimes::starting_at(SECOND, &plan), &plan);
        let mut seconds = Vec::new();
        for (shard, index, is_last) in order {
            let mut interval = ShardInterval {
                shard: *shard,
                index: *index,
                end_ns: SECOND * (index + 2),
                is_last: *is_last,
                ..ShardInterval::default()
            };
            interval.totals[1].ok = 1;
            gathered.add_interval(&interval);
            while let Some(second) = gathered.next_complete() {
                seconds.push((second.index, second.totals.ok));
            }
        }
        seconds
    }

    #[test]
    fn every_second_is_given_out_once_however_late_a_thread_is() {
        // The first thread has ended before the second one delivers its last full second.
        let order = [
            (0, 0, false),
            (1, 0, false),
            (0, 1, false),
            (0, 2, false),
            (0, 3, true),
            (1, 1, false),
            (1, 2, false),
            (1, 3, true),
        ];
        assert_eq!(gather(&order), [(0, 2), (1, 2), (2, 2), (3, 2)]);
    }

    #[test]
    fn a_thread_that_has_ended_is_not_waited_for() {
        let order = [(0, 0, true), (1, 0, false), (1, 1, false), (1, 2, true)];
        assert_eq!(gather(&order), [(0, 2), (1, 1), (2, 1)]);
    }
}
