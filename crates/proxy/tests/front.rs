//! The front between loadline's own client and a service of HTTP/2: what it counts is what the client
//! saw. Needs root: the front makes a network.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../load/tests/http2/scripted.rs"]
mod scripted;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use loadline_load::part::{self, LoadMessage, LoadOrder, TotalsMessage};
use loadline_load::{Http2Options, LoadModel, LoadPlan, RequestSpec};
use loadline_proxy::front;
use rustix::process::{Signal, geteuid, getpid, kill_process};
use scripted::{Frame, Server, Talk};

const REQUESTS: u64 = 400;
const PRICE: &str = "/loadline.quotes.Quotes/Price";

/// Orders as the front gets them on its standard input.
struct OrderInput(BufReader<UnixStream>);

impl Read for OrderInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl BufRead for OrderInput {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

impl AsFd for OrderInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

fn literal(first: u8, name: &str, value: &str) -> Vec<u8> {
    let name = [&[name.len() as u8], name.as_bytes()].concat();
    let value = [&[value.len() as u8], value.as_bytes()].concat();
    [vec![first], name, value].concat()
}

/// One message, three in a stream, none at all, and a call that fails at once.
fn answer_call(talk: &mut Talk, stream: u32) {
    let head = [vec![0x88], literal(0, "content-type", "application/grpc")].concat();
    let messages = match stream / 2 % 4 {
        0 => {
            return talk.headers(
                stream,
                &[head, literal(0, "grpc-status", "5")].concat(),
                true,
            );
        }
        1 => return talk.reset(stream),
        2 => 1,
        _ => 3,
    };
    talk.headers(stream, &head, false);
    for _ in 0..messages {
        talk.padded_data(stream, &[0; 5]);
    }
    talk.headers(stream, &literal(0, "grpc-status", "0"), true);
}

fn order(plan: LoadPlan, netns: Option<PathBuf>, front_port: Option<u16>) -> LoadOrder {
    LoadOrder {
        plan,
        netns,
        generators: None,
        front_port,
    }
}

fn outcomes(totals: &TotalsMessage) -> (u64, u64, u64, BTreeMap<String, u64>) {
    let totals = &totals.totals;
    let errors = totals.errors_by_name();
    (totals.scheduled, totals.ok, totals.unfinished, errors)
}

#[test]
fn calls_are_counted_as_their_client_saw_them() {
    if !geteuid().is_root() {
        println!("SKIP calls_are_counted_as_their_client_saw_them: needs root");
        return;
    }
    let server = Server::start(|talk, frame| {
        if let Frame::Headers { stream, .. } = frame {
            answer_call(talk, stream);
        }
    });
    let (orders, next_orders) = UnixStream::pair().expect("a pair");
    let (output, messages) = UnixStream::pair().expect("a pair");
    // It ends with a signal, not with its time.
    let plan = LoadPlan::timed(Duration::from_secs(600));
    let port = server.address.port();
    let first = order(plan, None, Some(port));
    let input = OrderInput(BufReader::new(orders));
    let front = thread::spawn(move || front::run(first, port, input, output));
    let lines = BufReader::new(messages).lines();
    let mut told = lines.map(|line| {
        serde_json::from_str::<LoadMessage>(&line.expect("a line")).expect("a message")
    });
    let Some(LoadMessage::Standing { network }) = told.next() else {
        panic!("the front does not stand: {:?}", front.join());
    };

    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    let request = RequestSpec {
        method: "POST".to_owned(),
        headers: headers.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec(),
        body: vec![0; 5],
        ..RequestSpec::for_get(PRICE)
    };
    let model = LoadModel::ClosedRequests { requests: REQUESTS };
    let plan = LoadPlan {
        connections: 2,
        http2: Some(Http2Options { streams: 8 }),
        timeout: Duration::from_secs(60),
        ..LoadPlan::new(vec![server.address], request, model)
    };
    let client = thread::spawn(move || {
        let mut output = Vec::new();
        part::run(&order(plan, Some(network), None), &mut output).map(|()| output)
    });
    let output = client.join().expect("no panic").expect("the load is sent");
    let last = output
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty());
    let result = serde_json::from_slice(last.expect("a line")).expect("a message");
    let LoadMessage::Result(result) = result else {
        panic!("{result:?}");
    };

    kill_process(getpid(), Signal::TERM).expect("this process may");
    let observed = told.find_map(|message| match message {
        LoadMessage::Observed(observed) => Some(observed),
        _ => None,
    });
    let observed = observed.expect("the phase has ended");
    drop(next_orders);
    front
        .join()
        .expect("no panic")
        .expect("it ends with its orders");

    assert_eq!(observed.unreadable, None);
    assert_eq!(outcomes(&observed.totals), outcomes(&result.measure));
    let seen = outcomes(&observed.totals);
    let kinds: Vec<&str> = seen.3.keys().map(String::as_str).collect();
    assert_eq!((seen.0, kinds), (REQUESTS, vec!["grpc_not_found", "reset"]));
    assert_eq!(observed.names, [format!("POST {PRICE}")]);
    let named = &observed.totals.totals.by_request[0];
    assert_eq!((named.ok, named.ok + named.failed), (seen.1, REQUESTS));
    assert_eq!(observed.connections, 2);
    // Its clock lies within that of the client.
    let latency = &result.measure.totals.latency;
    assert!(observed.totals.totals.latency.max() <= latency.max());
}
