//! What ends a connection of HTTP/2: bytes that break it.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Http2Violation {
    /// A frame is longer than allowed, or has a length its type does not allow.
    #[error("frame of a wrong size")]
    FrameSize,
    /// A frame that must not come here, or a forbidden value in a field.
    #[error("frame that breaks the protocol")]
    Protocol,
    #[error("server push")]
    Push,
    #[error("header block that cannot be decoded")]
    Compression,
    /// A header block of more than 64 KiB.
    #[error("header block too large")]
    HeadTooLarge,
}
