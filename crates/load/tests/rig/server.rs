//! A one-thread epoll server with a known behaviour: it can stall, be slow for every nth request,
//! or have a fixed capacity. It notes the arrival of every request, CLOCK_MONOTONIC ns.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loadline_load::clock_ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags};

/// It says that the connection stays: ab speaks HTTP/1.0 and would wait for its end.
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 14\r\n\r\nhello, world!\n";
const LISTENER: u64 = u64::MAX;

/// What the server does besides answering at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// Sleeps once: delay after the first request, and duration.
    pub stall: Option<(Duration, Duration)>,
    /// Every nth request takes so long; the others do not wait for it.
    pub slow: Option<(u64, Duration)>,
    /// Serves this many requests a second, one after the other.
    pub capacity: Option<f64>,
    /// For this long after the first request, each request takes this long (without queueing).
    pub warm_up: Option<(Duration, Duration)>,
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// `None` once it is joined.
    thread: Option<JoinHandle<io::Result<Vec<u64>>>>,
}

impl Server {
    /// Serves on `address` (port 0: any free one) until stopped.
    pub fn start(address: SocketAddr, behaviour: Behaviour) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::spawn(move || Loop::new(listener, behaviour)?.run(&flag));
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Serves on a free port of the loopback interface.
    pub fn local(behaviour: Behaviour) -> Self {
        Self::start(([127, 0, 0, 1], 0).into(), behaviour).expect("loopback has a free port")
    }

    /// Stops it; returns the arrival of every request, in order.
    pub fn stop(mut self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is joined here only");
        let ended = thread.join().expect("the server does not panic");
        ended.expect("the server's system calls succeed")
    }
}

impl Drop for Server {
    /// A test that fails and is run again must not share the machine with its first server.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Loop {
    listener: TcpListener,
    epoll: OwnedFd,
    behaviour: Behaviour,
    connections: Vec<Option<OwnedFd>>,
    arrivals: Vec<u64>,
    /// Answers that are due later.
    later: BinaryHeap<Reverse<(u64, usize)>>,
    /// When a server of fixed capacity is free again.
    free_at: u64,
    stalled: bool,
}

impl Loop {
    fn new(listener: TcpListener, behaviour: Behaviour) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        Ok(Self {
            listener,
            epoll,
            behaviour,
            connections: Vec::new(),
            arrivals: Vec::with_capacity(1 << 20),
            later: BinaryHeap::new(),
            free_at: 0,
            stalled: false,
        })
    }

    fn run(mut self, stop: &AtomicBool) -> io::Result<Vec<u64>> {
        let mut events = Vec::with_capacity(256);
        while !stop.load(Ordering::Relaxed) {
            let now = clock_ns();
            self.stall(now);
            self.answer_due(now);
            let due = self
                .later
                .peek()
                .map(|Reverse((at, _))| at.saturating_sub(now));
            let wait = due.unwrap_or(u64::MAX).min(20_000_000);
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: wait as i64,
            };
            let space = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, space, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    id => self.receive(id as usize),
                }
            }
        }
        Ok(self.arrivals)
    }

    fn stall(&mut self, now: u64) {
        let (Some((at, length)), Some(first)) = (self.behaviour.stall, self.arrivals.first())
        else {
            return;
        };
        if !self.stalled && now - first >= at.as_nanos() as u64 {
            self.stalled = true;
            thread::sleep(length);
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match net::accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            };
            net::sockopt::set_tcp_nodelay(&socket, true)?;
            let id = EventData::new_u64(self.connections.len() as u64);
            epoll::add(&self.epoll, socket.as_fd(), id, EventFlags::IN)?;
            self.connections.push(Some(socket));
        }
    }

    /// Requests of the rigs are small: each comes whole, several may come at once.
    fn receive(&mut self, id: usize) {
        let Some(socket) = &self.connections[id] else {
            return;
        };
        let mut buffer = [0; 16 * 1024];
        let length = match net::recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((0, _)) => return self.connections[id] = None,
            Ok((n, _)) => n,
            Err(Errno::AGAIN) => return,
            Err(_) => return self.connections[id] = None,
        };
        let now = clock_ns();
        for _ in memchr::memmem::find_iter(&buffer[..length], b"\r\n\r\n") {
            self.arrivals.push(now);
            match self.due(now) {
                at if at <= now => self.answer(id),
                at => self.later.push(Reverse((at, id))),
            }
        }
    }

    fn due(&mut self, now: u64) -> u64 {
        if let Some(rate) = self.behaviour.capacity {
            self.free_at = self.free_at.max(now) + (1e9 / rate) as u64;
            return self.free_at;
        }
        if let Some((until, length)) = self.behaviour.warm_up
            && now - self.arrivals.first().unwrap_or(&now) < until.as_nanos() as u64
        {
            return now + length.as_nanos() as u64;
        }
        match self.behaviour.slow {
            Some((every, length)) if (self.arrivals.len() as u64).is_multiple_of(every) => {
                now + length.as_nanos() as u64
            }
            _ => now,
        }
    }

    fn answer_due(&mut self, now: u64) {
        while let Some(Reverse((at, id))) = self.later.peek().copied() {
            if at > now {
                return;
            }
            self.later.pop();
            self.answer(id);
        }
    }

    fn answer(&mut self, id: usize) {
        if let Some(socket) = &self.connections[id]
            && net::send(socket, ANSWER, SendFlags::NOSIGNAL).is_err()
        {
            self.connections[id] = None;
        }
    }
}
