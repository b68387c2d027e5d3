//! The front's view of an external load: each exchange, from the first byte of its request to the
//! last of its answer.
//!
//! Owns which bytes of HTTP/1 are an exchange ([`ExchangeWatch`], one a connection; `streams` has
//! those of HTTP/2) and the counters of a phase ([`ExchangeBook`]). No socket, no clock. Facts that
//! only the load tool has, such as its intended send times, are not here.

mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use loadline_load::http2::{Http2Settings, Http2Violation, PREFACE};
use loadline_load::part::{ObservedMessage, SecondMessage, TotalsMessage, second_message};
use loadline_load::profile::request_class;
use loadline_load::response::{MAX_HEAD, MalformedResponse, Response, ResponseParser};
use loadline_load::{
    ErrorKind, Expectation, LoadSecond, LoadTotals, RequestTotals, find_response_error,
};

use self::streams::StreamWatch;
use crate::meter::SECOND;
use crate::request::RequestReader;
use crate::stalls::StallWatch;

/// Names of requests that are kept apart; what comes later is counted under one name.
const MOST_NAMES: usize = 200;
const OTHERS: &str = "other requests";
/// Octets of a method or path that name a request: a client may send 64 KiB in each request.
const LONGEST_NAME: usize = 1024;
/// Requests of a connection of HTTP/1 that may wait for an answer, as many as streams of HTTP/2.
const MOST_WAITING: usize = 60_000;
const TOO_MANY: &str = "HTTP/1 with more than 60,000 requests waiting on a connection";

/// The first byte of a TLS handshake. Source: RFC 8446 section 5.1.
const TLS: u8 = 0x16;

#[derive(Debug)]
struct Exchange {
    begin: u64,
    phase: u32,
    /// Empty until its head is whole.
    name: Vec<u8>,
    is_head: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ExchangeWatch {
    requests: RequestReader,
    responses: ResponseParser,
    under_way: VecDeque<Exchange>,
    is_http1: bool,
    /// When the first byte came, which may begin a preface of HTTP/2.
    begun: Option<u64>,
    /// A server of HTTP/2 need not wait for the preface.
    early: Vec<u8>,
    /// What the last request offered; the server may take it with its answer.
    offered: Option<Http2Settings>,
    streams: Option<Box<StreamWatch>>,
    is_in_head: bool,
    is_in_body: bool,
    is_blind: bool,
}

impl ExchangeWatch {
    pub(crate) fn take_request_bytes(&mut self, bytes: &[u8], now: u64, book: &mut ExchangeBook) {
        if self.is_blind {
            return;
        }
        if self.streams.is_some() {
            return self.take_frames(bytes, now, book);
        }
        self.requests.take_bytes(bytes);
        loop {
            if self.is_in_body {
                match self.requests.skip_body() {
                    Ok(true) => self.is_in_body = false,
                    Ok(false) => return,
                    Err(_) => return self.lose_sight(self.name_protocol(), book),
                }
            }
            let unread = self.requests.unread_bytes();
            if unread.is_empty() {
                return;
            }
            if !self.is_in_head {
                let begin = self.begun.take().unwrap_or(now);
                let start = &unread[..unread.len().min(PREFACE.len())];
                if !self.is_http1 && PREFACE.starts_with(start) {
                    self.begun = Some(begin);
                    if unread.len() < PREFACE.len() {
                        return;
                    }
                    let first = std::mem::take(&mut self.requests);
                    self.streams = Some(Box::new(StreamWatch::new()));
                    let early = std::mem::take(&mut self.early);
                    self.take_response_bytes(&early, now, book);
                    let frames = &first.unread_bytes()[PREFACE.len()..];
                    return self.take_frames(frames, now, book);
                }
                (self.is_http1, self.is_in_head) = (true, true);
                if self.under_way.len() >= MOST_WAITING {
                    return self.lose_sight(TOO_MANY, book);
                }
                self.under_way.push_back(book.begin_exchange(begin));
            }
            match self.requests.next_head() {
                Ok(None) => return,
                Ok(Some(head)) => {
                    (self.is_in_head, self.is_in_body) = (false, true);
                    self.offered = head.http2;
                    if let Some(exchange) = self.under_way.back_mut() {
                        exchange.name = request_class(begin_of(&head.method), begin_of(&head.path));
                        exchange.is_head = head.method == b"HEAD";
                    }
                }
                Err(_) => return self.lose_sight(self.name_protocol(), book),
            }
        }
    }

