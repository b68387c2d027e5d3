//! Generators as separate processes, on the same machine with separate clocks: together they make
//! one load, and the end of one ends all.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod plans;
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use loadline_load::part::{self, LoadMessage, LoadOrder, ResultMessage, SecondMessage};
use loadline_load::remote::{GeneratorMember, Generators, RemoteLoadFailure, frame, serve};
use loadline_load::{LoadModel, LoadPlan, Users, clock_ns};
use server::{Server, ok};

/// The variable that makes this program a generator.
const SECRET: &str = "LOADLINE_TEST_GENERATOR";

/// How far another clock is ahead.
const AHEAD: Duration = Duration::from_secs(5000);

struct Generator {
    child: Child,
    address: SocketAddr,
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a generator; with a shifted clock if requested.
fn generator(ahead: Duration) -> Generator {
    let own = std::env::current_exe().unwrap();
    let mut command = match ahead.as_secs() {
        0 => Command::new(own),
        seconds => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--time", "--kill-child"]);
            command.args(["--monotonic", &seconds.to_string()]).arg(own);
            command
        }
    };
    command
        .args(["--exact", "this_program_is_a_generator_where_it_is_told_so"])
        .arg("--nocapture");
    command.env(SECRET, "secret").stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        let (_, address) = line.split_once("listens on ")?;
        address.parse().ok()
    });
    let address = address.expect("it listens");
    Generator { child, address }
}

#[test]
fn this_program_is_a_generator_where_it_is_told_so() {
    let Ok(secret) = std::env::var(SECRET) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    writeln!(std::io::stdout(), "listens on {address}").unwrap();
    let stop = AtomicBool::new(false);
    serve(&listener, &secret, Duration::from_secs(60), &stop).unwrap();
}

fn members(generators: &[Generator]) -> Generators {
    let member = |(generator, name): (&Generator, u32)| GeneratorMember {
        name: format!("g{name}"),
        node: "n".to_owned(),
        address: generator.address,
    };
    Generators {
        secret: "secret".to_owned(),
        members: generators.iter().zip(0..).map(member).collect(),
    }
}

