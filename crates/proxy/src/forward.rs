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

use loadline_load::{Expectation, clock_ns, process_cpu};
use loadline_sys::epoll::{self, EventData, EventFlags};
use loadline_sys::set_current_timer_slack;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::connection::{CLIENT, ProxiedConnection, ProxyContext, ProxyProgress, SERVER};
use crate::link::{LinkOrder, ProxyLink, RefusedConnects, accept};
use crate::meter::{Lag, SECOND};
use crate::network::{ApplicationNetwork, EnteredNetwork};
use crate::observe::ExchangeBook;
use crate::part::{LinkReport, ProxyReport, StubReport};
use crate::stub::StubOrder;
use crate::stub::serve::{self, StubServer};

const EVENTS: usize = 256;
const BUFFER: usize = 64 << 10;

/// Bytes that all connections together may hold back.
const MOST: usize = 512 << 20;

/// Distance of looks at the clock that tell how late this thread wakes up, ns.
const BEAT: u64 = 10_000_000;

const ORDERS: u64 = u64::MAX;
const LISTENER: u64 = 1 << 62;
const STUB: u64 = 1 << 61;
const SERVED: u64 = 1 << 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ProxyTimer {
    Piece(u64),
    /// A connection is closed, or with `true` reset, because a toxic wants it.
    Doom(u64, bool),
    Edge(usize),
    Answer(u64),
}

pub(crate) struct TrialProxy {
    epoll: OwnedFd,
    front: EnteredNetwork,
    attempts: RefusedConnects,
    links: Vec<ProxyLink>,
    stubs: StubServer,
    behind: Option<EnteredNetwork>,
    connections: HashMap<u64, ProxiedConnection>,
    next: u64,
    timers: BinaryHeap<Reverse<(u64, ProxyTimer)>>,
    unread: Vec<u64>,
    unserved: Vec<u64>,
    buffer: Vec<u8>,
    held: usize,
    lag: Lag,
    next_beat: u64,
    next_second: u64,
    book: Option<ExchangeBook>,
    window: Option<(u64, Duration)>,
}

