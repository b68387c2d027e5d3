//! One gRPC call on a new connection, and its whole answer, which a load never keeps.
//!
//! Source: github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. Owns no socket.

use super::encoder::{begin_literal, push_string};
use super::frame::{self, DATA, END_HEADERS, END_STREAM, HEADERS};
use super::message::{push_message, split_messages};
use super::{FrameReader, HpackDecoder, Http2Frame};

const STREAM: u32 = 1;
/// Fields of the static table (RFC 7541, appendix A).
const POST: u8 = 0x83;
const HTTP: u8 = 0x86;
const HTTPS: u8 = 0x87;
const LARGEST_ANSWER: usize = 16 << 20;

#[derive(Debug, Default)]
pub struct GrpcCall {
    reader: FrameReader,
    decoder: HpackDecoder,
    body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcAnswer {
    /// `None` if the call ended without one.
    pub status: Option<u16>,
    pub messages: Vec<Vec<u8>>,
}

impl GrpcCall {
    /// All that is sent on a new connection. The message fits into one frame of 16 KiB.
    pub fn request_bytes(is_tls: bool, authority: &str, path: &str, message: &[u8]) -> Vec<u8> {
        let mut block = vec![POST, if is_tls { HTTPS } else { HTTP }];
        for (name, value) in [
            (":path", path),
            (":authority", authority),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            block.extend(begin_literal(name, 0, 4));
            push_string(&mut block, value.as_bytes());
        }
        let mut body = Vec::new();
        push_message(&mut body, message);
        let mut out = Vec::new();
        frame::push_preface(&mut out);
        frame::push_frame(&mut out, HEADERS, END_HEADERS, STREAM, &block);
        frame::push_frame(&mut out, DATA, END_STREAM, STREAM, &body);
        out
    }

    /// Takes bytes of the answer; `None` while more are to come. Errors: Why there is no answer, in
    /// words.
    pub fn read_answer(&mut self, mut bytes: &[u8]) -> Option<Result<GrpcAnswer, String>> {
        loop {
            let status = match self.reader.next(&mut bytes) {
                Ok(None) => return None,
                Err(violation) => {
                    return Some(Err(format!("the answer is not HTTP/2: {violation}")));
                }
                Ok(Some(Http2Frame::Reset { .. } | Http2Frame::GoAway { .. })) => {
                    return Some(Err("the call was refused".to_owned()));
                }
                Ok(Some(Http2Frame::Data { piece, is_last, .. })) => {
                    if self.body.len() + piece.len() > LARGEST_ANSWER {
                        return Some(Err("the answer is larger than 16 MiB".to_owned()));
                    }
                    self.body.extend_from_slice(piece);
                    is_last.then_some(None)
                }
                Ok(Some(Http2Frame::Headers { is_last, .. })) => {
                    match self.decoder.decode_block(&self.reader.block) {
                        Err(violation) => return Some(Err(violation.to_string())),
                        Ok(head) => is_last.then_some(head.grpc_status),
                    }
                }
                Ok(Some(_)) => None,
            };
            if let Some(status) = status {
                // Without success the body need not be messages: a web server sends its error page.
                let messages = match status {
                    Some(0) => split_messages(&self.body),
                    _ => Ok(Vec::new()),
                };
                return Some(messages.map(|messages| GrpcAnswer { status, messages }));
            }
        }
    }
}
