//! One connection of the application to a dependency: two sockets and the data in between.
//!
//! Owns how bytes move from one to the other. Sockets are registered once, edge-triggered: their
//! known state is kept here until a call changes it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use loadline_load::clock_ns;

use crate::lane::{ConnectionLane, LaneItem};
use crate::meter::{Lag, LinkCounters};
use crate::observe::{ExchangeBook, ExchangeWatch};

const TURNS: usize = 8;

/// When to look again where all connections together hold as much as they may, ns.
const FULL: u64 = 5_000_000;

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

#[derive(Debug)]
pub(crate) struct ConnectionSide {
    pub(crate) stream: TcpStream,
    is_readable: bool,
    is_writable: bool,
    /// What waits for this side is late from then on, and not before.
    writable_since: u64,
    has_ended: bool,
}

impl ConnectionSide {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            is_readable: false,
            is_writable: false,
            writable_since: 0,
            has_ended: false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ProxiedConnection {
    pub(crate) link: usize,
    pub(crate) sides: [ConnectionSide; 2],
    pub(crate) lanes: [ConnectionLane; 2],
    pub(crate) befallen: Vec<bool>,
    watch: ExchangeWatch,
    spoke: Option<usize>,
    is_connected: bool,
    shut: [bool; 2],
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProxyProgress {
    Wait(Option<u64>),
    Again,
    Over,
    Broken,
    Refused,
}

pub(crate) struct ProxyContext<'a> {
    pub(crate) zero: Option<u64>,
    pub(crate) counters: &'a mut LinkCounters,
    pub(crate) lag: &'a mut Lag,
    pub(crate) buffer: &'a mut [u8],
    pub(crate) has_room: bool,
    pub(crate) book: Option<&'a mut ExchangeBook>,
}

impl ProxiedConnection {
    pub(crate) fn new(
        link: usize,
        [client, server]: [TcpStream; 2],
        lanes: [ConnectionLane; 2],
        befallen: Vec<bool>,
    ) -> Self {
        Self {
            link,
            sides: [ConnectionSide::new(client), ConnectionSide::new(server)],
            lanes,
            befallen,
            watch: ExchangeWatch::default(),
            spoke: None,
            is_connected: false,
            shut: [false; 2],
        }
    }

    pub(crate) fn note_event(&mut self, side: usize, is_readable: bool, is_writable: bool) {
        let side = &mut self.sides[side];
        side.is_readable |= is_readable;
        if is_writable && !side.is_writable {
            (side.is_writable, side.writable_since) = (true, clock_ns());
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.held).sum()
    }

    pub(crate) fn move_bytes(&mut self, with: &mut ProxyContext<'_>) -> ProxyProgress {
        if !self.is_connected {
            let server = &self.sides[SERVER];
            if !server.is_writable && !server.is_readable {
                return self.await_server(with);
            }
            match server.stream.take_error() {
                Ok(None) => self.is_connected = true,
                _ => return ProxyProgress::Refused,
            }
        }
        let mut wake: Option<u64> = None;
        let mut has_more = false;
        for from in [CLIENT, SERVER] {
            match self.pump(from, with) {
                Ok(ProxyProgress::Wait(at)) => wake = [wake, at].into_iter().flatten().min(),
                Ok(ProxyProgress::Again) => has_more = true,
                Ok(other) => return other,
                Err(_) => return ProxyProgress::Broken,
            }
        }
        match (self.shut, has_more) {
            ([true, true], _) => ProxyProgress::Over,
            (_, true) => ProxyProgress::Again,
            _ => ProxyProgress::Wait(wake),
        }
    }

    /// A service that hangs accepts no connection: its requests wait from their first byte on.
    fn await_server(&mut self, with: &mut ProxyContext<'_>) -> ProxyProgress {
        if with.book.is_none() {
            return ProxyProgress::Wait(None);
        }
        match self.pump(CLIENT, with) {
            // No client of HTTP ends its side before the answer, unless it gives up.
            Ok(_) if self.sides[CLIENT].has_ended => ProxyProgress::Over,
            Ok(progress) => progress,
            Err(_) => ProxyProgress::Broken,
        }
    }

    /// The service took no connection.
    pub(crate) fn refuse_exchanges(&mut self, book: &mut ExchangeBook) {
        if self.watch.has_exchanges() {
            (self.watch).abandon_exchanges(loadline_load::ErrorKind::Refused, book)
        } else {
            // The request that wanted it was never seen.
            book.count_refused(clock_ns())
        }
    }

