//! Malicious servers: whatever they send, every request has one outcome, the run ends, and the
//! generator's memory stays bounded. A separate test, because it reads the peak of its process.

mod plans;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use loadline_load::{Http2Options, LoadModel, LoadPlan, TlsSpec, run};

/// Growth of the generator's memory that one kind of server may cause, KiB.
const MOST_GROWTH: u64 = 32 << 10;

/// A peer that asks for answers without end and reads none is cut off: it would only be slower to
/// fill the memory.
const CUT_OFF: [&str; 3] = [
    "flood of pings",
    "flood of settings",
    "flood of table sizes",
];

/// Schedule, timeout and drain come to 2 s; the rest is for a machine that others use.
const LONGEST: Duration = Duration::from_secs(60);

/// How the generator speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Speech {
    Http1,
    Http2,
    Tls,
}
use Speech::{Http1, Http2 as H2, Tls};

/// What a server does with a connection; it ends with the first error.
type Script = fn(&mut TcpStream) -> std::io::Result<()>;

const KINDS: &[(&str, Speech, Script)] = &[
    ("silence", Http1, |s| forever(s, b"")),
    ("a byte at a time", Http1, |s| {
        asked(s)?;
        slowly(
            s,
            &[b"HTTP/1.1 200 OK\r\n".as_slice(), &[b'a'; 9999]].concat(),
        )
    }),
    ("a body a byte at a time", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")?;
        slowly(s, &[b'a'; 9999])
    }),
    ("endless headers", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\n")?;
        forever(s, b"x-name: value\r\n")
    }),
    ("one endless header", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nx: ")?;
        forever(s, b"aaaaaaaaaaaaaaaa")
    }),
    ("endless status line", Http1, |s| {
        asked(s)?;
        forever(s, b"HTTP/1.1 200 ")
    }),
    ("endless body", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        forever(s, &[b'a'; 4096])
    }),
    ("endless chunks of one byte", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        forever(s, b"1\r\na\r\n")
    }),
    ("an endless chunk extension", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")?;
        forever(s, b"aaaa")
    }),
    ("endless trailers", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")?;
        forever(s, b"x: y\r\n")
    }),
    ("a chunk of more than any memory", Http1, |s| {
        asked(s)?;
        s.write_all(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        )?;
        forever(s, b"aaaa")
    }),
    ("a length of more than any memory", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n")?;
        forever(s, &[b'a'; 4096])
    }),
    ("two lengths", Http1, |s| {
        asked(s)?;
        s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n")?;
        forever(s, b"")
    }),
    ("endless answers of 100", Http1, |s| {
        asked(s)?;
        forever(s, b"HTTP/1.1 100 Continue\r\n\r\n")
    }),
    ("unrequested answers", Http1, |s| {
        forever(s, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }),
    ("zeroes", Http1, |s| forever(s, &[0; 4096])),
    ("a reset at once", Http1, reset),
    ("an end at once", Http1, |s| s.shutdown(Shutdown::Both)),
    ("TLS garbage", Tls, |s| {
        forever(s, &[0x16, 3, 3, 0x40, 0, 7, 7, 7])
    }),
    ("plain text to TLS", Tls, |s| {
        forever(s, b"HTTP/1.1 200 OK\r\n\r\n")
    }),
    ("TLS silence", Tls, |s| forever(s, b"")),
    ("a TLS alert at once", Tls, |s| {
        s.write_all(&[0x15, 3, 3, 0, 2, 2, 40])
    }),
    ("flood of pings", H2, |s| {
        settle(s)?;
        forever(s, &frame(6, 0, 0, b"12345678"))
    }),
    ("flood of settings", H2, |s| {
        settle(s)?;
        forever(s, &frame(4, 0, 0, b""))
    }),
    ("flood of table sizes", H2, |s| {
        settle(s)?;
        let sizes = [
            frame(4, 0, 0, &[0, 1, 0, 0, 0, 0]),
            frame(4, 0, 0, &[0, 1, 255, 255, 255, 255]),
        ];
        forever(s, &sizes.concat())
    }),
    ("flood of window updates", H2, |s| {
        settle(s)?;
        forever(s, &frame(8, 0, 0, &[0, 0, 0, 1]))
    }),
    ("a window beyond its end", H2, |s| {
        settle(s)?;
        forever(s, &frame(8, 0, 0, &[0x7f, 255, 255, 255]))
    }),
    ("no window", H2, |s| {
        s.write_all(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]))?;
        forever(s, b"")
    }),
    ("no streams", H2, |s| {
        s.write_all(&frame(4, 0, 0, &[0, 3, 0, 0, 0, 0]))?;
        forever(s, b"")
    }),
    ("endless continuation", H2, |s| {
        settle(s)?;
        s.write_all(&frame(1, 0, 1, &[0x88]))?;
        forever(s, &frame(9, 0, 1, &[0; 1024]))
    }),
    ("empty continuation", H2, |s| {
        settle(s)?;
        s.write_all(&frame(1, 0, 1, &[0x88]))?;
        forever(s, &frame(9, 0, 1, b""))
    }),
    ("broken HPACK", H2, |s| {
        settle(s)?;
        forever(s, &frame(1, 4, 1, &[0xff; 64]))
    }),
    ("a header string of more than any memory", H2, |s| {
        settle(s)?;
        forever(
            s,
            &frame(1, 4, 1, &[0x40, 0x7f, 255, 255, 255, 255, 255, 127]),
        )
    }),
    ("empty data", H2, |s| {
        settle(s)?;
        s.write_all(&frame(1, 4, 1, &[0x88]))?;
        forever(s, &frame(0, 0, 1, b""))
    }),
    ("data for streams that ended", H2, |s| {
        settle(s)?;
        s.write_all(&frame(3, 0, 1, &[0, 0, 0, 7]))?;
        forever(s, &frame(0, 0, 1, &[0; 1024]))
    }),
    ("resets of every stream", H2, |s| {
        settle(s)?;
        forever(
            s,
            &[frame(3, 0, 1, &[0, 0, 0, 7]), frame(3, 0, 3, &[0, 0, 0, 7])].concat(),
        )
    }),
    ("a frame of 16 MB", H2, |s| {
        settle(s)?;
        s.write_all(&[255, 255, 255, 6, 0, 0, 0, 0, 0])?;
        forever(s, &[0; 4096])
    }),
    ("GOAWAY at once", H2, |s| {
        settle(s)?;
        forever(s, &frame(7, 0, 0, &[0; 8]))
    }),
    ("frames of no known kind", H2, |s| {
        settle(s)?;
        forever(s, &frame(0xee, 255, 1, &[0; 512]))
    }),
];

