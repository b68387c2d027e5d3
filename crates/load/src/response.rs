//! Reads HTTP/1.1 responses as they arrive: head, then body by length, by chunks or to the end.
//!
//! Owns where a response ends and whether its connection may be used again; it keeps no body and
//! looks at no clock. Rules: RFC 9112 §6.3 (message body length), §7.1 (chunks), §9.3
//! (persistence). Public for the fuzz target.

mod chunked;

pub use chunked::ChunkedDecoder;

/// Largest head, and largest trailer, that is accepted: 64 KiB.
pub const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Its status, 200 to 999: interim responses are passed over.
    pub status: u16,
    pub keep_alive: bool,
    pub body_bytes: u64,
    /// How a gRPC call ended, 0 for well; `None` for other requests; HTTP/1 cannot carry calls.
    pub grpc_status: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedResponse {
    #[error("malformed head")]
    Head,
    #[error("head too large")]
    HeadTooLarge,
    #[error("malformed Content-Length")]
    Length,
    #[error("unknown transfer coding")]
    Coding,
    #[error("malformed chunk")]
    Chunk,
    /// With how many of the bytes just taken follow its head.
    #[error("unexpected 101")]
    Upgrade { unread: usize },
}

pub trait ResponseSink {
    fn on_body_piece(&mut self, piece: &[u8]);

    fn on_cookie(&mut self, _value: &[u8]) {}
}

impl<F: FnMut(&[u8])> ResponseSink for F {
    fn on_body_piece(&mut self, piece: &[u8]) {
        self(piece);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseProgress {
    pub used: usize,
    pub response: Option<Response>,
}

#[derive(Debug, Default)]
pub struct ResponseParser {
    state: ParserState,
    partial: Vec<u8>,
    status: u16,
    keep_alive: bool,
    body_bytes: u64,
}

#[derive(Debug, Default)]
enum ParserState {
    #[default]
    Head,
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl ResponseParser {
    /// Takes bytes as they came. `head_only` says that the request was a HEAD. Pieces of the
    /// body are handed to `sink` in order, after the cookies of the head.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        head_only: bool,
        sink: &mut impl ResponseSink,
    ) -> Result<ParseProgress, MalformedResponse> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let done = match &mut self.state {
                ParserState::Head => {
                    let (taken, done) = self.take_head(rest, head_only, sink)?;
                    used += taken;
                    done
                }
                ParserState::Length(left) => {
                    let take = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    sink.on_body_piece(&rest[..take]);
                    used += take;
                    self.body_bytes += take as u64;
                    *left -= take as u64;
                    *left == 0
                }
                ParserState::Chunked(chunked) => {
                    let (taken, done) = chunked.feed_chunks(rest, &mut |piece| {
                        self.body_bytes += piece.len() as u64;
                        sink.on_body_piece(piece);
                    })?;
                    used += taken;
                    done
                }
                ParserState::UntilClose => {
                    sink.on_body_piece(rest);
                    used += rest.len();
                    self.body_bytes += rest.len() as u64;
                    false
                }
            };
            if done {
                let response = Some(self.complete_response());
                return Ok(ParseProgress { used, response });
            }
        }
        Ok(ParseProgress {
            used,
            response: None,
        })
    }

    pub fn complete_at_eof(&mut self) -> Option<Response> {
        match self.state {
            ParserState::UntilClose => Some(self.complete_response()),
            _ => None,
        }
    }

    fn complete_response(&mut self) -> Response {
        self.state = ParserState::Head;
        Response {
            status: self.status,
            keep_alive: self.keep_alive,
            body_bytes: self.body_bytes,
            grpc_status: None,
        }
    }

