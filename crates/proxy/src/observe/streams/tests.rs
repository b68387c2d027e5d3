use std::time::Duration;

use loadline_load::http2::PREFACE;
use proptest::prelude::*;

use super::super::{ExchangeBook, ExchangeWatch, ObservedMessage, observe_pieces};
use super::*;

const MS: u64 = 1_000_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

/// A field as it is; with 0x40 as its first octet it enters the table.
fn literal(first: u8, name: &str, value: &str) -> Vec<u8> {
    let name = [&[name.len() as u8], name.as_bytes()].concat();
    let value = [&[value.len() as u8], value.as_bytes()].concat();
    [vec![first], name, value].concat()
}

/// A request without a body.
fn get(stream: u32, path: &str) -> Vec<u8> {
    let block = [&[0x82, 0x86][..], &literal(0, ":path", path)].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

/// A call with an empty message.
fn call(stream: u32, path: &str) -> Vec<u8> {
    let kind = literal(0, "content-type", "application/grpc");
    let block = [&[0x83, 0x86][..], &literal(0, ":path", path), &kind].concat();
    let message = frame(DATA, END_STREAM, stream, &[0; 5]);
    [frame(HEADERS, END_HEADERS, stream, &block), message].concat()
}

/// Status 200 of a gRPC server.
fn grpc_head() -> Vec<u8> {
    let kind = literal(0, "content-type", "application/grpc");
    [vec![0x88], kind].concat()
}

fn trailers(stream: u32, status: &str) -> Vec<u8> {
    let block = literal(0, "grpc-status", status);
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

/// Status 200 and two octets.
fn answer(stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, &[0x88]);
    [head, frame(DATA, END_STREAM, stream, b"ok")].concat()
}

fn preface() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// The outcome, and the protocol that cannot be timed.
fn outcome(observed: &ObservedMessage) -> String {
    let sum = super::super::tests::outcome(observed);
    let unreadable = observed.unreadable.as_deref();
    unreadable.map_or(sum.clone(), |what| format!("{sum}; {what}"))
}

/// The outcome of these pieces after a preface, the same however they are cut.
fn watched(pieces: &[(bool, Vec<u8>)]) -> String {
    let begin = preface();
    let mut all = vec![(true, begin.as_slice())];
    all.extend(
        pieces
            .iter()
            .map(|(is_request, bytes)| (*is_request, bytes.as_slice())),
    );
    let whole = observe_pieces(&all, usize::MAX);
    for most in [1, 2, 3, 8, 9, 10, 13, 64] {
        assert_eq!(observe_pieces(&all, most), whole, "at most {most} bytes");
    }
    outcome(&whole)
}

#[test]
fn a_stream_lasts_from_the_first_byte_of_its_head_to_the_last_of_its_answer() {
    let mut book = ExchangeBook::new(&loadline_load::Expectation::default());
    let mut watch = ExchangeWatch::default();
    book.begin_phase(1000 * MS, 0, None);
    let (begin, head, answer) = (preface(), get(1, "/owners/7?page=2"), answer(1));
    watch.take_request_bytes(&begin[..3], MS, &mut book);
    watch.take_request_bytes(&begin[3..], 2 * MS, &mut book);
    // Nothing was asked yet, so no phase has begun.
    assert!(!watch.has_exchanges());
    watch.take_request_bytes(&head[..2], 10 * MS, &mut book);
    watch.take_request_bytes(&head[2..], 12 * MS, &mut book);
    assert!(watch.has_exchanges());
    watch.take_response_bytes(&answer[..answer.len() - 1], 13 * MS, &mut book);
    watch.take_response_bytes(&answer[answer.len() - 1..], 30 * MS, &mut book);
    let observed = book.end_phase(100 * MS, Duration::ZERO, Duration::ZERO);
    assert_eq!(observed.start_ns, 10 * MS);
    let latency = observed.totals.totals.latency.max();
    assert!((20 * MS..20 * MS + MS / 50).contains(&latency), "{latency}");
    assert_eq!(
        outcome(&observed),
        "1 = 1 + {} + 0; GET /owners/{id}?page 1+0"
    );
}

#[test]
fn a_server_may_speak_first() {
    // Its table of 16 KiB is used at once.
    let settings = frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0x40, 0]);
    let (first, rest) = settings.split_at(4);
    let block = [
        &[0x3f, 0xe1, 0x7f, 0x82, 0x86][..],
        &literal(0, ":path", "/a"),
    ]
    .concat();
    let request = [
        preface(),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &block),
    ]
    .concat();
    let answer = answer(1);
    for pieces in [
        [
            (false, settings.as_slice()),
            (true, &request),
            (false, &answer),
        ]
        .as_slice(),
        &[
            (false, first),
            (true, &request[..10]),
            (false, rest),
            (true, &request[10..]),
            (false, &answer),
        ],
    ] {
        for most in [1, 3, usize::MAX] {
            let observed = observe_pieces(pieces, most);
            assert_eq!(outcome(&observed), "1 = 1 + {} + 0; GET /a 1+0");
        }
    }
}

