//! The way to one generator: the connection, the clock on its other side.
//!
//! Owns how it is reached and what is asked before the load and after it. What a load is made of is
//! the relay's.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::frame::{self, MOST};
use super::hello::{Greeting, greet, settle};
use super::offset::{Offset, ROUNDS};
use super::{FromGenerator, Member, SILENCE, ToGenerator};
use crate::clock::now_ns;

/// So long a generator may take to be there for its client: one that was just started, or that still
/// ends the load of a client before. Less than the silence after which the others give up.
const PATIENCE: Duration = Duration::from_secs(8);

/// One try to connect.
const CONNECTS: Duration = Duration::from_secs(5);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// A generator that answers.
pub(super) struct Link<'a> {
    pub(super) member: &'a Member,
    stream: TcpStream,
    pub(super) offset: Offset,
}

impl<'a> Link<'a> {
    /// Connects, and measures the generator's clock.
    ///
    /// # Errors
    /// Why it is lost.
    pub(super) fn open(member: &'a Member, secret: &str) -> io::Result<Self> {
        let begin = Instant::now();
        let stream = loop {
            match connect(member.address, secret) {
                Ok(stream) => break stream,
                Err(error) if begin.elapsed() > PATIENCE || is_final(&error) => return Err(error),
                Err(_) => thread::sleep(PAUSE),
            }
        };
        let offset = measure(&stream)?;
        Ok(Self {
            member,
            stream,
            offset,
        })
    }

    /// The address of this machine as the generator's network knows it.
    pub(super) fn own_address(&self) -> io::Result<IpAddr> {
        Ok(self.stream.local_addr()?.ip())
    }

    /// Why the application cannot be reached from there; `None` where it can.
    pub(super) fn reach(&self, targets: &[SocketAddr]) -> io::Result<Option<String>> {
        self.say(&ToGenerator::Reach {
            targets: targets.to_vec(),
        })?;
        match self.hear()? {
            FromGenerator::Reached { why } => Ok(why),
            _ => Err(unexpected()),
        }
    }

    /// The clock there once more.
    pub(super) fn measure_again(&self) -> io::Result<Offset> {
        measure(&self.stream)
    }

    pub(super) fn say(&self, message: &ToGenerator) -> io::Result<()> {
        frame::write(&self.stream, message)
    }

    /// The next word; an end of the connection is an error.
    pub(super) fn hear(&self) -> io::Result<FromGenerator> {
        hear(&self.stream)
    }

    /// Ends the connection, and with it what anybody waits for on it.
    pub(super) fn close(&self) {
        // One that is closed already is closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn connect(address: SocketAddr, secret: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECTS)?;
    settle(&stream, SILENCE)?;
    match greet(&stream, secret)? {
        Greeting::Welcome => settle(&stream, SILENCE).map(|()| stream),
        Greeting::Busy => Err(io::Error::new(
            ErrorKind::ResourceBusy,
            "it has another client",
        )),
    }
}

/// Another try would come to the same.
fn is_final(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

fn hear(stream: &TcpStream) -> io::Result<FromGenerator> {
    match frame::read(stream, MOST) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            let why = format!("it said nothing for {} s", SILENCE.as_secs());
            Err(io::Error::new(ErrorKind::TimedOut, why))
        }
        Err(error) => Err(error),
    }
}

fn measure(stream: &TcpStream) -> io::Result<Offset> {
    let mut best: Option<Offset> = None;
    for _ in 0..ROUNDS {
        let sent = now_ns();
        frame::write(stream, &ToGenerator::Clock { echo: sent })?;
        let offset = loop {
            match hear(stream)? {
                FromGenerator::Clock {
                    echo,
                    now_ns: there,
                } if echo == sent => {
                    break Offset::of(sent, there, now_ns());
                }
                // The answer to an earlier one.
                FromGenerator::Clock { .. } => {}
                _ => return Err(unexpected()),
            }
        };
        best = Some(offset.better(best));
    }
    best.ok_or_else(unexpected)
}

pub(super) fn unexpected() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it says something else than asked")
}