    fn take_frames(&mut self, bytes: &[u8], now: u64, book: &mut ExchangeBook) {
        let streams = self.streams.as_mut();
        let taken = streams.map(|streams| streams.take_request_bytes(bytes, now, book));
        if let Some(Err(what)) = taken {
            self.lose_sight(what, book);
        }
    }

    pub(crate) fn take_response_bytes(
        &mut self,
        mut bytes: &[u8],
        now: u64,
        book: &mut ExchangeBook,
    ) {
        if self.is_blind {
            return;
        }
        if let Some(streams) = &mut self.streams {
            return match streams.take_answer_bytes(bytes, now, book) {
                Ok(()) => {}
                Err(Http2Violation::Push) => self.lose_sight("HTTP/2 with server push", book),
                Err(_) => self.break_off(book),
            };
        }
        if !self.is_http1 {
            let room = MAX_HEAD - self.early.len();
            return self.early.extend(bytes.iter().take(room));
        }
        while let Some(first) = self.under_way.front() {
            let is_head = first.is_head;
            match self.responses.feed(bytes, is_head, &mut |_: &[u8]| ()) {
                Ok(fed) => {
                    let Some(response) = fed.response else { return };
                    bytes = &bytes[fed.used..];
                    if let Some(exchange) = self.under_way.pop_front() {
                        book.end_exchange(&exchange, response, now);
                    }
                    if bytes.is_empty() {
                        return;
                    }
                }
                Err(MalformedResponse::Upgrade { unread }) => {
                    if !self.upgrade_connection() {
                        return self.lose_sight("another protocol after an upgrade", book);
                    }
                    let frames = &bytes[bytes.len() - unread..];
                    return self.take_response_bytes(frames, now, book);
                }
                Err(_) => return self.break_off(book),
            }
        }
    }

    /// Goes on in HTTP/2, with the request that offered it as stream 1 (RFC 7540 section 3.2); returns
    /// whether it was offered, and nothing came behind that request.
    fn upgrade_connection(&mut self) -> bool {
        let is_alone = self.under_way.len() == 1 && self.requests.unread_bytes().is_empty();
        let Some(settings) = self.offered.filter(|_| is_alone && !self.is_in_body) else {
            return false;
        };
        let exchange = self.under_way.pop_front();
        let streams = exchange.map(|exchange| StreamWatch::from_upgrade(exchange, &settings));
        self.streams = streams.map(Box::new);
        true
    }

    pub(crate) fn has_exchanges(&self) -> bool {
        let streams = self.streams.as_ref();
        !self.under_way.is_empty() || streams.is_some_and(|streams| streams.has_exchanges())
    }

    pub(crate) fn end_responses(&mut self, now: u64, book: &mut ExchangeBook) {
        if let Some(response) = self.responses.complete_at_eof()
            && let Some(exchange) = self.under_way.pop_front()
        {
            book.end_exchange(&exchange, response, now);
        }
    }

    pub(crate) fn abandon_exchanges(&mut self, kind: ErrorKind, book: &mut ExchangeBook) {
        for exchange in self.take_exchanges() {
            book.fail_exchange(&exchange, kind);
        }
    }

    fn take_exchanges(&mut self) -> impl Iterator<Item = Exchange> {
        let streams = self.streams.take().into_iter();
        let of_streams = streams.flat_map(|streams| streams.into_exchanges());
        self.under_way.drain(..).chain(of_streams)
    }

    /// The service broke the protocol; what it sends now cannot be followed.
    fn break_off(&mut self, book: &mut ExchangeBook) {
        self.is_blind = true;
        self.abandon_exchanges(ErrorKind::Protocol, book);
    }

    /// What comes now cannot be timed: its exchanges are not counted, and the book says why.
    fn lose_sight(&mut self, what: &'static str, book: &mut ExchangeBook) {
        self.is_blind = true;
        book.unreadable.get_or_insert(what);
        for exchange in self.take_exchanges() {
            book.forget_exchange(&exchange);
        }
    }