/// As java.net.http of 17.0.15 asks, and Tomcat 10.1.55 answers.
#[test]
fn a_request_may_upgrade_its_connection() {
    let offer = b"GET /a HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 0\r\n\
        Host: a\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\n\r\n";
    let switch = b"HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    // The client's table of 16 KiB is used before its first frame comes.
    let head = frame(HEADERS, END_HEADERS, 1, &[0x3f, 0xe1, 0x7f, 0x88]);
    let body = frame(DATA, END_STREAM, 1, b"ok");
    let settings = frame(SETTINGS, 0, 0, &[]);
    let first = [&switch[..], &settings, &head].concat();
    let second = [preface(), get(3, "/b")].concat();
    let alone = [
        (true, &offer[..]),
        (false, &first),
        (true, &second),
        (false, &[answer(3), body].concat()),
    ];
    let pipelined = [
        (true, &[offer, &b"GET /b HTTP/1.1"[..]].concat()[..]),
        (false, &first),
    ];
    let refused = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let wrong = [
        (true, &offer[..]),
        (false, &first),
        (true, b"GET /b HTTP/1.1\r\n\r\n"),
    ];
    for (pieces, wanted) in [
        (&alone[..], "2 = 2 + {} + 0; GET /a 1+0, GET /b 1+0"),
        (
            &pipelined,
            "0 = 0 + {} + 0; ; another protocol after an upgrade",
        ),
        (
            &[(true, offer), (false, refused)],
            "1 = 1 + {} + 0; GET /a 1+0",
        ),
        (&wrong, "0 = 0 + {} + 0; ; malformed HTTP/2"),
    ] {
        for most in [1, 3, 40, usize::MAX] {
            assert_eq!(outcome(&observe_pieces(pieces, most)), wanted, "{most}");
        }
    }
}

#[test]
fn streams_may_be_open_at_once_and_end_in_any_order() {
    let interim = frame(HEADERS, END_HEADERS, 5, &[0x08, 3, b'1', b'0', b'3']);
    let failed = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x8e]);
    let trailer = frame(HEADERS, END_HEADERS | END_STREAM, 5, &literal(0, "t", "v"));
    let pieces = [
        (
            true,
            [get(1, "/a"), get(3, "/b"), get(5, "/c"), get(7, "/d")].concat(),
        ),
        (false, frame(SETTINGS, 0, 0, &[])),
        (
            false,
            [interim, frame(HEADERS, END_HEADERS, 5, &[0x88])].concat(),
        ),
        (
            false,
            [answer(3), frame(DATA, 0, 5, b"half"), failed].concat(),
        ),
        (true, get(9, "/a")),
        (
            false,
            [frame(DATA, 0, 5, b"rest"), trailer, answer(9)].concat(),
        ),
    ];
    assert_eq!(
        watched(&pieces),
        "5 = 3 + {\"http_5xx\": 1} + 1; GET /a 1+1, GET /b 1+0, GET /c 1+0"
    );
}

