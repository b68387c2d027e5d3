//! How exact the proxy is and what it takes: added latency at 1,000 requests a second, CPU for a
//! forwarded gigabyte and for a connection. Beside it the same through another proxy that listens.
//!
//!     cargo run --release -p loadline-proxy --example accuracy [-- PORT-OF-PLAIN PORT-OF-LATENCY PID]
//!
//! Prints one line of JSON. The other proxy forwards both ports to 127.0.0.1:7999, the second with
//! 20 ms downstream. `benches/proxy.sh` does all of it beside Toxiproxy. Needs root: the server of the
//! first part is in a network of its own.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use loadline_load::histogram;
use loadline_proxy::part::{self, Begin, Front, LinkOrder, Order};
use loadline_proxy::{Delay, Effect, Stream, Toxic};
use loadline_sys::{Namespaces, set_interface_up, unshare};

const LATENCY: Duration = Duration::from_millis(20);
const RATE: u32 = 1000;
const LENGTH: Duration = Duration::from_secs(20);
const LANES: u32 = 50;
const BYTES: u64 = 4 << 30;
const CONNECTIONS: u32 = 5000;
const OTHERS: u16 = 7999;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
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
    let own = figures(7001, 7002, proxy.id())?;
    proxy.kill()?;
    proxy.wait()?;
    let [plain, late, pid] = arguments.as_slice() else {
        println!("{{\"loadline\":{own}}}");
        return Ok(());
    };
    thread::spawn(|| serve(OTHERS));
    thread::sleep(Duration::from_millis(100));
    let other = figures(plain.parse()?, late.parse()?, pid.parse()?)?;
    println!("{{\"loadline\":{own},\"other\":{other}}}");
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

/// The same, in a network of its own, on both ports.
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
        effect: Effect::Latency(Delay::Fixed { latency: LATENCY }),
        stream: Stream::Downstream,
        toxicity: 1.0,
        span: None,
    };
    let link = |port: u16, toxics: Vec<Toxic>| {
        Order::Link(LinkOrder {
            name: "server".to_owned(),
            port,
            network: namespace.into(),
            toxics,
            seed: 1,
        })
    };
    let begin = Begin {
        front: Front::Host,
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

fn figures(plain: u16, late: u16, pid: u32) -> Outcome<String> {
    let (base50, base99) = round_trips(plain)?;
    let (late50, late99) = round_trips(late)?;
    let added = |with: u64, without: u64| (with as f64 - without as f64) / 1e6;
    let before = cpu(pid)?;
    forward(plain)?;
    let moved = cpu(pid)? - before;
    let before = cpu(pid)?;
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", plain))?;
        stream.write_all(b"e")?;
        stream.read_exact(&mut [0])?;
    }
    let connected = cpu(pid)? - before;
    Ok(format!(
        "{{\"round_trip_p50_ms\":{:.3},\"round_trip_p99_ms\":{:.3},\"added_p50_ms\":{:.3},\"added_p99_ms\":{:.3},\"error_p99_ms\":{:.3},\"cpu_s_per_gb\":{:.3},\"cpu_us_per_connection\":{:.1}}}",
        base50 as f64 / 1e6,
        base99 as f64 / 1e6,
        added(late50, base50),
        added(late99, base50),
        added(late99, base50) - LATENCY.as_secs_f64() * 1e3,
        moved / (BYTES as f64 / 1e9),
        connected / f64::from(CONNECTIONS) * 1e6,
    ))
}

/// Median and 99th percentile of a round trip, ns: one a ms, each on its own connection of many.
fn round_trips(port: u16) -> Outcome<(u64, u64)> {
    let begin = Instant::now() + Duration::from_millis(200);
    let lanes: Vec<_> = (0..LANES)
        .map(|lane| {
            thread::spawn(move || -> Outcome<Vec<u64>> {
                let mut stream = TcpStream::connect(("127.0.0.1", port))?;
                stream.set_nodelay(true)?;
                let mut seen = Vec::new();
                for turn in 0.. {
                    let due = begin + Duration::from_secs(1) / RATE * (turn * LANES + lane);
                    if due > begin + LENGTH {
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
    let mut all = histogram::new();
    for lane in lanes {
        for ns in lane.join().map_err(|_| "a thread panicked")?? {
            all.saturating_record(ns);
        }
    }
    Ok((all.value_at_quantile(0.5), all.value_at_quantile(0.99)))
}

fn forward(port: u16) -> Outcome<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"g")?;
    let (mut left, mut buffer) = (BYTES, vec![0; 1 << 20]);
    while left > 0 {
        left = left.saturating_sub(stream.read(&mut buffer)? as u64);
    }
    Ok(())
}

/// CPU time of a process in seconds, to a hundredth. Source: proc_pid_stat(5), fields 14 and 15.
fn cpu(pid: u32) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text.rsplit_once(')').ok_or("no stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}
