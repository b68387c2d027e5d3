//! Frames as bytes (RFC 9113 §4.1, §6): their numbers, and the frames that a client writes.

use super::settings;

/// How a client that knows its server begins. Source: RFC 9113 section 3.4.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const HEADER: usize = 9;
/// Largest payload that this side accepts: the default, never raised.
pub(super) const MAX_PAYLOAD: usize = 1 << 14;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

/// Error code of a RST_STREAM that gives a request up (RFC 9113 §7).
const CANCEL: u32 = 8;

pub(super) fn push_preface(out: &mut Vec<u8>) {
    out.extend_from_slice(PREFACE);
    push_frame(out, SETTINGS, 0, 0, &settings::own_settings());
    // The connection's window begins at 65,535 whatever the settings say.
    push_window_update(out, 0, settings::MAX_WINDOW - 65_535);
}

pub(super) fn frame_header(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEADER] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

pub(super) fn push_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&frame_header(payload.len(), kind, flags, stream));
    out.extend_from_slice(payload);
}

pub(super) fn push_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    push_frame(out, WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

pub(super) fn push_cancel(out: &mut Vec<u8>, stream: u32) {
    push_frame(out, RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
}

/// Ends a HEADERS frame with its header at `at` in `out`, followed by the block: fills the header
/// in, or cuts a block that is too long into CONTINUATIONs.
pub(super) fn close_headers(
    out: &mut Vec<u8>,
    at: usize,
    stream: u32,
    is_last: bool,
    max_payload: usize,
) {
    let flags = if is_last { END_STREAM } else { 0 };
    let length = out.len() - at - HEADER;
    if length <= max_payload {
        let header = frame_header(length, HEADERS, flags | END_HEADERS, stream);
        out[at..at + HEADER].copy_from_slice(&header);
        return;
    }
    let block = out.split_off(at + HEADER);
    out.truncate(at);
    let count = block.len().div_ceil(max_payload);
    for (nth, piece) in block.chunks(max_payload).enumerate() {
        let end = if nth + 1 == count { END_HEADERS } else { 0 };
        match nth {
            0 => push_frame(out, HEADERS, flags | end, stream, piece),
            _ => push_frame(out, CONTINUATION, end, stream, piece),
        }
    }
}
