//! Accuracy and cost of the proxy: added latency at 1,000 requests a second, CPU for a forwarded
//! gigabyte and for a connection. For comparison the same through another listening proxy, in
//! turns: A B A B A B.
//!
//!     cargo run --release -p loadline-proxy --example accuracy [-- SECONDS [PLAIN LATE PID]]
//!
//! SECONDS is the length of one of the two times 1,000 requests a second of each turn; PLAIN and
//! LATE are the ports of the other proxy, PID its process. It forwards both ports to
//! 127.0.0.1:7999, the second with 20 ms downstream. Prints one line of JSON. `benches/proxy.sh`
//! runs it with Toxiproxy. Needs root: the server of the first part is in a separate network.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use loadline_load::histogram::{self, Histogram};
use loadline_proxy::part::{self, ApplicationNetwork, LinkOrder, ProxyOrder, ProxyStart};
use loadline_proxy::{Delay, Toxic, ToxicEffect, ToxicStream};
use loadline_sys::{Namespaces, set_interface_up, unshare};

const LATENCY: Duration = Duration::from_millis(20);
const RATE: u32 = 1000;
const LENGTH: Duration = Duration::from_secs(20);
const TURNS: u32 = 3;
const LANES: u32 = 50;
const BYTES: u64 = 4 << 30;
const CONNECTIONS: u32 = 5000;
const OTHERS: u16 = 7999;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if arguments.first().is_some_and(|word| word == "part") {
        return Ok(part::run(
            std::io::stdin().lock(),
            std::io::stdout().lock(),
        )?);
    }
    let (told, namespace) = channel();
    thread::spawn(move || serve_apart(&told));
    let namespace = namespace.recv()?;
    let mut proxy = Command::new(std::env::current_exe()?)
        .arg("part")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    order(&mut proxy, &namespace)?;
    let length = match arguments.first() {
        Some(seconds) => Duration::from_secs(seconds.parse()?),
        None => LENGTH,
    };
    let mut own = Side::new(7001, 7002, proxy.id());
    let mut other = match arguments.get(1..) {
        Some([plain, late, pid]) => {
            thread::spawn(|| serve(OTHERS));
            thread::sleep(Duration::from_millis(100));
            Some(Side::new(plain.parse()?, late.parse()?, pid.parse()?))
        }
        _ => None,
    };
    for _ in 0..TURNS {
        own.turn(length)?;
        if let Some(other) = &mut other {
            other.turn(length)?;
        }
    }
    proxy.kill()?;
    proxy.wait()?;
    let own = own.figures();
    println!(
        "{}",
        match other.map(|other| other.figures()) {
            Some(other) => format!("{{\"loadline\":{own},\"other\":{other}}}"),
            None => format!("{{\"loadline\":{own}}}"),
        }
    );
    Ok(())
}

/// Answers each byte that begins a message: `e` is sent back, `g` asks for bytes without an end.
fn serve(port: u16) -> Outcome<()> {
    for stream in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let mut stream = stream?;
        stream.set_nodelay(true)?;
        thread::spawn(move || -> Outcome<()> {
            let mut byte = [0];
            let many = vec![7; 1 << 20];
            while stream.read(&mut byte)? == 1 {
                match byte[0] {
                    b'g' => loop {
                        stream.write_all(&many)?;
                    },
                    _ => stream.write_all(&byte)?,
                }
            }
            Ok(())
        });
    }
    Ok(())
}

/// The same, in a separate network, on both ports.
fn serve_apart(told: &std::sync::mpsc::Sender<String>) -> Outcome<()> {
    unshare(Namespaces {
        net: true,
        ..Namespaces::default()
    })?;
    set_interface_up("lo")?;
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let path = format!("/proc/{}/task/{thread}/ns/net", std::process::id());
    thread::spawn(|| serve(7001));
    thread::spawn(|| serve(7002));
    thread::sleep(Duration::from_millis(100));
    told.send(path)?;
    thread::sleep(Duration::MAX);
    Ok(())
}

fn order(proxy: &mut Child, namespace: &str) -> Outcome<()> {
    let toxic = Toxic {
        effect: ToxicEffect::Latency(Delay::Fixed { latency: LATENCY }),
        stream: ToxicStream::Downstream,
        toxicity: 1.0,
        span: None,
    };
    let link = |port: u16, toxics: Vec<Toxic>| {
        ProxyOrder::Link(LinkOrder {
            name: "server".to_owned(),
            port,
            network: namespace.into(),
            toxics,
            seed: 1,
        })
    };
    let begin = ProxyStart {
        front: ApplicationNetwork::Host,
        cpus: Vec::new(),
    };
    let lines = [
        serde_json::to_string(&begin)?,
        serde_json::to_string(&link(7001, Vec::new()))?,
        serde_json::to_string(&link(7002, vec![toxic]))?,
    ];
    let mut answers = BufReader::new(proxy.stdout.take().ok_or("no output")?).lines();
    let orders = proxy.stdin.as_mut().ok_or("no input")?;
    for line in lines {
        writeln!(orders, "{line}")?;
        let answer = answers.next().ok_or("no answer")??;
        if answer.contains("refused") {
            return Err(answer.into());
        }
    }
    // Nothing is said any more; a closed pipe would not matter either.
    Ok(())
}

