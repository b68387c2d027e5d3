//! HTTP/2 on the loop of a thread: requests become streams, frames are sent together.
//!
//! Owns no protocol (that is `http2`) and no schedule. Frames of one turn, however many requests
//! they are, leave with one send for each connection.

use super::Shard;
use crate::clock::clock_ns;
use crate::connection::{ConnectionState, find_response_error};
use crate::http2::StreamEnd;
use crate::outcome::ErrorKind;
use crate::socket::SocketProgress;

impl Shard<'_> {
    pub(super) fn send_streams(&mut self, id: u32, now: u64) {
        self.open_streams(id, now);
        self.upload_bodies(id);
        self.unflushed.push(id);
    }

    fn open_streams(&mut self, id: u32, now: u64) {
        let Some(session) = &mut self.connections[id as usize].session else {
            return;
        };
        while session.may_send()
            && let Some(place) = session.next_waiting()
        {
            let requests = &mut self.requests;
            session.open_stream(place, &mut |place, encoder, out| {
                let Some(request) = &mut place.request else {
                    return 0;
                };
                request.sent = now;
                requests.render_stream(request.kind, encoder, &mut place.rendered, out)
            });
        }
    }

    fn upload_bodies(&mut self, id: u32) {
        let Some(session) = &mut self.connections[id as usize].session else {
            return;
        };
        while let Some(nth) = session.next_upload() {
            let place = &mut session.places[nth];
            let rendered = std::mem::take(&mut place.rendered);
            let kind = place.request.map_or(0, |r| r.kind);
            session.upload(nth, self.requests.request_body(kind, &rendered));
            session.places[nth].rendered = rendered;
        }
    }

    pub(super) fn flush_sessions(&mut self) {
        // Usually one connection several times over, each time with nothing left to send.
        let mut unflushed = std::mem::take(&mut self.unflushed);
        for id in unflushed.drain(..) {
            self.flush_frames(id);
        }
        // Failed connections may have been opened again.
        if self.unflushed.is_empty() {
            self.unflushed = unflushed;
        }
    }

    pub(super) fn flush_frames(&mut self, id: u32) {
        loop {
            let connection = &mut self.connections[id as usize];
            let (ConnectionState::Open(wire), Some(session)) =
                (&mut connection.state, &mut connection.session)
            else {
                return;
            };
            while session.written < session.out.len() {
                match wire.send_bytes(&session.out[session.written..]) {
                    Ok(SocketProgress::Bytes(n)) => session.written += n,
                    Ok(SocketProgress::Later | SocketProgress::End) => return,
                    Err(kind) => return self.end_session(id, kind),
                }
            }
            session.mark_all_sent();
            if let Err(kind) = wire.flush_records() {
                return self.fail(id, kind);
            }
            let has_request = session.may_send() && session.next_waiting().is_some();
            if !has_request && session.next_upload().is_none() {
                return;
            }
            self.open_streams(id, clock_ns());
            self.upload_bodies(id);
        }
    }

    pub(super) fn take_frames(&mut self, id: u32, n: usize, now: u64) {
        let Some(session) = &mut self.connections[id as usize].session else {
            return;
        };
        let mut ended = std::mem::take(&mut self.ended);
        let received = session.receive_frames(&self.buffer[..n], &mut ended);
        let has_frames = !session.out.is_empty() || session.next_upload().is_some();
        let is_over = session.is_over();
        for end in ended.drain(..) {
            self.end_stream(id, end, now);
        }
        self.ended = ended;
        match received {
            Err(kind) => self.fail(id, kind),
            Ok(()) if is_over => self.reopen(id),
            Ok(()) => {
                self.release_held(id, now);
                if has_frames || self.has_waiting(id) {
                    self.send_streams(id, now);
                }
            }
        }
    }

    fn end_stream(&mut self, id: u32, end: StreamEnd, now: u64) {
        let Some(session) = &mut self.connections[id as usize].session else {
            return;
        };
        let Some(request) = session.take_request(end.place) else {
            return;
        };
        match end.result {
            Err(kind) => self.fail_one(id, request, kind, false),
            Ok((response, found)) => {
                self.in_flight -= 1;
                self.free_place(id, now);
                let verdict = find_response_error(response, found, &self.plan.expect);
                self.count_response(request, response, verdict, now);
            }
        }
    }

    /// The server ended the connection. Requests that were sent on it have failed; requests still
    /// waiting for a stream were never sent and go to the next connection (RFC 9113 §8.7).
    pub(super) fn end_session(&mut self, id: u32, kind: ErrorKind) {
        let connection = &mut self.connections[id as usize];
        if connection.is_opening() {
            return self.fail(id, kind);
        }
        let Some(session) = &mut connection.session else {
            return;
        };
        for request in session.take_lost_requests() {
            self.fail_one(id, request, kind, false);
        }
        self.reopen(id);
    }

    fn reopen(&mut self, id: u32) {
        self.connections[id as usize].close_socket();
        self.release_held(id, clock_ns());
        if self.has_waiting(id)
            && let Some(kind) = self.open_connection(id)
        {
            self.fail(id, kind);
        }
    }

    fn has_waiting(&mut self, id: u32) -> bool {
        let session = &mut self.connections[id as usize].session;
        session.as_mut().is_some_and(|s| s.next_waiting().is_some())
    }

    fn release_held(&mut self, id: u32, now: u64) {
        loop {
            let Some(session) = &mut self.connections[id as usize].session else {
                return;
            };
            if session.held == 0
                || session.places.len() - session.held >= session.request_capacity()
            {
                return;
            }
            session.held -= 1;
            self.free_place(id, now);
        }
    }

    pub(super) fn fail_streams(&mut self, id: u32, kind: ErrorKind, pauses: bool) {
        let places = match &self.connections[id as usize].session {
            None => return,
            Some(session) => session.places.len(),
        };
        for place in 0..places {
            let session = &mut self.connections[id as usize].session;
            let request = session.as_mut().and_then(|s| s.take_request(place));
            if let Some(request) = request {
                self.fail_one(id, request, kind, pauses);
            }
        }
        self.release_held(id, clock_ns());
    }

    pub(super) fn scan_streams(&mut self, id: u32, oldest: u64) {
        let connection = &mut self.connections[id as usize];
        let is_opening = connection.is_opening();
        let Some(session) = &mut connection.session else {
            return;
        };
        for place in 0..session.places.len() {
            let session = &mut self.connections[id as usize].session;
            let Some(session) = session else { return };
            let request = &session.places[place].request;
            if request.is_none_or(|r| r.begun >= oldest) {
                continue;
            }
            if is_opening {
                return self.fail(id, ErrorKind::Timeout);
            }
            if let Some(request) = session.cancel(place) {
                self.fail_one(id, request, ErrorKind::Timeout, false);
                self.unflushed.push(id);
            }
        }
    }
}