/// Says the same again and again, and reads nothing. Without words it only stays.
fn forever(stream: &mut TcpStream, words: &[u8]) -> std::io::Result<()> {
    if words.is_empty() {
        thread::sleep(LONGEST);
        return Ok(());
    }
    let many = words.repeat(64 * 1024 / words.len() + 1);
    loop {
        stream.write_all(&many)?;
    }
}

fn slowly(stream: &mut TcpStream, words: &[u8]) -> std::io::Result<()> {
    for byte in words.chunks(1) {
        stream.write_all(byte)?;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Waits for a request.
fn asked(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.read(&mut [0; 4096]).map(drop)
}

/// Settings of a server, and the client's first words.
fn settle(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&frame(4, 0, 0, b""))?;
    asked(stream)
}

/// Closes with a reset: what the client sent is not read.
fn reset(stream: &mut TcpStream) -> std::io::Result<()> {
    thread::sleep(Duration::from_millis(5));
    stream.set_nonblocking(true)?;
    Ok(())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut octets = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    octets.extend([kind, flags]);
    octets.extend(stream.to_be_bytes());
    octets.extend(payload);
    octets
}

fn serve(script: Script) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || script(&mut stream));
        }
    });
    address
}

/// This process' resident memory, KiB, and what it was at most since [`forget_peak`].
fn memory_kib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process may read its own");
    let line = status.lines().find_map(|l| l.strip_prefix(field));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.expect("Linux has the field")
}

/// Source: proc(5), clear_refs: 5 resets the peak.
fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("a process may reset its own");
}

#[test]
fn no_server_fills_the_memory_or_loses_a_request() {
    let tls = TlsSpec {
        server_name: "localhost".to_owned(),
        insecure: true,
        roots: None,
    };
    for (name, speech, script) in KINDS {
        let address = serve(*script);
        let plan = LoadPlan {
            connections: 4,
            timeout: Duration::from_millis(500),
            drain: Duration::from_millis(500),
            tls: (*speech == Tls).then(|| tls.clone()),
            http2: (*speech == H2).then_some(Http2Options { streams: 4 }),
            ..plans::plan(
                address,
                LoadModel::at_constant_rate(200.0, Duration::from_secs(1)),
            )
        };
        forget_peak();
        let (before, start) = (memory_kib("VmRSS:"), Instant::now());
        let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
        let totals = outcome.expect("the plan can be run").measure;
        let growth = memory_kib("VmHWM:").saturating_sub(before);
        let (took, errors) = (start.elapsed(), totals.errors_by_name());
        println!(
            "{name}: {} ok, {errors:?}, {growth} KiB, {took:?}",
            totals.ok
        );
        assert_eq!(
            totals.ok + totals.failed_requests() + totals.unfinished,
            200,
            "{name}: {errors:?}"
        );
        if CUT_OFF.contains(name) {
            assert_eq!(errors.get("protocol"), Some(&200), "{name}: {errors:?}");
        }
        assert!(growth < MOST_GROWTH, "{name}: {growth} KiB more");
        assert!(took < LONGEST, "{name}: {took:?}");
    }
}
