//! HTTP/2 (RFC 9113) for a client that sends many small requests: frames, header compression, and
//! the streams of one connection.
//!
//! Owns what is particular to HTTP/2 and nothing of sockets, clocks or schedules. It keeps as
//! little as a load generator needs: of an answer's header fields the status and the length, of
//! its body the count. Server push is off, priorities are not used. Parsing is public for the
//! fuzz target.

mod encoder;
mod frame;
mod hpack;
mod huffman;
mod reader;
mod session;
mod settings;

pub use hpack::{DecodedHead, HpackDecoder};
pub use reader::{FrameReader, Http2Frame};
pub use settings::Http2Settings;

pub(crate) use encoder::{FixedFields, HeaderFields, HpackEncoder};
pub(crate) use session::{Http2Connection, StreamEnd};

/// Bytes that break HTTP/2; the connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Http2Violation {
    /// A frame is longer than allowed, or has a length its type does not allow.
    #[error("frame of a wrong size")]
    FrameSize,
    /// A frame that must not come here, or a field of it with a forbidden value.
    #[error("frame that breaks the protocol")]
    Protocol,
    /// A header block that cannot be decoded.
    #[error("header block that cannot be decoded")]
    Compression,
    /// A header block of more than 64 KiB.
    #[error("header block too large")]
    HeadTooLarge,
}