#[test]
fn heads_may_be_cut_padded_and_from_the_table() {
    let path = literal(0x40, ":path", "/first");
    let block = [&[0x82, 0x86][..], &path].concat();
    let (first, rest) = block.split_at(5);
    let head = [&[2, 0, 0, 0, 0, 9][..], first, &[0, 0]].concat();
    let cut = [
        frame(HEADERS, END_STREAM | PADDED | PRIORITY, 1, &head),
        frame(CONTINUATION, 0, 1, &rest[..1]),
        frame(CONTINUATION, 0, 1, &[]),
        frame(CONTINUATION, END_HEADERS, 1, &rest[1..]),
    ];
    // The newest entry of the table.
    let again = frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x82, 0x86, 0xbe]);
    let padded = [&[3][..], b"ok", &[0; 3]].concat();
    let long = [&[0x88][..], &literal(0, "content-length", "2")].concat();
    let answers = [
        frame(HEADERS, END_HEADERS, 1, &long),
        frame(DATA, END_STREAM | PADDED, 1, &padded),
        // A body that is shorter than its head says.
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &long),
    ];
    assert_eq!(
        watched(&[
            (true, cut.concat()),
            (true, again),
            (false, answers.concat())
        ]),
        "2 = 1 + {\"protocol\": 1} + 0; GET /first 1+1"
    );
}

#[test]
fn a_head_request_and_an_upload_end_with_their_answers() {
    let head = [&[0x86, 0x84][..], &literal(0, ":method", "HEAD")].concat();
    let post = [&[0x83, 0x86][..], &literal(0, ":path", "/up")].concat();
    let requests = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &head),
        frame(HEADERS, END_HEADERS, 3, &post),
        frame(DATA, 0, 3, &[7; 3000]),
    ];
    let length = [&[0x88][..], &literal(0, "content-length", "99")].concat();
    let answers = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &length),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x88]),
        // The rest is not wanted.
        frame(RST_STREAM, 0, 3, &[0; 4]),
    ];
    let trailer = literal(0, "digest", "1");
    let rest = frame(HEADERS, END_HEADERS | END_STREAM, 3, &trailer);
    assert_eq!(
        watched(&[
            (true, requests.concat()),
            (false, answers.concat()),
            (true, rest)
        ]),
        "2 = 2 + {} + 0; HEAD / 1+0, POST /up 1+0"
    );
}

#[test]
fn a_call_is_good_by_its_grpc_status_alone() {
    let path = "/loadline.quotes.Quotes/Price";
    let calls = [1, 3, 5, 7, 9].map(|stream| call(stream, path));
    let message = |stream| frame(DATA, 0, stream, &[0; 5]);
    let head = |stream| frame(HEADERS, END_HEADERS, stream, &grpc_head());
    let only = [grpc_head(), literal(0, "grpc-status", "5")].concat();
    let answers = [
        [head(1), message(1), trailers(1, "0")].concat(),
        [head(3), message(3), message(3), trailers(3, "14")].concat(),
        // Trailers alone.
        frame(HEADERS, END_HEADERS | END_STREAM, 5, &only),
        // It ends without a status.
        [head(7), frame(DATA, END_STREAM, 7, &[0; 5])].concat(),
        // A gateway's error page.
        frame(HEADERS, END_HEADERS | END_STREAM, 9, &[0x8e]),
    ];
    let pieces = [(true, calls.concat()), (false, answers.concat())];
    assert_eq!(
        watched(&pieces),
        "5 = 1 + {\"grpc_not_found\": 1, \"grpc_unavailable\": 1, \"grpc_unknown\": 1, \
         \"http_5xx\": 1} + 0; POST /loadline.quotes.Quotes/Price 1+4"
    );
}