    /// What bytes are called that are no request.
    fn name_protocol(&self) -> &'static str {
        match self.requests.unread_bytes().first() {
            Some(&TLS) => "TLS",
            _ => "no HTTP",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct ExchangeBook {
    expected: Expectation,
    phase: u32,
    state: PhaseState,
    totals: LoadTotals,
    second: LoadTotals,
    next_second: u64,
    by_name: BTreeMap<Vec<u8>, RequestTotals>,
    /// Begins of exchanges of this phase that are under way, and how many began then.
    open: BTreeMap<u64, u32>,
    /// Exchanges of earlier phases that are still under way.
    overdue: u64,
    pub(crate) connections: u64,
    stalls: StallWatch,
    unreadable: Option<&'static str>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PhaseState {
    #[default]
    Idle,
    /// It begins with the first request and lasts so long, ns.
    Awaited(u64),
    Running(u64, u64),
}

impl ExchangeBook {
    pub(crate) fn new(expected: &Expectation) -> Self {
        Self {
            expected: expected.clone(),
            next_second: u64::MAX,
            ..Self::default()
        }
    }

    /// A phase of this length, ns: the first begins with the first request, others at once or at this
    /// time.
    pub(crate) fn begin_phase(&mut self, length: u64, now: u64, at: Option<u64>) {
        self.phase += 1;
        (self.totals, self.second) = (LoadTotals::default(), LoadTotals::default());
        self.by_name.clear();
        self.open.clear();
        self.connections = 0;
        match self.phase {
            1 => self.state = PhaseState::Awaited(length),
            _ => self.run_from(at.unwrap_or(now).max(now), length),
        }
    }

    fn run_from(&mut self, start: u64, length: u64) {
        self.state = PhaseState::Running(start, start.saturating_add(length));
        self.next_second = start + SECOND;
        self.stalls = StallWatch::begin_watch(start);
    }

    /// The service took no connection: the request that wanted it was never seen.
    pub(crate) fn count_refused(&mut self, now: u64) {
        let exchange = self.begin_exchange(now);
        self.fail_exchange(&exchange, ErrorKind::Refused);
    }

    fn begin_exchange(&mut self, now: u64) -> Exchange {
        if let PhaseState::Awaited(length) = self.state {
            self.run_from(now, length);
        }
        let is_counted =
            matches!(self.state, PhaseState::Running(start, end) if (start..end).contains(&now));
        if is_counted {
            self.totals.scheduled += 1;
            self.second.scheduled += 1;
            *self.open.entry(now).or_default() += 1;
            self.stalls.count_arrival();
        }
        Exchange {
            begin: now,
            phase: if is_counted { self.phase } else { 0 },
            name: Vec::new(),
            is_head: false,
        }
    }

    fn close_exchange(&mut self, exchange: &Exchange) -> bool {
        if exchange.phase != self.phase || !matches!(self.state, PhaseState::Running(..)) {
            self.overdue = self.overdue.saturating_sub(u64::from(exchange.phase > 0));
            return false;
        }
        if let Some(count) = self.open.get_mut(&exchange.begin) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&exchange.begin);
            }
        }
        true
    }

    fn end_exchange(&mut self, exchange: &Exchange, response: Response, now: u64) {
        self.stalls.count_answer();
        if !self.close_exchange(exchange) {
            return;
        }
        if let Some(kind) = find_response_error(response, true, &self.expected) {
            return self.count_failure(exchange, kind);
        }
        let latency = now.saturating_sub(exchange.begin).max(1);
        self.totals.count_success(latency, latency);
        self.second.count_success(latency, latency);
        let in_time = matches!(self.state, PhaseState::Running(_, end) if now < end);
        self.totals.answered_in_time += u64::from(in_time);
        self.named(exchange).count_success(latency);
    }

    fn fail_exchange(&mut self, exchange: &Exchange, kind: ErrorKind) {
        if self.close_exchange(exchange) {
            self.count_failure(exchange, kind);
        }
    }

    fn count_failure(&mut self, exchange: &Exchange, kind: ErrorKind) {
        self.totals.count_failure(kind);
        self.second.count_failure(kind);
        self.named(exchange).failed += 1;
    }

    fn forget_exchange(&mut self, exchange: &Exchange) {
        if self.close_exchange(exchange) {
            self.totals.scheduled -= 1;
        }
    }

    fn named(&mut self, exchange: &Exchange) -> &mut RequestTotals {
        let is_known = self.by_name.contains_key(&exchange.name);
        let name = if is_known || self.by_name.len() < MOST_NAMES {
            exchange.name.clone()
        } else {
            OTHERS.as_bytes().to_vec()
        };
        self.by_name.entry(name).or_default()
    }

