//! Cuts the bytes of a connection into frames, however they arrive.
//!
//! Owns the rules of the frames themselves: lengths, padding, the order of HEADERS and
//! CONTINUATION. What a frame means for a stream is the session's. DATA is handed on in pieces as
//! it comes and never kept.

use super::frame::{self, HEADER, MAX_PAYLOAD};
use super::{Http2Settings, Http2Violation};

/// Longest header block, over all its frames.
const MAX_BLOCK: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2Frame<'a> {
    Data {
        stream: u32,
        piece: &'a [u8],
        flow: u32,
        is_last: bool,
    },
    Headers {
        stream: u32,
        is_last: bool,
    },
    Reset {
        stream: u32,
    },
    Settings(Http2Settings),
    Ping([u8; 8]),
    /// The connection takes no more streams than those up to the last one.
    GoAway {
        last: u32,
    },
    Window {
        stream: u32,
        increment: u32,
    },
}

#[derive(Debug, Clone, Copy, Default)]
struct FrameHeader {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

#[derive(Debug, Clone, Copy, Default)]
enum FrameReaderState {
    #[default]
    Header,
    PadLength(FrameHeader),
    /// Inside the body of a DATA frame, followed by `padding` octets (including the length field).
    Data {
        left: usize,
        padding: usize,
        header: FrameHeader,
    },
    Padding(usize),
    Payload(FrameHeader),
}

#[derive(Debug, Default)]
pub struct FrameReader {
    state: FrameReaderState,
    partial: Vec<u8>,
    /// The header block of the last [`Http2Frame::Headers`].
    pub block: Vec<u8>,
    open_block: Option<(u32, bool)>,
    /// A client writes these frames, not a server.
    pub is_from_client: bool,
    /// When the bytes came that come next; any clock.
    pub now: u64,
    /// When the first byte of the last [`Http2Frame::Headers`] came.
    pub head_begin: u64,
    frame_begin: u64,
    allowed: usize,
}

impl FrameReader {
    /// The receiver of these frames allows payloads of this length (SETTINGS_MAX_FRAME_SIZE).
    pub fn allow_payload(&mut self, octets: u32) {
        self.allowed = self.allowed.max(octets as usize);
    }

    pub fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<Http2Frame<'a>>, Http2Violation> {
        loop {
            match self.state {
                FrameReaderState::Header => {
                    if self.partial.is_empty() {
                        self.frame_begin = self.now;
                    }
                    let Some(header) = self.gather_octets(bytes, HEADER, &mut |_, header| {
                        Ok(FrameHeader {
                            length: u32::from_be_bytes([0, header[0], header[1], header[2]])
                                as usize,
                            kind: header[3],
                            flags: header[4],
                            stream: read_31_bits(&header[5..]),
                        })
                    })?
                    else {
                        return Ok(None);
                    };
                    self.state = self.begin_payload(header)?;
                }
                FrameReaderState::PadLength(header) => {
                    let mut octet = |_: &mut Self, octet: &[u8]| Ok(usize::from(octet[0]));
                    let Some(padding) = self.gather_octets(bytes, 1, &mut octet)? else {
                        return Ok(None);
                    };
                    let padding = padding + 1;
                    let left = header.length.checked_sub(padding);
                    self.state = FrameReaderState::Data {
                        left: left.ok_or(Http2Violation::Protocol)?,
                        padding,
                        header,
                    };
                }
                FrameReaderState::Data {
                    left,
                    padding,
                    header,
                } => {
                    if left > 0 && bytes.is_empty() {
                        return Ok(None);
                    }
                    let (piece, rest) = bytes.split_at(left.min(bytes.len()));
                    *bytes = rest;
                    let left = left - piece.len();
                    let is_end = left == 0;
                    self.state = if is_end {
                        FrameReaderState::Padding(padding.saturating_sub(1))
                    } else {
                        FrameReaderState::Data {
                            left,
                            padding,
                            header,
                        }
                    };
                    let flow = piece.len() + if is_end { padding } else { 0 };
                    return Ok(Some(Http2Frame::Data {
                        stream: header.stream,
                        piece,
                        flow: flow as u32,
                        is_last: is_end && header.flags & frame::END_STREAM != 0,
                    }));
                }
                FrameReaderState::Padding(0) => self.state = FrameReaderState::Header,
                FrameReaderState::Padding(left) => {
                    if bytes.is_empty() {
                        return Ok(None);
                    }
                    let taken = left.min(bytes.len());
                    *bytes = &bytes[taken..];
                    self.state = FrameReaderState::Padding(left - taken);
                }
                FrameReaderState::Payload(header) => {
                    let mut handle = |reader: &mut Self, payload: &[u8]| {
                        reader.state = FrameReaderState::Header;
                        reader.read_payload(header, payload)
                    };
                    match self.gather_octets(bytes, header.length, &mut handle)? {
                        None => return Ok(None),
                        Some(None) => {}
                        Some(frame) => return Ok(frame),
                    }
                }
            }
        }
    }