    fn take_head(
        &mut self,
        bytes: &[u8],
        head_only: bool,
        sink: &mut impl ResponseSink,
    ) -> Result<(usize, bool), MalformedResponse> {
        if self.partial.is_empty() {
            return match parse_head(bytes, sink)? {
                Some(head) => {
                    let unread = bytes.len() - head.length;
                    Ok((head.length, self.begin_body(&head, head_only, unread)?))
                }
                None => self.keep_partial(bytes),
            };
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        // A head ends with a line: trickling bytes do not cause a parse each.
        let head = if bytes.contains(&b'\n') {
            parse_head(&self.partial, sink)?
        } else {
            None
        };
        match head {
            Some(head) => {
                let unread = self.partial.len() - head.length;
                self.partial.clear();
                let is_done = self.begin_body(&head, head_only, unread)?;
                Ok((head.length - before, is_done))
            }
            None if self.partial.len() > MAX_HEAD => Err(MalformedResponse::HeadTooLarge),
            None => Ok((bytes.len(), false)),
        }
    }

    fn keep_partial(&mut self, bytes: &[u8]) -> Result<(usize, bool), MalformedResponse> {
        if bytes.len() > MAX_HEAD {
            return Err(MalformedResponse::HeadTooLarge);
        }
        self.partial.extend_from_slice(bytes);
        Ok((bytes.len(), false))
    }

    fn begin_body(
        &mut self,
        head: &ResponseHead,
        head_only: bool,
        unread: usize,
    ) -> Result<bool, MalformedResponse> {
        match head.status {
            // RFC 9110 §15.2: interim responses come before the final one.
            100 | 102..=199 => return Ok(false),
            101 => return Err(MalformedResponse::Upgrade { unread }),
            _ => {}
        }
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.body_bytes = 0;
        self.state = match head.framing {
            _ if head_only || matches!(head.status, 204 | 304) => return Ok(true),
            Framing::Length(0) => return Ok(true),
            Framing::Length(length) => ParserState::Length(length),
            Framing::Chunked => ParserState::Chunked(ChunkedDecoder::default()),
            Framing::UntilClose => {
                self.keep_alive = false;
                ParserState::UntilClose
            }
        };
        Ok(false)
    }
}

struct ResponseHead {
    length: usize,
    status: u16,
    keep_alive: bool,
    framing: Framing,
}

enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

fn parse_head(
    bytes: &[u8],
    sink: &mut impl ResponseSink,
) -> Result<Option<ResponseHead>, MalformedResponse> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(httparse::Status::Complete(_)) => return Err(MalformedResponse::HeadTooLarge),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(MalformedResponse::HeadTooLarge),
        Err(_) => return Err(MalformedResponse::Head),
    };
    let status = response
        .code
        .filter(|s| *s >= 100)
        .ok_or(MalformedResponse::Head)?;
    // HTTP/1.1 connections persist unless said otherwise, HTTP/1.0 ones the other way round.
    let mut keep_alive = response.version == Some(1);
    let mut content_length = None;
    let mut chunked = false;
    for header in response.headers.iter() {
        // Most headers end at the length of their name.
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in header.value.split(|b| *b == b',') {
                    match option.trim_ascii() {
                        o if o.eq_ignore_ascii_case(b"close") => keep_alive = false,
                        o if o.eq_ignore_ascii_case(b"keep-alive") => keep_alive = true,
                        _ => {}
                    }
                }
            }
            10 if status >= 200 && header.name.eq_ignore_ascii_case("set-cookie") => {
                sink.on_cookie(header.value);
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let value = parse_length(header.value)?;
                if content_length.is_some_and(|c| c != value) {
                    return Err(MalformedResponse::Length);
                }
                content_length = Some(value);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(MalformedResponse::Coding);
                }
                chunked = true;
            }
            _ => {}
        }
    }
    // RFC 9112 §6.3: Transfer-Encoding overrides Content-Length.
    let framing = match content_length {
        _ if chunked => Framing::Chunked,
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    };
    Ok(Some(ResponseHead {
        length,
        status,
        keep_alive,
        framing,
    }))
}

fn parse_length(value: &[u8]) -> Result<u64, MalformedResponse> {
    let digits = value.trim_ascii();
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(MalformedResponse::Length);
    }
    Ok(digits
        .iter()
        .fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
