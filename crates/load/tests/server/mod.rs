//! A small scripted server for tests: one thread a connection, an answer function for requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What the server does with a request.
pub enum Answer {
    /// Writes the bytes and goes on.
    Bytes(Vec<u8>),
    /// Writes the bytes and closes.
    Last(Vec<u8>),
    /// Closes with a reset.
    Reset,
    /// Says nothing and keeps the connection.
    Silence,
}

/// A running server; its threads end with the test process.
pub struct Server {
    pub address: SocketAddr,
    pub requests: Arc<AtomicU64>,
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
        let count = Arc::clone(&requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
                thread::spawn(move || serve(stream, &*answer, &count));
            }
        });
        Self { address, requests }
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(u64) -> Answer, count: &AtomicU64) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
            _ => return,
        }
        while let Some(end) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
            seen.drain(..end + 4);
            match answer(count.fetch_add(1, Ordering::SeqCst)) {
                Answer::Bytes(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Answer::Last(bytes) => {
                    let _ = stream.write_all(&bytes);
                    return;
                }
                Answer::Reset => {
                    // Closing with a linger of zero sends RST instead of FIN.
                    let _ = rustix::net::sockopt::set_socket_linger(
                        &stream,
                        Some(std::time::Duration::ZERO),
                    );
                    return;
                }
                Answer::Silence => {}
            }
        }
    }
}
