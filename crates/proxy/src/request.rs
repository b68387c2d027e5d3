//! HTTP/1.1 requests as they arrive: heads, and bodies by length or in chunks, which are passed over.
//!
//! Owns where a request ends. No socket, no clock. Rules: RFC 9112 sections 6.3 (length), 9.3
//! (persistence).

use loadline_load::http2::Http2Settings;
use loadline_load::response::{ChunkedDecoder, MAX_HEAD};

const MAX_HEADERS: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct RequestHead {
    pub(crate) method: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) closes: bool,
    pub(crate) expects: bool,
    /// The client's, if it offers to go on in HTTP/2.
    pub(crate) http2: Option<Http2Settings>,
}

/// Bytes that are no request; the connection cannot be followed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MalformedRequest;

#[derive(Debug)]
pub(crate) struct RequestReader {
    input: Vec<u8>,
    body: BodyRemainder,
}

#[derive(Debug)]
enum BodyRemainder {
    Bytes(u64),
    Chunks(ChunkedDecoder),
}

impl Default for RequestReader {
    fn default() -> Self {
        Self {
            input: Vec::new(),
            body: BodyRemainder::Bytes(0),
        }
    }
}

impl RequestReader {
    pub(crate) fn take_bytes(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    pub(crate) fn unread_bytes(&self) -> &[u8] {
        &self.input
    }

    pub(crate) fn has_full_buffer(&self) -> bool {
        self.input.len() >= MAX_HEAD
    }

    /// The next request, once the body of the last is passed over; `None` while it is not whole.
    pub(crate) fn next_head(&mut self) -> Result<Option<RequestHead>, MalformedRequest> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let length = match parsed.parse(&self.input) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if !self.has_full_buffer() => return Ok(None),
            Ok(httparse::Status::Partial) | Err(_) => return Err(MalformedRequest),
        };
        let (head, body) = read_head(&parsed)?;
        self.input.drain(..length);
        self.body = body;
        Ok(Some(head))
    }

    pub(crate) fn skip_body(&mut self) -> Result<bool, MalformedRequest> {
        let (used, is_whole) = match &mut self.body {
            BodyRemainder::Bytes(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX);
                let used = used.min(self.input.len());
                *left -= used as u64;
                (used, *left == 0)
            }
            BodyRemainder::Chunks(chunks) => {
                let fed = chunks.feed_chunks(&self.input, &mut |_| ());
                fed.map_err(|_| MalformedRequest)?
            }
        };
        self.input.drain(..used);
        if is_whole {
            self.body = BodyRemainder::Bytes(0);
        }
        Ok(is_whole)
    }
}

fn read_head(
    parsed: &httparse::Request<'_, '_>,
) -> Result<(RequestHead, BodyRemainder), MalformedRequest> {
    let is_old = parsed.version == Some(0);
    let mut head = RequestHead {
        method: parsed.method.unwrap_or_default().as_bytes().to_vec(),
        path: strip_host(parsed.path.unwrap_or_default())
            .as_bytes()
            .to_vec(),
        closes: is_old,
        expects: false,
        http2: None,
    };
    let mut body = BodyRemainder::Bytes(0);
    for header in parsed.headers.iter() {
        let value = str::from_utf8(header.value).unwrap_or_default().trim();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let has = |word: &str| {
            let mut words = value.split(',');
            words.any(|each| each.trim().eq_ignore_ascii_case(word))
        };
        if is("content-length") && !matches!(body, BodyRemainder::Chunks(_)) {
            body = BodyRemainder::Bytes(value.parse().map_err(|_| MalformedRequest)?);
        } else if is("transfer-encoding") && has("chunked") {
            body = BodyRemainder::Chunks(ChunkedDecoder::default());
        } else if is("connection") {
            head.closes = (is_old && !has("keep-alive")) || has("close");
        } else if is("expect") {
            head.expects = has("100-continue");
        } else if is("http2-settings") {
            head.http2 = Http2Settings::parse_upgrade_header(value);
        }
    }
    Ok((head, body))
}

/// A request to a proxy names its host too: `http://prices/x`.
fn strip_host(target: &str) -> &str {
    let Some(rest) = target.strip_prefix("http://") else {
        return target;
    };
    rest.find('/').map_or("/", |at| &rest[at..])
}
