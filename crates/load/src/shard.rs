//! One thread of the generator: its schedule, its connections, its epoll loop.
//!
//! Owns the hot path: per request one send, one receive, no allocation, nothing shared. Sockets
//! are registered once, edge-triggered, and read until they are empty. A request that is due goes
//! to the connection that has been free longest; when none is free it waits in the schedule
//! itself (two cursors over the same slots), so waiting costs no memory and keeps its intended
//! time. Facts: CLOCK_MONOTONIC and the sockets; it reads nothing else while it runs.

mod dispatch;
mod receive;
mod streams;
mod users;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use loadline_analysis::random::RandomStream;
use loadline_sys::{CpuSet, epoll, sched_setaffinity, set_current_timer_slack};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::clock::{clock_ns, to_timespec};
use crate::connection::LoadConnection;
use crate::error::LoadError;
use crate::health::thread_run_delay;
use crate::http2::StreamEnd as EndedStream;
use crate::outcome::{LoadTotals, RequestTotals};
use crate::plan::{LoadModel, LoadPlan, Pacing};
use crate::request::CompiledRequests;
use crate::schedule::{SendSchedule, shard_seed};
use crate::times::RunTimes;
use crate::tls::TlsSetup;
use crate::user::User;

const EVENTS: usize = 256;
const BUFFER: usize = 64 * 1024;
/// The stop flag is seen at least this often.
const MAX_WAIT_NS: u64 = 100_000_000;
/// Time for connections before the load begins; failed ones are retried by requests.
const CONNECT_NS: u64 = 2_000_000_000;
/// Keeps think times apart from what else is random with the same seed.
const THINK_SEED: u64 = 0x7468_696e_6b00;
const SECOND_NS: u64 = 1_000_000_000;
const MOST_SECONDS: usize = 3600;

/// One second of one thread: outcomes of warm-up requests and of measured ones.
#[derive(Debug, Default)]
pub(crate) struct ShardInterval {
    pub(crate) shard: u32,
    pub(crate) index: u64,
    pub(crate) end_ns: u64,
    pub(crate) is_last: bool,
    pub(crate) totals: [LoadTotals; 2],
}

impl ShardInterval {
    pub(crate) fn clear(&mut self) {
        for totals in &mut self.totals {
            totals.clear();
        }
    }
}

#[derive(Debug)]
pub(crate) struct ShardEnd {
    pub(crate) run_delay: Duration,
    pub(crate) end_ns: u64,
    pub(crate) stopped: bool,
    pub(crate) by_request: [Vec<RequestTotals>; 2],
    /// What became of the measured requests that were due in each second.
    pub(crate) by_second: Vec<RequestTotals>,
    pub(crate) users: Vec<User>,
}

enum RequestSource {
    /// Two cursors over one schedule: requests that became due, and requests sent or shed.
    Open {
        due: SendSchedule,
        send: SendSchedule,
    },
    /// Connections send as soon as they are free; `left` requests remain after the warm-up.
    Closed { left: u64 },
}

#[derive(Debug, Clone, Copy)]
struct FreePlace {
    connection: u32,
    /// CLOCK_MONOTONIC ns; 0 is before the load.
    since: u64,
}

