//! HTTP/2 against a scripted server: what servers may do to a connection, and that every request
//! is counted once. Against nghttpd, where it is installed: a server that others wrote.

#[path = "http2/scripted.rs"]
mod scripted;

mod plans;

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_load::{
    Expectation, Http2Options, LoadModel, LoadPlan, LoadTotals, RequestSpec, TlsSpec, run,
};
use scripted::{Frame, Server, Talk};

fn plan(address: SocketAddr, streams: u32, requests: u64) -> LoadPlan {
    LoadPlan {
        connections: 2,
        http2: Some(Http2Options { streams }),
        ..plans::plan(address, LoadModel::ClosedRequests { requests })
    }
}

fn go(plan: &LoadPlan) -> LoadTotals {
    let outcome = run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    outcome.expect("the plan can be run").measure
}

/// Answers with status 200 and a body of two octets.
fn answer(talk: &mut Talk, stream: u32) {
    talk.headers(stream, &[0x88], false);
    talk.data(stream, b"ok", true);
}

#[test]
fn many_streams_are_answered_on_few_connections() {
    let server = Server::start(|talk, frame| {
        if let Frame::Headers { stream, .. } = frame {
            answer(talk, stream);
        }
    });
    for model in [
        LoadModel::ClosedRequests { requests: 2000 },
        LoadModel::at_constant_rate(1000.0, Duration::from_secs(2)),
    ] {
        let totals = go(&LoadPlan {
            model,
            ..plan(server.address, 10, 0)
        });
        assert_eq!(
            (totals.ok, totals.body_bytes),
            (2000, 4000),
            "{:?}",
            totals.errors_by_name()
        );
    }
    // The rest of a run opens no new connection.
    assert_eq!(server.connections(), 4);
}

#[test]
fn the_servers_limit_of_streams_is_kept() {
    // Answers come in pairs only, so that both streams allowed must be in use.
    let server = Server::start_with(&[(3, 2)], |talk, frame| {
        if let Frame::Headers { stream, .. } = frame {
            talk.open.push(stream);
            assert!(talk.open.len() <= 2, "{:?} are open", talk.open);
            if talk.open.len() == 2 {
                for stream in std::mem::take(&mut talk.open) {
                    answer(talk, stream);
                }
            }
        }
    });
    assert_eq!(go(&plan(server.address, 50, 400)).ok, 400);
}

#[test]
fn answers_may_come_in_any_order_with_padding_trailers_and_interim_heads() {
    let server = Server::start(|talk, frame| {
        if let Frame::Headers { stream, .. } = frame {
            talk.open.push(stream);
            if talk.open.len() < 4 {
                return;
            }
            talk.ping();
            for stream in std::mem::take(&mut talk.open).into_iter().rev() {
                // :status 103, by name 8 of the static table.
                talk.headers(stream, &[0x08, 3, b'1', b'0', b'3'], false);
                talk.headers(stream, &[0x88], false);
                talk.padded_data(stream, b"hel");
                talk.data(stream, b"lo", false);
                // A trailer.
                talk.headers(stream, &[0, 1, b't', 1, b'v'], true);
            }
        }
    });
    let plan = LoadPlan {
        connections: 1,
        expect: Expectation {
            body_contains: Some("hello".to_owned()),
            body_bytes: Some(5),
            ..Expectation::default()
        },
        ..plan(server.address, 4, 40)
    };
    let totals = go(&plan);
    assert_eq!(totals.ok, 40, "{:?}", totals.errors_by_name());
    assert!(server.saw_pong());
}

#[test]
fn a_call_that_failed_is_no_good_answer() {
    let literal = |name: &str, value: &str| {
        let parts = [&[0, name.len() as u8][..], name.as_bytes()];
        let value = [&[value.len() as u8][..], value.as_bytes()];
        [parts.concat(), value.concat()].concat()
    };
    let server = Server::start(move |talk, frame| {
        if let Frame::Headers { stream, .. } = frame {
            let kind = literal("content-type", "application/grpc");
            let head = [vec![0x88], kind].concat();
            match stream / 2 % 4 {
                // The only block of a call that fails at once.
                0 => talk.headers(stream, &[head, literal("grpc-status", "5")].concat(), true),
                1 => {
                    talk.headers(stream, &head, false);
                    talk.data(stream, b"\0\0\0\0\0", false);
                    talk.headers(stream, &literal("grpc-status", "14"), true);
                }
                2 => {
                    talk.headers(stream, &head, false);
                    talk.data(stream, b"\0\0\0\0\0", false);
                    talk.headers(stream, &literal("grpc-status", "0"), true);
                }
                // It ends without saying how.
                _ => talk.headers(stream, &head, true),
            }
        }
    });
    let calls = LoadPlan {
        connections: 1,
        ..plan(server.address, 1, 40)
    };
    let totals = go(&calls);
    assert_eq!(totals.ok, 10);
    let errors = totals.errors_by_name();
    let errors: Vec<_> = errors.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    let expected = [
        ("grpc_not_found", 10),
        ("grpc_unavailable", 10),
        ("grpc_unknown", 10),
    ];
    assert_eq!(errors, expected);
    let expect = Expectation {
        grpc_status: vec![5],
        ..Expectation::default()
    };
    assert_eq!(go(&LoadPlan { expect, ..calls }).ok, 10);
}

