//! One call of `grpc.health.v1.Health/Check` about the whole server, and its answer.
//!
//! Source: github.com/grpc/grpc/blob/master/doc/health-checking.md. Owns no socket.

use super::call::GrpcCall;

/// `status` (field 1) is SERVING (1).
const SERVING: [u8; 2] = [0x08, 1];

#[derive(Debug, Default)]
pub struct HealthCheck(GrpcCall);

impl HealthCheck {
    /// All that is sent on a new connection: a message without a byte, with an empty `service`.
    pub fn request_bytes() -> Vec<u8> {
        GrpcCall::request_bytes(false, "localhost", "/grpc.health.v1.Health/Check", &[])
    }

    /// Takes bytes of the answer; `None` while more are to come. Errors: Why the server is not ready,
    /// in words.
    pub fn read_answer(&mut self, bytes: &[u8]) -> Option<Result<(), String>> {
        let answer = self.0.read_answer(bytes)?;
        Some(answer.and_then(|answer| match answer.status {
            Some(0) if answer.messages == [SERVING] => Ok(()),
            Some(0) => Err("it is not SERVING".to_owned()),
            Some(12) => Err("it has no service grpc.health.v1.Health".to_owned()),
            Some(code) => Err(format!("gRPC status {code}")),
            None => Err("gRPC status none".to_owned()),
        }))
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
            // A web server's error page.
            let page = "0000020001000000017b7d";
            assert_eq!(why(&[BEGIN, HEAD, page]), "gRPC status none");
            assert!(
                why(&["485454502f312e31203430302042616420526571756573740d0a"])
                    .contains("not HTTP/2")
            );
        }
    }
}