struct Side {
    plain: u16,
    late: u16,
    pid: u32,
    /// Round trips without a toxic, ns.
    bare: Histogram,
    /// Round trips with it, ns.
    held: Histogram,
    /// CPU time of round trips, forwarded bytes and connections, s.
    cpu: [f64; 3],
    /// How long there were round trips, s.
    time: f64,
}

impl Side {
    fn new(plain: u16, late: u16, pid: u32) -> Self {
        Self {
            plain,
            late,
            pid,
            bare: histogram::new(),
            held: histogram::new(),
            cpu: [0.0; 3],
            time: 0.0,
        }
    }

    fn turn(&mut self, length: Duration) -> Outcome<()> {
        let mut before = cpu(self.pid)?;
        let pid = self.pid;
        let mut taken = move || -> Outcome<f64> {
            let now = cpu(pid)?;
            Ok(now - std::mem::replace(&mut before, now))
        };
        round_trips(self.plain, length, &mut self.bare)?;
        round_trips(self.late, length, &mut self.held)?;
        self.time += 2.0 * length.as_secs_f64();
        self.cpu[0] += taken()?;
        forward(self.plain)?;
        self.cpu[1] += taken()?;
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(("127.0.0.1", self.plain))?;
            stream.write_all(b"e")?;
            stream.read_exact(&mut [0])?;
        }
        self.cpu[2] += taken()?;
        Ok(())
    }

    /// The error is against the median without the toxic: what the machine does to one round trip of
    /// a hundred is in it, and `round_trip_p99` over `round_trip_p50` says how much that is.
    fn figures(&self) -> String {
        let ms = |all: &Histogram, quantile: f64| all.value_at_quantile(quantile) as f64 / 1e6;
        let asked = ms(&self.bare, 0.5) + LATENCY.as_secs_f64() * 1e3;
        let turns = f64::from(TURNS);
        let round_trips = self.time * f64::from(RATE);
        let gigabytes = turns * BYTES as f64 / 1e9;
        let connections = turns * f64::from(CONNECTIONS);
        let figures = [
            ("round_trip_p50_ms", ms(&self.bare, 0.5)),
            ("round_trip_p99_ms", ms(&self.bare, 0.99)),
            ("error_p50_ms", ms(&self.held, 0.5) - asked),
            ("error_p99_ms", ms(&self.held, 0.99) - asked),
            ("error_p999_ms", ms(&self.held, 0.999) - asked),
            ("cpu_us_per_round_trip", self.cpu[0] / round_trips * 1e6),
            ("cpu_s_per_gb", self.cpu[1] / gigabytes),
            ("cpu_us_per_connection", self.cpu[2] / connections * 1e6),
        ];
        let texts = figures.map(|(name, value)| format!("\"{name}\":{value:.3}"));
        format!("{{{}}}", texts.join(","))
    }
}

/// Round trips, one a ms, each on its own connection of many.
fn round_trips(port: u16, length: Duration, all: &mut Histogram) -> Outcome<()> {
    let begin = Instant::now() + Duration::from_millis(200);
    let lanes: Vec<_> = (0..LANES)
        .map(|lane| {
            thread::spawn(move || -> Outcome<Vec<u64>> {
                let mut stream = TcpStream::connect(("127.0.0.1", port))?;
                stream.set_nodelay(true)?;
                let mut seen = Vec::new();
                for turn in 0.. {
                    let due = begin + Duration::from_secs(1) / RATE * (turn * LANES + lane);
                    if due > begin + length {
                        break;
                    }
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    let sent = Instant::now();
                    stream.write_all(b"e")?;
                    stream.read_exact(&mut [0])?;
                    seen.push(sent.elapsed().as_nanos() as u64);
                }
                Ok(seen)
            })
        })
        .collect();
    for lane in lanes {
        for ns in lane.join().map_err(|_| "a thread panicked")?? {
            all.saturating_record(ns);
        }
    }
    Ok(())
}

fn forward(port: u16) -> Outcome<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"g")?;
    let (mut left, mut buffer) = (BYTES, vec![0; 1 << 20]);
    while left > 0 {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err("the proxy ended the connection".into());
        }
        left = left.saturating_sub(read as u64);
    }
    Ok(())
}

/// CPU time of all threads of a process, s; neither proxy has threads that end. Source: the kernel's
/// Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
fn cpu(pid: u32) -> Outcome<f64> {
    let mut ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().ok_or("no schedstat")?;
        ns += first.parse::<u64>()?;
    }
    Ok(ns as f64 / 1e9)
}