#[test]
fn a_large_body_is_sent_as_flow_control_allows() {
    const BODY: usize = 300_000;
    // Windows of 1000 octets; the connection's of 65,535 is widened by what came.
    let server = Server::start_with(&[(4, 1000)], |talk, frame| match frame {
        Frame::Data {
            stream,
            length,
            is_last,
        } => {
            *talk.received.entry(stream).or_default() += length;
            if is_last {
                let received = talk.received[&stream];
                talk.headers(
                    stream,
                    if received == BODY { &[0x88] } else { &[0x8e] },
                    true,
                );
            } else if length > 0 {
                talk.window(0, length as u32);
                talk.window(stream, length as u32);
            }
        }
        Frame::Headers { is_last, .. } => assert!(!is_last, "the body is missing"),
        _ => {}
    });
    for body in [vec![b'x'; BODY], {
        // With a variable of one digit.
        let mut body = vec![b'x'; BODY - 1];
        body.extend_from_slice(b"{rand:1:9}");
        body
    }] {
        let request = RequestSpec {
            method: "POST".to_owned(),
            body,
            ..RequestSpec::for_get("/")
        };
        let totals = go(&LoadPlan {
            request,
            ..plan(server.address, 3, 12)
        });
        assert_eq!(totals.ok, 12, "{:?}", totals.errors_by_name());
    }
}

#[test]
fn streams_that_goaway_leaves_out_are_sent_again_once() {
    // Each connection serves three streams and announces its end when the fifth has come.
    let server = Server::start(|talk, frame| {
        if let Frame::Headers { stream, .. } = frame {
            if stream < 6 {
                answer(talk, stream);
            } else if stream == 9 {
                talk.goaway(5);
            }
        }
    });
    let totals = go(&plan(server.address, 5, 100));
    assert_eq!(totals.ok + totals.failed_requests(), 100);
    // Each connection leaves out two of five; the next serves most of these.
    assert!(
        totals.ok >= 60,
        "{} {:?}",
        totals.ok,
        totals.errors_by_name()
    );
    assert!(
        totals
            .errors_by_name()
            .keys()
            .all(|kind| kind == "closed" || kind == "timeout")
    );
}

#[test]
fn requests_that_wait_when_the_server_leaves_go_to_the_next_connection() {
    // The first connection ends in the middle of three streams, while the two places that it has
    // answered hold requests that GOAWAY keeps from being sent.
    let is_first = AtomicBool::new(true);
    let server = Server::start(move |talk, frame| {
        let Frame::Headers { stream, .. } = frame else {
            return;
        };
        if !is_first.load(Ordering::SeqCst) {
            return answer(talk, stream);
        }
        if stream == 9 {
            talk.goaway(9);
            answer(talk, 1);
            answer(talk, 3);
            talk.pause(Duration::from_millis(200));
            is_first.store(false, Ordering::SeqCst);
            talk.close();
        }
    });
    let plan = LoadPlan {
        connections: 1,
        ..plan(server.address, 5, 20)
    };
    let totals = go(&plan);
    assert_eq!(
        (
            totals.ok,
            totals.errors_by_name()["closed"],
            totals.failed_requests()
        ),
        (17, 3, 3)
    );
    assert_eq!(server.connections(), 2);
}

/// What a server does to a request.
type Script = fn(&mut Talk, u32);

