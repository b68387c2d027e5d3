//! A generator that waits for its client: `loadline pod-generator`.
//!
//! Owns access control: a stranger without the secret gets no further than the first messages, one
//! client at a time is served, and when it is gone or silent the load ends at once. Memory never
//! depends on a client's claims ([`frame`]).

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};

use super::frame::{self, MOST};
use super::hello::{Greeting, receive_client, set_timeouts};
use super::messages::{FromGenerator, GeneratorSecond, SILENCE, ToGenerator};
use crate::clock::{clock_ns, to_timespec};
use crate::part::{TotalsMessage, result_message};
use crate::plan::LoadPlan;
use crate::run::run_from;

const MOST_CONNECTIONS: u32 = 16;
const LOOK_NS: u64 = 200_000_000;
const REACH: Duration = Duration::from_secs(3);

struct GeneratorState {
    secret: String,
    connections: AtomicU32,
    has_client: AtomicBool,
    used: Mutex<Instant>,
}

pub fn serve(
    listener: &TcpListener,
    secret: &str,
    idle: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let shared = Arc::new(GeneratorState {
        secret: secret.to_owned(),
        connections: AtomicU32::new(0),
        has_client: AtomicBool::new(false),
        used: Mutex::new(Instant::now()),
    });
    listener.set_nonblocking(true)?;
    while !stop.load(Ordering::Relaxed) && !shared.is_idle(idle) {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        // A signal only ends the wait.
        let _ = poll(&mut ready, Some(&to_timespec(LOOK_NS)));
        // One that went away again, or for which there is no descriptor, is none.
        if let Ok((stream, _)) = listener.accept() {
            shared.admit_client(stream);
        }
    }
    Ok(())
}

impl GeneratorState {
    fn is_idle(&self, idle: Duration) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        !self.has_client.load(Ordering::Relaxed) && used.elapsed() > idle
    }

    /// Gives a connection a thread, unless there are too many.
    fn admit_client(self: &Arc<Self>, stream: TcpStream) {
        let mut place = ConnectionPlace::take(self);
        if self.connections.load(Ordering::Relaxed) > MOST_CONNECTIONS {
            return;
        }
        // Whatever a stranger does is no error of ours; a thread that cannot be had drops the place.
        let _ = thread::Builder::new().spawn(move || place.serve_connection(&stream));
    }
}

/// One of the connections, perhaps the client's. Given back when it is dropped, by a session that
/// panics too: else the generator would be taken for ever.
struct ConnectionPlace {
    shared: Arc<GeneratorState>,
    is_client: bool,
}

impl ConnectionPlace {
    fn take(shared: &Arc<GeneratorState>) -> Self {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(shared),
            is_client: false,
        }
    }

    fn serve_connection(&mut self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        set_timeouts(stream, SILENCE)?;
        let greeting = receive_client(stream, &self.shared.secret, || {
            self.is_client = !self.shared.has_client.swap(true, Ordering::AcqRel);
            self.is_client
        });
        match greeting {
            Ok(Greeting::Welcome) => {
                set_timeouts(stream, SILENCE).and_then(|()| serve_client(stream))
            }
            other => other.map(drop),
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let shared = &self.shared;
        if self.is_client {
            *shared.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            shared.has_client.store(false, Ordering::Release);
        }
        shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve_client(stream: &TcpStream) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let writer = Mutex::new(stream);
    let (begin, begins) = channel();
    let mut begins = Some(begins);
    thread::scope(|scope| {
        let ended = loop {
            match frame::read(stream, MOST) {
                Ok(Some(ToGenerator::Clock { echo })) => {
                    let now_ns = clock_ns();
                    say_to_client(&writer, &FromGenerator::Clock { echo, now_ns });
                }
                Ok(Some(ToGenerator::Reach { targets })) => {
                    let why = targets.iter().find_map(unreached_reason);
                    say_to_client(&writer, &FromGenerator::Reached { why });
                }
                Ok(Some(ToGenerator::Load { plan })) => {
                    // One load, one connection.
                    let Some(begins) = begins.take() else {
                        break Err(io::ErrorKind::InvalidData.into());
                    };
                    let (stop, writer) = (&stop, &writer);
                    let load = move || run_load(&plan, &begins, stop, writer);
                    if let Err(error) = thread::Builder::new().spawn_scoped(scope, load) {
                        break Err(error);
                    }
                }
                Ok(Some(ToGenerator::Begin { start_ns })) => {
                    // One that has begun already hears it no more.
                    let _ = begin.send(start_ns);
                }
                Ok(Some(ToGenerator::Stop)) => stop.store(true, Ordering::Relaxed),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // Further load would have no receiver.
        stop.store(true, Ordering::Relaxed);
        drop(begin);
        ended
    })
}

fn run_load(
    plan: &LoadPlan,
    begins: &Receiver<u64>,
    stop: &Arc<AtomicBool>,
    writer: &Mutex<&TcpStream>,
) {
    let mut begin = |earliest| {
        say_to_client(writer, &FromGenerator::Connected);
        // Without an instant the client has gone, and everything stops.
        begins.recv().unwrap_or(earliest)
    };
    let outcome = run_from(plan, stop, &mut begin, &mut |second| {
        let second = FromGenerator::Second(GeneratorSecond {
            index: second.index,
            at_ns: second.at_ns,
            is_warmup: second.is_warmup,
            totals: Box::new(TotalsMessage::new(&second.totals, second.length)),
        });
        say_to_client(writer, &second);
    });
    let last = match outcome {
        Ok(outcome) => FromGenerator::Result {
            result: Box::new(result_message(plan, &outcome)),
        },
        Err(error) => FromGenerator::Failed {
            why: error.to_string(),
        },
    };
    say_to_client(writer, &last);
}

fn say_to_client(writer: &Mutex<&TcpStream>, message: &FromGenerator) {
    let stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
    if frame::write(*stream, message).is_err() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

fn unreached_reason(target: &SocketAddr) -> Option<String> {
    let failed = TcpStream::connect_timeout(target, REACH).err()?;
    Some(format!("{target}: {failed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_panics_gives_its_place_back() {
        let shared = Arc::new(GeneratorState {
            secret: String::new(),
            connections: AtomicU32::new(0),
            has_client: AtomicBool::new(true),
            used: Mutex::new(Instant::now()),
        });
        let mut place = ConnectionPlace::take(&shared);
        place.is_client = true;
        assert_eq!(shared.connections.load(Ordering::Relaxed), 1);
        let session = thread::spawn(move || {
            let _held = place;
            panic!("a plan that nobody foresaw");
        });
        assert!(session.join().is_err());
        assert!(!shared.has_client.load(Ordering::Relaxed));
        assert_eq!(shared.connections.load(Ordering::Relaxed), 0);
    }
}
