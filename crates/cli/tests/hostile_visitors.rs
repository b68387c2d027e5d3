//! The live page and visitors that mean it harm: whatever they send before they name a token, the next
//! visitor is answered before the server gives any of them up, the server has not grown, and Ctrl-C ends
//! it. No root, no trials.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Far more than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection that is to stay as it is has been heard of by then, or closed.
const MOMENT: Duration = Duration::from_millis(100);
const GROWTH_KIB: u64 = 16 << 10;

/// A `loadline serve`, killed when dropped.
struct LivePage {
    server: Child,
    address: SocketAddr,
    token: String,
}

impl LivePage {
    /// Starts with this limit of descriptors.
    fn start(state: &Path, descriptors: u32) -> Self {
        let script = format!("ulimit -n {descriptors}; exec \"$@\"");
        let mut server = Command::new("/bin/sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_loadline")])
            .args(["serve", "--listen=127.0.0.1:0", "--state"])
            .arg(state)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut link = String::new();
        let stdout = server.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut link).expect("a link");
        let (address, token) = link
            .trim_start_matches("http://")
            .trim_end()
            .split_once('/')
            .expect("an address");
        Self {
            server,
            address: address.parse().expect("an address"),
            token: token.trim_start_matches("?token=").to_owned(),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE).expect("it listens");
        let patience = stream.set_write_timeout(Some(PATIENCE));
        patience.expect("a timeout");
        stream
    }

    /// Asks as a visitor who has the link does.
    fn assert_serves(&self, after: &str) {
        let mut stream = self.connect();
        let patience = stream.set_read_timeout(Some(PATIENCE));
        patience.expect("a timeout");
        let request = format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut head = [0; 15];
        let read = stream.read_exact(&mut head);
        assert!(read.is_ok(), "after {after}: {read:?}");
        assert_eq!(&head, b"HTTP/1.1 200 OK", "after {after}");
    }

    /// Asks beside a connection that owes its head: it is not given up before the answer is there.
    fn assert_serves_beside(&self, silent: &TcpStream, after: &str) {
        self.assert_serves(after);
        silent.set_nonblocking(true).expect("a socket");
        let seen = silent.peek(&mut [0]).map_err(|error| error.kind());
        assert_eq!(seen, Err(ErrorKind::WouldBlock), "after {after}");
    }

    fn memory_kib(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.server.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
        let value = lines.next().and_then(|line| line.split_whitespace().next());
        value.and_then(|kib| kib.parse().ok()).expect("in kB")
    }

    fn assert_ends(mut self) {
        let pid = Pid::from_child(&self.server);
        kill_process(pid, Signal::INT).expect("it runs");
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.server.try_wait().expect("a child") {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(MOMENT);
        }
        panic!("Ctrl-C does not end it");
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What a hostile visitor sends, and how often.
fn hostile_requests() -> Vec<(&'static str, Vec<u8>, usize)> {
    let many = |line: &str, count: usize| line.repeat(count).into_bytes();
    let once = |text: &str| (text.as_bytes().to_vec(), 1);
    let kinds = [
        ("nothing", once("")),
        ("half a request line", once("GET /resu")),
        ("half a header", once("GET / HTTP/1.1\r\nHost: x")),
        (
            "a length beyond memory",
            once("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4611686018427387904\r\n\r\n"),
        ),
        (
            "a body that does not come",
            once("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n"),
        ),
        (
            "a negative length",
            once("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        ),
        (
            "two lengths",
            once("POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 9\r\n\r\n"),
        ),
        (
            "endless chunks",
            (
                many(
                    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n",
                    1,
                ),
                1,
            ),
        ),
        (
            "a promise of a body",
            once("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"),
        ),
        ("a header without end", (vec![b'a'; 64 << 10], 512)),
        ("headers without end", (many("a: b\r\n", 8192), 512)),
        (
            "an address without end",
            (many("GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 2048), 64),
        ),
        (
            "a cookie without end",
            (many("GET / HTTP/1.1\r\nCookie: loadline=0;", 2048), 64),
        ),
        (
            "a thousand requests at once",
            (many("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 1000), 1),
        ),
        ("line ends alone", (many("\n", 64 << 10), 8)),
        ("zeros", (vec![0; 64 << 10], 8)),
        (
            "a TLS hello",
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), 1),
        ),
        ("HTTP/2", once("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        (
            "bytes that are no text",
            (
                b"GET /?token=\xff\xfe HTTP/1.1\r\nHost: \xff\r\nCookie: \xff\r\n\r\n".to_vec(),
                1,
            ),
        ),
        (
            "a way out of the tree",
            once("GET /results/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"),
        ),
        (
            "another method",
            once("CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"),
        ),
        (
            "a wrong token",
            once("GET /events?token=0 HTTP/1.1\r\nAuthorization: Bearer 0\r\n\r\n"),
        ),
    ];
    let kind = |(name, (bytes, count)): (&'static str, (Vec<u8>, usize))| (name, bytes, count);
    kinds.into_iter().map(kind).collect()
}

#[test]
fn after_a_hundred_hostile_requests_the_next_visitor_is_served_and_memory_is_as_before() {
    let place = tempfile::tempdir().expect("a directory");
    let page = LivePage::start(&place.path().join("state"), 1024);
    page.assert_serves("nothing");
    let before = page.memory_kib("VmRSS:");
    let mut open = Vec::new();
    for round in 0..5 {
        for (name, bytes, count) in hostile_requests() {
            let mut stream = page.connect();
            for _ in 0..count {
                // It may hang up at any time.
                if stream.write_all(&bytes).is_err() {
                    break;
                }
            }
            if round == 0 && (name == "nothing" || name.starts_with("half")) {
                page.assert_serves_beside(&stream, name);
            } else if round == 0 {
                page.assert_serves(name);
            } else if round == 1 {
                let _ = stream.shutdown(Shutdown::Write);
            }
            open.push(stream);
        }
    }
    assert!(open.len() >= 100, "{}", open.len());
    page.assert_serves("all of them");
    let growth = page.memory_kib("VmHWM:").saturating_sub(before);
    println!("{} requests, grown by {growth} KiB", open.len());
    assert!(growth < GROWTH_KIB, "grown by {growth} KiB");
    page.assert_ends();
}

#[test]
fn connections_that_say_nothing_take_no_place_of_a_visitor() {
    let place = tempfile::tempdir().expect("a directory");
    for descriptors in [64, 1024] {
        let page = LivePage::start(&place.path().join("state"), descriptors);
        let idle: Vec<TcpStream> = (0..600).map(|_| page.connect()).collect();
        let newest = idle.last().expect("600");
        page.assert_serves_beside(newest, "600 that say nothing");
        drop(idle);
        page.assert_serves("they have gone");
        // Each waits for an answer in the place of one.
        let waiting: Vec<TcpStream> = (0..60)
            .map(|_| {
                let mut stream = page.connect();
                let request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n";
                stream.write_all(request).expect("sent");
                stream
            })
            .collect();
        page.assert_serves("60 that owe a body");
        page.assert_ends();
        drop(waiting);
    }
}