#[test]
fn wrong_answers_are_counted_by_their_kind() {
    let kinds: [(&str, Script); 7] = [
        ("http_4xx", |talk, stream| {
            talk.headers(stream, &[0x8d], true)
        }),
        ("reset", |talk, stream| talk.reset(stream)),
        // 10 octets are promised, 2 come.
        ("protocol", |talk, stream| {
            talk.headers(stream, &[0x88, 0x0f, 13, 2, b'1', b'0'], false);
            talk.data(stream, b"ok", true);
        }),
        // An entry that the table does not have.
        ("protocol", |talk, stream| {
            talk.headers(stream, &[0x88, 0xfe], true)
        }),
        // No head at all.
        ("protocol", |talk, stream| talk.data(stream, b"ok", true)),
        // A stream that was never opened.
        ("protocol", |talk, stream| {
            talk.headers(stream + 1000, &[0x88], true)
        }),
        ("closed", |talk, _| talk.close()),
    ];
    for (kind, script) in kinds {
        let server = Server::start(move |talk, frame| {
            if let Frame::Headers { stream, .. } = frame {
                script(talk, stream);
            }
        });
        let totals = go(&plan(server.address, 2, 20));
        let errors = totals.errors_by_name();
        assert_eq!((totals.ok, errors.get(kind)), (0, Some(&20)), "{errors:?}");
    }
}

#[test]
fn a_stream_without_an_answer_times_out_and_its_connection_goes_on() {
    let server = Server::start(|talk, frame| match frame {
        Frame::Headers { stream: 1, .. } => {}
        Frame::Headers { stream, .. } => answer(talk, stream),
        Frame::Reset { stream } => assert_eq!(stream, 1),
        _ => {}
    });
    let plan = LoadPlan {
        timeout: Duration::from_secs(3),
        connections: 1,
        ..plan(server.address, 2, 50)
    };
    let totals = go(&plan);
    assert_eq!((totals.ok, totals.errors_by_name()["timeout"]), (49, 1));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_server_of_http_1_is_named_as_such() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let totals = go(&plan(address, 1, 4));
    assert_eq!((totals.ok, totals.failed_requests()), (0, 4));
    assert!(
        totals.errors_by_name().contains_key("protocol"),
        "{:?}",
        totals.errors_by_name()
    );
}

/// nghttpd of Debian's package nghttp2-server, serving this crate's sources.
struct Nghttpd(Child, SocketAddr);

impl Nghttpd {
    /// Why not, when it is not installed. Between being found free and being used, a port may go
    /// to another process; the server then ends at once, and another port is tried.
    fn start(is_tls: bool) -> Result<Self, String> {
        for _ in 0..5 {
            let mut server = Self::spawn(is_tls)?;
            if server.listens() {
                return Ok(server);
            }
        }
        panic!("nghttpd ended on each of five ports");
    }

    fn spawn(is_tls: bool) -> Result<Self, String> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let mut command = Command::new("nghttpd");
        command.args(["-a", "127.0.0.1", "-d", env!("CARGO_MANIFEST_DIR")]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if !is_tls {
            command.arg("--no-tls");
        }
        command.arg(address.port().to_string());
        if is_tls {
            command.args([data("key.pem"), data("certificate.pem")]);
        }
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Self(child, address))
    }

    /// Waits until it does; `false` when it has ended.
    fn listens(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(self.1).is_err() {
            if self.0.try_wait().expect("it is a child").is_some() {
                return false;
            }
            assert!(Instant::now() < deadline, "nghttpd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn data(name: &str) -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.join("tests/data").join(name)
}

#[test]
fn nghttpd_answers_over_tcp_and_tls_and_files_arrive_whole() {
    for is_tls in [false, true] {
        let server = match Nghttpd::start(is_tls) {
            Ok(server) => server,
            Err(error) => {
                println!(
                    "SKIP nghttpd_answers_over_tcp_and_tls_and_files_arrive_whole: nghttpd: \
                     {error} (package nghttp2-server)"
                );
                return;
            }
        };
        let size = std::fs::metadata(data("README.md"))
            .expect("it is there")
            .len();
        let tls = is_tls.then(|| TlsSpec {
            server_name: "localhost".to_owned(),
            insecure: false,
            roots: Some(data("certificate.pem")),
        });
        let wanted = LoadPlan {
            tls,
            request: RequestSpec::for_get("/tests/data/README.md"),
            expect: Expectation {
                body_bytes: Some(size),
                ..Expectation::default()
            },
            ..plan(server.1, 10, 2000)
        };
        let totals = go(&wanted);
        assert_eq!(
            totals.ok,
            2000,
            "tls {is_tls}: {:?}",
            totals.errors_by_name()
        );
        let missing = LoadPlan {
            request: RequestSpec::for_get("/none/{seq}"),
            ..wanted
        };
        assert_eq!(go(&missing).errors_by_name()["http_4xx"], 2000);
    }
}