    fn gather_octets<T>(
        &mut self,
        bytes: &mut &[u8],
        length: usize,
        handle: &mut impl FnMut(&mut Self, &[u8]) -> Result<T, Http2Violation>,
    ) -> Result<Option<T>, Http2Violation> {
        let (taken, rest) = bytes.split_at(bytes.len().min(length - self.partial.len()));
        *bytes = rest;
        if self.partial.is_empty() && taken.len() == length {
            return handle(self, taken).map(Some);
        }
        self.partial.extend_from_slice(taken);
        if self.partial.len() < length {
            return Ok(None);
        }
        let mut whole = std::mem::take(&mut self.partial);
        let handled = handle(self, &whole);
        whole.clear();
        self.partial = whole;
        handled.map(Some)
    }

    fn begin_payload(&self, header: FrameHeader) -> Result<FrameReaderState, Http2Violation> {
        // Only DATA is never kept.
        let allowed = match header.kind {
            frame::DATA => self.allowed,
            _ => self.allowed.min(MAX_BLOCK),
        };
        if header.length > allowed.max(MAX_PAYLOAD) {
            return Err(Http2Violation::FrameSize);
        }
        let is_continuation = header.kind == frame::CONTINUATION;
        let belongs = match self.open_block {
            Some((stream, _)) => is_continuation && stream == header.stream,
            None => !is_continuation,
        };
        // DATA, HEADERS and RST_STREAM belong to a stream; SETTINGS, PING and GOAWAY to none.
        let right_stream = match header.kind {
            frame::DATA | frame::HEADERS | frame::RST_STREAM => header.stream != 0,
            frame::SETTINGS | frame::PING | frame::GOAWAY => header.stream == 0,
            _ => true,
        };
        if !belongs || !right_stream {
            return Err(Http2Violation::Protocol);
        }
        if header.kind == frame::PUSH_PROMISE {
            return Err(Http2Violation::Push);
        }
        Ok(match header.kind {
            frame::DATA if header.flags & frame::PADDED != 0 && header.length == 0 => {
                return Err(Http2Violation::FrameSize);
            }
            frame::DATA if header.flags & frame::PADDED != 0 => FrameReaderState::PadLength(header),
            frame::DATA => FrameReaderState::Data {
                left: header.length,
                padding: 0,
                header,
            },
            _ => FrameReaderState::Payload(header),
        })
    }

    fn read_payload<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<Http2Frame<'a>>, Http2Violation> {
        let stream = header.stream;
        let is_last = header.flags & frame::END_STREAM != 0;
        let sized = |right: bool| right.then_some(()).ok_or(Http2Violation::FrameSize);
        Ok(match header.kind {
            frame::HEADERS => {
                let mut block = strip_padding(header, payload)?;
                if header.flags & frame::PRIORITY != 0 {
                    block = block.get(5..).ok_or(Http2Violation::FrameSize)?;
                }
                self.block.clear();
                self.head_begin = self.frame_begin;
                self.add_block(block, (stream, is_last), header.flags)?
            }
            frame::CONTINUATION => {
                let open = self.open_block.ok_or(Http2Violation::Protocol)?;
                self.add_block(payload, open, header.flags)?
            }
            frame::RST_STREAM => {
                sized(payload.len() == 4)?;
                Some(Http2Frame::Reset { stream })
            }
            frame::SETTINGS if header.flags & frame::ACK != 0 => {
                sized(payload.is_empty())?;
                None
            }
            frame::SETTINGS => {
                let settings = Http2Settings::parse_settings(payload, self.is_from_client)?;
                Some(Http2Frame::Settings(settings))
            }
            frame::PING => {
                let octets = payload.try_into().map_err(|_| Http2Violation::FrameSize)?;
                (header.flags & frame::ACK == 0).then_some(Http2Frame::Ping(octets))
            }
            frame::GOAWAY => {
                sized(payload.len() >= 8)?;
                Some(Http2Frame::GoAway {
                    last: read_31_bits(payload),
                })
            }
            frame::WINDOW_UPDATE => {
                sized(payload.len() == 4)?;
                let increment = read_31_bits(payload);
                if increment == 0 {
                    return Err(Http2Violation::Protocol);
                }
                Some(Http2Frame::Window { stream, increment })
            }
            // PRIORITY, and types of extensions that were not negotiated.
            _ => None,
        })
    }

    fn add_block<'a>(
        &mut self,
        piece: &[u8],
        (stream, is_last): (u32, bool),
        flags: u8,
    ) -> Result<Option<Http2Frame<'a>>, Http2Violation> {
        if self.block.len() + piece.len() > MAX_BLOCK {
            return Err(Http2Violation::HeadTooLarge);
        }
        self.block.extend_from_slice(piece);
        if flags & frame::END_HEADERS == 0 {
            self.open_block = Some((stream, is_last));
            return Ok(None);
        }
        self.open_block = None;
        Ok(Some(Http2Frame::Headers { stream, is_last }))
    }
}

