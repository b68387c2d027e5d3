//! The loop: one thread, one epoll, all links and their connections.
//!
//! Owns who is woken when: events of sockets, pieces that are due, toxics that begin and end, seconds.
//! Timers are exact to the kernel's own (epoll_pwait2 in ns, timer slack of 1 ns), because their
//! delay adds to every toxic. What it was late itself is recorded.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use loadline_load::now_ns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::connection::{CLIENT, Connection, Next, SERVER, With};
use crate::link::{Attempts, Link, LinkOrder, accept};
use crate::meter::{Lag, SECOND};
use crate::network::{Entered, Front};
use crate::part::{LinkReport, Report, StubReport};
use crate::stub::StubOrder;
use crate::stub::serve::{self, Stubs};

/// Events taken at once.
const EVENTS: usize = 256;

/// Bytes read at once.
const BUFFER: usize = 64 << 10;

/// Bytes that all connections together may hold back.
const MOST: usize = 512 << 20;

/// Distance of looks at the clock that tell how late this thread wakes up, ns.
const BEAT: u64 = 10_000_000;

/// The event of whoever gives orders.
const ORDERS: u64 = u64::MAX;

/// Marks events of listening sockets.
const LISTENER: u64 = 1 << 62;

/// Marks listening sockets of stubs.
const STUB: u64 = 1 << 61;

/// Marks connections to stubs.
const SERVED: u64 = 1 << 60;

/// What happens by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A piece of a connection is due.
    Piece(u64),
    /// A connection is closed, or with `true` reset, because a toxic wants it.
    Doom(u64, bool),
    /// A toxic of a link begins or ends.
    Edge(usize),
    /// An answer of a stub is due.
    Answer(u64),
}

/// The proxy of a trial.
pub(crate) struct Proxy {
    epoll: OwnedFd,
    front: Entered,
    attempts: Attempts,
    links: Vec<Link>,
    stubs: Stubs,
    /// The network of stubs that something stands before.
    behind: Option<Entered>,
    connections: HashMap<u64, Connection>,
    /// Number of the next connection.
    next: u64,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// Connections with more to do than one turn allows.
    unread: Vec<u64>,
    /// The same of connections to stubs.
    unserved: Vec<u64>,
    buffer: Vec<u8>,
    held: usize,
    lag: Lag,
    next_beat: u64,
    next_second: u64,
    /// Begin of the window and CPU time used before it.
    window: Option<(u64, Duration)>,
}

