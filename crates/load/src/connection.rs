//! One connection: its socket, its request, and the response read so far.
//!
//! Owns the check of a response against the expectation. Knows no schedule and no epoll.

use memchr::memmem::Finder;

use crate::http2::Http2Connection;
use crate::outcome::ErrorKind;
use crate::plan::{Expectation, Http2Options, LoadPlan};
use crate::request::target_of;
use crate::response::{MalformedResponse, ParseProgress, Response, ResponseParser, ResponseSink};
use crate::times::RunTimes;
use crate::user::User;
use crate::wire::ClientSocket;

#[derive(Debug, Default)]
pub(crate) enum ConnectionState {
    /// No socket. The next request opens one; the handshake is part of its latency.
    #[default]
    Closed,
    Connecting(ClientSocket),
    Open(ClientSocket),
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InFlight {
    /// When it should have been sent, CLOCK_MONOTONIC ns.
    pub(crate) intended: u64,
    /// When it was given to this connection; its timeout counts from here.
    pub(crate) begun: u64,
    /// When its first byte was sent; 0 while the connection is not open yet.
    pub(crate) sent: u64,
    pub(crate) written: usize,
    pub(crate) kind: usize,
    /// It was sent before, on an HTTP/2 connection, and the server reported that it did not process
    /// it.
    pub(crate) is_repeated: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LoadConnection {
    pub(crate) state: ConnectionState,
    pub(crate) request: Option<InFlight>,
    /// The bytes of the request, where they differ from one to the next.
    pub(crate) rendered: Vec<u8>,
    pub(crate) parser: ResponseParser,
    pub(crate) body: Option<BodySearch>,
    /// The user of the connection, if the load has users; `None` for a free one.
    pub(crate) user: Option<User>,
    /// With HTTP/2: its streams, instead of the request, parser and body above.
    pub(crate) session: Option<Box<Http2Connection>>,
    /// When its socket was opened, and when its last byte came, CLOCK_MONOTONIC ns.
    pub(crate) opened: u64,
    pub(crate) heard: u64,
    pub(crate) target: usize,
}

impl LoadConnection {
    pub(crate) fn new(target: usize, plan: &LoadPlan) -> Self {
        let expect = &plan.expect;
        let session = |http2: Http2Options| Box::new(Http2Connection::new(http2.streams, expect));
        Self {
            body: expect.body_contains.as_deref().map(BodySearch::new),
            session: plan.http2.map(session),
            target,
            ..Self::default()
        }
    }

    pub(crate) fn has_unflushed(&self) -> bool {
        matches!(&self.state, ConnectionState::Open(wire) if wire.has_unflushed())
    }

    pub(crate) fn close_socket(&mut self) {
        self.state = ConnectionState::Closed;
        self.parser = ResponseParser::default();
        if let Some(body) = &mut self.body {
            body.finish_body();
        }
        if let Some(session) = &mut self.session {
            session.reset_connection();
        }
    }

    /// Takes received bytes of the response to its request.
    pub(crate) fn feed_response(
        &mut self,
        bytes: &[u8],
        head_only: bool,
    ) -> Result<ParseProgress, MalformedResponse> {
        if self.body.is_none() && self.user.is_none() {
            return self.parser.feed(bytes, head_only, &mut |_: &[u8]| {});
        }
        let mut reader = ResponseObserver {
            search: self.body.as_mut(),
            user: self.user.as_mut(),
            rendered: &self.rendered,
        };
        self.parser.feed(bytes, head_only, &mut reader)
    }

    pub(crate) fn judge_response(
        &mut self,
        response: Response,
        expect: &Expectation,
    ) -> Option<ErrorKind> {
        let found = self.body.as_mut().is_none_or(BodySearch::finish_body);
        find_response_error(response, found, expect)
    }

    pub(crate) fn is_opening(&self) -> bool {
        let unsettled = |s: &Http2Connection| !s.is_settled;
        match self.state {
            ConnectionState::Closed => false,
            ConnectionState::Connecting(_) => true,
            ConnectionState::Open(_) => self.session.as_deref().is_some_and(unsettled),
        }
    }

    pub(crate) fn missed_deadline(&self, now: u64, times: &RunTimes) -> Option<ErrorKind> {
        if self.is_opening() {
            let late = now.saturating_sub(self.opened) > times.connect_timeout;
            return late.then_some(ErrorKind::ConnectTimeout);
        }
        if times.read_timeout == u64::MAX {
            return None;
        }
        let sent = self
            .pending_requests()
            .map(|r| r.sent)
            .filter(|sent| *sent > 0)
            .min()?;
        let silent = now.saturating_sub(sent.max(self.heard)) > times.read_timeout;
        silent.then_some(ErrorKind::ReadTimeout)
    }

    pub(crate) fn pending_requests(&self) -> impl Iterator<Item = InFlight> {
        let places = self.session.iter().flat_map(|s| &s.places);
        self.request
            .into_iter()
            .chain(places.filter_map(|p| p.request))
    }
}

struct ResponseObserver<'a> {
    search: Option<&'a mut BodySearch>,
    user: Option<&'a mut User>,
    rendered: &'a [u8],
}

impl ResponseSink for ResponseObserver<'_> {
    fn on_body_piece(&mut self, piece: &[u8]) {
        if let Some(search) = &mut self.search {
            search.feed(piece);
        }
    }