fn strip_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], Http2Violation> {
    if header.flags & frame::PADDED == 0 {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(Http2Violation::FrameSize)?;
    let length = rest.len().checked_sub(usize::from(*padding));
    Ok(&rest[..length.ok_or(Http2Violation::Protocol)?])
}

fn read_31_bits(octets: &[u8]) -> u32 {
    u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]) & (u32::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame::push_frame(&mut out, kind, flags, stream, payload);
        out
    }

    /// Everything the reader says, without the cuts of DATA.
    fn read(bytes: &[u8], size: usize) -> Result<Vec<String>, Http2Violation> {
        let mut reader = FrameReader::default();
        let mut said = Vec::new();
        let mut body = Vec::new();
        let mut counted = 0;
        for mut piece in bytes.chunks(size.max(1)) {
            while let Some(frame) = reader.next(&mut piece)? {
                match frame {
                    Http2Frame::Data {
                        piece,
                        flow,
                        is_last,
                        stream,
                    } => {
                        body.extend_from_slice(piece);
                        counted += flow;
                        if is_last {
                            said.push(format!("{stream} {body:?} {counted}"));
                        }
                    }
                    Http2Frame::Headers { .. } => {
                        said.push(format!("{frame:?} {:?}", reader.block))
                    }
                    other => said.push(format!("{other:?}")),
                }
            }
            assert!(piece.is_empty());
        }
        Ok(said)
    }

    #[test]
    fn frames_are_read_however_they_are_cut() {
        let bytes = [
            frame(frame::SETTINGS, 0, 0, &settings_payload()),
            frame(frame::SETTINGS, frame::ACK, 0, &[]),
            frame(frame::PING, 0, 0, b"12345678"),
            // Padding of 2 and a priority, then the rest of the block.
            frame(
                frame::HEADERS,
                frame::PADDED | frame::PRIORITY,
                1,
                &[2, 0, 0, 0, 0, 9, 0x88, 0, 0],
            ),
            frame(frame::CONTINUATION, frame::END_HEADERS, 1, &[0x87]),
            frame(frame::DATA, 0, 1, b"ab"),
            frame(
                frame::DATA,
                frame::PADDED | frame::END_STREAM,
                1,
                b"\x03cd\0\0\0",
            ),
            frame(0xbe, 0xff, 7, b"an extension"),
            frame(frame::WINDOW_UPDATE, 0, 0, &[0x80, 0, 0, 5]),
            frame(frame::RST_STREAM, 0, 3, &[0, 0, 0, 8]),
            frame(frame::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0, b'x']),
        ]
        .concat();
        let whole = read(&bytes, bytes.len()).unwrap();
        insta::assert_snapshot!(whole.join("\n"), @r"
        Settings(Http2Settings { table_size: None, max_streams: Some(100), initial_window: None, max_frame: None })
        Ping([49, 50, 51, 52, 53, 54, 55, 56])
        Headers { stream: 1, is_last: false } [136, 135]
        1 [97, 98, 99, 100] 8
        Window { stream: 0, increment: 5 }
        Reset { stream: 3 }
        GoAway { last: 1 }
        ");
        for size in 1..20 {
            assert_eq!(read(&bytes, size).unwrap(), whole);
        }
    }

    fn settings_payload() -> [u8; 6] {
        [0, 3, 0, 0, 0, 100]
    }

    #[test]
    fn frames_in_the_wrong_place_or_of_the_wrong_size_are_refused() {
        let open = frame(frame::HEADERS, 0, 1, &[0x88]);
        for wrong in [
            frame(
                frame::PUSH_PROMISE,
                frame::END_HEADERS,
                1,
                &[0, 0, 0, 2, 0x88],
            ),
            frame(frame::CONTINUATION, frame::END_HEADERS, 1, &[0x88]),
            [open.clone(), frame(frame::DATA, 0, 1, b"x")].concat(),
            [open.clone(), frame(frame::CONTINUATION, 0, 3, &[])].concat(),
            frame(frame::DATA, 0, 0, b"x"),
            frame(frame::DATA, frame::PADDED, 1, b"\x05ab"),
            frame(frame::DATA, frame::PADDED, 1, b""),
            frame(
                frame::HEADERS,
                frame::PADDED | frame::END_HEADERS,
                1,
                &[9, 0x88],
            ),
            frame(frame::SETTINGS, frame::ACK, 0, &[0; 6]),
            frame(frame::SETTINGS, 0, 1, &[]),
            frame(frame::PING, 0, 0, &[0; 7]),
            frame(frame::RST_STREAM, 0, 1, &[0; 5]),
            frame(frame::GOAWAY, 0, 0, &[0; 4]),
            frame(frame::WINDOW_UPDATE, 0, 1, &[0; 4]),
            frame::frame_header(MAX_PAYLOAD + 1, frame::DATA, 0, 1).to_vec(),
        ] {
            assert!(read(&wrong, 5).is_err(), "{wrong:?}");
        }
        let mut endless = open;
        for _ in 0..5 {
            endless.extend(frame(frame::CONTINUATION, 0, 1, &[0; MAX_PAYLOAD]));
        }
        assert_eq!(read(&endless, 1 << 20), Err(Http2Violation::HeadTooLarge));
    }

    #[test]
    fn long_frames_are_read_where_their_receiver_allows_them() {
        let mut reader = FrameReader::default();
        reader.allow_payload(1 << 20);
        let data = frame(frame::DATA, frame::END_STREAM, 1, &[7; 1 << 20]);
        let mut rest = data.as_slice();
        let ended = reader.next(&mut rest);
        assert!(matches!(
            ended,
            Ok(Some(Http2Frame::Data { is_last: true, .. }))
        ));
        // What is kept stays as short as a block.
        let head = frame::frame_header(MAX_BLOCK + 1, frame::HEADERS, 0, 1);
        assert_eq!(reader.next(&mut &head[..]), Err(Http2Violation::FrameSize));
    }

    #[test]
    fn a_head_begins_with_the_first_byte_of_its_frame() {
        let ping = frame(frame::PING, frame::ACK, 0, b"12345678");
        let head = frame(frame::HEADERS, 0, 1, &[0x88]);
        let rest = frame(frame::CONTINUATION, frame::END_HEADERS, 1, &[]);
        let bytes = [ping, head, rest].concat();
        let mut reader = FrameReader::default();
        for (at, byte) in bytes.iter().enumerate() {
            reader.now = at as u64;
            let _ = reader.next(&mut std::slice::from_ref(byte));
        }
        assert_eq!(reader.head_begin, 17);
        reader.now = 100;
        assert!(reader.next(&mut &bytes[..]).unwrap().is_some());
        assert_eq!(reader.head_begin, 100);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_cuts_make_no_difference(
            frames in proptest::collection::vec(
                (0u8..11, any::<u8>(), 0u32..4, proptest::collection::vec(any::<u8>(), 0..30)),
                0..8,
            ),
            rest in proptest::collection::vec(any::<u8>(), 0..30),
            size in 1usize..40,
        ) {
            let mut bytes = Vec::new();
            for (kind, flags, stream, payload) in frames {
                bytes.extend(frame(kind, flags, stream, &payload));
            }
            bytes.extend(rest);
            let whole = read(&bytes, bytes.len());
            let pieces = read(&bytes, size);
            prop_assert_eq!(whole, pieces);
        }
    }
}
