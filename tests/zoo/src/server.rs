//! A tiny HTTP/1.1 server with keep-alive: one thread a connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Settings, memory};

/// Serves for ever, at the address `at`. `ready_ms` waits first, `heap_mib` touches memory first, `slow_ms` delays
/// each answer, `status` is the answer. With `calls` (a port) each request asks a server on the
/// loopback for `/prices/7` first, up to `tries` times, and is answered 503 where that never works.
/// With `answer` all but the first `good` requests are answered badly: [`badly`]. Each request takes
/// `work_us` of CPU; where `count` names a file, in every third start only. GET /metrics answers with the
/// text `metrics`, in which `{n}` counts these requests.
pub(crate) fn serve(settings: &Settings) -> u8 {
    let _held = memory::touch(settings.number("heap_mib", 0));
    std::thread::sleep(settings.millis("ready_ms"));
    let port = u16::try_from(settings.number("port", 8080)).unwrap_or(8080);
    let at = settings.text("at", "0.0.0.0");
    let Ok(listener) = TcpListener::bind((at.as_str(), port)) else {
        return 98;
    };
    let (status, slow) = (settings.number("status", 200), settings.millis("slow_ms"));
    let calls = u16::try_from(settings.number("calls", 0)).unwrap_or(0);
    let tries = settings.number("tries", 1);
    let bad = settings.text("answer", "");
    let good = AtomicU64::new(if bad.is_empty() {
        u64::MAX
    } else {
        settings.number("good", 0)
    });
    let course = Arc::new(Course {
        bad,
        good,
        metrics: settings.text("metrics", "ok"),
        scrapes: AtomicU64::new(0),
    });
    let works = match settings.text("count", "") {
        file if file.is_empty() => true,
        file => starts(&file).is_multiple_of(3),
    };
    let work = Duration::from_micros(settings.number("work_us", 0)) * u32::from(works);
    for stream in listener.incoming().flatten() {
        let course = Arc::clone(&course);
        // Without a thread the connection is closed: this is no server to rely on.
        let _ = std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || {
                answer(&stream, slow, &course, || {
                    use_cpu(work);
                    if calls == 0 || (0..tries).any(|_| is_good(calls)) {
                        status
                    } else {
                        503
                    }
                });
            });
    }
    0
}

/// How many starts wrote to this file, this one among them.
fn starts(file: &str) -> u64 {
    let mut options = std::fs::OpenOptions::new();
    let counted = options
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut file| file.write_all(b".").and_then(|()| file.metadata()));
    counted.map_or(0, |data| data.len())
}

/// Uses so much CPU time of this thread.
fn use_cpu(time: Duration) {
    let used = || {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let nanos = used.tv_sec * 1_000_000_000 + used.tv_nsec;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    let end = used() + time;
    while used() < end {}
}

/// The first of files and servers that is not there.
pub(crate) fn missing<'a>(mut needs: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    needs.find(|need| {
        if need.starts_with('/') {
            std::fs::read(need).is_err()
        } else {
            TcpStream::connect(need).is_err()
        }
    })
}

/// Whether a server on this port answers with 200.
fn is_good(port: u16) -> bool {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(b"GET /prices/7 HTTP/1.1\r\nHost: zoo\r\nConnection: close\r\n\r\n")?;
        let mut first = String::new();
        BufReader::new(stream).read_line(&mut first)?;
        Ok(first)
    };
    asked().is_ok_and(|line| line.starts_with("HTTP/1.1 200"))
}

/// How it answers in the course of time.
struct Course {
    bad: String,
    /// Requests that are still answered well.
    good: AtomicU64,
    metrics: String,
    scrapes: AtomicU64,
}

impl Course {
    fn body(&self, request: &str) -> String {
        if !request.starts_with("GET /metrics") {
            return "ok\n".to_owned();
        }
        let number = self.scrapes.fetch_add(1, Ordering::Relaxed).to_string();
        self.metrics.replace("{n}", &number) + "\n"
    }

    fn is_bad_now(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        let taken = self
            .good
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_err()
    }
}

/// An answer that is none: `half` of a head, a head that comes a byte at a time (`drip`) or never
/// ends (`endless`), no byte at all (`close`), no HTTP (`garbage`).
fn badly(mut stream: &TcpStream, how: &str) -> std::io::Result<()> {
    match how {
        "half" => {
            stream.write_all(b"HTTP/1.1 200 zoo\r\nContent-Le")?;
            std::thread::sleep(Duration::from_secs(3600));
        }
        "drip" => loop {
            stream.write_all(b"H")?;
            std::thread::sleep(Duration::from_millis(100));
        },
        "endless" => {
            stream.write_all(b"HTTP/1.1 200 zoo\r\n")?;
            loop {
                stream.write_all(b"X-Zoo: and another header, and another, and another\r\n")?;
            }
        }
        "garbage" => stream.write_all(&[0x16; 600])?,
        _ => {}
    }
    Ok(())
}

fn answer(stream: &TcpStream, slow: Duration, course: &Course, mut status: impl FnMut() -> u64) {
    let _ = stream.set_nodelay(true);
    let mut lines = BufReader::new(stream).lines();
    let mut request = String::new();
    // A request ends with an empty line; bodies are not expected.
    while let Some(Ok(line)) = lines.next() {
        if !line.is_empty() {
            if request.is_empty() {
                request = line;
            }
            continue;
        }
        std::thread::sleep(slow);
        if course.is_bad_now() {
            let _ = badly(stream, &course.bad);
            return;
        }
        let status = status();
        let body = course.body(&std::mem::take(&mut request));
        let length = body.len();
        let response = format!("HTTP/1.1 {status} zoo\r\nContent-Length: {length}\r\n\r\n{body}");
        let mut writer = stream;
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}
