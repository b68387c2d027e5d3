//! One connection of HTTP/2 as the front sees it: each stream is an exchange, from the first byte of
//! its head to the last of its answer.
//!
//! Owns which frames begin, end and fail an exchange (RFC 9113 sections 5.1, 6.4, 6.8). Frames, header
//! blocks and answers are read as loadline's own client reads them ([`loadline_load::http2`]), in both
//! directions. Neither side is trusted: a block has at most 64 KiB, as has a table; an open stream holds
//! at most 1 KiB of its method and of its path.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_load::ErrorKind;
use loadline_load::http2::{
    AnswerProgress, DecodedHead, FrameReader, HpackDecoder, Http2Frame, Http2Settings,
    Http2Violation, PREFACE,
};
use loadline_load::profile::request_class;

use super::{Exchange, ExchangeBook, LONGEST_NAME};

/// Streams that one connection may have open: a minute of 1,000 requests a second in a stall.
const MOST_STREAMS: usize = 60_000;

const MALFORMED: &str = "malformed HTTP/2";
const TUNNEL: &str = "CONNECT over HTTP/2";
const TOO_MANY: &str = "HTTP/2 with more than 60,000 streams open on a connection";

#[derive(Debug)]
pub(super) struct StreamWatch {
    /// The part that the client still sends after an upgrade.
    preface: &'static [u8],
    requests: FrameDecoder,
    answers: FrameDecoder,
    open: BTreeMap<u32, StreamExchange>,
    newest: u32,
    /// The server answers no stream after this one.
    last: u32,
}

/// One direction.
#[derive(Debug, Default)]
struct FrameDecoder {
    reader: FrameReader,
    decoder: HpackDecoder,
}

#[derive(Debug)]
struct StreamExchange {
    exchange: Exchange,
    /// Shared with the table from which they may come, so that a short block takes little memory.
    method: Arc<[u8]>,
    path: Arc<[u8]>,
    answer: AnswerProgress,
}

impl FrameDecoder {
    fn decode_head(&mut self) -> Result<DecodedHead, Http2Violation> {
        self.decoder.decode_block(&self.reader.block)
    }

    /// Settings of the side that receives these frames.
    fn allow_settings(&mut self, settings: &Http2Settings) {
        if let Some(size) = settings.table_size {
            self.decoder.allow_table(size);
        }
        if let Some(octets) = settings.max_frame {
            self.reader.allow_payload(octets);
        }
    }
}

impl StreamExchange {
    fn into_named(self) -> Exchange {
        // An upgraded request has its name already.
        if !self.exchange.name.is_empty() {
            return self.exchange;
        }
        let name = request_class(&self.method, &self.path);
        Exchange {
            name,
            ..self.exchange
        }
    }
}

fn cut_name(name: Arc<[u8]>) -> Arc<[u8]> {
    match name.get(..LONGEST_NAME) {
        Some(begin) => Arc::from(begin),
        None => name,
    }
}

impl StreamWatch {
    pub(super) fn new() -> Self {
        let mut requests = FrameDecoder::default();
        requests.reader.is_from_client = true;
        Self {
            preface: &[],
            requests,
            answers: FrameDecoder::default(),
            open: BTreeMap::new(),
            newest: 0,
            last: u32::MAX,
        }
    }

    /// A connection on which this request of HTTP/1 became stream 1, with the client's settings.
    pub(super) fn from_upgrade(exchange: Exchange, settings: &Http2Settings) -> Self {
        let mut watch = Self::new();
        watch.preface = PREFACE;
        watch.answers.allow_settings(settings);
        watch.newest = 1;
        let open = StreamExchange {
            exchange,
            method: Arc::from([]),
            path: Arc::from([]),
            answer: AnswerProgress::default(),
        };
        watch.open.insert(1, open);
        watch
    }

