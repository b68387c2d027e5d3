//! The answer on one stream: what its heads said, and how much of its body came.
//!
//! Owns the order of heads, body and trailers (RFC 9113 section 8.1), and whether a body has the
//! length that its head says.

use super::{DecodedHead, Http2Violation, hpack};
use crate::response::Response;

#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerProgress {
    /// 0 before the head.
    status: u16,
    content_length: Option<u64>,
    body_bytes: u64,
    is_grpc: bool,
    grpc_status: Option<u16>,
}

impl AnswerProgress {
    /// Takes the next head: interim, the answer's, or its trailers. Errors: One that must not come
    /// here.
    pub fn take_head(&mut self, head: &DecodedHead, is_last: bool) -> Result<(), Http2Violation> {
        match head.status {
            Some(100..=199) if !is_last && self.status == 0 => return Ok(()),
            Some(status @ 200..) if self.status == 0 => {
                self.status = status;
                self.content_length = head.content_length;
                self.is_grpc = head.is_grpc;
            }
            // Trailers end an answer.
            None if self.status != 0 && is_last => {}
            _ => return Err(Http2Violation::Protocol),
        }
        self.grpc_status = head.grpc_status.or(self.grpc_status);
        Ok(())
    }

    /// Counts a piece of the body. Errors: It came before the head.
    pub fn take_body(&mut self, piece: &[u8]) -> Result<(), Http2Violation> {
        self.body_bytes += piece.len() as u64;
        match self.status {
            0 => Err(Http2Violation::Protocol),
            _ => Ok(()),
        }
    }

    /// The answer once its stream has ended; `None` if its body has another length than its head
    /// said.
    pub fn finish_answer(&self, head_only: bool) -> Option<Response> {
        let has_body = !head_only && !matches!(self.status, 204 | 304);
        let is_whole = self.content_length.is_none_or(|l| l == self.body_bytes);
        (is_whole || !has_body).then(|| Response {
            status: self.status,
            keep_alive: true,
            body_bytes: self.body_bytes,
            grpc_status: self
                .grpc_status
                .or(self.is_grpc.then_some(hpack::GRPC_UNKNOWN)),
        })
    }
}
