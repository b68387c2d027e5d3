//! A connection's bytes: plain TCP or TLS, behind one set of calls.

use crate::outcome::ErrorKind;
use crate::socket::{Moved, Socket};
use crate::tls::{TlsSetup, TlsSocket};

/// One connection.
#[derive(Debug)]
pub(crate) enum Wire {
    Plain(Socket),
    Tls(Box<TlsSocket>),
}

impl Wire {
    /// Over a socket that is connecting.
    pub(crate) fn new(socket: Socket, tls: Option<&TlsSetup>) -> Result<Self, ErrorKind> {
        Ok(match tls {
            None => Self::Plain(socket),
            Some(setup) => Self::Tls(Box::new(TlsSocket::new(socket, setup)?)),
        })
    }

    /// Goes on with the handshakes after an event; true when requests can be sent.
    pub(crate) fn handshake(&mut self) -> Result<bool, ErrorKind> {
        match self {
            Self::Plain(socket) => socket.connected().map(|()| true),
            Self::Tls(tls) => tls.handshake(),
        }
    }

    /// Whether HTTP/2 can be spoken: plain TCP has nobody to ask.
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => tls.is_http2(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<Moved, ErrorKind> {
        match self {
            Self::Plain(socket) => socket.send(bytes),
            Self::Tls(tls) => tls.send(bytes),
        }
    }

    /// Sends what TLS still holds.
    pub(crate) fn flush(&mut self) -> Result<(), ErrorKind> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.flush(),
        }
    }

    pub(crate) fn has_unflushed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.has_unflushed(),
        }
    }

    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<Moved, ErrorKind> {
        match self {
            Self::Plain(socket) => socket.receive(buffer),
            Self::Tls(tls) => tls.receive(buffer),
        }
    }

    /// Whether a receive that did not fill its buffer has emptied the socket.
    pub(crate) fn is_drained(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => tls.is_drained(),
        }
    }
}