#[test]
fn the_accepted_statuses_of_calls_are_the_experiments() {
    let expected = loadline_load::Expectation {
        grpc_status: vec![5],
        ..loadline_load::Expectation::default()
    };
    let mut book = ExchangeBook::new(&expected);
    let mut watch = ExchangeWatch::default();
    book.begin_phase(1000 * MS, 0, None);
    let requests = [preface(), call(1, "/a.B/c"), call(3, "/a.B/c"), get(5, "/")];
    watch.take_request_bytes(&requests.concat(), MS, &mut book);
    let head = |stream| frame(HEADERS, END_HEADERS, stream, &grpc_head());
    let ended = [
        head(1),
        trailers(1, "5"),
        head(3),
        trailers(3, "0"),
        answer(5),
    ];
    watch.take_response_bytes(&ended.concat(), 2 * MS, &mut book);
    let observed = book.end_phase(3 * MS, Duration::ZERO, Duration::ZERO);
    assert_eq!(
        outcome(&observed),
        "3 = 1 + {\"grpc_unknown\": 1, \"wrong_status\": 1} + 0; GET / 0+1, POST /a.B/c 1+1"
    );
}

#[test]
fn a_reset_stream_and_one_that_goaway_leaves_out_have_failed() {
    let reset = |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    let goaway = |last: u32| frame(GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &[0; 4]].concat());
    let pieces = [
        (
            true,
            [get(1, "/a"), get(3, "/b"), get(5, "/c"), get(7, "/d")].concat(),
        ),
        // The client gives up; the answer comes all the same.
        (true, reset(1)),
        (false, [reset(3), answer(1)].concat()),
        // A server that ends allows all streams first, then those that it has begun.
        (false, [goaway(u32::MAX >> 1), goaway(5)].concat()),
        // Sent before the client knew.
        (true, get(9, "/e")),
        (false, answer(5)),
        // A client ends a connection without a meaning for its own streams.
        (true, goaway(0)),
    ];
    assert_eq!(
        watched(&pieces),
        "5 = 1 + {\"closed\": 2, \"reset\": 1, \"timeout\": 1} + 0; \
         GET /a 0+1, GET /b 0+1, GET /c 1+0, GET /d 0+1, GET /e 0+1"
    );
}

#[test]
fn open_streams_end_with_their_connection() {
    let mut book = ExchangeBook::new(&loadline_load::Expectation::default());
    book.begin_phase(1000 * MS, 0, None);
    for kind in [ErrorKind::Closed, ErrorKind::Timeout] {
        let mut watch = ExchangeWatch::default();
        let requests = [preface(), get(1, "/a"), get(3, "/a")].concat();
        watch.take_request_bytes(&requests, MS, &mut book);
        watch.take_response_bytes(&answer(1), MS, &mut book);
        watch.end_responses(MS, &mut book);
        watch.abandon_exchanges(kind, &mut book);
        assert!(!watch.has_exchanges());
    }
    let observed = book.end_phase(2 * MS, Duration::ZERO, Duration::ZERO);
    assert_eq!(
        outcome(&observed),
        "4 = 2 + {\"closed\": 1, \"timeout\": 1} + 0; GET /a 2+2"
    );
}

#[test]
fn tables_are_as_large_as_their_reader_allows() {
    let value = "v".repeat(120);
    let fields: Vec<u8> = (0..40)
        .flat_map(|_| literal(0x40, "name", &value))
        .collect();
    let path = literal(0x40, ":path", "/kept");
    // A table of 16 KiB: a path, then 40 fields of 156 octets.
    let update = [0x3f, 0xe1, 0x7f];
    let first = [&update[..], &[0x82, 0x86], &path, &fields].concat();
    // The path is the oldest of 41 entries.
    let again = [0x82, 0x86, 0x80 | 102];
    let requests = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &first),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &again),
    ];
    let allowed = frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0x40, 0]);
    let answers = [answer(1), answer(3)];
    let pieces = [
        (false, allowed),
        (true, requests.concat()),
        (false, answers.concat()),
    ];
    assert_eq!(watched(&pieces), "2 = 2 + {} + 0; GET /kept 2+0");
    assert_eq!(watched(&pieces[1..]), "0 = 0 + {} + 0; ; malformed HTTP/2");

    // The same of the server's table, which the client allows.
    let status = [&update[..], &literal(0x40, ":status", "503"), &fields].concat();
    let answers = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &status),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x80 | 102]),
    ];
    let pieces = [
        (true, frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0x40, 0])),
        (true, [get(1, "/"), get(3, "/")].concat()),
        (false, answers.concat()),
    ];
    assert_eq!(watched(&pieces), "2 = 0 + {\"http_5xx\": 2} + 0; GET / 0+2");
    assert_eq!(
        watched(&pieces[1..]),
        "2 = 0 + {\"protocol\": 2} + 0; GET / 0+2"
    );
}

