//! The queue inside a simulated service: requests in, latencies out, in virtual time.
//!
//! Owns a first-come-first-served queue with several servers, one stall and one death. Open and
//! closed load differ only in where the next arrival comes from.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use hdrhistogram::Histogram;
use loadline_analysis::interval::quantile;
use loadline_analysis::latency::empty_histogram;
use loadline_analysis::random::RandomStream;
use loadline_analysis::record::SecondEvidence;

use loadline_load::{LoadModel, LoadPlan};

pub struct QueueServer {
    /// Requests a second of all servers together.
    pub rate: f64,
    /// Servers, at least 1.
    pub servers: usize,
    /// Seconds of a request that need no server.
    pub base: f64,
    /// When all servers stop (as a share of the phase) and for how many seconds.
    pub stall: Option<(f64, f64)>,
    /// When the service dies, as a share of the phase.
    pub dies_at: Option<f64>,
    /// Cost of a request relative to a warm service, as a factor, by the seconds since the phase
    /// began.
    pub cost: Box<dyn Fn(f64) -> f64>,
}

pub struct PhaseRun {
    pub duration: Duration,
    /// Requests a second of the schedule; `None` for a closed model.
    pub offered_rate: Option<f64>,
    pub scheduled: u64,
    /// Good answers within the phase (the others came in the drain).
    pub answered_in_time: u64,
    pub errors: BTreeMap<String, u64>,
    pub unfinished: u64,
    pub latency: Histogram<u64>,
    pub service_time: Histogram<u64>,
    pub busy: f64,
    pub died: bool,
    per_second: Vec<PhaseSecond>,
}

#[derive(Default, Clone)]
struct PhaseSecond {
    offered: u64,
    errors: u64,
    latencies: Vec<f64>,
    busy: f64,
}

/// Times are kept in the heap as whole nanoseconds, so that they have an order.
fn seconds_to_nanos(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}

enum RequestArrivals {
    /// A schedule that nothing delays: rate and end, seconds.
    Open { rate: f64, end: f64, next: u64 },
    /// Connections, by the time they are free again; until an end or a number of requests.
    Closed {
        free: BinaryHeap<Reverse<u64>>,
        end: f64,
        left: u64,
    },
}

impl RequestArrivals {
    fn new(load: &LoadPlan) -> Self {
        let closed = |end, left| Self::Closed {
            free: (0..load.max_in_flight()).map(|_| Reverse(0)).collect(),
            end,
            left,
        };
        match load.model {
            // The shape of the schedule is the real generator's business; here its mean is enough.
            LoadModel::Open { .. } => Self::Open {
                rate: load.model.mean_rate().unwrap_or_default(),
                end: load
                    .model
                    .scheduled_duration()
                    .unwrap_or_default()
                    .as_secs_f64(),
                next: 0,
            },
            LoadModel::ClosedFor { duration } => closed(duration.as_secs_f64(), u64::MAX),
            LoadModel::ClosedRequests { requests } => closed(f64::INFINITY, requests),
        }
    }

    fn next(&mut self) -> Option<f64> {
        match self {
            Self::Open { rate, end, next } => {
                let at = *next as f64 / *rate;
                *next += 1;
                (at < *end).then_some(at)
            }
            Self::Closed { free, end, left } => {
                *left = left.checked_sub(1)?;
                let Reverse(at) = free.pop()?;
                let at = at as f64 / 1e9;
                (at < *end).then_some(at)
            }
        }
    }

    fn free_connection(&mut self, at: f64) {
        if let Self::Closed { free, .. } = self {
            free.push(Reverse(seconds_to_nanos(at)));
        }
    }
}

