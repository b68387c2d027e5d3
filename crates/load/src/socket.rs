//! Non-blocking TCP sockets: connect, send, receive, as results that name the error's kind.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use loadline_sys::{NONBLOCKING_SOCKET, WITHOUT_SIGNAL};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SocketType, ipproto};

use crate::outcome::ErrorKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketProgress {
    Bytes(usize),
    Later,
    /// The peer closed its side (reads only).
    End,
}

#[derive(Debug)]
pub(crate) struct TcpSocket(OwnedFd);

impl TcpSocket {
    pub(crate) fn begin_connect(address: SocketAddr) -> Result<Self, ErrorKind> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let fd = net::socket_with(
            family,
            SocketType::STREAM,
            NONBLOCKING_SOCKET,
            Some(ipproto::TCP),
        )
        .map_err(ErrorKind::from_errno)?;
        // Without it Nagle's algorithm would hold back the second part of a large request.
        net::sockopt::set_tcp_nodelay(&fd, true).map_err(ErrorKind::from_errno)?;
        match net::connect(&fd, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Self(fd)),
            Err(errno) => Err(ErrorKind::from_errno(errno)),
        }
    }

    pub(crate) fn connect_result(&self) -> Result<(), ErrorKind> {
        match net::sockopt::socket_error(&self.0) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(errno)) | Err(errno) => Err(ErrorKind::from_errno(errno)),
        }
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8]) -> Result<SocketProgress, ErrorKind> {
        match net::send(&self.0, bytes, WITHOUT_SIGNAL) {
            Ok(n) => Ok(SocketProgress::Bytes(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(SocketProgress::Later),
            Err(errno) => Err(ErrorKind::from_errno(errno)),
        }
    }

    pub(crate) fn receive_bytes(&self, buffer: &mut [u8]) -> Result<SocketProgress, ErrorKind> {
        loop {
            match net::recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Ok(SocketProgress::End),
                Ok((n, _)) => return Ok(SocketProgress::Bytes(n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(SocketProgress::Later),
                Err(errno) => return Err(ErrorKind::from_errno(errno)),
            }
        }
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
