//! The sockets of stubs.
//!
//! Owns how bytes come to a [`Session`] and leave it. Sockets are registered once, edge-triggered, as
//! those of the proxy are; its loop says when something has come or is due.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use loadline_analysis::random::Random;
use loadline_load::now_ns;

use super::StubOrder;
use super::answers::Answers;
use super::session::{Session, Want};
use crate::link::listen_all;
use crate::meter::Lag;

/// Turns of one connection in a row: others wait meanwhile.
const TURNS: usize = 32;

/// A stub that listens.
#[derive(Debug)]
struct Stub {
    listeners: Vec<TcpListener>,
    answers: Answers,
    random: Random,
    made: u64,
}

/// A connection to one of them.
#[derive(Debug)]
struct Served {
    stub: usize,
    stream: TcpStream,
    session: Session,
    output: Vec<u8>,
    sent: usize,
    is_last: bool,
    is_readable: bool,
    /// The client says no more; it may still listen.
    has_ended: bool,
}

/// How a connection goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// By an event.
    Event,
    /// At this time, or by an event.
    Time(u64),
    /// Others first.
    Again,
    /// It is over.
    Over,
}

/// All stubs of a trial.
#[derive(Debug, Default)]
pub(crate) struct Stubs {
    all: Vec<Stub>,
    served: HashMap<u64, Served>,
    next: u64,
}

impl Stubs {
    /// Listens in the network in which this thread is; its sockets.
    ///
    /// # Errors
    /// In words: a port that is taken, a body that cannot be read.
    pub(crate) fn open(&mut self, order: &StubOrder) -> Result<&[TcpListener], String> {
        let stub = Stub {
            listeners: listen_all(order.port)?,
            answers: Answers::new(&order.answers)?,
            random: Random::from_seed(order.seed),
            made: 0,
        };
        self.all.push(stub);
        Ok(self.all.last().map_or(&[], |stub| &stub.listeners))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// A socket of one of them.
    pub(crate) fn listener(&self, stub: usize, listener: usize) -> Option<&TcpListener> {
        self.all.get(stub)?.listeners.get(listener)
    }

    /// A connection was made; its number and its socket.
    pub(crate) fn add(&mut self, stub: usize, stream: TcpStream) -> Option<(u64, &TcpStream)> {
        let of = self.all.get_mut(stub)?;
        let random = of.random.derive(of.made);
        of.made += 1;
        let id = self.next;
        self.next += 1;
        let served = self.served.entry(id).or_insert(Served {
            stub,
            stream,
            session: Session::new(random),
            output: Vec::new(),
            sent: 0,
            is_last: false,
            is_readable: false,
            has_ended: false,
        });
        Some((id, &served.stream))
    }

    /// What an event says of a connection.
    pub(crate) fn note(&mut self, id: u64, is_readable: bool) {
        if let Some(served) = self.served.get_mut(&id) {
            served.is_readable |= is_readable && !served.has_ended;
        }
    }

    /// Goes on with a connection as far as it can; one that is over is gone.
    pub(crate) fn go_on(&mut self, id: u64, lag: &mut Lag, buffer: &mut [u8]) -> Next {
        let Some(served) = self.served.get_mut(&id) else {
            return Next::Over;
        };
        let Some(stub) = self.all.get_mut(served.stub) else {
            return Next::Over;
        };
        let next = served.go_on(&mut stub.answers, lag, buffer);
        let next = next.unwrap_or(Next::Over);
        if next == Next::Over {
            self.served.remove(&id);
        }
        next
    }

    /// What was asked of each.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Answers> {
        self.all.iter().map(|stub| &stub.answers)
    }
}

impl Served {
    fn go_on(
        &mut self,
        answers: &mut Answers,
        lag: &mut Lag,
        buffer: &mut [u8],
    ) -> io::Result<Next> {
        for _ in 0..TURNS {
            if !self.flush()? {
                return Ok(Next::Event);
            }
            if self.is_last {
                return Ok(Next::Over);
            }
            match self.session.next(now_ns(), answers) {
                Want::Send(bytes, is_last) => self.send(bytes, is_last),
                Want::Answer(bytes, due, is_last) => {
                    self.send(bytes, is_last);
                    self.flush()?;
                    lag.record(due, now_ns());
                }
                Want::End => return Ok(Next::Over),
                Want::Time(at) => {
                    while self.is_readable && !self.session.is_full() {
                        self.read(buffer)?;
                    }
                    return Ok(Next::Time(at));
                }
                Want::Bytes if self.is_readable => self.read(buffer)?,
                Want::Bytes if self.has_ended => return Ok(Next::Over),
                Want::Bytes => return Ok(Next::Event),
            }
        }
        Ok(Next::Again)
    }

    fn send(&mut self, bytes: Vec<u8>, is_last: bool) {
        (self.output, self.sent, self.is_last) = (bytes, 0, is_last);
    }

    /// Whether all has left.
    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self.stream.read(buffer) {
            Ok(0) => (self.is_readable, self.has_ended) = (false, true),
            Ok(length) => self.session.take(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