pub fn run(server: &QueueServer, load: &LoadPlan, random: &mut RandomStream) -> PhaseRun {
    let planned = load.model.scheduled_duration();
    let span = planned.map_or(10.0, |d| d.as_secs_f64());
    let death = server.dies_at.map_or(f64::INFINITY, |share| share * span);
    let mut stall = server.stall.map(|(at, length)| (at * span, length));
    let mut free: BinaryHeap<Reverse<u64>> = (0..server.servers).map(|_| Reverse(0)).collect();
    let mean_service = server.servers as f64 / server.rate.max(1e-6);
    let mut arrivals = RequestArrivals::new(load);
    let mut run = PhaseRun::empty_run(load);
    let mut end = 0.0_f64;
    while let Some(at) = arrivals.next() {
        if at >= death {
            break;
        }
        let Reverse(server_free) = free.pop().unwrap_or(Reverse(0));
        let mut begin = at.max(server_free as f64 / 1e9);
        if let Some((from, length)) = stall.filter(|(from, _)| begin >= *from) {
            // Every server waits for the end of the stall.
            let over = from + length;
            free = free
                .drain()
                .map(|Reverse(t)| Reverse(t.max(seconds_to_nanos(over))))
                .collect();
            begin = begin.max(over);
            stall = None;
        }
        // Half constant, half exponential: a service with some variance.
        let work = mean_service * (0.5 - 0.5 * (1.0 - random.uniform()).ln());
        let work = work * (server.cost)(begin);
        let done = begin + work + server.base;
        free.push(Reverse(seconds_to_nanos(begin + work)));
        run.busy += work;
        run.second_at(begin).busy += work;
        run.add_request(at, begin, done, death, load);
        arrivals.free_connection(done.min(at + load.timeout.as_secs_f64()));
        end = end.max(done);
    }
    run.died = death.is_finite();
    let lasted = planned.map_or(end, |d| d.as_secs_f64());
    run.duration = Duration::from_secs_f64(lasted.min(death).max(1e-3));
    let seconds = run.duration.as_secs_f64();
    run.busy = run.busy.min(seconds * server.servers as f64);
    let answered: usize = run
        .per_second
        .iter()
        .take(seconds.ceil() as usize)
        .map(|second| second.latencies.len())
        .sum();
    run.answered_in_time = answered as u64;
    run
}

impl PhaseRun {
    fn empty_run(load: &LoadPlan) -> Self {
        Self {
            duration: Duration::ZERO,
            offered_rate: load.model.mean_rate(),
            scheduled: 0,
            answered_in_time: 0,
            errors: BTreeMap::new(),
            unfinished: 0,
            latency: empty_histogram(),
            service_time: empty_histogram(),
            busy: 0.0,
            died: false,
            per_second: Vec::new(),
        }
    }

    fn add_request(&mut self, at: f64, begin: f64, done: f64, death: f64, load: &LoadPlan) {
        self.scheduled += 1;
        self.second_at(at).offered += 1;
        let timeout = load.timeout.as_secs_f64();
        if done > death {
            self.unfinished += 1;
        } else if done - at > timeout {
            *self.errors.entry("timeout".to_owned()).or_default() += 1;
            self.second_at(at + timeout).errors += 1;
        } else {
            // The bounds of the histogram hold every latency below a one-hour timeout.
            self.latency.saturating_record(seconds_to_nanos(done - at));
            self.service_time
                .saturating_record(seconds_to_nanos(done - begin));
            self.second_at(done).latencies.push(done - at);
        }
    }

    fn second_at(&mut self, at: f64) -> &mut PhaseSecond {
        let index = at as usize;
        if self.per_second.len() <= index {
            self.per_second.resize(index + 1, PhaseSecond::default());
        }
        &mut self.per_second[index]
    }

    pub fn second_evidence(&self, start_ns: u64) -> Vec<SecondEvidence> {
        let time = |value: Option<f64>| value.map(Duration::from_secs_f64);
        let in_phase = self.duration.as_secs_f64().ceil() as usize;
        let seconds = self.per_second.iter().take(in_phase).enumerate();
        let entry = |(index, second): (usize, &PhaseSecond)| SecondEvidence {
            at_ns: start_ns + (index as u64 + 1) * 1_000_000_000,
            offered: Some(second.offered),
            achieved: Some(second.latencies.len() as u64),
            errors: Some(second.errors),
            p50: time(quantile(&second.latencies, 0.5)),
            p99: time(quantile(&second.latencies, 0.99)),
            max: time(quantile(&second.latencies, 1.0)),
            cpu: time(Some(second.busy)),
            ..SecondEvidence::default()
        };
        seconds.map(entry).collect()
    }
}