#[test]
fn frames_are_as_long_as_their_reader_allows() {
    let long = frame(DATA, 0, 1, &[7; 20_000]);
    let allowed = frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0x80, 0]);
    let post = [&[0x83, 0x86][..], &literal(0, ":path", "/up")].concat();
    let post = frame(HEADERS, END_HEADERS, 1, &post);
    let pieces = [
        (false, allowed.clone()),
        (true, [post.clone(), long.clone()].concat()),
        (false, answer(1)),
    ];
    assert_eq!(watched(&pieces), "1 = 1 + {} + 0; POST /up 1+0");
    assert_eq!(watched(&pieces[1..]), "0 = 0 + {} + 0; ; malformed HTTP/2");
    let head = frame(HEADERS, END_HEADERS, 1, &[0x88]);
    let answers = [head, long, frame(DATA, END_STREAM, 1, &[])].concat();
    let pieces = [(true, allowed), (true, post), (false, answers)];
    assert_eq!(watched(&pieces), "1 = 1 + {} + 0; POST /up 1+0");
    assert_eq!(
        watched(&pieces[1..]),
        "1 = 0 + {\"protocol\": 1} + 0; POST /up 0+1"
    );
}

#[test]
fn what_cannot_be_followed_is_named_or_the_services_failure() {
    let tunnel = literal(0, ":method", "CONNECT");
    let tunnel = [tunnel, literal(0, ":authority", "db:5432")].concat();
    let tunnel = frame(HEADERS, END_HEADERS, 3, &tunnel);
    let push = frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x88]);
    let pathless = frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x82, 0x86]);
    let malformed = "0 = 0 + {} + 0; ; malformed HTTP/2";
    let broken = "1 = 0 + {\"protocol\": 1} + 0; GET /a 0+1";
    for (is_request, bytes, expected) in [
        (true, tunnel, "0 = 0 + {} + 0; ; CONNECT over HTTP/2"),
        (true, pathless, malformed),
        (true, get(4, "/b"), malformed),
        (true, frame(DATA, 0, 0, b"x"), malformed),
        (true, push.clone(), malformed),
        (true, frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2]), malformed),
        (
            true,
            frame(HEADERS, END_HEADERS, 3, &[0xff, 0xff]),
            malformed,
        ),
        (false, push, "0 = 0 + {} + 0; ; HTTP/2 with server push"),
        (false, b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), broken),
        (false, answer(3), broken),
        (false, answer(2), broken),
        (false, frame(DATA, END_STREAM, 1, b"ok"), broken),
        (false, frame(HEADERS, END_HEADERS, 1, &[0x80 | 62]), broken),
        (false, trailers(1, "0"), broken),
        (false, frame(HEADERS, 0, 1, &[0; 20_000]), broken),
    ] {
        // What comes after it is not looked at.
        let pieces = [
            (true, get(1, "/a")),
            (is_request, bytes.clone()),
            (true, frame(RST_STREAM, 0, 7, &[0; 4])),
        ];
        assert_eq!(watched(&pieces), expected, "{bytes:?}");
    }
    // A client that may be pushed to is followed as long as no server pushes.
    let pieces = [
        (true, frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1])),
        (true, get(1, "/a")),
        (false, answer(1)),
    ];
    assert_eq!(watched(&pieces), "1 = 1 + {} + 0; GET /a 1+0");
}