    /// Time passes; returns whether the phase is over: no exchange is under way, or `drain` ns are
    /// over too. `tell` gets each second.
    pub(crate) fn pass_time(
        &mut self,
        now: u64,
        drain: u64,
        tell: &mut impl FnMut(SecondMessage),
    ) -> bool {
        let PhaseState::Running(_, end) = self.state else {
            return false;
        };
        let oldest = self.open.keys().next().copied();
        self.stalls.look(now.min(end), oldest, &self.totals.latency);
        while now >= self.next_second {
            tell(second_message(&LoadSecond {
                index: 0,
                at_ns: self.next_second,
                length: Duration::from_nanos(SECOND),
                is_warmup: false,
                totals: std::mem::take(&mut self.second),
                phases: None,
            }));
            self.next_second += SECOND;
        }
        now >= end && (self.open.is_empty() || now >= end.saturating_add(drain))
    }

    pub(crate) fn end_phase(
        &mut self,
        now: u64,
        lag_p99: Duration,
        cpu: Duration,
    ) -> ObservedMessage {
        let (start, end) = match std::mem::replace(&mut self.state, PhaseState::Idle) {
            PhaseState::Running(start, end) => (start, end.min(now.max(start))),
            PhaseState::Idle | PhaseState::Awaited(_) => (now, now),
        };
        self.next_second = u64::MAX;
        let unfinished: u64 = self.open.values().map(|count| u64::from(*count)).sum();
        self.totals.unfinished = unfinished;
        if self.totals.scheduled == 0 {
            // A closed load sends nothing more while the service hangs: its requests still wait.
            (self.totals.scheduled, self.totals.unfinished) = (self.overdue, self.overdue);
        }
        self.overdue += unfinished;
        self.open.clear();
        let by_name = std::mem::take(&mut self.by_name);
        let named = by_name.into_iter().filter(|(name, _)| !name.is_empty());
        let (names, by_request): (Vec<_>, Vec<_>) = named
            .map(|(name, totals)| (String::from_utf8_lossy(&name).into_owned(), totals))
            .unzip();
        self.totals.by_request = by_request;
        ObservedMessage {
            start_ns: start,
            end_ns: end,
            totals: TotalsMessage::new(&self.totals, Duration::from_nanos(end - start)),
            names,
            connections: self.connections,
            lag_p99,
            cpu,
            stalls: self.stalls.finish_watch(end, &self.totals.latency),
            unreadable: self.unreadable.map(str::to_owned),
        }
    }
}

fn begin_of(name: &[u8]) -> &[u8] {
    &name[..name.len().min(LONGEST_NAME)]
}

