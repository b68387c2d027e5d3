//! One dependency as the proxy sees it: where it listens, its address, its toxics.
//!
//! Owns the listening sockets, which are in the application's network, and which toxics affect a
//! connection.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;

use loadline_analysis::random::RandomStream;
use loadline_load::loopback::listening_loopback;
use loadline_sys::NONBLOCKING_SOCKET;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, Shutdown, SocketType, ipproto};
use serde::{Deserialize, Serialize};

use crate::delay::DelayDraw;
use crate::lane::{ConnectionLane, PreparedToxic};
use crate::meter::LinkCounters;
use crate::network::{self, EnteredNetwork};
use crate::toxic::{Toxic, ToxicEffect, ToxicStream};

const BACKLOG: i32 = 4096;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkOrder {
    pub name: String,
    pub port: u16,
    /// Its network namespace, such as `/proc/PID/ns/net`.
    pub network: PathBuf,
    /// The toxics, in the order in which bytes meet them.
    pub toxics: Vec<Toxic>,
    pub seed: u64,
}

#[derive(Debug)]
pub(crate) struct ProxyLink {
    port: u16,
    network: File,
    /// The loopback address at which the dependency listens, once it has.
    upstream: Cell<Option<IpAddr>>,
    pub(crate) listeners: Vec<TcpListener>,
    toxics: Vec<(Toxic, Rc<PreparedToxic>)>,
    random: RandomStream,
    made: u64,
    pub(crate) is_down: bool,
    pub(crate) zero: Option<u64>,
    pub(crate) counters: LinkCounters,
}

impl ProxyLink {
    /// Listens in the application's network, in which this thread is.
    /// Errors: In words: a port that is taken, a namespace that is not there, a histogram that is
    /// none.
    pub(crate) fn open_listeners(order: &LinkOrder) -> Result<Self, String> {
        let mut toxics = Vec::new();
        for toxic in &order.toxics {
            let draw = match &toxic.effect {
                ToxicEffect::Latency(delay) => Some(DelayDraw::new(delay)?),
                _ => None,
            };
            let prepared = PreparedToxic {
                effect: toxic.effect.clone(),
                draw,
                span: toxic.span,
            };
            toxics.push((toxic.clone(), Rc::new(prepared)));
        }
        let failed = |error: io::Error| format!("port {}: {error}", order.port);
        let network = network::open_network(&order.network).map_err(failed)?;
        Ok(Self {
            port: order.port,
            network,
            listeners: listen_all(order.port)?,
            toxics,
            random: RandomStream::from_seed(order.seed),
            made: 0,
            is_down: false,
            upstream: Cell::new(None),
            zero: None,
            counters: LinkCounters::default(),
        })
    }

