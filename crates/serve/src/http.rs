//! Bytes of a connection to a request, and an answer to bytes.
//!
//! Owns the bounds on what a stranger sends: the size of a head, its number of headers, and that no
//! request has a body. Each connection carries one request.
//!
//! Facts: RFC 9112; a head ends with an empty line; line ends may lack the carriage return.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest head, in bytes. Browsers send a few hundred, and the cookies of all servers of the host.
const LONGEST_HEAD: usize = 16 << 10;
/// Most headers of a head.
const MOST_HEADERS: usize = 64;
const HEAD_TIME: Duration = Duration::from_secs(10);
const WRITE_TIME: Duration = Duration::from_secs(10);

/// What every answer says: a page stays with itself and is kept nowhere.
const COMMON_HEADERS: &str = "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\nCross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\nConnection: close\r\n";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub path: String,
    /// The parameter `token` of the address.
    pub token: Option<String>,
    pub host: Option<String>,
    pub authorization: Option<String>,
    pub cookie: Option<String>,
    pub secret: Option<String>,
    /// A proxy in front says that the browser's side is encrypted.
    pub is_over_tls: bool,
}

type HeadStatus = u16;

impl RequestHead {
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HeadStatus> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(431),
            Ok(httparse::Status::Partial) | Err(_) => return Err(400),
        }
        let (path, token) = split_token(request.path.unwrap_or_default());
        let mut head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            token: token.map(str::to_owned),
            ..Self::default()
        };
        for header in request.headers {
            head.take_header(header)?;
        }
        Ok(head)
    }

    fn take_header(&mut self, header: &httparse::Header<'_>) -> Result<(), HeadStatus> {
        let value = String::from_utf8_lossy(header.value).into_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "host" => self.host = Some(value),
            "authorization" => self.authorization = Some(value),
            "cookie" => self.cookie = Some(value),
            "x-loadline-secret" => self.secret = Some(value),
            "x-forwarded-proto" => self.is_over_tls = value == "https",
            "transfer-encoding" => return Err(413),
            "content-length" if value != "0" => return Err(413),
            _ => {}
        }
        Ok(())
    }
}

fn split_token(url: &str) -> (&str, Option<&str>) {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let token = pairs.find(|(name, _)| *name == "token");
    (path, token.map(|(_, value)| value))
}

pub struct PendingRequest {
    pub stream: TcpStream,
    bytes: Vec<u8>,
    begin: Instant,
}

impl PendingRequest {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            bytes: Vec::new(),
            begin: Instant::now(),
        })
    }

    /// Reads the bytes that have arrived. Returns the head once it is complete, `None` before.
    /// Errors: the connection must be closed; with a status, after answering it.
    pub fn read_head(&mut self) -> Result<Option<RequestHead>, Option<HeadStatus>> {
        let mut block = [0; 4096];
        match self.stream.read(&mut block) {
            Ok(0) => return Err(None),
            Ok(length) => {
                // An end that began in the bytes before is found too.
                let from = self.bytes.len().saturating_sub(2);
                self.bytes.extend_from_slice(&block[..length]);
                if has_empty_line(&self.bytes[from..]) {
                    return RequestHead::from_bytes(&self.bytes).map(Some).map_err(Some);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(None),
        }
        if self.bytes.len() > LONGEST_HEAD {
            return Err(Some(431));
        }
        if self.begin.elapsed() > HEAD_TIME {
            Err(Some(408))
        } else {
            Ok(None)
        }
    }

    pub fn into_stream(self) -> io::Result<TcpStream> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(WRITE_TIME))?;
        Ok(self.stream)
    }

    /// Ends the connection with as much of the answer as is taken at once.
    pub fn refuse(mut self, status: HeadStatus) {
        let answer = HttpAnswer::with_text(status, "this request is not answered");
        let _ = self.stream.write(&answer.into_bytes());
    }
}

fn has_empty_line(bytes: &[u8]) -> bool {
    let has = |end: &[u8]| bytes.windows(end.len()).any(|part| part == end);
    has(b"\n\n") || has(b"\n\r\n")
}

pub struct HttpAnswer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl HttpAnswer {
    pub fn with_text(status: u16, text: &str) -> Self {
        Self::with_body(status, "text/plain; charset=utf-8", format!("{text}\n"))
    }

    pub fn with_body(status: u16, kind: &str, body: String) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", kind.to_owned())],
            body,
        }
    }

    pub fn elsewhere(path: String) -> Self {
        Self::with_text(303, "").with_header("Location", path)
    }

    /// The same with a header. Values are ours or have gone through the parser: no line ends.
    pub fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        let (status, reason) = (self.status, reason_phrase(self.status));
        let mut text = format!("HTTP/1.1 {status} {reason}\r\n{COMMON_HEADERS}");
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Length: {}\r\n\r\n", self.body.len());
        text += &self.body;
        text.into_bytes()
    }
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

pub fn event_stream_head() -> String {
    format!(
        "HTTP/1.1 200 OK\r\n{COMMON_HEADERS}Content-Type: text/event-stream\r\n\r\nretry: 2000\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_or_refused_with_its_status() {
        let head = RequestHead::from_bytes(
            b"GET /results/01?x=y&token=abc HTTP/1.1\r\nhost: a\r\nCOOKIE: b=c\r\nX-Forwarded-Proto: https\r\nContent-Length: 0\r\n\r\n",
        )
        .expect("a head");
        assert_eq!(
            (head.method.as_str(), head.path.as_str()),
            ("GET", "/results/01")
        );
        assert_eq!(head.token.as_deref(), Some("abc"));
        assert_eq!(head.host.as_deref(), Some("a"));
        assert_eq!(head.cookie.as_deref(), Some("b=c"));
        assert!(head.is_over_tls);
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(MOST_HEADERS + 1)
        );
        for (bytes, status) in [
            (
                &b"GET / HTTP/1.1\r\nContent-Length: 4611686018427387904\r\n\r\n"[..],
                413,
            ),
            (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
            (b"GET / HTTP/3\r\n\r\n", 400),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\n\n", 400),
            (b"GET /\nHost: x\n\n", 400),
            (many.as_bytes(), 431),
        ] {
            let text = String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(RequestHead::from_bytes(bytes), Err(status), "{text}");
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_however_it_comes() {
        assert!(
            has_empty_line(b"a\r\n\r\n") && has_empty_line(b"a\n\nb") && has_empty_line(b"\n\r\n")
        );
        assert!(!has_empty_line(b"a\r\nb\r\n") && !has_empty_line(b""));
    }
}