    pub(super) fn has_exchanges(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn into_exchanges(self) -> impl Iterator<Item = Exchange> {
        self.open.into_values().map(StreamExchange::into_named)
    }

    /// Bytes after the preface; after an upgrade with it. Errors: What they are, where they cannot be followed.
    pub(super) fn take_request_bytes(
        &mut self,
        mut bytes: &[u8],
        now: u64,
        book: &mut ExchangeBook,
    ) -> Result<(), &'static str> {
        let (begin, rest) = bytes.split_at(bytes.len().min(self.preface.len()));
        self.preface = self.preface.strip_prefix(begin).ok_or(MALFORMED)?;
        bytes = rest;
        self.requests.reader.now = now;
        while let Some(frame) = self
            .requests
            .reader
            .next(&mut bytes)
            .map_err(|_| MALFORMED)?
        {
            match frame {
                Http2Frame::Headers { stream, .. } => {
                    let head = self.requests.decode_head().map_err(|_| MALFORMED)?;
                    // Later heads of a stream are trailers.
                    if stream > self.newest {
                        self.begin_stream(stream, head, book)?;
                    }
                }
                Http2Frame::Reset { stream } => {
                    if let Some(open) = self.open.remove(&stream) {
                        book.fail_exchange(&open.into_named(), ErrorKind::Timeout);
                    }
                }
                Http2Frame::Settings(settings) => self.answers.allow_settings(&settings),
                Http2Frame::Data { .. }
                | Http2Frame::Ping(_)
                | Http2Frame::GoAway { .. }
                | Http2Frame::Window { .. } => {}
            }
        }
        Ok(())
    }

    fn begin_stream(
        &mut self,
        stream: u32,
        head: DecodedHead,
        book: &mut ExchangeBook,
    ) -> Result<(), &'static str> {
        let method = head.method.ok_or(MALFORMED)?;
        if *method == *b"CONNECT" {
            return Err(TUNNEL);
        }
        let path = head.path.ok_or(MALFORMED)?;
        if stream.is_multiple_of(2) {
            return Err(MALFORMED);
        }
        if self.open.len() >= MOST_STREAMS {
            return Err(TOO_MANY);
        }
        self.newest = stream;
        let mut exchange = book.begin_exchange(self.requests.reader.head_begin);
        exchange.is_head = *method == *b"HEAD";
        let open = StreamExchange {
            exchange,
            method: cut_name(method),
            path: cut_name(path),
            answer: AnswerProgress::default(),
        };
        if stream > self.last {
            book.fail_exchange(&open.into_named(), ErrorKind::Closed)
        } else {
            self.open.insert(stream, open);
        }
        Ok(())
    }

    /// Errors: The service broke the protocol, or pushes.
    pub(super) fn take_answer_bytes(
        &mut self,
        mut bytes: &[u8],
        now: u64,
        book: &mut ExchangeBook,
    ) -> Result<(), Http2Violation> {
        while let Some(frame) = self.answers.reader.next(&mut bytes)? {
            match frame {
                Http2Frame::Headers { stream, is_last } => {
                    let head = self.answers.decode_head()?;
                    let take = |answer: &mut AnswerProgress| answer.take_head(&head, is_last);
                    self.take_answer(stream, is_last.then_some(now), take, book)?;
                }
                Http2Frame::Data {
                    stream,
                    piece,
                    is_last,
                    ..
                } => {
                    let take = |answer: &mut AnswerProgress| answer.take_body(piece);
                    self.take_answer(stream, is_last.then_some(now), take, book)?;
                }
                Http2Frame::Reset { stream } => {
                    if let Some(open) = self.open.remove(&stream) {
                        book.fail_exchange(&open.into_named(), ErrorKind::Reset);
                    }
                }
                Http2Frame::GoAway { last } => {
                    self.last = self.last.min(last);
                    for open in self.open.split_off(&(self.last + 1)).into_values() {
                        book.fail_exchange(&open.into_named(), ErrorKind::Closed);
                    }
                }
                Http2Frame::Settings(settings) => self.requests.allow_settings(&settings),
                Http2Frame::Ping(_) | Http2Frame::Window { .. } => {}
            }
        }
        Ok(())
    }

    /// Takes a part of an answer; of a stream that has ended it means nothing. `ended` is the time of
    /// its last part.
    fn take_answer(
        &mut self,
        stream: u32,
        ended: Option<u64>,
        take: impl FnOnce(&mut AnswerProgress) -> Result<(), Http2Violation>,
        book: &mut ExchangeBook,
    ) -> Result<(), Http2Violation> {
        if stream > self.newest || stream.is_multiple_of(2) {
            return Err(Http2Violation::Protocol);
        }
        let Some(open) = self.open.get_mut(&stream) else {
            return Ok(());
        };
        take(&mut open.answer)?;
        if let Some(now) = ended
            && let Some(open) = self.open.remove(&stream)
        {
            let response = open.answer.finish_answer(open.exchange.is_head);
            let exchange = open.into_named();
            match response {
                Some(response) => book.end_exchange(&exchange, response, now),
                None => book.fail_exchange(&exchange, ErrorKind::Protocol),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