    /// One direction: due bytes leave, then new bytes are taken.
    fn pump(&mut self, from: usize, with: &mut ProxyContext<'_>) -> io::Result<ProxyProgress> {
        for _ in 0..TURNS {
            if let Some(next) = self.flush_due(from, with)? {
                return Ok(next);
            }
            let lane = &self.lanes[from];
            let side = &self.sides[from];
            if !side.is_readable || side.has_ended || !lane.has_room() {
                return Ok(ProxyProgress::Wait(self.due_time(from)));
            }
            if !with.has_room {
                // Other connections free the space; no event of this one tells.
                return Ok(ProxyProgress::Wait(Some(clock_ns() + FULL)));
            }
            self.read(from, with)?;
        }
        Ok(ProxyProgress::Again)
    }

    fn due_time(&mut self, from: usize) -> Option<u64> {
        let is_writable = self.sides[1 - from].is_writable;
        let first = self.lanes[from].first_piece().filter(|_| is_writable);
        first.map(|piece| piece.due)
    }

    fn read(&mut self, from: usize, with: &mut ProxyContext<'_>) -> io::Result<()> {
        match self.sides[from].stream.read(with.buffer) {
            Ok(0) => {
                let now = clock_ns();
                self.sides[from].has_ended = true;
                self.lanes[from].end_direction(now, with.zero);
                if let (Some(book), SERVER) = (&mut with.book, from) {
                    self.watch.end_responses(now, book);
                }
            }
            Ok(length) => {
                let now = clock_ns();
                self.count_bytes(from, length as u64, with.counters);
                self.time_exchanges(from, length, now, with);
                self.pass_bytes(from, length, now, with)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.sides[from].is_readable = false;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                self.sides[from].has_ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    fn time_exchanges(
        &mut self,
        from: usize,
        length: usize,
        now: u64,
        with: &mut ProxyContext<'_>,
    ) {
        let bytes = &with.buffer[..length];
        match (&mut with.book, from) {
            (None, _) => {}
            (Some(book), CLIENT) => self.watch.take_request_bytes(bytes, now, book),
            (Some(book), _) => self.watch.take_response_bytes(bytes, now, book),
        }
    }

    /// The connection is gone; a client that left before its answer gave up on it.
    pub(crate) fn abandon_exchanges(&mut self, book: &mut ExchangeBook) {
        let kind = if self.sides[CLIENT].has_ended {
            loadline_load::ErrorKind::Timeout
        } else {
            loadline_load::ErrorKind::Closed
        };
        self.watch.abandon_exchanges(kind, book);
    }

    /// Bytes in the buffer: on at once where nothing is wrong, else into the lane.
    fn pass_bytes(
        &mut self,
        from: usize,
        length: usize,
        now: u64,
        with: &mut ProxyContext<'_>,
    ) -> io::Result<()> {
        let bytes = &with.buffer[..length];
        let to = &mut self.sides[1 - from];
        let lane = &mut self.lanes[from];
        if !lane.is_open(now, with.zero) {
            lane.take_bytes(now, with.zero, bytes);
            return Ok(());
        }
        let sent = if to.is_writable { write(to, bytes)? } else { 0 };
        if sent < length {
            lane.keep_unsent(now, &bytes[sent..]);
        }
        Ok(())
    }

    fn count_bytes(&mut self, from: usize, length: u64, counters: &mut LinkCounters) {
        match from {
            CLIENT => {
                counters.now.upstream_bytes += length;
                counters.now.exchanges += u64::from(self.spoke != Some(CLIENT));
            }
            _ => counters.now.downstream_bytes += length,
        }
        self.spoke = Some(from);
    }

    /// Sends due bytes; `Some` if there is no more to do for this direction now.
    fn flush_due(
        &mut self,
        from: usize,
        with: &mut ProxyContext<'_>,
    ) -> io::Result<Option<ProxyProgress>> {
        let to = &mut self.sides[1 - from];
        while let Some(piece) = self.lanes[from].first_piece() {
            let now = clock_ns();
            if piece.due > now || !to.is_writable {
                break;
            }
            match &piece.what {
                LaneItem::Close => return Ok(Some(ProxyProgress::Over)),
                LaneItem::End => {
                    // A side that is gone already needs no end.
                    let _ = to.stream.shutdown(Shutdown::Write);
                    self.shut[from] = true;
                }
                LaneItem::Bytes(bytes) => {
                    let sent = write(to, &bytes[piece.sent..])?;
                    if piece.sent == 0 && sent > 0 {
                        let due = piece.due.max(to.writable_since);
                        with.lag.record_lag(due, clock_ns());
                    }
                    piece.sent += sent;
                    if piece.sent < bytes.len() {
                        continue;
                    }
                }
            }
            self.lanes[from].pop();
        }
        Ok(None)
    }

    /// Both sides see that the connection is gone, at once. Source: socket(7), SO_LINGER.
    pub(crate) fn reset_sides(self) {
        for side in &self.sides {
            // A socket that is gone already has nothing to lose.
            let _ = rustix::net::sockopt::set_socket_linger(&side.stream, Some(Duration::ZERO));
        }
    }
}

fn write(to: &mut ConnectionSide, bytes: &[u8]) -> io::Result<usize> {
    match to.stream.write(bytes) {
        Ok(sent) => Ok(sent),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            to.is_writable = false;
            Ok(0)
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use loadline_analysis::random::RandomStream;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (far, _) = listener.accept().expect("accepted");
        far.set_nonblocking(true).expect("a socket");
        (near, far)
    }

    #[test]
    fn a_request_counts_before_the_service_takes_its_connection() {
        let ((mut tool, client), (mut service, server)) = (pair(), pair());
        let lane = || ConnectionLane::new(Vec::new(), RandomStream::from_seed(1));
        let lanes = [lane(), lane()];
        let mut connection = ProxiedConnection::new(0, [client, server], lanes, Vec::new());
        let mut book = ExchangeBook::new(&loadline_load::Expectation::default());
        book.begin_phase(1_000_000_000, clock_ns(), None);
        let (mut counters, mut lag) = (LinkCounters::default(), Lag::new());
        let mut buffer = vec![0; 4096];
        let mut moved = |connection: &mut ProxiedConnection, book: &mut ExchangeBook| {
            connection.move_bytes(&mut ProxyContext {
                zero: None,
                counters: &mut counters,
                lag: &mut lag,
                buffer: &mut buffer,
                has_room: true,
                book: Some(book),
            })
        };
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        tool.write_all(request).expect("sent");
        connection.note_event(CLIENT, true, true);
        assert_eq!(moved(&mut connection, &mut book), ProxyProgress::Wait(None));
        let scheduled = |book: &mut ExchangeBook| {
            let observed = book.end_phase(clock_ns(), Duration::ZERO, Duration::ZERO);
            (
                observed.totals.totals.scheduled,
                observed.totals.totals.errors_by_name(),
            )
        };
        // It is passed on when the service accepts.
        connection.note_event(SERVER, false, true);
        moved(&mut connection, &mut book);
        let mut got = vec![0; request.len()];
        service.read_exact(&mut got).expect("received");
        assert_eq!(got, request);
        assert_eq!(scheduled(&mut book).0, 1);
    }

    #[test]
    fn a_service_that_refuses_a_waiting_request_fails_it_once() {
        let ((mut tool, client), (_, server)) = (pair(), pair());
        let lane = || ConnectionLane::new(Vec::new(), RandomStream::from_seed(1));
        let lanes = [lane(), lane()];
        let mut connection = ProxiedConnection::new(0, [client, server], lanes, Vec::new());
        let mut book = ExchangeBook::new(&loadline_load::Expectation::default());
        book.begin_phase(1_000_000_000, clock_ns(), None);
        tool.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
        connection.note_event(CLIENT, true, true);
        let (mut counters, mut lag) = (LinkCounters::default(), Lag::new());
        connection.move_bytes(&mut ProxyContext {
            zero: None,
            counters: &mut counters,
            lag: &mut lag,
            buffer: &mut vec![0; 4096],
            has_room: true,
            book: Some(&mut book),
        });
        connection.refuse_exchanges(&mut book);
        connection.refuse_exchanges(&mut book);
        let observed = book.end_phase(clock_ns(), Duration::ZERO, Duration::ZERO);
        assert_eq!(observed.totals.totals.scheduled, 2);
        assert_eq!(
            observed.totals.totals.errors_by_name().get("refused"),
            Some(&2)
        );
    }
}
