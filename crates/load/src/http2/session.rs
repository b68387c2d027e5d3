//! The streams of one HTTP/2 connection: what may be sent, and what became of each request.
//!
//! Owns the rules between frames: stream numbers, flow control of both directions, the limit of
//! open streams, GOAWAY. A *place* is room for one request; a request in a place is waiting until
//! it is sent on a stream. Answers of given-up streams are passed over. Knows no socket: bytes
//! come in, bytes to send gather in `out`.

use std::collections::VecDeque;

use super::frame::{self, HEADER};
use super::reader::{FrameReader, Http2Frame};
use super::settings::MAX_WINDOW;
use super::{AnswerProgress, HpackDecoder, HpackEncoder, Http2Settings, Http2Violation};
use crate::connection::{BodySearch, InFlight};
use crate::outcome::ErrorKind;
use crate::plan::Expectation;
use crate::response::Response;

/// DATA gathers up to this many octets before the socket must take some.
const MAX_GATHERED: usize = 256 * 1024;
/// Pending replies to a peer's pings and settings; a peer that requests more without reading them
/// floods this one (RFC 9113 §10.5).
const MOST_REPLIES: u32 = 1000;
/// The peer gets this much of its window back at once.
const CREDIT: u32 = 1 << 30;
const LAST_STREAM: u32 = MAX_WINDOW;

#[derive(Debug, Default)]
pub(crate) struct StreamRoom {
    pub(crate) request: Option<InFlight>,
    pub(crate) rendered: Vec<u8>,
    /// The answer has no body whatever its head says.
    head_only: bool,
    answer: AnswerProgress,
    search: Option<BodySearch>,
    body_sent: usize,
    body_length: usize,
    window: i64,
    /// Octets received since the peer got its window back.
    received: u32,
}

#[derive(Debug)]
pub(crate) struct StreamEnd {
    pub(crate) place: usize,
    /// The answer and whether its body held the text expected.
    pub(crate) result: Result<(Response, bool), ErrorKind>,
}

#[derive(Debug, Default)]
pub(crate) struct Http2Connection {
    reader: FrameReader,
    decoder: HpackDecoder,
    pub(crate) encoder: HpackEncoder,
    pub(crate) places: Vec<StreamRoom>,
    /// The stream of each place; 0 is none.
    streams: Vec<u32>,
    free: Vec<usize>,
    waiting: VecDeque<usize>,
    next_stream: u32,
    active: usize,
    uploads: usize,
    max_streams: usize,
    max_payload: usize,
    initial_window: i64,
    window: i64,
    received: u32,
    pub(crate) is_settled: bool,
    is_closing: bool,
    pub(crate) out: Vec<u8>,
    pub(crate) written: usize,
    replies: u32,
    /// Places that stay empty because the peer allows fewer streams.
    pub(crate) held: usize,
}

impl Http2Connection {
    pub(crate) fn new(places: u32, expect: &Expectation) -> Self {
        let place = || StreamRoom {
            search: expect.body_contains.as_deref().map(BodySearch::new),
            ..StreamRoom::default()
        };
        let mut session = Self {
            places: (0..places).map(|_| place()).collect(),
            streams: vec![0; places as usize],
            free: (0..places as usize).rev().collect(),
            ..Self::default()
        };
        session.reset_connection();
        session
    }

    pub(crate) fn reset_connection(&mut self) {
        self.reader = FrameReader::default();
        self.decoder = HpackDecoder::default();
        self.encoder = HpackEncoder::default();
        self.streams.fill(0);
        self.waiting.clear();
        let having = self.places.iter().enumerate();
        let having = having.filter(|(_, p)| p.request.is_some());
        self.waiting.extend(having.map(|(place, _)| place));
        self.next_stream = 1;
        self.active = 0;
        self.uploads = 0;
        self.max_streams = usize::MAX;
        self.max_payload = frame::MAX_PAYLOAD;
        self.initial_window = 65_535;
        self.window = 65_535;
        self.received = 0;
        self.is_settled = false;
        self.is_closing = false;
        self.mark_all_sent();
        frame::push_preface(&mut self.out);
    }

    pub(crate) fn mark_all_sent(&mut self) {
        self.out.clear();
        self.written = 0;
        self.replies = 0;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_closing && self.active == 0
    }

    /// Whether a request may be sent now. One that would only gather waits where its timeout costs
    /// nothing: a server that reads nothing does not fill the memory.
    pub(crate) fn may_send(&self) -> bool {
        let has_room = self.out.len() - self.written <= MAX_GATHERED;
        has_room && self.is_settled && !self.is_closing && self.active < self.max_streams
    }

    pub(crate) fn request_capacity(&self) -> usize {
        self.places.len().min(self.max_streams.max(1))
    }