#[test]
fn open_streams_are_bounded() {
    let mut book = ExchangeBook::new(&loadline_load::Expectation::default());
    let mut watch = ExchangeWatch::default();
    book.begin_phase(1000 * MS, 0, None);
    watch.take_request_bytes(&preface(), MS, &mut book);
    let path = literal(0x40, ":path", "/a");
    let first = [&[0x82, 0x86][..], &path].concat();
    let mut block = first.as_slice();
    for stream in (1..).step_by(2).take(MOST_STREAMS) {
        let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, block);
        watch.take_request_bytes(&head, MS, &mut book);
        block = &[0x82, 0x86, 0xbe];
    }
    assert!(watch.has_exchanges());
    watch.take_request_bytes(&get(1_000_001, "/"), MS, &mut book);
    let observed = book.end_phase(2 * MS, Duration::ZERO, Duration::ZERO);
    assert_eq!(observed.unreadable.as_deref(), Some(TOO_MANY));
    assert!(!watch.has_exchanges());
}

/// All frames of both sides of a connection; the property test changes bytes anywhere in them.
fn talk() -> Vec<(bool, Vec<u8>)> {
    let path = literal(0x40, ":path", "/loadline.quotes.Quotes/Watch");
    let kind = literal(0x40, "content-type", "application/grpc");
    let block = [&[0x83, 0x86][..], &path, &kind].concat();
    let (first, rest) = block.split_at(7);
    let head = [
        frame(HEADERS, 0, 1, first),
        frame(CONTINUATION, END_HEADERS, 1, rest),
        frame(DATA, END_STREAM, 1, &[0; 5]),
    ];
    let again = frame(HEADERS, END_HEADERS, 3, &[0x83, 0x86, 0xbf, 0xbe]);
    let again = [
        again,
        frame(DATA, END_STREAM | PADDED, 3, &[1, 0, 0, 0, 0, 0, 0]),
    ]
    .concat();
    let begun = frame(HEADERS, END_HEADERS, 1, &grpc_head());
    let ended = [frame(DATA, 0, 1, &[0; 5]), trailers(1, "0")].concat();
    let failed = [grpc_head(), literal(0, "grpc-status", "5")].concat();
    let failed = frame(HEADERS, END_HEADERS | END_STREAM, 3, &failed);
    vec![
        (true, [preface(), head.concat()].concat()),
        (false, [frame(SETTINGS, 0, 0, &[]), begun].concat()),
        (true, again),
        (false, [ended, failed].concat()),
        (true, get(5, "/owners/7")),
    ]
}

proptest! {
    #[test]
    fn changed_bytes_make_it_neither_panic_nor_lose_count(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
        most in 1usize..40,
    ) {
        let mut talk = talk();
        for (piece, at, byte) in changes {
            let bytes = &mut talk[piece.index(5)].1;
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let length: usize = talk.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut left = end.index(length + 1);
        let pieces: Vec<(bool, &[u8])> = talk
            .iter()
            .map(|(is_request, bytes)| {
                let taken = bytes.len().min(left);
                left -= taken;
                (*is_request, &bytes[..taken])
            })
            .collect();
        let whole = observe_pieces(&pieces, usize::MAX);
        let totals = &whole.totals.totals;
        let failed = totals.failed_requests();
        prop_assert_eq!(totals.scheduled, totals.ok + failed + totals.unfinished);
        // HTTP/1 judges a head by its lines.
        if pieces[0].1.starts_with(PREFACE) {
            prop_assert_eq!(whole, observe_pieces(&pieces, most));
        }
    }
}

#[test]
fn a_stream_holds_no_more_of_a_long_path_than_names_it() {
    let mut block = vec![0x82, 0x86, 0, 5];
    block.extend(b":path");
    // The length 5,000 as an integer with a prefix of seven bits.
    block.extend([0x7f, 0x89, 0x26]);
    block.extend([&b"/"[..], &[b'x'; 4_999]].concat());
    let (mut watch, mut book) = (StreamWatch::new(), ExchangeBook::default());
    let head = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    let bytes = [frame(SETTINGS, 0, 0, &[]), head].concat();
    watch
        .take_request_bytes(&bytes, 1, &mut book)
        .expect("a request");
    let held: Vec<usize> = watch.open.values().map(|open| open.path.len()).collect();
    assert_eq!(held, [LONGEST_NAME]);
}
