//! The sockets of stubs.
//!
//! Owns how bytes come to a [`StubProtocol`] and leave it. Sockets are registered once, edge-triggered, as
//! those of the proxy are; its loop says when something has come or is due.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use loadline_analysis::random::RandomStream;
use loadline_load::clock_ns;

use super::StubOrder;
use super::answers::StubAnswers;
use super::session::{ProtocolWant, StubProtocol};
use crate::link::listen_all;
use crate::meter::Lag;

/// Turns of one connection in a row: others wait meanwhile.
const TURNS: usize = 32;

#[derive(Debug)]
pub(crate) struct ListeningStub {
    listeners: Vec<TcpListener>,
    pub(crate) answers: StubAnswers,
    random: RandomStream,
    made: u64,
}

#[derive(Debug)]
struct StubConnection {
    stub: usize,
    stream: TcpStream,
    session: StubProtocol,
    output: Vec<u8>,
    sent: usize,
    is_last: bool,
    is_readable: bool,
    has_ended: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StubProgress {
    Event,
    Time(u64),
    Again,
    Over,
}

#[derive(Debug, Default)]
pub(crate) struct StubServer {
    pub(crate) all: Vec<ListeningStub>,
    served: HashMap<u64, StubConnection>,
    next: u64,
}

impl StubServer {
    /// Listens in the network in which this thread is; its sockets.
    pub(crate) fn listen_for_stub(&mut self, order: &StubOrder) -> Result<&[TcpListener], String> {
        let stub = ListeningStub {
            listeners: listen_all(order.port)?,
            answers: StubAnswers::new(&order.answers)?,
            random: RandomStream::from_seed(order.seed),
            made: 0,
        };
        self.all.push(stub);
        Ok(self.all.last().map_or(&[], |stub| &stub.listeners))
    }

    pub(crate) fn stub_listener(&self, stub: usize, listener: usize) -> Option<&TcpListener> {
        self.all.get(stub)?.listeners.get(listener)
    }

    pub(crate) fn add_connection(
        &mut self,
        stub: usize,
        stream: TcpStream,
    ) -> Option<(u64, &TcpStream)> {
        let of = self.all.get_mut(stub)?;
        let random = of.random.derive(of.made);
        of.made += 1;
        let id = self.next;
        self.next += 1;
        let served = self.served.entry(id).or_insert(StubConnection {
            stub,
            stream,
            session: StubProtocol::new(random),
            output: Vec::new(),
            sent: 0,
            is_last: false,
            is_readable: false,
            has_ended: false,
        });
        Some((id, &served.stream))
    }

    pub(crate) fn note_readable(&mut self, id: u64, is_readable: bool) {
        if let Some(served) = self.served.get_mut(&id) {
            served.is_readable |= is_readable && !served.has_ended;
        }
    }

    /// Continues with a connection as far as it can; a finished one is removed.
    pub(crate) fn continue_stub(
        &mut self,
        id: u64,
        lag: &mut Lag,
        buffer: &mut [u8],
    ) -> StubProgress {
        let Some(served) = self.served.get_mut(&id) else {
            return StubProgress::Over;
        };
        let Some(stub) = self.all.get_mut(served.stub) else {
            return StubProgress::Over;
        };
        let next = served.serve_requests(&mut stub.answers, lag, buffer);
        let next = next.unwrap_or(StubProgress::Over);
        if next == StubProgress::Over {
            self.served.remove(&id);
        }
        next
    }
}

impl StubConnection {
    fn serve_requests(
        &mut self,
        answers: &mut StubAnswers,
        lag: &mut Lag,
        buffer: &mut [u8],
    ) -> io::Result<StubProgress> {
        for _ in 0..TURNS {
            if !self.flush_queue()? {
                return Ok(StubProgress::Event);
            }
            if self.is_last {
                return Ok(StubProgress::Over);
            }
            match self.session.next(clock_ns(), answers) {
                ProtocolWant::Send(bytes, is_last) => self.queue_bytes(bytes, is_last),
                ProtocolWant::Answer(bytes, due, is_last) => {
                    self.queue_bytes(bytes, is_last);
                    self.flush_queue()?;
                    lag.record_lag(due, clock_ns());
                }
                ProtocolWant::End => return Ok(StubProgress::Over),
                ProtocolWant::Time(at) => {
                    while self.is_readable && !self.session.has_full_buffer() {
                        self.read(buffer)?;
                    }
                    return Ok(StubProgress::Time(at));
                }
                ProtocolWant::Bytes if self.is_readable => self.read(buffer)?,
                ProtocolWant::Bytes if self.has_ended => return Ok(StubProgress::Over),
                ProtocolWant::Bytes => return Ok(StubProgress::Event),
            }
        }
        Ok(StubProgress::Again)
    }

    fn queue_bytes(&mut self, bytes: Vec<u8>, is_last: bool) {
        (self.output, self.sent, self.is_last) = (bytes, 0, is_last);
    }

    fn flush_queue(&mut self) -> io::Result<bool> {
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
            Ok(length) => self.session.take_bytes(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