    fn on_cookie(&mut self, value: &[u8]) {
        if let Some(user) = &mut self.user {
            user.cookies.store_cookie(value, target_of(self.rendered));
        }
    }
}

/// Why an answer is not a good one; `found` says that its body has the text expected.
pub fn find_response_error(
    response: Response,
    found: bool,
    expect: &Expectation,
) -> Option<ErrorKind> {
    let right_size = expect.body_bytes.is_none_or(|b| b == response.body_bytes);
    ErrorKind::from_http_status(response.status, &expect.status)
        .or_else(|| find_call_error(response.grpc_status, &expect.grpc_status))
        .or((!found || !right_size).then_some(ErrorKind::WrongBody))
}

/// Checks whether a gRPC call ended as expected; other requests pass unless a gRPC status is
/// expected.
fn find_call_error(status: Option<u16>, expected: &[u16]) -> Option<ErrorKind> {
    match status {
        None if expected.is_empty() => None,
        None => Some(ErrorKind::GrpcUnknown),
        Some(code) if expected.contains(&code) || (expected.is_empty() && code == 0) => None,
        Some(0) => Some(ErrorKind::WrongStatus),
        Some(code) => Some(ErrorKind::from_grpc_status(code)),
    }
}

#[derive(Debug)]
pub(crate) struct BodySearch {
    finder: Finder<'static>,
    /// The last bytes of the previous piece: the text may lie across two.
    tail: Vec<u8>,
    found: bool,
}

impl BodySearch {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            finder: Finder::new(text.as_bytes()).into_owned(),
            tail: Vec::new(),
            found: text.is_empty(),
        }
    }

    pub(crate) fn feed(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        let overlap = self.finder.needle().len() - 1;
        let across = piece.len().min(overlap);
        self.tail.extend_from_slice(&piece[..across]);
        self.found = self.finder.find(&self.tail).is_some() || self.finder.find(piece).is_some();
        if piece.len() >= overlap {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - overlap..]);
        } else {
            let excess = self.tail.len().saturating_sub(overlap);
            self.tail.drain(..excess);
        }
    }

    pub(crate) fn finish_body(&mut self) -> bool {
        self.tail.clear();
        let found = self.found;
        self.found = self.finder.needle().is_empty();
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_found_however_the_body_is_cut(
            body in "[ab]{0,40}", text in "[ab]{1,5}", size in 1usize..10,
        ) {
            let mut search = BodySearch::new(&text);
            for piece in body.as_bytes().chunks(size) {
                search.feed(piece);
            }
            prop_assert_eq!(search.finish_body(), body.contains(&text));
            prop_assert!(!search.finish_body());
        }
    }

    #[test]
    fn a_wrong_answer_is_no_good_answer() {
        let response = |status, body_bytes| Response {
            status,
            keep_alive: true,
            body_bytes,
            grpc_status: None,
        };
        let any = Expectation::default();
        let sized = Expectation {
            status: vec![200],
            body_bytes: Some(3),
            ..Expectation::default()
        };
        for (expect, status, bytes, expected) in [
            (&any, 200, 0, None),
            (&any, 302, 0, None),
            (&any, 404, 0, Some(ErrorKind::Http4xx)),
            (&any, 503, 0, Some(ErrorKind::Http5xx)),
            (&sized, 200, 3, None),
            (&sized, 200, 4, Some(ErrorKind::WrongBody)),
            (&sized, 201, 3, Some(ErrorKind::WrongStatus)),
            (&sized, 301, 3, Some(ErrorKind::Http3xx)),
        ] {
            assert_eq!(
                find_response_error(response(status, bytes), true, expect),
                expected
            );
        }
    }

    #[test]
    fn a_call_ended_well_by_its_code_and_not_by_its_http_status() {
        let call = |grpc_status, expected: &[u16]| {
            let response = Response {
                status: 200,
                keep_alive: true,
                body_bytes: 5,
                grpc_status,
            };
            let expect = Expectation {
                grpc_status: expected.to_vec(),
                ..Expectation::default()
            };
            find_response_error(response, true, &expect).map(ErrorKind::name)
        };
        assert_eq!(call(None, &[]), None);
        assert_eq!(call(Some(0), &[]), None);
        assert_eq!(call(Some(5), &[]), Some("grpc_not_found"));
        assert_eq!(call(Some(16), &[]), Some("grpc_unauthenticated"));
        assert_eq!(call(Some(99), &[]), Some("grpc_unknown"));
        assert_eq!(call(Some(5), &[5, 0]), None);
        assert_eq!(call(Some(0), &[5]), Some("wrong_status"));
        // An answer of a gateway, which is no call at all.
        assert_eq!(call(None, &[0]), Some("grpc_unknown"));
    }
}