    pub(crate) fn admit(&mut self, request: InFlight, head_only: bool) -> bool {
        let Some(free) = self.free.pop() else {
            return false;
        };
        let place = &mut self.places[free];
        place.request = Some(request);
        place.head_only = head_only;
        self.waiting.push_back(free);
        true
    }

    pub(crate) fn take_request(&mut self, place: usize) -> Option<InFlight> {
        let request = self.places[place].request.take()?;
        self.free.push(place);
        Some(request)
    }

    /// The connection is gone: takes out the requests that went with it. Those that were not sent
    /// stay for the next connection, for as long as their timeout allows.
    pub(crate) fn take_lost_requests(&mut self) -> Vec<InFlight> {
        let sent = (0..self.places.len()).filter(|place| self.streams[*place] != 0);
        let sent: Vec<usize> = sent.collect();
        sent.into_iter()
            .filter_map(|place| self.take_request(place))
            .collect()
    }

    pub(crate) fn next_waiting(&mut self) -> Option<usize> {
        while let Some(place) = self.waiting.front().copied() {
            if self.places[place].request.is_some() && self.streams[place] == 0 {
                return Some(place);
            }
            self.waiting.pop_front();
        }
        None
    }

    pub(crate) fn open_stream(
        &mut self,
        place: usize,
        render: &mut impl FnMut(&mut StreamRoom, &mut HpackEncoder, &mut Vec<u8>) -> usize,
    ) {
        let stream = self.next_stream;
        self.next_stream += 2;
        self.is_closing |= self.next_stream > LAST_STREAM;
        self.streams[place] = stream;
        self.active += 1;
        let at = self.out.len();
        self.out.resize(at + HEADER, 0);
        let room = &mut self.places[place];
        room.body_length = render(room, &mut self.encoder, &mut self.out);
        room.body_sent = 0;
        room.window = self.initial_window;
        room.received = 0;
        room.answer = AnswerProgress::default();
        if let Some(search) = &mut room.search {
            search.finish_body();
        }
        let is_last = room.body_length == 0;
        self.uploads += usize::from(!is_last);
        frame::close_headers(&mut self.out, at, stream, is_last, self.max_payload);
    }

    pub(crate) fn next_upload(&self) -> Option<usize> {
        if self.uploads == 0 || self.window <= 0 || self.out.len() - self.written > MAX_GATHERED {
            return None;
        }
        let mut places = self.places.iter().zip(&self.streams);
        places.position(|(p, stream)| *stream != 0 && p.body_sent < p.body_length && p.window > 0)
    }

    pub(crate) fn upload(&mut self, place: usize, body: &[u8]) {
        let stream = self.streams[place];
        let place = &mut self.places[place];
        let rest = &body[place.body_sent..];
        let allowed = self.window.min(place.window).max(0) as usize;
        let piece = &rest[..rest.len().min(allowed).min(self.max_payload)];
        let is_last = piece.len() == rest.len();
        let flags = if is_last { frame::END_STREAM } else { 0 };
        frame::push_frame(&mut self.out, frame::DATA, flags, stream, piece);
        place.body_sent += piece.len();
        place.window -= piece.len() as i64;
        self.window -= piece.len() as i64;
        self.uploads -= usize::from(is_last);
    }

    pub(crate) fn cancel(&mut self, place: usize) -> Option<InFlight> {
        let stream = self.streams[place];
        if stream != 0 {
            frame::push_cancel(&mut self.out, stream);
            self.release_stream(place);
        }
        self.take_request(place)
    }