pub(crate) struct Shard<'a> {
    plan: &'a LoadPlan,
    index: u32,
    requests: CompiledRequests,
    tls: Option<TlsSetup>,
    /// Distance of the grid that sends happen on, ns; 1 is exact.
    quantum: u64,
    epoll: OwnedFd,
    connections: Vec<LoadConnection>,
    /// Room for requests, the longest free first.
    ready: VecDeque<FreePlace>,
    /// Connections that pause, after a failed connect or because their user thinks, and until when.
    paused: BinaryHeap<Reverse<(u64, u32)>>,
    /// Open model with users: connections without a user.
    vacant: Vec<u32>,
    unread: Vec<u32>,
    /// With HTTP/2: connections with frames that are to be sent together.
    unflushed: Vec<u32>,
    /// With HTTP/2: requests that the last bytes ended; empty in between.
    ended: Vec<EndedStream>,
    in_flight: u32,
    /// Draws think times, and how long sessions are.
    thinking: RandomStream,
    source: RequestSource,
    times: RunTimes,
    hard_end: u64,
    next_second: u64,
    next_scan: u64,
    interval: Box<ShardInterval>,
    by_request: [Vec<RequestTotals>; 2],
    /// Measured requests by the second in which they were due; empty unless the plan asks for it.
    by_second: Vec<RequestTotals>,
    sender: Sender<Box<ShardInterval>>,
    recycled: Receiver<Box<ShardInterval>>,
    buffer: Vec<u8>,
}

impl<'a> Shard<'a> {
    pub(crate) fn connect_shard(
        plan: &'a LoadPlan,
        index: u32,
        sender: Sender<Box<ShardInterval>>,
        recycled: Receiver<Box<ShardInterval>>,
    ) -> Result<Self, LoadError> {
        let shards = plan.shard_count();
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(LoadError::from_system_call(
                "epoll_create1",
                "the limit of open files may be reached (ulimit -n)",
            ))?;
        let connections: Vec<_> = (index..plan.connections)
            .step_by(shards as usize)
            .map(|i| LoadConnection::new(i as usize % plan.targets.len(), plan))
            .collect();
        let mut shard = Self {
            plan,
            index,
            requests: CompiledRequests::new(plan, plan.shard_stream(index))?,
            tls: tls_setup(plan)?,
            quantum: (plan.pacing_quantum().as_nanos() as u64).max(1),
            epoll,
            ready: VecDeque::new(),
            connections,
            paused: BinaryHeap::new(),
            vacant: Vec::new(),
            unread: Vec::new(),
            unflushed: Vec::new(),
            ended: Vec::new(),
            in_flight: 0,
            thinking: RandomStream::from_seed(shard_seed(
                plan.seed ^ THINK_SEED,
                plan.shard_stream(index),
            )),
            source: source(plan, index),
            times: RunTimes {
                timeout: CONNECT_NS,
                connect_timeout: u64::MAX,
                read_timeout: u64::MAX,
                ..RunTimes::default()
            },
            hard_end: 0,
            next_second: u64::MAX,
            next_scan: 0,
            interval: Box::default(),
            by_request: zero_request_totals(plan),
            by_second: Vec::new(),
            sender,
            recycled,
            buffer: vec![0; BUFFER],
        };
        if let Some(users) = &plan.users {
            shard.seat(users, index);
        }
        shard.connect_all()?;
        shard.fill_ready();
        shard.vacate_connections();
        Ok(shard)
    }

