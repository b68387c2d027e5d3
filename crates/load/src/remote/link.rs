//! The connection to one generator, with its clock offset.
//!
//! Owns how it is reached, and the questions before and after the load. The relay owns the content
//! of a load.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::frame::{self, MOST};
use super::hello::{Greeting, greet, set_timeouts};
use super::messages::{FromGenerator, GeneratorMember, SILENCE, ToGenerator};
use super::offset::{ClockOffset, ROUNDS};
use crate::clock::clock_ns;

/// Time for a generator to become available: it may have just started, or still be ending an
/// earlier client's load. Less than the silence after which the others give up.
const PATIENCE: Duration = Duration::from_secs(8);

const CONNECTS: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);

pub(super) struct GeneratorLink<'a> {
    pub(super) member: &'a GeneratorMember,
    stream: TcpStream,
    pub(super) offset: ClockOffset,
}

impl<'a> GeneratorLink<'a> {
    pub(super) fn open_link(member: &'a GeneratorMember, secret: &str) -> io::Result<Self> {
        let begin = Instant::now();
        let stream = loop {
            match connect_to_generator(member.address, secret) {
                Ok(stream) => break stream,
                Err(error) if begin.elapsed() > PATIENCE || is_final(&error) => return Err(error),
                Err(_) => thread::sleep(PAUSE),
            }
        };
        let offset = measure_offset(&stream)?;
        Ok(Self {
            member,
            stream,
            offset,
        })
    }

    pub(super) fn own_address(&self) -> io::Result<IpAddr> {
        Ok(self.stream.local_addr()?.ip())
    }

    /// Why the application cannot be reached from there; `None` where it can.
    pub(super) fn unreachable_reason(&self, targets: &[SocketAddr]) -> io::Result<Option<String>> {
        self.say_to_generator(&ToGenerator::Reach {
            targets: targets.to_vec(),
        })?;
        match self.next_message()? {
            FromGenerator::Reached { why } => Ok(why),
            _ => Err(unexpected_message()),
        }
    }

    pub(super) fn measure_again(&self) -> io::Result<ClockOffset> {
        measure_offset(&self.stream)
    }

    pub(super) fn say_to_generator(&self, message: &ToGenerator) -> io::Result<()> {
        frame::write(&self.stream, message)
    }

    pub(super) fn next_message(&self) -> io::Result<FromGenerator> {
        read_message(&self.stream)
    }

    pub(super) fn close_link(&self) {
        // One that is closed already is closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn connect_to_generator(address: SocketAddr, secret: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECTS)?;
    set_timeouts(&stream, SILENCE)?;
    match greet(&stream, secret)? {
        Greeting::Welcome => set_timeouts(&stream, SILENCE).map(|()| stream),
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

fn read_message(stream: &TcpStream) -> io::Result<FromGenerator> {
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

fn measure_offset(stream: &TcpStream) -> io::Result<ClockOffset> {
    let mut best: Option<ClockOffset> = None;
    for _ in 0..ROUNDS {
        let sent = clock_ns();
        frame::write(stream, &ToGenerator::Clock { echo: sent })?;
        let offset = loop {
            match read_message(stream)? {
                FromGenerator::Clock {
                    echo,
                    now_ns: there,
                } if echo == sent => {
                    break ClockOffset::from_round_trip(sent, there, clock_ns());
                }
                // The answer to an earlier one.
                FromGenerator::Clock { .. } => {}
                _ => return Err(unexpected_message()),
            }
        };
        best = Some(offset.better_known(best));
    }
    best.ok_or_else(unexpected_message)
}

pub(super) fn unexpected_message() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it sent an unexpected answer")
}
