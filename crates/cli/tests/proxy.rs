//! The process `loadline proxy-part` alone: where it listens, and what it forwards, holds back and
//! refuses. Root only: its target is in a separate network, as in a trial.

use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use loadline_sys::{Namespaces, set_interface_up, unshare};
use serde_json::{Value, json};

/// An echo server in a separate network; returns the network's file.
fn echo(port: u16) -> String {
    let (told, namespace) = channel();
    thread::spawn(move || {
        let net = true;
        unshare(Namespaces {
            net,
            ..Namespaces::default()
        })
        .expect("root may");
        set_interface_up("lo").expect("it is there");
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("an empty network");
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let path = format!("/proc/{}/task/{thread}/ns/net", std::process::id());
        told.send(path).expect("it is waited for");
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            thread::spawn(move || {
                let mut reader = stream.try_clone().expect("a descriptor");
                // A reset is what some tests want.
                let _ = std::io::copy(&mut reader, &mut stream);
            });
        }
    });
    namespace.recv().expect("it listens")
}

struct Proxy {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Proxy {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .arg("proxy-part")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut proxy = Self { child, answers };
        let answer = proxy.ask(&json!({"front": "host", "cpus": []}));
        assert_eq!(answer["answer"], "standing");
        proxy
    }

    fn ask(&mut self, order: &Value) -> Value {
        writeln!(self.child.stdin.as_mut().expect("a pipe"), "{order}").expect("it listens");
        let line = self.answers.next().expect("an answer").expect("a text");
        serde_json::from_str(&line).expect("JSON")
    }

    fn link(&mut self, port: u16, toxics: Value) -> Value {
        let network = echo(port);
        self.ask(&json!({"order": "link", "name": "db", "port": port, "network": network, "toxics": toxics, "seed": 1}))
    }

    fn begin(&mut self) {
        let at_ns = loadline_load::clock_ns();
        let answer = self.ask(&json!({"order": "window", "at_ns": at_ns, "is_measured": true}));
        assert_eq!(answer["answer"], "done");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It ends with its orders.
        drop(self.child.stdin.take());
        let begin = Instant::now();
        while self.child.try_wait().expect("a child").is_none() {
            if begin.elapsed() > Duration::from_secs(10) && !thread::panicking() {
                let _ = self.child.kill();
                panic!("it does not end with its orders");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Says so, where the test cannot run.
fn is_root(name: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIP {name}: only root may make a network");
    }
    is_root
}

fn turn(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text)?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back)?;
    Ok(back)
}

fn toxic(effect: Value, span: Value) -> Value {
    json!({"effect": effect, "stream": "downstream", "toxicity": 1.0, "span": span})
}

fn time(ms: u64) -> Value {
    json!({"secs": ms / 1000, "nanos": ms % 1000 * 1_000_000})
}

#[test]
fn bytes_pass_whole_and_late_and_are_counted() {
    if !is_root("bytes_pass_whole_and_late_and_are_counted") {
        return;
    }
    let mut proxy = Proxy::start();
    let latency = json!({"type": "latency", "distribution": "fixed", "latency": time(50)});
    let answer = proxy.link(7301, json!([toxic(latency, Value::Null)]));
    assert_eq!(answer["answer"], "done", "{answer}");
    proxy.begin();
    let mut stream = TcpStream::connect(("127.0.0.1", 7301)).expect("it listens");
    let begin = Instant::now();
    for _ in 0..3 {
        let back = turn(&mut stream, b"hello").expect("it forwards");
        assert_eq!(back, b"hello");
    }
    // Never early; how late is a matter of the machine, and of benches/proxy.sh.
    assert!(begin.elapsed() >= Duration::from_millis(150));
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let (mut writer, sent) = (stream.try_clone().expect("a descriptor"), large.clone());
    let writing = thread::spawn(move || writer.write_all(&sent));
    let mut back = vec![0; large.len()];
    stream.read_exact(&mut back).expect("all of it");
    assert!(back == large, "other bytes came back");
    writing.join().expect("a thread").expect("it takes all");
    drop(stream);
    let report = proxy.ask(&json!({"order": "report"}));
    let total = &report["links"][0]["total"];
    assert_eq!(total["opened"], 1, "{report}");
    assert_eq!(total["upstream_bytes"], 3_000_015);
    assert!(
        total["exchanges"].as_u64().is_some_and(|n| n >= 4),
        "{report}"
    );
    assert!(report["cpu_ns"].as_u64().is_some_and(|ns| ns > 0));
}

#[test]
fn what_is_down_refuses_and_comes_back() {
    if !is_root("what_is_down_refuses_and_comes_back") {
        return;
    }
    let mut proxy = Proxy::start();
    let span = json!({"at": time(1000), "length": time(2000)});
    let answer = proxy.link(7302, json!([toxic(json!({"type": "down"}), span)]));
    assert_eq!(answer["answer"], "done", "{answer}");
    let connect = || TcpStream::connect(("127.0.0.1", 7302));
    let mut stands = connect().expect("it is not down yet");
    turn(&mut stands, b"a").expect("it forwards");
    proxy.begin();
    let begin = Instant::now();
    let mut refused = 0;
    while begin.elapsed() < Duration::from_secs(20) {
        match connect() {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => refused += 1,
            _ if refused > 0 => break,
            _ => {}
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(refused > 0, "it never was down");
    assert!(begin.elapsed() < Duration::from_secs(20), "it stays down");
    assert!(turn(&mut stands, b"a").is_err(), "what stood was not reset");
    turn(&mut connect().expect("it is up again"), b"a").expect("it forwards");
    let report = proxy.ask(&json!({"order": "report"}));
    assert!(
        report["links"][0]["total"]["reset"].as_u64() >= Some(1),
        "{report}"
    );
}

#[test]
fn a_port_that_is_taken_is_refused_with_its_number() {
    if !is_root("a_port_that_is_taken_is_refused_with_its_number") {
        return;
    }
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = taken.local_addr().expect("it is bound").port();
    let mut proxy = Proxy::start();
    let answer = proxy.link(port, json!([]));
    assert_eq!(answer["answer"], "refused");
    let why = answer["why"].as_str().expect("a reason");
    assert!(why.contains(&port.to_string()), "{why}");
}
