//! A connection's bytes: plain TCP or TLS, behind one set of calls.

use crate::outcome::ErrorKind;
use crate::socket::{SocketProgress, TcpSocket};
use crate::tls::{TlsSetup, TlsSocket};

#[derive(Debug)]
pub(crate) enum ClientSocket {
    Plain(TcpSocket),
    Tls(Box<TlsSocket>),
}

impl ClientSocket {
    pub(crate) fn new(socket: TcpSocket, tls: Option<&TlsSetup>) -> Result<Self, ErrorKind> {
        Ok(match tls {
            None => Self::Plain(socket),
            Some(setup) => Self::Tls(Box::new(TlsSocket::new(socket, setup)?)),
        })
    }

    /// Goes on with the handshakes after an event; true when requests can be sent.
    pub(crate) fn handshake(&mut self) -> Result<bool, ErrorKind> {
        match self {
            Self::Plain(socket) => socket.connect_result().map(|()| true),
            Self::Tls(tls) => tls.handshake(),
        }
    }

    /// Whether HTTP/2 can be spoken: plain TCP has no negotiation.
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => tls.is_http2(),
        }
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<SocketProgress, ErrorKind> {
        match self {
            Self::Plain(socket) => socket.send_bytes(bytes),
            Self::Tls(tls) => tls.send_bytes(bytes),
        }
    }

    pub(crate) fn flush_records(&mut self) -> Result<(), ErrorKind> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.flush_records(),
        }
    }

    pub(crate) fn has_unflushed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.has_unflushed(),
        }
    }

    pub(crate) fn receive_bytes(&mut self, buffer: &mut [u8]) -> Result<SocketProgress, ErrorKind> {
        match self {
            Self::Plain(socket) => socket.receive_bytes(buffer),
            Self::Tls(tls) => tls.receive_bytes(buffer),
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => tls.is_drained(),
        }
    }
}