    fn connect_all(&mut self) -> Result<(), LoadError> {
        for id in 0..self.connections.len() as u32 {
            // A connection without a user is opened by its first user.
            if self.plan.users.is_none() || self.connections[id as usize].user.is_some() {
                self.open_connection(id);
            }
        }
        let deadline = clock_ns() + CONNECT_NS;
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = clock_ns();
            if now >= deadline || !self.connections.iter().any(LoadConnection::is_opening) {
                return Ok(());
            }
            self.wait_for_ready_sockets(&mut events, deadline - now)?;
            for event in events.drain(..) {
                self.on_event(event.data.u64() as u32, event.flags);
            }
            self.flush_sessions();
        }
    }

    /// With think times: present users begin over the first think time, not all at once.
    fn spread_users(&mut self) {
        let Some(think) = self.plan.think else {
            return;
        };
        for free in self.ready.drain(..) {
            let at = self.times.start + self.thinking.next_up_to(duration_ns(think.to));
            self.paused.push(Reverse((at, free.connection)));
        }
    }

    fn fill_ready(&mut self) {
        let room = |c: &LoadConnection| c.session.as_ref().map_or(1, |s| s.request_capacity());
        let most = self.connections.iter().map(room).max().unwrap_or(1);
        for nth in 0..most {
            let having = self.connections.iter();
            let having = having.zip(0..).filter(|(c, _)| nth < room(c));
            let free = |(_, connection)| FreePlace {
                connection,
                since: 0,
            };
            self.ready.extend(having.map(free));
        }
        for connection in &mut self.connections {
            if let Some(session) = &mut connection.session {
                session.held = session.places.len() - session.request_capacity();
            }
        }
    }

    pub(crate) fn run(mut self, times: RunTimes, stop: &AtomicBool) -> Result<ShardEnd, LoadError> {
        self.settle_thread()?;
        let delay_before = thread_run_delay();
        self.times = times;
        self.hard_end = times.end.saturating_add(times.drain);
        self.next_second = times.start + SECOND_NS;
        self.spread_users();
        let mut events = Vec::with_capacity(EVENTS);
        let mut stopped = false;
        loop {
            let now = clock_ns();
            if !stopped && stop.load(Ordering::Relaxed) {
                stopped = true;
                self.stop_sending(now);
            }
            self.housekeeping(now);
            self.dispatch(now);
            if self.is_done(now) {
                break;
            }
            let wait = self.next_wake(now).saturating_sub(now).min(MAX_WAIT_NS);
            self.wait_for_ready_sockets(&mut events, wait)?;
            for event in events.drain(..) {
                let now = self.on_event(event.data.u64() as u32, event.flags);
                self.dispatch(now);
            }
            self.continue_unread();
        }
        let end = self.finish_load();
        Ok(ShardEnd {
            run_delay: thread_run_delay().saturating_sub(delay_before),
            end_ns: end,
            stopped,
            by_request: std::mem::take(&mut self.by_request),
            by_second: std::mem::take(&mut self.by_second),
            users: self.present_users(),
        })
    }

    fn settle_thread(&self) -> Result<(), LoadError> {
        if let Some(cpu) = self.plan.cpus.get(self.index as usize) {
            let mut set = CpuSet::new();
            set.set(*cpu as usize);
            sched_setaffinity(None, &set).map_err(LoadError::from_system_call(
                "sched_setaffinity",
                "the CPUs given must exist and be allowed (taskset -p $$)",
            ))?;
        }
        // The default slack of 50 µs would be part of every send lag.
        set_current_timer_slack(NonZeroU64::new(1)).map_err(LoadError::from_system_call(
            "prctl(PR_SET_TIMERSLACK)",
            "a seccomp profile may forbid it",
        ))
    }

    fn wait_for_ready_sockets(
        &self,
        events: &mut Vec<epoll::Event>,
        nanos: u64,
    ) -> Result<(), LoadError> {
        let timeout = match self.plan.pacing {
            Pacing::Spin => to_timespec(0),
            _ if !self.unread.is_empty() => to_timespec(0),
            _ => to_timespec(nanos),
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(LoadError::from_system_call(
                "epoll_pwait2",
                "it needs Linux 5.11 or newer",
            )(errno)),
        }
    }

    fn housekeeping(&mut self, now: u64) {
        while now >= self.next_second {
            self.end_interval(self.next_second, false);
        }
        if now >= self.next_scan {
            let times = &self.times;
            let shortest = times
                .timeout
                .min(times.connect_timeout)
                .min(times.read_timeout);
            self.next_scan = now + (shortest / 20).clamp(1_000_000, MAX_WAIT_NS);
            self.scan_timeouts(now);
        }
        while let Some(Reverse((at, id))) = self.paused.peek().copied() {
            if at > now {
                break;
            }
            self.paused.pop();
            self.ready.push_back(FreePlace {
                connection: id,
                since: at,
            });
        }
    }

    fn next_wake(&self, now: u64) -> u64 {
        let mut wake = self.next_second.min(self.hard_end);
        if now < self.times.end {
            wake = wake.min(self.times.end);
        }
        if self.in_flight > 0 || self.is_waiting(now) {
            wake = wake.min(self.next_scan);
        }
        if let Some(Reverse((at, _))) = self.paused.peek() {
            wake = wake.min(*at);
        }
        if let Some(at) = self.next_release(now) {
            wake = wake.min(at);
        }
        wake
    }

    fn stop_sending(&mut self, now: u64) {
        self.times.end = self.times.end.min(now.max(self.times.start));
        self.hard_end = self.hard_end.min(now + self.times.drain.min(SECOND_NS));
    }

    fn is_done(&self, now: u64) -> bool {
        now >= self.hard_end || (self.in_flight == 0 && self.is_exhausted(now))
    }

    fn second_of(&mut self, intended: u64) -> Option<&mut RequestTotals> {
        let since = intended.checked_sub(self.times.warm_end)?;
        let index = usize::try_from(since / SECOND_NS).ok()?;
        if !self.plan.by_second || index >= MOST_SECONDS {
            return None;
        }
        if index >= self.by_second.len() {
            let missing = index + 1 - self.by_second.len();
            self.by_second
                .extend(RequestTotals::zeros_for_each(missing));
        }
        self.by_second.get_mut(index)
    }

    /// Hands the interval over and begins the next one.
    fn end_interval(&mut self, end: u64, is_last: bool) {
        self.count_due(end);
        let next = self.recycled.try_recv();
        let next = next.unwrap_or_default();
        let mut interval = std::mem::replace(&mut self.interval, next);
        self.interval.index = interval.index + 1;
        interval.shard = self.index;
        interval.end_ns = end;
        interval.is_last = is_last;
        // The receiver lives as long as the threads.
        let _ = self.sender.send(interval);
        self.next_second += SECOND_NS;
    }

    fn finish_load(&mut self) -> u64 {
        let now = clock_ns();
        self.count_due(u64::MAX);
        let mut unfinished = [0; 2];
        let under_way = self.connections.iter();
        let under_way = under_way.flat_map(LoadConnection::pending_requests);
        for request in under_way.collect::<Vec<_>>() {
            if let Some(second) = self.second_of(request.intended) {
                second.unfinished += 1;
            }
            let phase = self.times.phase(request.intended);
            unfinished[phase] += 1;
            if let Some(kind) = self.by_request[phase].get_mut(request.kind) {
                kind.unfinished += 1;
            }
        }
        self.count_unsent(&mut unfinished);
        for (totals, count) in self.interval.totals.iter_mut().zip(unfinished) {
            totals.unfinished += count;
        }
        self.end_interval(now, true);
        self.times.end.min(now)
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn zero_request_totals(plan: &LoadPlan) -> [Vec<RequestTotals>; 2] {
    let warm = if plan.warmup.is_zero() {
        0
    } else {
        plan.mix.len()
    };
    [warm, plan.mix.len()].map(RequestTotals::zeros_for_each)
}

fn tls_setup(plan: &LoadPlan) -> Result<Option<TlsSetup>, LoadError> {
    let setup = |spec| TlsSetup::new(spec, plan.http2.is_some());
    plan.tls.as_ref().map(setup).transpose()
}

fn source(plan: &LoadPlan, index: u32) -> RequestSource {
    let (stream, streams) = (plan.shard_stream(index), plan.stream_count());
    match &plan.model {
        LoadModel::Open { segments, arrivals } => {
            let schedule = SendSchedule::new(segments, *arrivals, plan.seed, stream, streams);
            RequestSource::Open {
                due: schedule.clone(),
                send: schedule,
            }
        }
        LoadModel::ClosedFor { .. } => RequestSource::Closed { left: u64::MAX },
        LoadModel::ClosedRequests { requests } => RequestSource::Closed {
            left: requests / u64::from(streams)
                + u64::from(u64::from(stream) < requests % u64::from(streams)),
        },
    }
}

#[cfg(test)]
mod tests;
