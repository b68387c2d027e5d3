//! One connection of the application to a dependency: two sockets and what lies between them.
//!
//! Owns how bytes move from one to the other. Sockets are registered once, edge-triggered: what is
//! known of them is kept here until a call says otherwise.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use loadline_load::now_ns;

use crate::lane::{Lane, What};
use crate::meter::{Counters, Lag};
use crate::toxic::Stream;

/// Reads in a row from one socket: others wait meanwhile.
const TURNS: usize = 8;

/// When to look again where all connections together hold as much as they may, ns.
const FULL: u64 = 5_000_000;

/// Which end of a connection.
pub(crate) const CLIENT: usize = 0;
/// The other.
pub(crate) const SERVER: usize = 1;

/// A socket and what is known of it.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) stream: TcpStream,
    is_readable: bool,
    is_writable: bool,
    has_ended: bool,
}

impl Side {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            is_readable: false,
            is_writable: false,
            has_ended: false,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: usize,
    pub(crate) sides: [Side; 2],
    /// By the side that they come from.
    pub(crate) lanes: [Lane; 2],
    /// By toxic of the link: whether it befalls this one.
    pub(crate) befallen: Vec<bool>,
    /// Who spoke last.
    spoke: Option<Stream>,
    is_connected: bool,
    /// Directions that are over.
    shut: [bool; 2],
}

/// How it goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// By an event, or at this time.
    Wait(Option<u64>),
    /// Others first, then it.
    Again,
    /// Both directions are over.
    Over,
    /// One side is gone; the other is to see the same.
    Broken,
    /// The dependency took no connection.
    Refused,
}

/// What a connection needs of its surroundings.
pub(crate) struct With<'a> {
    /// Begin of the measured load.
    pub(crate) zero: Option<u64>,
    pub(crate) counters: &'a mut Counters,
    pub(crate) lag: &'a mut Lag,
    pub(crate) buffer: &'a mut [u8],
    /// Whether all connections together may hold more.
    pub(crate) has_room: bool,
}

impl Connection {
    pub(crate) fn new(
        link: usize,
        [client, server]: [TcpStream; 2],
        lanes: [Lane; 2],
        befallen: Vec<bool>,
    ) -> Self {
        Self {
            link,
            sides: [Side::new(client), Side::new(server)],
            lanes,
            befallen,
            spoke: None,
            is_connected: false,
            shut: [false; 2],
        }
    }

    /// What an event says of a side.
    pub(crate) fn note(&mut self, side: usize, is_readable: bool, is_writable: bool) {
        self.sides[side].is_readable |= is_readable;
        self.sides[side].is_writable |= is_writable;
    }

    /// Bytes that it holds.
    pub(crate) fn held(&self) -> usize {
        self.lanes.iter().map(Lane::held).sum()
    }

    /// Moves what can be moved.
    pub(crate) fn go_on(&mut self, with: &mut With<'_>) -> Next {
        if !self.is_connected {
            let server = &self.sides[SERVER];
            if !server.is_writable && !server.is_readable {
                return Next::Wait(None);
            }
            match server.stream.take_error() {
                Ok(None) => self.is_connected = true,
                _ => return Next::Refused,
            }
        }
        let mut wake: Option<u64> = None;
        let mut has_more = false;
        for from in [CLIENT, SERVER] {
            match self.pump(from, with) {
                Ok(Next::Wait(at)) => wake = [wake, at].into_iter().flatten().min(),
                Ok(Next::Again) => has_more = true,
                Ok(other) => return other,
                Err(_) => return Next::Broken,
            }
        }
        match (self.shut, has_more) {
            ([true, true], _) => Next::Over,
            (_, true) => Next::Again,
            _ => Next::Wait(wake),
        }
    }

    /// One direction: what is due leaves, then what has come is taken.
    fn pump(&mut self, from: usize, with: &mut With<'_>) -> io::Result<Next> {
        for _ in 0..TURNS {
            if let Some(next) = self.flush(from, with)? {
                return Ok(next);
            }
            let lane = &self.lanes[from];
            let side = &self.sides[from];
            if !side.is_readable || side.has_ended || !lane.has_room() {
                return Ok(Next::Wait(self.due(from)));
            }
            if !with.has_room {
                // Others give room; none of their events is one of this connection.
                return Ok(Next::Wait(Some(now_ns() + FULL)));
            }
            self.read(from, with)?;
        }
        Ok(Next::Again)
    }

    fn due(&mut self, from: usize) -> Option<u64> {
        let is_writable = self.sides[1 - from].is_writable;
        let first = self.lanes[from].first().filter(|_| is_writable);
        first.map(|piece| piece.due)
    }

    fn read(&mut self, from: usize, with: &mut With<'_>) -> io::Result<()> {
        match self.sides[from].stream.read(with.buffer) {
            Ok(0) => {
                self.sides[from].has_ended = true;
                self.lanes[from].end(now_ns(), with.zero);
            }
            Ok(length) => {
                self.count(from, length as u64, with.counters);
                self.pass(from, length, with)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.sides[from].is_readable = false;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Bytes in the buffer: on at once where nothing is wrong, else into the lane.
    fn pass(&mut self, from: usize, length: usize, with: &mut With<'_>) -> io::Result<()> {
        let now = now_ns();
        let bytes = &with.buffer[..length];
        let to = &mut self.sides[1 - from];
        let lane = &mut self.lanes[from];
        if !lane.is_open(now, with.zero) {
            lane.take(now, with.zero, bytes);
            return Ok(());
        }
        let sent = match to.is_writable {
            true => write(to, bytes)?,
            false => 0,
        };
        if sent < length {
            lane.keep(now, &bytes[sent..]);
        }
        Ok(())
    }

    fn count(&mut self, from: usize, length: u64, counters: &mut Counters) {
        let stream = match from {
            CLIENT => Stream::Upstream,
            _ => Stream::Downstream,
        };
        match stream {
            Stream::Upstream => {
                counters.now.upstream_bytes += length;
                counters.now.exchanges += u64::from(self.spoke != Some(Stream::Upstream));
            }
            Stream::Downstream => counters.now.downstream_bytes += length,
        }
        self.spoke = Some(stream);
    }

    /// Sends what is due; `Some` where there is no more to do for this direction now.
    fn flush(&mut self, from: usize, with: &mut With<'_>) -> io::Result<Option<Next>> {
        let to = &mut self.sides[1 - from];
        while let Some(piece) = self.lanes[from].first() {
            let now = now_ns();
            if piece.due > now || !to.is_writable {
                break;
            }
            match &piece.what {
                What::Close => return Ok(Some(Next::Over)),
                What::End => {
                    // A side that is gone already needs no end.
                    let _ = to.stream.shutdown(Shutdown::Write);
                    self.shut[from] = true;
                }
                What::Bytes(bytes) => {
                    let sent = write(to, &bytes[piece.sent..])?;
                    if piece.sent == 0 && sent > 0 {
                        with.lag.record(piece.due, now_ns());
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
    pub(crate) fn reset(self) {
        for side in &self.sides {
            // A socket that is gone already has nothing to lose.
            let _ = rustix::net::sockopt::set_socket_linger(&side.stream, Some(Duration::ZERO));
        }
    }
}

/// Bytes that a side took.
fn write(to: &mut Side, bytes: &[u8]) -> io::Result<usize> {
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