impl Proxy {
    /// In the application's network; `orders` tells when there is one.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn new(front: &Front, orders: impl AsFd) -> io::Result<Self> {
        set_current_timer_slack(NonZeroU64::new(1))?;
        let front = Entered::new(front)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, orders, EventData::new_u64(ORDERS), EventFlags::IN)?;
        Ok(Self {
            epoll,
            front,
            attempts: Attempts::default(),
            links: Vec::new(),
            stubs: Stubs::default(),
            behind: None,
            connections: HashMap::new(),
            next: 0,
            timers: BinaryHeap::new(),
            unread: Vec::new(),
            unserved: Vec::new(),
            buffer: vec![0; BUFFER],
            held: 0,
            lag: Lag::new(),
            next_beat: u64::MAX,
            next_second: u64::MAX,
            window: None,
        })
    }

    /// The file that stands for the application's network.
    pub(crate) fn network(&self) -> PathBuf {
        self.front.path()
    }

    /// Listens for one more dependency.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn link(&mut self, order: &LinkOrder) -> Result<(), String> {
        let said = |error: io::Error| error.to_string();
        self.front.enter().map_err(said)?;
        let mut link = Link::open(order)?;
        for (index, listener) in (0_u64..).zip(&link.listeners) {
            let token = LISTENER | (self.links.len() as u64) << 8 | index;
            add_listener(&self.epoll, listener, token).map_err(said)?;
        }
        if link.should_be_down(now_ns()) {
            link.set_down(true).map_err(said)?;
        }
        self.links.push(link);
        Ok(())
    }

    /// Answers in the place of one more dependency; the network in which it listens.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn stub(&mut self, order: &StubOrder) -> Result<PathBuf, String> {
        let said = |error: io::Error| error.to_string();
        let network = match (order.is_behind, &mut self.behind) {
            (false, _) => &self.front,
            (true, Some(behind)) => behind,
            (true, behind) => behind.insert(Entered::new(&Front::Own).map_err(said)?),
        };
        network.enter().map_err(said)?;
        let path = network.path();
        let number = self.stubs.len() as u64;
        for (index, listener) in (0_u64..).zip(self.stubs.open(order)?) {
            let token = LISTENER | STUB | number << 8 | index;
            add_listener(&self.epoll, listener, token).map_err(said)?;
        }
        Ok(path)
    }

    /// A window begins at this moment; with `is_measured` toxics with a schedule count from it.
    pub(crate) fn begin(&mut self, at_ns: u64, is_measured: bool) {
        self.window = Some((at_ns, cpu()));
        self.lag.take();
        self.next_beat = now_ns() + BEAT;
        self.next_second = at_ns + SECOND;
        self.attempts.grown(&mut self.front);
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            link.counters.begin();
            if is_measured {
                link.zero = Some(at_ns);
                self.plan_edge(index, at_ns.saturating_sub(1));
            }
        }
    }

    /// It ends; what was counted in it.
    pub(crate) fn end(&mut self) -> Option<Report> {
        let (begin, before) = self.window.take()?;
        let now = now_ns();
        self.count_refused();
        (self.next_beat, self.next_second) = (u64::MAX, u64::MAX);
        let (lag_p99, lag_max) = self.lag.take();
        let of = |link: &mut Link| {
            let (total, seconds) = link.counters.end(now);
            LinkReport { total, seconds }
        };
        Some(Report {
            window: Duration::from_nanos(now.saturating_sub(begin)),
            cpu: cpu().saturating_sub(before),
            lag_p99,
            lag_max,
            links: self.links.iter_mut().map(of).collect(),
        })
    }

    /// What stubs were asked for since they listen.
    pub(crate) fn counted(&self) -> Vec<StubReport> {
        self.stubs.counted().map(StubReport::of).collect()
    }

    /// Forwards until there is an order.
    ///
    /// # Errors
    /// What the kernel says to epoll.
    pub(crate) fn until_order(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.wait(&mut events)?;
            let mut has_order = false;
            for event in events.drain(..) {
                match event.data.u64() {
                    ORDERS => has_order = true,
                    token if token & (LISTENER | STUB) == LISTENER | STUB => {
                        self.accept_for_stub(token);
                    }
                    token if token & LISTENER != 0 => self.accept_all(token)?,
                    token if token & SERVED != 0 => {
                        // An error shows by reading.
                        let flags = event.flags;
                        self.stubs.note(token & !SERVED, flags != EventFlags::OUT);
                        self.serve(token & !SERVED);
                    }
                    token => self.on_event(token, event.flags),
                }
            }
            for id in std::mem::take(&mut self.unread) {
                self.go_on(id);
            }
            for id in std::mem::take(&mut self.unserved) {
                self.serve(id);
            }
            self.by_the_clock()?;
            if has_order {
                return Ok(());
            }
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let at = timer.min(self.next_beat).min(self.next_second);
        let left = match self.unread.is_empty() && self.unserved.is_empty() {
            true => at.saturating_sub(now_ns()),
            false => 0,
        };
        let timeout = (at != u64::MAX || left == 0).then_some(Timespec {
            tv_sec: (left / SECOND) as i64,
            tv_nsec: (left % SECOND) as i64,
        });
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn by_the_clock(&mut self) -> io::Result<()> {
        let now = now_ns();
        while let Some(Reverse((at, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::Piece(id) => self.go_on(id),
                Timer::Doom(id, true) => self.reset(id),
                Timer::Doom(id, false) => self.close(id),
                Timer::Edge(link) => self.on_edge(link, now)?,
                Timer::Answer(id) => self.serve(id),
            }
        }
        if now >= self.next_beat {
            self.lag.record(self.next_beat, now);
            self.next_beat = now - (now - self.next_beat) % BEAT + BEAT;
        }
        while now >= self.next_second {
            self.count_refused();
            for link in &mut self.links {
                link.counters.end_second(self.next_second);
            }
            self.next_second += SECOND;
        }
        Ok(())
    }

    /// Attempts that the kernel refused are those of a dependency that is down.
    fn count_refused(&mut self) {
        let refused = self.attempts.grown(&mut self.front);
        if let Some(link) = self.links.iter_mut().find(|link| link.is_down) {
            link.counters.now.refused += refused;
        }
    }

    fn plan_edge(&mut self, index: usize, after: u64) {
        if let Some(edge) = self.links[index].next_edge(after) {
            self.timers.push(Reverse((edge, Timer::Edge(index))));
        }
    }

    /// A toxic begins or ends: what that means for connections that stand.
    fn on_edge(&mut self, index: usize, now: u64) -> io::Result<()> {
        self.plan_edge(index, now);
        let is_down = self.links[index].should_be_down(now);
        if is_down != self.links[index].is_down {
            // Refusals until now belong to how it was.
            self.count_refused();
            self.links[index].set_down(is_down)?;
        }
        let of_link = self.connections.iter().filter(|(_, c)| c.link == index);
        let ids: Vec<u64> = of_link.map(|(id, _)| *id).collect();
        for id in ids {
            let Some(connection) = self.connections.get(&id) else {
                continue;
            };
            let link = &self.links[index];
            let doom = link.doom(&connection.befallen, now);
            let has_lost = connection.lanes.iter().any(|lane| lane.has_lost());
            match doom {
                _ if is_down => self.reset(id),
                Some((after, how)) => self
                    .timers
                    .push(Reverse((now + after, Timer::Doom(id, how)))),
                None if has_lost => self.reset(id),
                None => {}
            }
        }
        Ok(())
    }

    fn accept_all(&mut self, token: u64) -> io::Result<()> {
        let (link, listener) = ((token & !LISTENER) >> 8, token & 0xff);
        let (link, listener) = (link as usize, listener as usize);
        loop {
            match accept(&self.links[link].listeners[listener]) {
                Ok(Some(client)) => self.connect(link, client),
                Ok(None) => return Ok(()),
                // Out of descriptors: what waits is asked for again when something ends.
                Err(_) => return Ok(()),
            }
        }
    }

    fn accept_for_stub(&mut self, token: u64) {
        let (stub, listener) = ((token & !(LISTENER | STUB)) >> 8, token & 0xff);
        let (stub, listener) = (stub as usize, listener as usize);
        while let Some(Ok(Some(client))) = self.stubs.listener(stub, listener).map(accept) {
            if let Some((id, stream)) = self.stubs.add(stub, client) {
                let token = EventData::new_u64(SERVED | id);
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                // One without a watch is never heard of; its client gives up.
                let _ = epoll::add(&self.epoll, stream, token, flags);
            }
        }
    }

    fn serve(&mut self, id: u64) {
        match self.stubs.go_on(id, &mut self.lag, &mut self.buffer) {
            serve::Next::Event | serve::Next::Over => {}
            serve::Next::Time(at) => self.timers.push(Reverse((at, Timer::Answer(id)))),
            serve::Next::Again => self.unserved.push(id),
        }
    }

    fn connect(&mut self, index: usize, client: TcpStream) {
        let now = now_ns();
        let link = &mut self.links[index];
        link.counters.now.opened += 1;
        let made = link.connect();
        let (lanes, befallen) = link.draw();
        let doom = link.doom(&befallen, now);
        let server = match made {
            Ok(server) => server,
            Err(_) => {
                link.counters.now.refused += 1;
                let _ = rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO));
                return;
            }
        };
        let id = self.next;
        self.next += 1;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for (side, stream) in [(CLIENT, &client), (SERVER, &server)] {
            let token = EventData::new_u64(id << 1 | side as u64);
            if epoll::add(&self.epoll, stream, token, flags).is_err() {
                return;
            }
        }
        link.counters.open += 1;
        let connection = Connection::new(index, [client, server], lanes, befallen);
        self.connections.insert(id, connection);
        if let Some((after, how)) = doom {
            self.timers
                .push(Reverse((now + after, Timer::Doom(id, how))));
        }
    }

    fn on_event(&mut self, token: u64, flags: EventFlags) {
        let (id, side) = (token >> 1, (token & 1) as usize);
        if let Some(connection) = self.connections.get_mut(&id) {
            // An error shows by reading.
            let reads = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            let is_writable = flags.contains(EventFlags::OUT);
            connection.note(side, flags.intersects(reads), is_writable);
            self.go_on(id);
        }
    }

    fn go_on(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let link = &mut self.links[connection.link];
        let before = connection.held();
        let next = connection.go_on(&mut With {
            zero: link.zero,
            counters: &mut link.counters,
            lag: &mut self.lag,
            buffer: &mut self.buffer,
            has_room: self.held < MOST,
        });
        self.held = self.held + connection.held() - before;
        match next {
            Next::Wait(None) => {}
            Next::Wait(Some(at)) => self.timers.push(Reverse((at, Timer::Piece(id)))),
            Next::Again => self.unread.push(id),
            Next::Over => self.close(id),
            Next::Broken => self.reset(id),
            Next::Refused => {
                link.counters.now.refused += 1;
                self.reset(id);
            }
        }
    }

    fn take(&mut self, id: u64) -> Option<Connection> {
        let connection = self.connections.remove(&id)?;
        self.held -= connection.held();
        self.links[connection.link].counters.open -= 1;
        Some(connection)
    }

    /// Both ends of a connection are closed in order.
    fn close(&mut self, id: u64) {
        drop(self.take(id));
    }

    fn reset(&mut self, id: u64) {
        if let Some(connection) = self.take(id) {
            self.links[connection.link].counters.now.reset += 1;
            connection.reset();
        }
    }
}

fn add_listener(epoll: &OwnedFd, listener: &TcpListener, token: u64) -> io::Result<()> {
    let flags = EventFlags::IN | EventFlags::ET;
    Ok(epoll::add(
        epoll,
        listener,
        EventData::new_u64(token),
        flags,
    )?)
}

/// CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
