//! HTTP/2 (RFC 9113) for a client that sends many small requests: frames, header compression, and
//! the streams of one connection. The front reads both directions of other clients with the same
//! frames, header blocks and answers.
//!
//! Owns everything specific to HTTP/2, but no sockets, clocks or schedules. It keeps as little as a
//! load generator needs: from a response's header fields the status and the length, from its body
//! the count. Server push is off, priorities are not used.

mod answer;
mod call;
mod encoder;
mod frame;
mod health;
mod hpack;
mod huffman;
mod message;
mod reader;
mod session;
mod settings;
mod violation;

pub use answer::AnswerProgress;
pub use call::{GrpcAnswer, GrpcCall};
pub use frame::PREFACE;
pub use health::HealthCheck;
pub use hpack::{DecodedHead, HpackDecoder};
pub use message::push_message;
pub use reader::{FrameReader, Http2Frame};
pub use settings::Http2Settings;
pub use violation::Http2Violation;

pub(crate) use encoder::{FixedFields, HeaderFields, HpackEncoder};
pub(crate) use session::{Http2Connection, StreamEnd};
