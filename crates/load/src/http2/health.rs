//! One call of `grpc.health.v1.Health/Check` about the whole server, and its answer.
//!
//! Source: github.com/grpc/grpc/blob/master/doc/health-checking.md. Owns no socket.

use super::frame::{self, DATA, END_HEADERS, END_STREAM, HEADERS, MAX_PAYLOAD};
use super::{FrameReader, HpackDecoder, Http2Frame};

const STREAM: u32 = 1;

/// A header block (RFC 7541): POST and http of the static table, then values without Huffman codes
/// under the static names `:path`, `:authority` and `content-type`, and the new name `te`.
const FIELDS: [(&[u8], &str); 5] = [
    (&[0x83, 0x86], ""),
    (&[0x04], "/grpc.health.v1.Health/Check"),
    (&[0x01], "localhost"),
    (&[0x0f, 0x10], "application/grpc"),
    (b"\0\x02te", "trailers"),
];

/// Prefix of an uncompressed message without a byte: `service` is empty.
const WHOLE_SERVER: [u8; 5] = [0; 5];

/// A message of two bytes: `status` (field 1) is SERVING (1).
const SERVING: [u8; 7] = [0, 0, 0, 0, 2, 0x08, 1];

#[derive(Debug, Default)]
pub struct HealthCheck {
    reader: FrameReader,
    decoder: HpackDecoder,
    message: Vec<u8>,
}

impl HealthCheck {
    /// All that is sent on a new connection.
    pub fn request_bytes() -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in FIELDS {
            block.extend_from_slice(name);
            if !value.is_empty() {
                block.push(value.len() as u8);
                block.extend_from_slice(value.as_bytes());
            }
        }
        let mut out = Vec::new();
        frame::push_preface(&mut out);
        frame::push_frame(&mut out, HEADERS, END_HEADERS, STREAM, &block);
        frame::push_frame(&mut out, DATA, END_STREAM, STREAM, &WHOLE_SERVER);
        out
    }

    /// Takes bytes of the answer; `None` while more are to come. Errors: Why the server is not ready,
    /// in words.
    pub fn read_answer(&mut self, mut bytes: &[u8]) -> Option<Result<(), String>> {
        loop {
            let is_last = match self.reader.next(&mut bytes) {
                Ok(None) => return None,
                Err(violation) => {
                    return Some(Err(format!("the answer is not HTTP/2: {violation}")));
                }
                Ok(Some(Http2Frame::Reset { .. } | Http2Frame::GoAway { .. })) => {
                    return Some(Err("the call was refused".to_owned()));
                }
                Ok(Some(Http2Frame::Data { piece, is_last, .. })) => {
                    let room = MAX_PAYLOAD.saturating_sub(self.message.len());
                    self.message.extend(piece.iter().take(room));
                    is_last.then_some(None)
                }
                Ok(Some(Http2Frame::Headers { is_last, .. })) => {
                    match self.decoder.decode_block(self.reader.header_block()) {
                        Err(violation) => return Some(Err(violation.to_string())),
                        Ok(head) => is_last.then_some(head.grpc_status),
                    }
                }
                Ok(Some(_)) => None,
            };
            match is_last {
                None => {}
                Some(Some(0)) if self.message == SERVING => return Some(Ok(())),
                Some(Some(0)) => return Some(Err("it is not SERVING".to_owned())),
                Some(Some(12)) => {
                    return Some(Err("it has no service grpc.health.v1.Health".to_owned()));
                }
                Some(status) => {
                    let status = status.map_or_else(|| "none".to_owned(), |code| code.to_string());
                    return Some(Err(format!("gRPC status {status}")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Answers of grpcio 1.85 with grpcio-health-checking, as read from the socket, in hexadecimal.
    const BEGIN: &str = "000018040000000000000400400000000500400000000600004000fe0300000001000004080000000000003f0001000000040100000000";
    const HEAD: &str = "00004e01040000000188400c636f6e74656e742d74797065106170706c69636174696f6e2f677270634014677270632d6163636570742d656e636f64696e67176964656e746974792c206465666c6174652c20677a6970";
    const TRAILERS: &str =
        "00001e010500000001400b677270632d7374617475730130000c677270632d6d65737361676500";
    const NO_SERVICE: &str = "00005001050000000188400c636f6e74656e742d74797065106170706c69636174696f6e2f67727063400b677270632d737461747573023132000c677270632d6d657373616765114d6574686f64206e6f7420666f756e6421";

    fn answer(parts: &[&str], at_once: usize) -> Option<Result<(), String>> {
        let text = parts.concat();
        let octet = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..text.len()).step_by(2).map(octet).collect();
        let mut check = HealthCheck::default();
        bytes
            .chunks(at_once)
            .find_map(|some| check.read_answer(some))
    }

    #[test]
    fn a_server_is_ready_when_it_says_serving_however_the_bytes_come() {
        let message = |status| format!("000007000000000001000000000208{status}");
        let (serving, not) = (message("01"), message("02"));
        for at_once in [1, 7, 1000] {
            let all = [BEGIN, HEAD, &serving, TRAILERS];
            assert_eq!(answer(&all, at_once), Some(Ok(())));
            assert_eq!(answer(&all[..3], at_once), None);
            let why = |parts: &[&str]| {
                answer(parts, at_once)
                    .and_then(Result::err)
                    .unwrap_or_default()
            };
            assert_eq!(why(&[BEGIN, HEAD, &not, TRAILERS]), "it is not SERVING");
            let said = "it has no service grpc.health.v1.Health";
            assert_eq!(why(&[BEGIN, NO_SERVICE]), said);
            assert!(
                why(&["485454502f312e31203430302042616420526571756573740d0a"])
                    .contains("not HTTP/2")
            );
        }
    }
}
