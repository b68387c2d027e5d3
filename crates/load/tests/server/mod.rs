//! A small scripted server for tests: one thread a connection, an answer function for requests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What the server does with a request.
pub enum Answer {
    /// Writes the bytes and goes on.
    Bytes(Vec<u8>),
    /// Writes the bytes and closes.
    Last(Vec<u8>),
    /// Writes single bytes with pauses.
    Slowly(Vec<u8>, Duration),
    /// Writes a head for this many bytes of body, then the body, without holding it in memory.
    Large(usize),
    /// Writes the bytes and closes the sending side only: the socket stays half open.
    HalfClosed(Vec<u8>),
    /// Closes with a reset.
    Reset,
    /// Says nothing and keeps the connection.
    Silence,
}

/// A running server; its threads end with the test process.
pub struct Server {
    pub address: SocketAddr,
    pub requests: Arc<AtomicU64>,
    /// Connections that were accepted.
    pub connections: Arc<AtomicU64>,
    body_bytes: Arc<AtomicU64>,
}

/// A good answer.
pub fn ok() -> Answer {
    Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())
}

impl Server {
    /// Serves on a free port; `answer` gets the number of the request, from 0.
    pub fn start(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let requests = Arc::new(AtomicU64::new(0));
        let body_bytes = Arc::new(AtomicU64::new(0));
        let connections = Arc::new(AtomicU64::new(0));
        let accepted = Arc::clone(&connections);
        let counts = (Arc::clone(&requests), Arc::clone(&body_bytes));
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                accepted.fetch_add(1, Ordering::SeqCst);
                let (answer, counts) = (Arc::clone(&answer), counts.clone());
                thread::spawn(move || serve(stream, &*answer, &counts.0, &counts.1));
            }
        });
        Self {
            address,
            requests,
            connections,
            body_bytes,
        }
    }

    /// Bytes of request bodies so far.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes.load(Ordering::SeqCst)
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(u64) -> Answer,
    count: &AtomicU64,
    body_bytes: &AtomicU64,
) {
    let mut seen = Vec::new();
    while let Some(length) = read_head(&mut stream, &mut seen) {
        while seen.len() < length {
            if read_more(&mut stream, &mut seen).is_none() {
                return;
            }
        }
        body_bytes.fetch_add(length as u64, Ordering::SeqCst);
        seen.drain(..length);
        if write_answer(&mut stream, answer(count.fetch_add(1, Ordering::SeqCst))).is_none() {
            return;
        }
    }
}

/// Takes a request's head; returns the length of its body.
fn read_head(stream: &mut TcpStream, seen: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(end) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).to_lowercase();
            seen.drain(..end + 4);
            let length = head.split("content-length:").nth(1);
            let length = length.and_then(|l| l.lines().next()?.trim().parse().ok());
            return Some(length.unwrap_or(0));
        }
        read_more(stream, seen)?;
    }
}

fn read_more(stream: &mut TcpStream, seen: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 64 * 1024];
    match stream.read(&mut buffer) {
        Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
        _ => return None,
    }
    Some(())
}

/// `None` when the connection is over.
fn write_answer(stream: &mut TcpStream, answer: Answer) -> Option<()> {
    match answer {
        Answer::Bytes(bytes) => stream.write_all(&bytes).ok(),
        Answer::Last(bytes) => {
            // The client may have gone already.
            let _ = stream.write_all(&bytes);
            None
        }
        Answer::Slowly(bytes, pause) => {
            stream.set_nodelay(true).ok()?;
            for byte in bytes {
                stream.write_all(&[byte]).ok()?;
                thread::sleep(pause);
            }
            Some(())
        }
        Answer::Large(length) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            let piece = [b'x'; 64 * 1024];
            let mut left = length;
            while left > 0 {
                let now = left.min(piece.len());
                stream.write_all(&piece[..now]).ok()?;
                left -= now;
            }
            Some(())
        }
        Answer::HalfClosed(bytes) => {
            stream.write_all(&bytes).ok()?;
            stream.shutdown(Shutdown::Write).ok()
        }
        Answer::Reset => {
            // Closing with a linger of zero sends RST instead of FIN.
            let _ = rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO));
            None
        }
        Answer::Silence => Some(()),
    }
}
