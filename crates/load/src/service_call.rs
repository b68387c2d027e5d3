//! A gRPC call of loadline's own to a running service, before any load: one connection, blocking,
//! with a deadline.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use crate::error::LoadError;
use crate::http2::{GrpcAnswer, GrpcCall};
use crate::plan::TlsSpec;
use crate::target::LoadTarget;
use crate::timed_stream::TimedStream;
use crate::tls::TlsSetup;

/// Sends a message to the method of a path, and waits for the end of the call. Errors: Why there is
/// no answer; a status other than OK is an answer.
pub fn call_service(
    target: &LoadTarget,
    tls: Option<&TlsSpec>,
    (path, message): (&str, &[u8]),
    within: Duration,
) -> Result<GrpcAnswer, LoadError> {
    let (_, stream) = target.connect()?;
    let mut timed = TimedStream::new(&stream, within);
    let request = GrpcCall::request_bytes(target.is_tls, &target.authority, path, message);
    let answer = match tls {
        None => exchange(&mut timed, &request),
        Some(spec) => {
            let mut session = TlsSetup::new(spec, true)?.begin_session()?;
            exchange(&mut rustls::Stream::new(&mut session, &mut timed), &request)
        }
    };
    answer.map_err(|why| LoadError::Target {
        authority: target.authority.clone(),
        why,
    })
}

fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> Result<GrpcAnswer, String> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    };
    stream.write_all(request).map_err(failed)?;
    let mut call = GrpcCall::default();
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => {
                return Err("the connection was closed before the end of the answer".to_owned());
            }
            Ok(length) => {
                if let Some(answer) = call.read_answer(&buffer[..length]) {
                    return answer;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