impl TrialProxy {
    /// In the application's network; `orders` tells when there is one.
    pub(crate) fn new(front: &ApplicationNetwork, orders: impl AsFd) -> io::Result<Self> {
        set_current_timer_slack(NonZeroU64::new(1))?;
        let front = EnteredNetwork::new(front)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, orders, EventData::new_u64(ORDERS), EventFlags::IN)?;
        Ok(Self {
            epoll,
            front,
            attempts: RefusedConnects::default(),
            links: Vec::new(),
            stubs: StubServer::default(),
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
            book: None,
            window: None,
        })
    }

    pub(crate) fn network_path(&self) -> PathBuf {
        self.front.network_file()
    }

    pub(crate) fn add_link(&mut self, order: &LinkOrder) -> Result<(), String> {
        let said = |error: io::Error| error.to_string();
        self.front.reenter_network().map_err(said)?;
        let mut link = ProxyLink::open_listeners(order)?;
        for (index, listener) in (0_u64..).zip(&link.listeners) {
            let token = LISTENER | (self.links.len() as u64) << 8 | index;
            add_listener(&self.epoll, listener, token).map_err(said)?;
        }
        if link.should_be_down(clock_ns()) {
            link.set_down(true).map_err(said)?;
        }
        self.links.push(link);
        Ok(())
    }

    /// Answers in the place of one more dependency; the network in which it listens.
    pub(crate) fn add_stub(&mut self, order: &StubOrder) -> Result<PathBuf, String> {
        let said = |error: io::Error| error.to_string();
        let network = match (order.is_behind, &mut self.behind) {
            (false, _) => &self.front,
            (true, Some(behind)) => behind,
            (true, behind) => {
                behind.insert(EnteredNetwork::new(&ApplicationNetwork::Own).map_err(said)?)
            }
        };
        network.reenter_network().map_err(said)?;
        let path = network.network_file();
        let number = self.stubs.all.len() as u64;
        for (index, listener) in (0_u64..).zip(self.stubs.listen_for_stub(order)?) {
            let token = LISTENER | STUB | number << 8 | index;
            add_listener(&self.epoll, listener, token).map_err(said)?;
        }
        Ok(path)
    }

    /// A window begins at this moment; with `is_measured` toxics with a schedule count from it.
    pub(crate) fn open_window(&mut self, at_ns: u64, is_measured: bool) {
        self.window = Some((at_ns, process_cpu()));
        self.lag.take_quantiles();
        self.next_beat = clock_ns() + BEAT;
        self.next_second = at_ns + SECOND;
        self.attempts.count_new(&mut self.front);
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            link.counters.open_window();
            if is_measured {
                link.zero = Some(at_ns);
                self.plan_edge(index, at_ns.saturating_sub(1));
            }
        }
    }

    pub(crate) fn close_window(&mut self) -> Option<ProxyReport> {
        let (begin, before) = self.window.take()?;
        let now = clock_ns();
        self.count_refused();
        (self.next_beat, self.next_second) = (u64::MAX, u64::MAX);
        let (lag_p99, lag_max) = self.lag.take_quantiles();
        let of = |link: &mut ProxyLink| {
            let (total, seconds) = link.counters.close_window(now);
            LinkReport { total, seconds }
        };
        Some(ProxyReport {
            window: Duration::from_nanos(now.saturating_sub(begin)),
            cpu: process_cpu().saturating_sub(before),
            lag_p99,
            lag_max,
            links: self.links.iter_mut().map(of).collect(),
        })
    }

    pub(crate) fn stub_reports(&self) -> Vec<StubReport> {
        let all = self.stubs.all.iter().map(|stub| &stub.answers);
        all.map(StubReport::from_answers).collect()
    }

    pub(crate) fn observe(&mut self, book: ExchangeBook) {
        self.book = Some(book);
    }

    pub(crate) fn book_mut(&mut self) -> &mut ExchangeBook {
        self.book
            .get_or_insert_with(|| ExchangeBook::new(&Expectation::default()))
    }

    /// Forwards until this time, whatever is ordered; without one until there is an order.
    pub(crate) fn forward(&mut self, until: Option<u64>) -> io::Result<()> {
        let latest = until.unwrap_or(u64::MAX);
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.wait_for_sockets(&mut events, latest)?;
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
                        let (id, flags) = (token & !SERVED, event.flags);
                        self.stubs.note_readable(id, flags != EventFlags::OUT);
                        self.serve_stub(id);
                    }
                    token => self.on_event(token, event.flags),
                }
            }
            for id in std::mem::take(&mut self.unread) {
                self.continue_connection(id);
            }
            for id in std::mem::take(&mut self.unserved) {
                self.serve_stub(id);
            }
            self.run_timers()?;
            if (has_order && until.is_none()) || clock_ns() >= latest {
                return Ok(());
            }
        }
    }

    fn wait_for_sockets(&self, events: &mut Vec<epoll::Event>, latest: u64) -> io::Result<()> {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let at = timer.min(self.next_beat).min(self.next_second).min(latest);
        let left = if self.unread.is_empty() && self.unserved.is_empty() {
            at.saturating_sub(clock_ns())
        } else {
            0
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

    fn run_timers(&mut self) -> io::Result<()> {
        let now = clock_ns();
        while let Some(Reverse((at, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            match timer {
                ProxyTimer::Piece(id) => self.continue_connection(id),
                ProxyTimer::Doom(id, true) => self.reset_client(id),
                ProxyTimer::Doom(id, false) => self.close_connection(id),
                ProxyTimer::Edge(link) => self.on_edge(link, now)?,
                ProxyTimer::Answer(id) => self.serve_stub(id),
            }
        }
        if now >= self.next_beat {
            self.lag.record_lag(self.next_beat, now);
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
        let refused = self.attempts.count_new(&mut self.front);
        if let Some(link) = self.links.iter_mut().find(|link| link.is_down) {
            link.counters.now.refused += refused;
        }
    }

    fn wake_at(&mut self, at: u64, timer: ProxyTimer) {
        self.timers.push(Reverse((at, timer)));
    }

    fn plan_edge(&mut self, index: usize, after: u64) {
        if let Some(edge) = self.links[index].next_edge(after) {
            self.wake_at(edge, ProxyTimer::Edge(index));
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
            let doom = link.doom_delay(&connection.befallen, now);
            let has_lost = connection.lanes.iter().any(|lane| lane.has_lost);
            match doom {
                _ if is_down => self.reset_client(id),
                Some((after, how)) => self.wake_at(now + after, ProxyTimer::Doom(id, how)),
                None if has_lost => self.reset_client(id),
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
                Ok(Some(client)) => self.connect_client(link, client),
                Ok(None) => return Ok(()),
                // Out of descriptors: what waits is asked for again when something ends.
                Err(_) => return Ok(()),
            }
        }
    }

    fn accept_for_stub(&mut self, token: u64) {
        let (stub, listener) = ((token & !(LISTENER | STUB)) >> 8, token & 0xff);
        let (stub, listener) = (stub as usize, listener as usize);
        while let Some(Ok(Some(client))) = self.stubs.stub_listener(stub, listener).map(accept) {
            if let Some((id, stream)) = self.stubs.add_connection(stub, client) {
                let token = EventData::new_u64(SERVED | id);
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                // One without a watch is never heard of; its client gives up.
                let _ = epoll::add(&self.epoll, stream, token, flags);
            }
        }
    }

    fn serve_stub(&mut self, id: u64) {
        let (lag, buffer) = (&mut self.lag, &mut self.buffer);
        match self.stubs.continue_stub(id, lag, buffer) {
            serve::StubProgress::Event | serve::StubProgress::Over => {}
            serve::StubProgress::Time(at) => self.wake_at(at, ProxyTimer::Answer(id)),
            serve::StubProgress::Again => self.unserved.push(id),
        }
    }

    fn connect_client(&mut self, index: usize, client: TcpStream) {
        let now = clock_ns();
        let link = &mut self.links[index];
        link.counters.now.opened += 1;
        let made = link.connect_upstream();
        let (lanes, befallen) = link.draw_lanes();
        let doom = link.doom_delay(&befallen, now);
        let server = match made {
            Ok(server) => server,
            Err(_) => {
                link.counters.now.refused += 1;
                if let Some(book) = &mut self.book {
                    book.count_refused(now);
                }
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
        if let Some(book) = &mut self.book {
            book.connections += 1;
        }
        let connection = ProxiedConnection::new(index, [client, server], lanes, befallen);
        self.connections.insert(id, connection);
        if let Some((after, how)) = doom {
            self.wake_at(now + after, ProxyTimer::Doom(id, how));
        }
    }

    fn on_event(&mut self, token: u64, flags: EventFlags) {
        let (id, side) = (token >> 1, (token & 1) as usize);
        if let Some(connection) = self.connections.get_mut(&id) {
            // An error shows by reading.
            let reads = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            let is_writable = flags.contains(EventFlags::OUT);
            connection.note_event(side, flags.intersects(reads), is_writable);
            self.continue_connection(id);
        }
    }

    fn continue_connection(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let link = &mut self.links[connection.link];
        let before = connection.held_bytes();
        let next = connection.move_bytes(&mut ProxyContext {
            zero: link.zero,
            counters: &mut link.counters,
            lag: &mut self.lag,
            buffer: &mut self.buffer,
            has_room: self.held < MOST,
            book: self.book.as_mut(),
        });
        self.held = self.held + connection.held_bytes() - before;
        match next {
            ProxyProgress::Wait(None) => {}
            ProxyProgress::Wait(Some(at)) => self.wake_at(at, ProxyTimer::Piece(id)),
            ProxyProgress::Again => self.unread.push(id),
            ProxyProgress::Over => self.close_connection(id),
            ProxyProgress::Broken => self.reset_client(id),
            ProxyProgress::Refused => {
                link.counters.now.refused += 1;
                if let Some(book) = &mut self.book {
                    connection.refuse_exchanges(book);
                }
                self.reset_client(id);
            }
        }
    }

    fn take_connection(&mut self, id: u64) -> Option<ProxiedConnection> {
        let mut connection = self.connections.remove(&id)?;
        if let Some(book) = &mut self.book {
            connection.abandon_exchanges(book);
        }
        self.held -= connection.held_bytes();
        self.links[connection.link].counters.open -= 1;
        Some(connection)
    }

    fn close_connection(&mut self, id: u64) {
        drop(self.take_connection(id));
    }

    fn reset_client(&mut self, id: u64) {
        if let Some(connection) = self.take_connection(id) {
            self.links[connection.link].counters.now.reset += 1;
            connection.reset_sides();
        }
    }
}

fn add_listener(epoll: &OwnedFd, listener: &TcpListener, token: u64) -> io::Result<()> {
    let flags = EventFlags::IN | EventFlags::ET;
    let data = EventData::new_u64(token);
    Ok(epoll::add(epoll, listener, data, flags)?)
}
