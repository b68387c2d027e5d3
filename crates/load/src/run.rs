//! One load run: threads started, their seconds gathered, their totals added up.
//!
//! Owns the order of things: connect, then begin, so that the schedule's first second is as good
//! as its last. Each thread ([`Shard`]) has connections, epoll and histograms of its own; once a
//! second it hands its counts over here and gets an empty set back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::clock::{now_ns, process_cpu};
use crate::error::LoadError;
use crate::health::{Health, Usage, throttled_time};
use crate::outcome::{Second, Totals};
use crate::plan::{Model, Plan};
use crate::shard::{Interval, Shard, Times};

/// What a load run gave.
#[derive(Debug)]
pub struct Outcome {
    /// When the first request could be due, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// When the last request could be due: the drain came after it.
    pub end_ns: u64,
    /// Outcomes of requests that were due in the warm-up.
    pub warmup: Totals,
    /// Outcomes of the others.
    pub measure: Totals,
    /// The generator about itself.
    pub health: Health,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

impl Outcome {
    /// Length of the measured part: without warm-up and drain.
    pub fn measured(&self, plan: &Plan) -> Duration {
        Duration::from_nanos(self.end_ns - self.start_ns).saturating_sub(plan.warmup)
    }
}

/// Time between the last connection and the first request due: enough to start the threads.
const LEAD_NS: u64 = 5_000_000;

/// Runs a plan. `stop` ends it early: nothing new is sent, the outcome is still complete.
/// `observe` gets every second after it has passed, and the drain's.
///
/// # Errors
/// [`LoadError`] when the plan or the machine cannot; failed requests are no error.
pub fn run(
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    observe: &mut dyn FnMut(&Second),
) -> Result<Outcome, LoadError> {
    plan.check()?;
    let (sender, intervals) = channel();
    let mut shards = Vec::new();
    let mut recyclers = Vec::new();
    for index in 0..plan.shards() {
        let (recycler, recycled) = channel();
        recyclers.push(recycler);
        shards.push(Shard::connect(plan, index, sender.clone(), recycled)?);
    }
    drop(sender);
    let before = Usage {
        cpu: process_cpu(),
        run_delay: Duration::ZERO,
        throttled: throttled_time(),
    };
    let begin = (now_ns() + LEAD_NS).max(plan.start_ns.unwrap_or(0));
    let times = Times::starting(begin, plan);
    thread::scope(|scope| {
        let threads: Vec<_> = shards
            .into_iter()
            .map(|shard| scope.spawn(move || shard.run(times, stop)))
            .collect();
        let mut gathered = Gathered::new(times, plan);
        gathered.receive(&intervals, &recyclers, observe);
        let mut usage = Usage::default();
        let mut end_ns = times.start;
        let mut stopped = false;
        for thread in threads {
            let ended = thread.join().map_err(|_| LoadError::Panicked)??;
            usage.run_delay += ended.run_delay;
            end_ns = end_ns.max(ended.end_ns);
            stopped |= ended.stopped;
        }
        usage.cpu = process_cpu().saturating_sub(before.cpu);
        usage.throttled = throttled_time().saturating_sub(before.throttled);
        gathered.finish(usage, end_ns, stopped)
    })
}

/// Seconds on their way from the threads to the observer.
struct Gathered<'a> {
    plan: &'a Plan,
    times: Times,
    pending: BTreeMap<u64, (Second, u32)>,
    totals: [Totals; 2],
    shards: u32,
    finished: u32,
}

impl<'a> Gathered<'a> {
    fn new(times: Times, plan: &'a Plan) -> Self {
        Self {
            plan,
            times,
            pending: BTreeMap::new(),
            totals: [Totals::of(plan), Totals::of(plan)],
            shards: plan.shards(),
            finished: 0,
        }
    }

    fn receive(
        &mut self,
        intervals: &Receiver<Box<Interval>>,
        recyclers: &[Sender<Box<Interval>>],
        observe: &mut dyn FnMut(&Second),
    ) {
        while let Ok(mut interval) = intervals.recv() {
            self.take(&interval);
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

    fn take(&mut self, interval: &Interval) {
        let (times, plan) = (self.times, self.plan);
        let (second, count) = self.pending.entry(interval.index).or_insert_with(|| {
            let begin = times.start + interval.index * 1_000_000_000;
            let second = Second {
                index: interval.index,
                at_ns: begin,
                length: Duration::ZERO,
                is_warmup: begin < times.warm_end,
                totals: Totals::of(plan),
            };
            (second, 0)
        });
        for (sum, part) in self.totals.iter_mut().zip(&interval.totals) {
            sum.add(part);
            second.totals.add(part);
        }
        second.at_ns = second.at_ns.max(interval.end_ns);
        let begin = times.start + interval.index * 1_000_000_000;
        second.length = Duration::from_nanos(second.at_ns - begin);
        *count += 1;
        self.finished += u32::from(interval.is_last);
    }

    /// The oldest second, once every thread that still runs has delivered it.
    fn next_complete(&mut self) -> Option<Second> {
        let entry = self.pending.first_entry()?;
        let (_, count) = entry.get();
        let is_complete = *count >= self.shards.saturating_sub(self.finished).max(1)
            && (*count == self.shards || self.finished > 0);
        is_complete.then(|| entry.remove().0)
    }

    fn finish(self, usage: Usage, end_ns: u64, stopped: bool) -> Result<Outcome, LoadError> {
        let [warmup, measure] = self.totals;
        warmup.check()?;
        measure.check()?;
        let wall = Duration::from_nanos(end_ns - self.times.start);
        let health = Health::judge(self.plan, &measure, usage, wall);
        Ok(Outcome {
            start_ns: self.times.start,
            end_ns,
            warmup,
            measure,
            health,
            stopped,
        })
    }
}

impl Times {
    fn starting(start: u64, plan: &Plan) -> Self {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let end = match plan.model {
            Model::ClosedRequests { .. } => u64::MAX,
            _ => start.saturating_add(plan.model.duration().map_or(0, nanos)),
        };
        Self {
            start,
            warm_end: start + nanos(plan.warmup),
            end,
            timeout: nanos(plan.timeout),
            connect_timeout: plan.connect_timeout.map_or(u64::MAX, nanos),
            read_timeout: plan.read_timeout.map_or(u64::MAX, nanos),
            drain: nanos(plan.drain),
        }
    }
}
