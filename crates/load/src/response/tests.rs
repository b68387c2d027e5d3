//! Tests of the response parser: whole, in pieces, and broken.

use proptest::prelude::*;

use super::*;

/// Feeds `bytes` in pieces of `size`; returns the responses, or the error.
fn read(bytes: &[u8], size: usize) -> Result<Vec<(Response, Vec<u8>)>, MalformedResponse> {
    let mut parser = ResponseParser::default();
    let mut responses = Vec::new();
    let mut body = Vec::new();
    for piece in bytes.chunks(size) {
        let mut at = 0;
        while at < piece.len() {
            let fed = parser.feed(&piece[at..], false, &mut |b: &[u8]| {
                body.extend_from_slice(b)
            })?;
            at += fed.used;
            if let Some(response) = fed.response {
                responses.push((response, std::mem::take(&mut body)));
            }
        }
    }
    if let Some(response) = parser.complete_at_eof() {
        responses.push((response, body));
    }
    Ok(responses)
}

fn one(bytes: &[u8]) -> (u16, bool, Vec<u8>) {
    let all = read(bytes, bytes.len()).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].0.body_bytes, all[0].1.len() as u64);
    (all[0].0.status, all[0].0.keep_alive, all[0].1.clone())
}

#[test]
fn the_body_ends_where_the_protocol_says() {
    for (bytes, expected) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..], (200, true, "abc")),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nCONNECTION: Close\r\n\r\nabc", (200, false, "abc")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, true, "")),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", (304, true, "")),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", (200, false, "a")),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", (200, true, "a")),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", (200, false, "until the end")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", (500, true, "")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
            (200, true, "abc0123456789"),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            (200, true, "a"),
        ),
    ] {
        let (status, keep_alive, body) = one(bytes);
        assert_eq!(
            (status, keep_alive, String::from_utf8(body).unwrap().as_str()),
            expected
        );
    }
}

#[test]
fn the_answer_to_head_has_no_body() {
    let mut parser = ResponseParser::default();
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let fed = parser.feed(bytes, true, &mut |_: &[u8]| {}).unwrap();
    assert_eq!(fed.used, bytes.len());
    assert!(fed.response.is_some());
}

#[test]
fn what_breaks_the_protocol_is_named() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(101));
    for (bytes, expected) in [
        (&b"SSH-2.0-OpenSSH\r\n"[..], MalformedResponse::Head),
        (b"HTTP/1.1 99 X\r\n\r\n", MalformedResponse::Head),
        (b"HTTP/2 200\r\n\r\n", MalformedResponse::Head),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            MalformedResponse::Length,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            MalformedResponse::Length,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            MalformedResponse::Length,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            MalformedResponse::Coding,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            MalformedResponse::Chunk,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            MalformedResponse::Chunk,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            MalformedResponse::Chunk,
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
            MalformedResponse::Upgrade { unread: 0 },
        ),
        (many.as_bytes(), MalformedResponse::HeadTooLarge),
    ] {
        for size in [1, 7, bytes.len()] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(read(bytes, size), Err(expected), "{shown} by {size}");
        }
    }
    assert_eq!(
        read(long.as_bytes(), 4096),
        Err(MalformedResponse::HeadTooLarge)
    );
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        bodies in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..50), 0usize..8), 1..5),
        size in 1usize..40,
    ) {
        let mut bytes = Vec::new();
        for (body, chunk) in &bodies {
            match chunk {
                0 => {
                    bytes.extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).bytes());
                    bytes.extend(body);
                }
                n => {
                    bytes.extend(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                    for piece in body.chunks(*n) {
                        bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
                        bytes.extend(piece);
                        bytes.extend(b"\r\n");
                    }
                    bytes.extend(b"0\r\n\r\n");
                }
            }
        }
        let read = read(&bytes, size).unwrap();
        let expected: Vec<_> = bodies.iter().map(|(body, _)| body.clone()).collect();
        let found: Vec<_> = read.iter().map(|(_, body)| body.clone()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_make_it_panic_or_stand_still(
        head in "(HTTP/1\\.[01] [0-9]{1,3} [A-Z]{0,4}\r\n)?((content-length|transfer-encoding|connection): ?(chunked|close|[0-9]{0,20})\r\n){0,3}(\r\n)?",
        rest in prop::collection::vec(any::<u8>(), 0..200),
        size in 1usize..64,
    ) {
        let bytes: Vec<u8> = head.bytes().chain(rest).collect();
        // Ends: every call of feed uses at least one byte or fails.
        let whole = read(&bytes, bytes.len().max(1));
        let pieces = read(&bytes, size);
        if let (Ok(whole), Ok(pieces)) = (&whole, &pieces) {
            prop_assert_eq!(whole, pieces);
        }
    }
}