    pub(crate) fn receive_frames(
        &mut self,
        mut bytes: &[u8],
        ended: &mut Vec<StreamEnd>,
    ) -> Result<(), ErrorKind> {
        loop {
            match self.reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => self.on_frame(frame, ended),
                Err(broken) => Err(broken),
            }
            .map_err(|_| ErrorKind::Protocol)?;
        }
    }

    fn on_frame(
        &mut self,
        frame: Http2Frame<'_>,
        ended: &mut Vec<StreamEnd>,
    ) -> Result<(), Http2Violation> {
        // The first frame of a server is its settings.
        if !self.is_settled && !matches!(frame, Http2Frame::Settings(_)) {
            return Err(Http2Violation::Protocol);
        }
        match frame {
            Http2Frame::Headers { stream, is_last } => {
                let head = self.decoder.decode_block(&self.reader.block)?;
                if let Some(place) = self.place_of(stream)? {
                    self.places[place].answer.take_head(&head, is_last)?;
                    if is_last {
                        self.finish_request(place, ended);
                    }
                }
            }
            Http2Frame::Data {
                stream,
                piece,
                flow,
                is_last,
            } => {
                give_back(&mut self.received, flow, 0, &mut self.out);
                if let Some(place) = self.place_of(stream)? {
                    let room = &mut self.places[place];
                    room.answer.take_body(piece)?;
                    if let Some(search) = &mut room.search {
                        search.feed(piece);
                    }
                    if is_last {
                        self.finish_request(place, ended);
                    } else {
                        give_back(&mut room.received, flow, stream, &mut self.out);
                    }
                }
            }
            Http2Frame::Reset { stream } => {
                if let Some(place) = self.place_of(stream)? {
                    self.release_stream(place);
                    let result = Err(ErrorKind::Reset);
                    ended.push(StreamEnd { place, result });
                }
            }
            Http2Frame::Settings(settings) => {
                self.apply(settings)?;
                self.queue_reply(frame::SETTINGS, &[])?;
            }
            Http2Frame::Ping(octets) => {
                self.queue_reply(frame::PING, &octets)?;
            }
            Http2Frame::GoAway { last } => self.go_away(last, ended),
            Http2Frame::Window {
                stream: 0,
                increment,
            } => widen(&mut self.window, increment)?,
            Http2Frame::Window { stream, increment } => {
                if let Some(place) = self.place_of(stream)? {
                    widen(&mut self.places[place].window, increment)?;
                }
            }
        }
        Ok(())
    }

    fn queue_reply(&mut self, kind: u8, payload: &[u8]) -> Result<(), Http2Violation> {
        self.replies += 1;
        if self.replies > MOST_REPLIES {
            return Err(Http2Violation::Protocol);
        }
        frame::push_frame(&mut self.out, kind, frame::ACK, 0, payload);
        Ok(())
    }

    /// The place of a stream; `None` when it has ended. One that was never opened is an error.
    fn place_of(&self, stream: u32) -> Result<Option<usize>, Http2Violation> {
        if stream >= self.next_stream || stream.is_multiple_of(2) {
            return Err(Http2Violation::Protocol);
        }
        Ok(self.streams.iter().position(|s| *s == stream))
    }

    fn apply(&mut self, settings: Http2Settings) -> Result<(), Http2Violation> {
        self.is_settled = true;
        if let Some(size) = settings.table_size {
            self.encoder.resize(size);
        }
        if let Some(max) = settings.max_streams {
            self.max_streams = max as usize;
        }
        if let Some(max) = settings.max_frame {
            self.max_payload = max as usize;
        }
        if let Some(initial) = settings.initial_window {
            let change = i64::from(initial) - self.initial_window;
            self.initial_window = i64::from(initial);
            for (place, _) in self.active_places() {
                place.window += change;
                if place.window > i64::from(MAX_WINDOW) {
                    return Err(Http2Violation::Protocol);
                }
            }
        }
        Ok(())
    }

    /// Streams after the last one were not processed: they are sent again on the next connection,
    /// once (RFC 9113 §6.8).
    fn go_away(&mut self, last: u32, ended: &mut Vec<StreamEnd>) {
        self.is_closing = true;
        for place in 0..self.places.len() {
            if self.streams[place] <= last {
                continue;
            }
            self.release_stream(place);
            let Some(request) = &mut self.places[place].request else {
                continue;
            };
            if request.is_repeated {
                let result = Err(ErrorKind::Closed);
                ended.push(StreamEnd { place, result });
            } else {
                request.is_repeated = true;
                request.sent = 0;
                self.waiting.push_back(place);
            }
        }
    }

    fn active_places(&mut self) -> impl Iterator<Item = (&mut StreamRoom, u32)> {
        let places = self.places.iter_mut().zip(self.streams.iter().copied());
        places.filter(|(_, stream)| *stream != 0)
    }

    fn finish_request(&mut self, place: usize, ended: &mut Vec<StreamEnd>) {
        if self.places[place].body_sent < self.places[place].body_length {
            // The server wants no more of the body (RFC 9113 §8.1).
            frame::push_cancel(&mut self.out, self.streams[place]);
        }
        self.release_stream(place);
        let room = &mut self.places[place];
        let found = room.search.as_mut().is_none_or(BodySearch::finish_body);
        let response = room.answer.finish_answer(room.head_only);
        let result = response.map(|response| (response, found));
        let result = result.ok_or(ErrorKind::Protocol);
        ended.push(StreamEnd { place, result });
    }

    fn release_stream(&mut self, place: usize) {
        let room = &mut self.places[place];
        self.uploads -= usize::from(room.body_sent < room.body_length);
        room.body_length = 0;
        room.body_sent = 0;
        self.streams[place] = 0;
        self.active -= 1;
    }
}

/// Counts received octets; returns the window to the peer when most are used up.
fn give_back(received: &mut u32, flow: u32, stream: u32, out: &mut Vec<u8>) {
    *received += flow;
    if *received >= CREDIT {
        frame::push_window_update(out, stream, *received);
        *received = 0;
    }
}

fn widen(window: &mut i64, increment: u32) -> Result<(), Http2Violation> {
    *window += i64::from(increment);
    (*window <= i64::from(MAX_WINDOW))
        .then_some(())
        .ok_or(Http2Violation::Protocol)
}
