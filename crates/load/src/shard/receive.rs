//! Receiving: what an event on a connection means for its request.

use loadline_sys::epoll::EventFlags;

use super::{BUFFER, Shard};
use crate::clock::clock_ns;
use crate::connection::{ConnectionState, InFlight};
use crate::outcome::ErrorKind;
use crate::response::Response;
use crate::socket::SocketProgress;

/// Reads of one connection before the others get their turn: a body of many MB must not hold up
/// the schedule.
const READS_IN_TURN: usize = 8;

impl Shard<'_> {
    /// Handles an event; returns a recent time. The flags only hint: what counts is what the
    /// socket says, since an event may be older than the socket.
    pub(super) fn on_event(&mut self, id: u32, flags: EventFlags) -> u64 {
        let connection = &mut self.connections[id as usize];
        match &connection.state {
            ConnectionState::Closed => clock_ns(),
            ConnectionState::Connecting(_) => self.on_connected(id),
            ConnectionState::Open(_) if connection.session.is_some() => {
                self.flush_frames(id);
                self.receive_from(id, is_end(flags))
            }
            ConnectionState::Open(_) => {
                let unsent = connection.request.is_some_and(|r| {
                    let bytes = self.requests.request_bytes(r.kind, &connection.rendered);
                    r.written < bytes.len()
                });
                if unsent || connection.has_unflushed() {
                    self.send_rest(id, clock_ns());
                }
                self.receive_from(id, is_end(flags))
            }
        }
    }

    fn on_connected(&mut self, id: u32) -> u64 {
        let now = clock_ns();
        let connection = &mut self.connections[id as usize];
        let ConnectionState::Connecting(mut wire) =
            std::mem::replace(&mut connection.state, ConnectionState::Closed)
        else {
            return now;
        };
        match wire.handshake() {
            Ok(true) if connection.session.is_none() => {
                connection.state = ConnectionState::Open(wire);
                self.send_rest(id, now);
            }
            Ok(true) if !wire.is_http2() => self.fail(id, ErrorKind::Protocol),
            Ok(true) => {
                connection.state = ConnectionState::Open(wire);
                self.flush_frames(id);
                // The server's settings may have come with its handshake.
                return self.receive_from(id, false);
            }
            Ok(false) => connection.state = ConnectionState::Connecting(wire),
            Err(kind) => self.fail(id, kind),
        }
        now
    }

    /// Reads the available bytes. `ended` means that the peer has closed its side: then a short
    /// read is not the last.
    pub(super) fn receive_from(&mut self, id: u32, ended: bool) -> u64 {
        for _ in 0..READS_IN_TURN {
            let connection = &mut self.connections[id as usize];
            let ConnectionState::Open(wire) = &mut connection.state else {
                return clock_ns();
            };
            match wire.receive_bytes(&mut self.buffer) {
                Ok(SocketProgress::Bytes(n)) => {
                    // Edge-triggered: a read that did not fill the buffer has emptied the socket.
                    let is_empty = n < BUFFER && wire.is_drained();
                    let now = self.take_received(id, n);
                    if is_empty && !ended {
                        return now;
                    }
                }
                Ok(SocketProgress::Later) => return clock_ns(),
                Ok(SocketProgress::End) => return self.on_end(id),
                Err(kind) => {
                    match connection.session {
                        None => self.fail(id, kind),
                        Some(_) => self.end_session(id, kind),
                    }
                    return clock_ns();
                }
            }
        }
        self.unread.push(id);
        clock_ns()
    }

    pub(super) fn continue_unread(&mut self) {
        for id in std::mem::take(&mut self.unread) {
            let now = self.receive_from(id, true);
            self.dispatch(now);
        }
    }

    fn take_received(&mut self, id: u32, n: usize) -> u64 {
        let now = clock_ns();
        let connection = &mut self.connections[id as usize];
        connection.heard = now;
        if connection.session.is_some() {
            self.take_frames(id, n, now);
            return now;
        }
        let Some(request) = connection.request else {
            // Unexpected bytes: the connection cannot be trusted any more.
            connection.close_socket();
            return now;
        };
        let bytes = &self.buffer[..n];
        let head_only = self.requests.is_head(request.kind);
        match connection.feed_response(bytes, head_only) {
            Err(_) => self.fail(id, ErrorKind::Protocol),
            Ok(fed) => {
                if let Some(response) = fed.response {
                    self.complete_request(id, response, fed.used < n, now);
                }
            }
        }
        now
    }

    fn on_end(&mut self, id: u32) -> u64 {
        let now = clock_ns();
        let connection = &mut self.connections[id as usize];
        if connection.session.is_some() {
            self.end_session(id, ErrorKind::Closed);
            return now;
        }
        if connection.request.is_none() {
            connection.close_socket();
            return now;
        }
        match connection.parser.complete_at_eof() {
            Some(response) => self.complete_request(id, response, false, now),
            None => self.fail(id, ErrorKind::Closed),
        }
        now
    }

    fn complete_request(&mut self, id: u32, response: Response, has_more: bool, now: u64) {
        let connection = &mut self.connections[id as usize];
        let Some(request) = connection.request.take() else {
            return;
        };
        self.in_flight -= 1;
        let verdict = connection.judge_response(response, &self.plan.expect);
        let bytes = self
            .requests
            .request_bytes(request.kind, &connection.rendered);
        let is_sent = request.written == bytes.len();
        let is_last =
            !response.keep_alive || self.plan.request_spec(request.kind).closes_connection();
        if is_last || has_more || !is_sent {
            connection.close_socket();
        }
        self.free_place(id, now);
        self.count_response(request, response, verdict, now);
    }

    /// Counts a complete response. One that comes after its time has failed, whether or not the
    /// scan for timeouts has been there before.
    pub(super) fn count_response(
        &mut self,
        request: InFlight,
        response: Response,
        verdict: Option<ErrorKind>,
        now: u64,
    ) {
        if now.saturating_sub(request.begun) > self.times.timeout {
            return self.count_failure(request, ErrorKind::Timeout);
        }
        if now < self.times.end {
            let present = &mut self.interval.totals[self.times.phase(now)];
            present.body_bytes_in_time += response.body_bytes;
            present.answered_in_time += u64::from(verdict.is_none());
        }
        let phase = self.times.phase(request.intended);
        let totals = &mut self.interval.totals[phase];
        totals.body_bytes += response.body_bytes;
        totals.redirects += u64::from(is_redirect(response.status));
        match verdict {
            Some(kind) => self.count_failure(request, kind),
            None => {
                let latency = now - request.intended;
                totals.count_success(latency, now - request.sent);
                if let Some(request) = self.by_request[phase].get_mut(request.kind) {
                    request.count_success(latency);
                }
                if let Some(second) = self.second_of(request.intended) {
                    second.count_success(latency);
                }
            }
        }
    }
}

/// Not modified (304) is not a redirect.
fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status) && status != 304
}

fn is_end(flags: EventFlags) -> bool {
    flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
}
