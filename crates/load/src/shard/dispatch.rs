//! Sending: which request goes out now, and on which connection.

use std::cmp::Reverse;

use loadline_sys::epoll::{self, EventData, EventFlags};

use super::{FreePlace, RequestSource, SECOND_NS, Shard};
use crate::clock::clock_ns;
use crate::connection::{ConnectionState, InFlight};
use crate::outcome::ErrorKind;
use crate::socket::{SocketProgress, TcpSocket};
use crate::wire::ClientSocket;

/// How long a connection pauses after a failed connect in a closed model, which would otherwise
/// try again at once, forever.
const CONNECT_PAUSE_NS: u64 = SECOND_NS / 100;

impl Shard<'_> {
    pub(super) fn dispatch(&mut self, now: u64) {
        self.send_due(now);
        self.flush_sessions();
    }

    fn send_due(&mut self, mut now: u64) {
        while let Some(intended) = self.next_due(now) {
            let waited = now.saturating_sub(intended);
            if waited > self.times.timeout {
                self.take_due(intended);
                self.shed(intended, now);
                continue;
            }
            let Some(free) = self.take_free(self.times.phase(intended)) else {
                return;
            };
            self.take_due(intended);
            self.begin_request(free, intended, now);
            now = clock_ns();
        }
    }

    fn next_due(&mut self, now: u64) -> Option<u64> {
        let end = self.times.end;
        match &self.source {
            RequestSource::Open { send, .. } => {
                let intended = self.times.start + send.next?;
                (intended < end && self.release_time(intended) <= now).then_some(intended)
            }
            RequestSource::Closed { left } => {
                let may_send = *left > 0 && now < end && now >= self.times.start;
                (may_send && !self.ready.is_empty()).then_some(now)
            }
        }
    }

    fn take_due(&mut self, intended: u64) {
        let phase = self.times.phase(intended);
        match &mut self.source {
            RequestSource::Open { send, .. } => send.advance(),
            RequestSource::Closed { left } => {
                *left -= phase as u64;
                self.interval.totals[phase].scheduled += 1;
            }
        }
    }

    fn release_time(&self, intended: u64) -> u64 {
        let since = intended - self.times.start;
        self.times.start + since.div_ceil(self.quantum) * self.quantum
    }

    pub(super) fn next_release(&self, now: u64) -> Option<u64> {
        if !self.has_free() {
            return None;
        }
        match &self.source {
            RequestSource::Open { send, .. } => {
                let intended = self.times.start + send.next?;
                (intended < self.times.end).then(|| self.release_time(intended))
            }
            // Once begun, connections send as soon as they are free.
            RequestSource::Closed { .. } => (now < self.times.start).then_some(self.times.start),
        }
    }

    pub(super) fn is_waiting(&self, now: u64) -> bool {
        match &self.source {
            RequestSource::Open { send, .. } => {
                !self.has_free() && send.next.is_some_and(|t| self.times.start + t <= now)
            }
            RequestSource::Closed { .. } => false,
        }
    }

    pub(super) fn is_exhausted(&self, now: u64) -> bool {
        let end = self.times.end;
        match &self.source {
            RequestSource::Open { send, .. } => {
                now >= end && send.next.is_none_or(|t| self.times.start + t >= end)
            }
            RequestSource::Closed { left } => *left == 0 || now >= end,
        }
    }

    pub(super) fn count_due(&mut self, until: u64) {
        let RequestSource::Open { due, .. } = &mut self.source else {
            return;
        };
        let start = self.times.start;
        let until = until.min(self.times.end);
        for (phase, limit) in [until.min(self.times.warm_end), until]
            .into_iter()
            .enumerate()
        {
            self.interval.totals[phase].scheduled += due.advance_to(limit.saturating_sub(start));
        }
    }

    /// Counts the requests that are due but were never sent, at the end.
    pub(super) fn count_unsent(&mut self, unfinished: &mut [u64; 2]) {
        let RequestSource::Open { send, .. } = &mut self.source else {
            return;
        };
        let start = self.times.start;
        let limits = [self.times.end.min(self.times.warm_end), self.times.end];
        for (count, limit) in unfinished.iter_mut().zip(limits) {
            *count += send.advance_to(limit.saturating_sub(start));
        }
    }

    fn begin_request(&mut self, free: FreePlace, intended: u64, now: u64) {
        let id = free.connection;
        if matches!(self.source, RequestSource::Open { .. }) {
            self.count_lag(free, intended, now);
        }
        let is_first = self.count_request_of_user(id, self.times.phase(intended));
        let kind = self.requests.pick(is_first);
        let request = InFlight {
            intended,
            begun: now,
            kind,
            ..InFlight::default()
        };
        self.in_flight += 1;
        let connection = &mut self.connections[id as usize];
        match &mut connection.session {
            None => {
                let user = connection.user.as_ref();
                self.requests
                    .render_request(kind, user, &mut connection.rendered);
                connection.request = Some(request);
            }
            Some(session) => {
                let admitted = session.admit(request, self.requests.is_head(kind));
                debug_assert!(admitted, "no more requests than places");
            }
        }
        match connection.state {
            ConnectionState::Open(_) if connection.session.is_some() => self.send_streams(id, now),
            ConnectionState::Open(_) => self.send_rest(id, now),
            ConnectionState::Connecting(_) => {}
            ConnectionState::Closed => {
                if let Some(kind) = self.open_connection(id) {
                    self.fail(id, kind);
                }
            }
        }
    }

    fn count_lag(&mut self, free: FreePlace, intended: u64, now: u64) {
        let possible = intended.max(free.since);
        self.interval.totals[self.times.phase(intended)]
            .send_lag
            .saturating_record(now.saturating_sub(possible));
    }

    pub(super) fn send_rest(&mut self, id: u32, now: u64) {
        let connection = &mut self.connections[id as usize];
        let (ConnectionState::Open(wire), Some(request)) =
            (&mut connection.state, &mut connection.request)
        else {
            return;
        };
        if request.sent == 0 {
            request.sent = now;
        }
        let bytes = self
            .requests
            .request_bytes(request.kind, &connection.rendered);
        while request.written < bytes.len() {
            match wire.send_bytes(&bytes[request.written..]) {
                Ok(SocketProgress::Bytes(n)) => request.written += n,
                Ok(SocketProgress::Later | SocketProgress::End) => return,
                Err(kind) => return self.fail(id, kind),
            }
        }
        if let Err(kind) = wire.flush_records() {
            self.fail(id, kind);
        }
    }

    pub(super) fn open_connection(&mut self, id: u32) -> Option<ErrorKind> {
        let connection = &mut self.connections[id as usize];
        connection.opened = clock_ns();
        let address = self.plan.targets[connection.target];
        let socket = match TcpSocket::begin_connect(address) {
            Ok(socket) => socket,
            Err(kind) => return Some(kind),
        };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(u64::from(id));
        if let Err(errno) = epoll::add(&self.epoll, &socket, data, flags) {
            return Some(ErrorKind::from_errno(errno));
        }
        match ClientSocket::new(socket, self.tls.as_ref()) {
            Ok(wire) => {
                connection.state = ConnectionState::Connecting(wire);
                None
            }
            Err(kind) => Some(kind),
        }
    }

    pub(super) fn fail(&mut self, id: u32, kind: ErrorKind) {
        let connection = &mut self.connections[id as usize];
        let was_open =
            matches!(connection.state, ConnectionState::Open(_)) && !connection.is_opening();
        connection.close_socket();
        let request = connection.request.take();
        let pauses = !was_open && matches!(self.source, RequestSource::Closed { .. });
        if let Some(request) = request {
            self.fail_one(id, request, kind, pauses);
        }
        self.fail_streams(id, kind, pauses);
    }

    pub(super) fn fail_one(&mut self, id: u32, request: InFlight, kind: ErrorKind, pauses: bool) {
        self.in_flight -= 1;
        self.count_failure(request, kind);
        let now = clock_ns();
        if pauses {
            self.paused.push(Reverse((now + CONNECT_PAUSE_NS, id)))
        } else {
            self.free_place(id, now)
        }
    }

    pub(super) fn free_place(&mut self, id: u32, now: u64) {
        if let Some(session) = &mut self.connections[id as usize].session
            && session.places.len() - session.held > session.request_capacity()
        {
            session.held += 1;
            return;
        }
        if self.part_with(id) {
            return;
        }
        match self.next_pause() {
            0 => self.ready.push_back(FreePlace {
                connection: id,
                since: now,
            }),
            pause => self.paused.push(Reverse((now + pause, id))),
        }
    }

    pub(super) fn count_failure(&mut self, request: InFlight, kind: ErrorKind) {
        let intended = request.intended;
        let phase = self.times.phase(intended);
        self.interval.totals[phase].count_failure(kind);
        if let Some(request) = self.by_request[phase].get_mut(request.kind) {
            request.failed += 1;
        }
        if let Some(second) = self.second_of(intended) {
            second.failed += 1;
        }
    }

    /// Gives up a request that was not sent in its time. While a connection was free, that was
    /// the generator's own delay.
    fn shed(&mut self, intended: u64, now: u64) {
        if let Some(free) = self.ready.front() {
            self.count_lag(*free, intended, now);
        }
        self.interval.totals[self.times.phase(intended)].count_failure(ErrorKind::Shed);
        if let Some(second) = self.second_of(intended) {
            second.failed += 1;
        }
    }

    pub(super) fn scan_timeouts(&mut self, now: u64) {
        let timeout = self.times.timeout;
        for id in 0..self.connections.len() as u32 {
            let connection = &self.connections[id as usize];
            if let Some(kind) = connection.missed_deadline(now, &self.times) {
                self.fail(id, kind);
                continue;
            }
            let request = connection.request;
            if request.is_some_and(|r| r.begun + timeout < now) {
                self.fail(id, ErrorKind::Timeout);
            }
            self.scan_streams(id, now - timeout.min(now));
        }
    }
}