    /// Opens a connection to the dependency, in its network. Errors: What the kernel says at once;
    /// most errors come later.
    pub(crate) fn connect_upstream(&self) -> io::Result<TcpStream> {
        network::enter_network(&self.network)?;
        let listening = self.upstream.get();
        let listening = listening.or_else(|| listening_loopback(self.port));
        self.upstream.set(listening);
        let own = listening.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let address = SocketAddr::new(own, self.port);
        let kind = SocketType::STREAM;
        let family = match own {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = net::socket_with(family, kind, NONBLOCKING_SOCKET, Some(ipproto::TCP))?;
        match net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// The lanes of the next connection and which toxics befall it. Its draws depend on the seed and
    /// on how many were before it, not on the time.
    pub(crate) fn draw_lanes(&mut self) -> ([ConnectionLane; 2], Vec<bool>) {
        let random = self.random.derive(self.made);
        self.made += 1;
        let mut chance = random.derive(2);
        let toxics = self.toxics.iter();
        let befallen = toxics.map(|(toxic, _)| chance.chance(toxic.toxicity));
        let befallen: Vec<bool> = befallen.collect();
        let of = |stream: ToxicStream| {
            let both = self.toxics.iter().zip(&befallen);
            let mine = both.filter(|((toxic, _), befalls)| **befalls && toxic.stream == stream);
            let mine = mine.map(|((_, prepared), _)| Rc::clone(prepared)).collect();
            ConnectionLane::new(mine, random.derive(stream as u64))
        };
        let lanes = [of(ToxicStream::Upstream), of(ToxicStream::Downstream)];
        (lanes, befallen)
    }

    pub(crate) fn should_be_down(&self, now: u64) -> bool {
        let down = |(toxic, prepared): &(Toxic, Rc<PreparedToxic>)| {
            toxic.effect == ToxicEffect::Down && prepared.is_active(now, self.zero)
        };
        self.toxics.iter().any(down)
    }

    /// Stops or begins to listen. A socket that does not listen keeps its port: no other process
    /// can take it, and the kernel refuses connections. Source: tcp_disconnect in the kernel's
    /// net/ipv4/tcp.c.
    pub(crate) fn set_down(&mut self, is_down: bool) -> io::Result<()> {
        self.is_down = is_down;
        for listener in &self.listeners {
            if is_down {
                net::shutdown(listener, Shutdown::Read)?
            } else {
                net::listen(listener, BACKLOG)?
            }
        }
        Ok(())
    }

    /// Of a connection that these toxics befall: how long from now until it is closed or reset, ns,
    /// where a toxic at work wants that; `true` is by a reset. Asked when it is made, and when a
    /// toxic begins.
    pub(crate) fn doom_delay(&self, befallen: &[bool], now: u64) -> Option<(u64, bool)> {
        let both = self.toxics.iter().zip(befallen);
        let active = both.filter(|((_, p), befalls)| **befalls && p.is_active(now, self.zero));
        let after = active.filter_map(|((toxic, _), _)| match toxic.effect {
            ToxicEffect::Timeout { timeout } if !timeout.is_zero() => Some((timeout, false)),
            ToxicEffect::ResetPeer { timeout } => Some((timeout, true)),
            _ => None,
        });
        let ns = |(timeout, how): (std::time::Duration, bool)| (timeout.as_nanos() as u64, how);
        after.map(ns).min()
    }

    pub(crate) fn next_edge(&self, now: u64) -> Option<u64> {
        let zero = self.zero?;
        let spans = self.toxics.iter().filter_map(|(toxic, _)| toxic.span);
        let edges = spans.flat_map(|span| [span.at, span.end_time()]);
        let edges = edges.map(|at| zero.saturating_add(at.as_nanos() as u64));
        edges.filter(|edge| *edge > now).min()
    }
}

pub(crate) fn accept(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Ok(Some(stream))
        }
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock => Ok(None),
            // One that is gone again, and a socket that has just been shut.
            ErrorKind::ConnectionAborted | ErrorKind::InvalidInput => Ok(None),
            _ => Err(error),
        },
    }
}

/// Listens on the loopback of the network in which this thread is.
pub(crate) fn listen_all(port: u16) -> Result<Vec<TcpListener>, String> {
    let first = listen_at((Ipv4Addr::LOCALHOST, port).into());
    let mut listeners = vec![first.map_err(|error| format!("port {port}: {error}"))?];
    // `localhost` means both to a JVM; a machine without IPv6 has the first only.
    listeners.extend(listen_at((Ipv6Addr::LOCALHOST, port).into()).ok());
    Ok(listeners)
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // The standard library's backlog suits small servers only.
    net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

#[derive(Debug, Default)]
pub(crate) struct RefusedConnects(Option<u64>);

impl RefusedConnects {
    pub(crate) fn count_new(&mut self, front: &mut EnteredNetwork) -> u64 {
        let now = front.failed_attempts();
        let before = std::mem::replace(&mut self.0, now);
        let both = now.zip(before);
        both.map_or(0, |(now, before)| now.saturating_sub(before))
    }
}