/// What `load-part` says of an order.
fn said(plan: LoadPlan, generators: Option<Generators>) -> Vec<LoadMessage> {
    let order = LoadOrder {
        plan,
        netns: None,
        generators,
        front_port: None,
    };
    let mut output = Vec::new();
    part::run(&order, &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    let lines = text.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn result(messages: Vec<LoadMessage>) -> (Vec<SecondMessage>, ResultMessage) {
    let mut seconds = Vec::new();
    for message in messages {
        match message {
            LoadMessage::Second(second) => seconds.push(second),
            LoadMessage::Result(result) => return (seconds, *result),
            other => panic!("{other:?}"),
        }
    }
    panic!("no result");
}

fn failed(messages: Vec<LoadMessage>) -> (RemoteLoadFailure, String) {
    match messages.last() {
        Some(LoadMessage::Failed { how, detail }) => (*how, detail.clone()),
        other => panic!("{other:?}"),
    }
}

fn plan(server: &Server, seconds: u64) -> LoadPlan {
    LoadPlan {
        connections: 8,
        by_second: true,
        ..plans::plan(
            server.address,
            LoadModel::at_constant_rate(300.0, Duration::from_secs(seconds)),
        )
    }
}

#[test]
fn two_generators_with_other_clocks_make_the_load_of_one() {
    let server = Server::start(|n| match n % 100 {
        0 => server::Answer::Bytes(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec()),
        _ => ok(),
    });
    let (_, alone) = result(said(plan(&server, 2), None));
    let both = [generator(Duration::ZERO), generator(AHEAD)];
    let before = clock_ns();
    let (seconds, together) = result(said(plan(&server, 2), Some(members(&both))));
    let after = clock_ns();

    let sums = |of: &ResultMessage| {
        let measure = &of.measure.totals;
        let due: Vec<u64> = measure.by_second.iter().map(|s| s.ok + s.failed).collect();
        let errors: BTreeMap<_, _> = measure.errors_by_name();
        (measure.scheduled, measure.ok, errors, due)
    };
    assert_eq!(sums(&together), sums(&alone));
    assert_eq!(together.measure.duration, alone.measure.duration);
    let latencies = &together.measure.totals.latency;
    assert_eq!(latencies.len(), together.measure.totals.ok);
    // Each took its slots of one schedule.
    let parts: Vec<u64> = together.generators.iter().map(|g| g.scheduled).collect();
    assert_eq!(parts, [300, 300]);
    let told: u64 = seconds.iter().map(|second| second.ok).sum();
    assert_eq!(told, together.measure.totals.ok);

    // All times are on this process's own clock, and the offsets of theirs are known.
    assert!(before < together.start_ns && together.end_ns < after);
    assert_eq!(together.end_ns - together.start_ns, 2_000_000_000);
    assert!(seconds.iter().all(|s| (before..after).contains(&s.at_ns)));
    let [near, far] = &together.generators[..] else {
        panic!("{:?}", together.generators);
    };
    for (of, truth) in [(near, 0), (far, AHEAD.as_nanos() as i64)] {
        let wrong = of.offset_ns.abs_diff(truth);
        assert!(u128::from(wrong) <= of.offset_error.as_nanos(), "{of:?}");
        assert!(of.drift_ns.unsigned_abs() < 10_000_000, "{of:?}");
    }
}

#[test]
fn users_go_on_from_one_load_to_the_next() {
    let server = Server::start(|_| ok());
    let both = [generator(Duration::ZERO), generator(Duration::ZERO)];
    let users = |present| LoadPlan {
        users: Some(Users {
            requests: 1e9,
            present,
        }),
        ..plan(&server, 1)
    };
    let (_, first) = result(said(users(Vec::new()), Some(members(&both))));
    assert!(first.users.len() >= 2, "{}", first.users.len());
    let began = first.measure.totals.sessions;
    assert_eq!(began, first.users.len() as u64);
    let (_, second) = result(said(users(first.users), Some(members(&both))));
    assert!(second.users.len() as u64 >= began);
    assert_eq!(
        second.measure.totals.sessions,
        second.users.len() as u64 - began
    );
}

#[test]
fn a_generator_that_is_killed_makes_no_result_and_the_other_sends_nothing_more() {
    let server = Server::start(|_| ok());
    let mut both = vec![generator(Duration::ZERO), generator(Duration::ZERO)];
    let (members, plan) = (members(&both), plan(&server, 60));
    let (how, detail) = thread::scope(|scope| {
        let load = scope.spawn(|| failed(said(plan, Some(members))));
        let begin = Instant::now();
        while server.requests.load(Ordering::SeqCst) < 100 {
            assert!(begin.elapsed() < Duration::from_secs(30), "no load");
            thread::sleep(Duration::from_millis(10));
        }
        drop(both.remove(1));
        load.join().unwrap()
    });
    assert_eq!(how, RemoteLoadFailure::Lost);
    assert!(detail.starts_with("the generator g1 on n: "), "{detail}");
    // Requests under way end.
    thread::sleep(Duration::from_millis(300));
    let sent = server.requests.load(Ordering::SeqCst);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(server.requests.load(Ordering::SeqCst), sent);
    // It serves the next one.
    let (_, next) = result(said(
        plans::plan(
            server.address,
            LoadModel::at_constant_rate(50.0, Duration::from_secs(1)),
        ),
        Some(self::members(&both)),
    ));
    assert_eq!(next.measure.totals.ok, 50);
}

#[test]
fn an_application_that_the_generator_cannot_reach_is_told_from_one_that_is_gone() {
    let one = [generator(Duration::ZERO)];
    // Its network is asked by the address of the connection, which a listener on another one is not.
    let other = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = other.local_addr().unwrap();
    let plan = || {
        plans::plan(
            address,
            LoadModel::at_constant_rate(50.0, Duration::from_secs(1)),
        )
    };
    let (how, detail) = failed(said(plan(), Some(members(&one))));
    assert_eq!(how, RemoteLoadFailure::Unreachable);
    let wanted = format!("127.0.0.1:{}", address.port());
    assert!(
        detail.contains(&wanted) && detail.contains("refused"),
        "{detail}"
    );
    drop(other);
    let (_, gone) = result(said(plan(), Some(members(&one))));
    assert_eq!(
        (gone.measure.totals.scheduled, gone.measure.totals.ok),
        (50, 0)
    );
}

#[test]
fn a_stranger_gets_no_further_than_the_first_words_and_takes_no_client_s_place() {
    let server = Server::start(|_| ok());
    let one = [generator(Duration::ZERO)];
    let wrong = Generators {
        secret: "guessed".to_owned(),
        ..members(&one)
    };
    let (how, detail) = failed(said(plan(&server, 1), Some(wrong)));
    assert_eq!(how, RemoteLoadFailure::Lost);
    assert!(detail.contains("does not know the secret"), "{detail}");

    // Those who know nothing: silent, in bytes, in words, with a proof that is none.
    let hello = br#"{"say":"hello","version":1,"nonce":"AA=="}"#;
    let proof = br#"{"say":"proof","proof":"AA=="}"#;
    let framed = |text: &[u8]| [&(text.len() as u32).to_be_bytes(), text].concat();
    let load = br#"{"say":"stop"}"#;
    let tries = [
        vec![255; 4],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        framed(load),
        framed(br#"{"say":"hello","version":2,"nonce":""}"#),
        [framed(hello), framed(proof), framed(load)].concat(),
    ];
    for bytes in tries {
        let mut stream = TcpStream::connect(one[0].address).unwrap();
        stream.write_all(&bytes).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut heard = Vec::new();
        // It may be a reset.
        let _ = stream.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard).into_owned();
        assert!(!heard.contains("welcome"), "{heard}");
    }
    let silent: Vec<TcpStream> = (0..8)
        .map(|_| TcpStream::connect(one[0].address).unwrap())
        .collect();
    let (_, made) = result(said(plan(&server, 1), Some(members(&one))));
    assert_eq!(made.measure.totals.ok, 300);
    drop(silent);
}

#[test]
fn one_of_another_secret_is_no_generator() {
    // It answers as one would, and knows nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let first: serde_json::Value = frame::read(&stream, 1024).unwrap().unwrap();
        let hello = serde_json::json!({ "say": "hello", "version": 1, "nonce": "AA==",
            "proof": first["nonce"] });
        frame::write(&stream, &hello).unwrap();
        frame::read::<serde_json::Value>(&stream, 1024)
            .ok()
            .flatten()
    });
    let member = GeneratorMember {
        name: "g".to_owned(),
        node: "n".to_owned(),
        address,
    };
    let generators = Generators {
        secret: "secret".to_owned(),
        members: vec![member],
    };
    let server = Server::start(|_| ok());
    let (how, _) = failed(said(plan(&server, 1), Some(generators)));
    assert_eq!(how, RemoteLoadFailure::Lost);
    let heard = answers.join().unwrap();
    assert_eq!(heard, None, "it was given a proof");
}