/// For the fuzzer: observes one connection. A piece belongs to its requests (`true`) or answers, and
/// arrives in parts of at most `most` bytes.
#[cfg(any(test, fuzzing))]
pub fn observe_pieces(pieces: &[(bool, &[u8])], most: usize) -> ObservedMessage {
    let mut book = ExchangeBook::new(&Expectation::default());
    let mut watch = ExchangeWatch::default();
    book.begin_phase(SECOND, 0, None);
    for (is_request, bytes) in pieces {
        for bytes in bytes.chunks(most.max(1)) {
            if *is_request {
                watch.take_request_bytes(bytes, 1, &mut book)
            } else {
                watch.take_response_bytes(bytes, 1, &mut book)
            }
        }
    }
    book.end_phase(SECOND, Duration::ZERO, Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// A book with a phase of one second under way from 1 s on.
    fn running() -> ExchangeBook {
        let mut book = ExchangeBook::new(&Expectation::default());
        book.begin_phase(MS, 0, None);
        book.begin_phase(SECOND, SECOND, None);
        book
    }

    /// Outcomes: scheduled, good, failed by kind, unfinished.
    fn ended(mut book: ExchangeBook) -> String {
        outcome(&book.end_phase(3 * SECOND, Duration::ZERO, Duration::ZERO))
    }

    /// The same of a phase that has ended.
    pub(super) fn outcome(observed: &ObservedMessage) -> String {
        let totals = &observed.totals.totals;
        let named = observed.names.iter().zip(&totals.by_request);
        let named: Vec<_> = named
            .map(|(name, of)| format!("{name} {}+{}", of.ok, of.failed))
            .collect();
        format!(
            "{} = {} + {:?} + {}; {}",
            totals.scheduled,
            totals.ok,
            totals.errors_by_name(),
            totals.unfinished,
            named.join(", ")
        )
    }

    const GET: &[u8] = b"GET /owners/7?page=2 HTTP/1.1\r\nhost: a\r\n\r\n";
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    #[test]
    fn an_exchange_lasts_from_the_first_byte_of_its_request_to_the_last_of_its_answer() {
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        watch.take_request_bytes(&GET[..5], SECOND + MS, &mut book);
        watch.take_request_bytes(&GET[5..], SECOND + 3 * MS, &mut book);
        watch.take_response_bytes(&OK[..20], SECOND + 5 * MS, &mut book);
        watch.take_response_bytes(&OK[20..], SECOND + 11 * MS, &mut book);
        let latency = book.totals.latency.max();
        assert!(
            (10 * MS..10 * MS + MS / 100).contains(&latency),
            "{latency}"
        );
        assert_eq!(ended(book), "1 = 1 + {} + 0; GET /owners/{id}?page 1+0");
    }

    #[test]
    fn a_request_that_begins_like_a_preface_lasts_from_its_first_byte() {
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        watch.take_request_bytes(b"P", SECOND + MS, &mut book);
        watch.take_request_bytes(b"OST /a HTTP/1.1\r\n\r\n", SECOND + 3 * MS, &mut book);
        watch.take_response_bytes(OK, SECOND + 11 * MS, &mut book);
        let latency = book.totals.latency.max();
        assert!(latency >= 10 * MS, "{latency}");
        assert_eq!(ended(book), "1 = 1 + {} + 0; POST /a 1+0");
    }

    #[test]
    fn bodies_pipelines_and_heads_are_told_apart() {
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        let post = b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n";
        let head = b"HEAD /a HTTP/1.1\r\n\r\n";
        watch.take_request_bytes(&[&post[..], head, GET].concat(), SECOND, &mut book);
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        let failed = b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
        let length = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n";
        let answers = [&interim[..], failed, length, OK].concat();
        watch.take_response_bytes(&answers, SECOND + MS, &mut book);
        assert_eq!(
            ended(book),
            "3 = 2 + {\"http_5xx\": 1} + 0; GET /owners/{id}?page 1+0, HEAD /a 1+0, POST /a 0+1"
        );
    }

    #[test]
    fn requests_without_answers_fill_no_memory() {
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        let many = GET.repeat(1_000);
        for _ in 0..=MOST_WAITING / 1_000 {
            watch.take_request_bytes(&many, SECOND, &mut book);
        }
        assert_eq!(book.unreadable, Some(TOO_MANY));
        assert!(watch.under_way.is_empty());
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "z".repeat(9_000));
        watch.take_request_bytes(long.as_bytes(), SECOND, &mut book);
        let name = watch.under_way.front().map(|exchange| exchange.name.len());
        assert_eq!(name, Some("GET ".len() + LONGEST_NAME));
    }

    #[test]
    fn what_never_ends_is_a_failure_or_unfinished() {
        let mut book = running();
        for kind in [Some(ErrorKind::Timeout), Some(ErrorKind::Closed), None] {
            let mut watch = ExchangeWatch::default();
            watch.take_request_bytes(GET, SECOND, &mut book);
            if let Some(kind) = kind {
                watch.abandon_exchanges(kind, &mut book);
            }
        }
        book.count_refused(SECOND);
        let errors = "{\"closed\": 1, \"refused\": 1, \"timeout\": 1}";
        assert_eq!(
            ended(book),
            format!("4 = 0 + {errors} + 1; GET /owners/{{id}}?page 0+2")
        );
    }

    #[test]
    fn an_answer_may_last_until_the_connection_ends() {
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        watch.take_request_bytes(GET, SECOND, &mut book);
        watch.take_response_bytes(b"HTTP/1.0 200 OK\r\n\r\nall", SECOND + MS, &mut book);
        watch.end_responses(SECOND + 2 * MS, &mut book);
        watch.abandon_exchanges(ErrorKind::Closed, &mut book);
        assert_eq!(ended(book), "1 = 1 + {} + 0; GET /owners/{id}?page 1+0");
    }

    #[test]
    fn the_first_phase_begins_with_the_first_request_and_each_counts_its_own() {
        let mut book = ExchangeBook::new(&Expectation::default());
        let (mut first, mut second) = (ExchangeWatch::default(), ExchangeWatch::default());
        book.begin_phase(SECOND, 0, None);
        assert!(!book.pass_time(9 * SECOND, 0, &mut |_| ()));
        first.take_request_bytes(GET, 10 * SECOND, &mut book);
        second.take_request_bytes(GET, 11 * SECOND, &mut book);
        // One is under way, the other came too late for it.
        assert!(!book.pass_time(11 * SECOND, SECOND, &mut |_| ()));
        assert!(book.pass_time(12 * SECOND, SECOND, &mut |_| ()));
        let observed = book.end_phase(12 * SECOND, Duration::ZERO, Duration::ZERO);
        assert_eq!(
            (observed.start_ns, observed.end_ns),
            (10 * SECOND, 11 * SECOND)
        );
        assert_eq!(
            (
                observed.totals.totals.scheduled,
                observed.totals.totals.unfinished
            ),
            (1, 1)
        );
        book.begin_phase(SECOND, 12 * SECOND, None);
        first.take_response_bytes(OK, 12 * SECOND + MS, &mut book);
        assert_eq!(ended(book), "0 = 0 + {} + 0; ");
    }

    #[test]
    fn a_phase_without_a_request_has_those_that_still_wait() {
        let mut book = ExchangeBook::new(&Expectation::default());
        book.begin_phase(SECOND, 0, None);
        let mut users = [ExchangeWatch::default(), ExchangeWatch::default()];
        for user in &mut users {
            user.take_request_bytes(GET, 0, &mut book);
        }
        book.end_phase(SECOND, Duration::ZERO, Duration::ZERO);
        users[0].take_response_bytes(OK, SECOND, &mut book);
        book.begin_phase(SECOND, SECOND, None);
        assert_eq!(ended(book), "1 = 0 + {} + 1; ");
    }

    #[test]
    fn what_is_no_http_1_is_named() {
        let said = |bytes: &[u8]| {
            let (mut book, mut watch) = (running(), ExchangeWatch::default());
            watch.take_request_bytes(bytes, SECOND, &mut book);
            let why = book.unreadable;
            assert_eq!(ended(book), "0 = 0 + {} + 0; ");
            why
        };
        assert_eq!(said(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), None);
        assert_eq!(said(b"PRI * HTTP/2.0\r\n\r\nXX"), Some("no HTTP"));
        let late = [GET, PREFACE].concat();
        assert_eq!(said(&late), Some("no HTTP"));
        assert_eq!(said(b"\x16\x03\x01\x02\x00\x01"), Some("TLS"));
        assert_eq!(said(b"\0\0\0"), Some("no HTTP"));
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        watch.take_request_bytes(GET, SECOND, &mut book);
        let upgrade = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n";
        watch.take_response_bytes(upgrade, SECOND, &mut book);
        assert_eq!(book.unreadable, Some("another protocol after an upgrade"));
    }

    #[test]
    fn seconds_hold_what_ended_in_them() {
        let (mut book, mut watch) = (running(), ExchangeWatch::default());
        let mut seconds = Vec::new();
        watch.take_request_bytes(&[GET, GET].concat(), SECOND + MS, &mut book);
        watch.take_response_bytes(OK, SECOND + 2 * MS, &mut book);
        book.pass_time(2 * SECOND + MS, SECOND, &mut |second| seconds.push(second));
        watch.take_response_bytes(OK, 2 * SECOND + 2 * MS, &mut book);
        assert!(book.pass_time(3 * SECOND, SECOND, &mut |second| seconds.push(second)));
        let told: Vec<_> = seconds
            .iter()
            .map(|s| (s.at_ns / SECOND, s.offered, s.ok))
            .collect();
        assert_eq!(told, [(2, 2, 1), (3, 0, 1)]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_lose_count(
            sent in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..20),
            is_http in any::<bool>(),
        ) {
            let (mut book, mut watch) = (running(), ExchangeWatch::default());
            if is_http {
                watch.take_request_bytes(GET, SECOND, &mut book);
            }
            for (is_request, bytes) in sent {
                if is_request {
                    watch.take_request_bytes(&bytes, SECOND, &mut book)
                } else {
                    watch.take_response_bytes(&bytes, SECOND, &mut book)
                }
            }
            let observed = book.end_phase(2 * SECOND, Duration::ZERO, Duration::ZERO);
            let totals = observed.totals.totals;
            let failed: u64 = totals.failed_requests();
            prop_assert_eq!(totals.scheduled, totals.ok + failed + totals.unfinished);
        }
    }
}
