//! A generator that waits for its client: `loadline pod-generator`.
//!
//! Owns whom it listens to, and that it sends nothing for nobody: who does not know the secret gets
//! no further than the first words, one client at a time is served, and when that one is gone or
//! silent the load ends at once. Nothing that a client says is trusted with memory ([`frame`]).

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::frame::{self, MOST};
use super::hello::{Greeting, receive_client, set_timeouts};
use super::messages::{FromGenerator, SILENCE, ToGenerator};
use crate::clock::{clock_ns, to_timespec};
use crate::part::{TotalsMessage, result_message};
use crate::plan::LoadPlan;
use crate::run::run_from;

const MOST_CONNECTIONS: u32 = 16;

const LOOK_NS: u64 = 200_000_000;

/// So long it tries to reach an address.
const REACH: Duration = Duration::from_secs(3);

struct GeneratorState {
    secret: String,
    connections: AtomicU32,
    has_client: AtomicBool,
    /// When the last client left.
    used: Mutex<Instant>,
}

/// Serves one client after the other, until `stop` is set or none has come for so long.
/// Errors: A listener that does not work.
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

    /// Gives a connection a thread, where there are not too many.
    fn admit_client(self: &Arc<Self>, stream: TcpStream) {
        let shared = Arc::clone(self);
        if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let spawned = thread::Builder::new().spawn(move || {
            // Whatever a stranger does is no error of ours.
            let _ = shared.serve_connection(&stream);
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn serve_connection(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        set_timeouts(stream, SILENCE)?;
        let mut is_client = false;
        let greeting = receive_client(stream, &self.secret, || {
            is_client = !self.has_client.swap(true, Ordering::AcqRel);
            is_client
        });
        let served = match greeting {
            Ok(Greeting::Welcome) => {
                set_timeouts(stream, SILENCE).and_then(|()| serve_client(stream))
            }
            other => other.map(drop),
        };
        if is_client {
            *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            self.has_client.store(false, Ordering::Release);
        }
        served
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
        // Nobody would hear of what is sent from here on.
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
        // Without an instant the client is gone, and all of it is stopped.
        begins.recv().unwrap_or(earliest)
    };
    let outcome = run_from(plan, stop, &mut begin, &mut |second| {
        let second = FromGenerator::Second {
            index: second.index,
            at_ns: second.at_ns,
            is_warmup: second.is_warmup,
            totals: Box::new(TotalsMessage::new(&second.totals, second.length)),
        };
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

/// Says something; to a client that is gone nothing, which the reading side sees.
fn say_to_client(writer: &Mutex<&TcpStream>, message: &FromGenerator) {
    let stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
    if frame::write(*stream, message).is_err() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Why an address cannot be reached from here.
fn unreached_reason(target: &SocketAddr) -> Option<String> {
    let failed = TcpStream::connect_timeout(target, REACH).err()?;
    Some(format!("{target}: {failed}"))
}
