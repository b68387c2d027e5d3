//! A server that does to each frame what a test says: one thread a connection, no decoding of
//! headers. Its settings are the test's.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a client sent.
pub enum Frame {
    Headers {
        stream: u32,
        is_last: bool,
    },
    Data {
        stream: u32,
        length: usize,
        is_last: bool,
    },
    Reset {
        stream: u32,
    },
    Other,
}

/// One connection of a server.
pub struct Talk {
    stream: TcpStream,
    out: Vec<u8>,
    /// For scripts: streams that are open, and octets that came on each.
    pub open: Vec<u32>,
    pub received: BTreeMap<u32, usize>,
}

/// A running server; its threads end with the test process.
pub struct Server {
    pub address: SocketAddr,
    connections: Arc<AtomicU64>,
    pongs: Arc<AtomicU64>,
}

impl Server {
    pub fn start(script: impl Fn(&mut Talk, Frame) + Send + Sync + 'static) -> Self {
        Self::start_with(&[], script)
    }

    /// With settings: pairs of their number (RFC 9113 §6.5.2) and value.
    pub fn start_with(
        settings: &[(u16, u32)],
        script: impl Fn(&mut Talk, Frame) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let connections = Arc::new(AtomicU64::new(0));
        let pongs = Arc::new(AtomicU64::new(0));
        let counts = (Arc::clone(&connections), Arc::clone(&pongs));
        let script = Arc::new(script);
        let mut payload = Vec::new();
        for (number, value) in settings {
            payload.extend_from_slice(&number.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counts.0.fetch_add(1, Ordering::SeqCst);
                let (script, pongs) = (Arc::clone(&script), Arc::clone(&counts.1));
                let mut talk = Talk::new(stream);
                talk.frame(4, 0, 0, &payload);
                thread::spawn(move || talk.serve(&*script, &pongs));
            }
        });
        Self {
            address,
            connections,
            pongs,
        }
    }

    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn saw_pong(&self) -> bool {
        self.pongs.load(Ordering::SeqCst) > 0
    }
}

impl Talk {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            out: Vec::new(),
            open: Vec::new(),
            received: BTreeMap::new(),
        }
    }

    /// Returns when the connection is over.
    fn serve(mut self, script: &dyn Fn(&mut Self, Frame), pongs: &AtomicU64) -> Option<()> {
        let mut preface = [0; PREFACE.len()];
        self.stream.read_exact(&mut preface).ok()?;
        assert_eq!(preface, PREFACE);
        loop {
            self.stream.write_all(&self.out).ok()?;
            self.out.clear();
            let mut header = [0; 9];
            self.stream.read_exact(&mut header).ok()?;
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
            self.stream.read_exact(&mut vec![0; length]).ok()?;
            let is_last = header[4] & 1 != 0;
            let frame = match header[3] {
                0 => Frame::Data {
                    stream,
                    length,
                    is_last,
                },
                1 => Frame::Headers { stream, is_last },
                3 => Frame::Reset { stream },
                6 if is_last => {
                    pongs.fetch_add(1, Ordering::SeqCst);
                    Frame::Other
                }
                _ => Frame::Other,
            };
            script(&mut self, frame);
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.out
            .extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    pub fn headers(&mut self, stream: u32, block: &[u8], is_last: bool) {
        self.frame(1, 4 | u8::from(is_last), stream, block);
    }

    pub fn data(&mut self, stream: u32, octets: &[u8], is_last: bool) {
        self.frame(0, u8::from(is_last), stream, octets);
    }

    pub fn padded_data(&mut self, stream: u32, octets: &[u8]) {
        let payload = [&[7][..], octets, &[0; 7]].concat();
        self.frame(0, 8, stream, &payload);
    }

    pub fn window(&mut self, stream: u32, increment: u32) {
        self.frame(8, 0, stream, &increment.to_be_bytes());
    }

    pub fn reset(&mut self, stream: u32) {
        self.frame(3, 0, stream, &7u32.to_be_bytes());
    }

    pub fn ping(&mut self) {
        self.frame(6, 0, 0, b"loadline");
    }

    pub fn goaway(&mut self, last: u32) {
        let payload = [last.to_be_bytes(), [0; 4]].concat();
        self.frame(7, 0, 0, &payload);
    }

    /// Sends the queued frames, and gives the client time to read.
    pub fn pause(&mut self, length: Duration) {
        let _ = self.stream.write_all(&self.out);
        self.out.clear();
        thread::sleep(length);
    }

    pub fn close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
