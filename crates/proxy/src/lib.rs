//! The proxy between an application and its dependencies: slow, unstable or absent on purpose, or a
//! stub instead.
//!
//! Owns the toxics (named and shaped as Toxiproxy's), their effect on the bytes of a connection,
//! the forwarding loop, and the counters. One process for all dependencies of a trial, one thread,
//! one epoll. Knows no trial and no verdict: `loadline-trial` starts it, gives it its orders and
//! puts its counters into the record. Read in this order: [`toxic`] (the faults), `lane` (their
//! effect on bytes, without any socket), `forward` (the loop), [`stub`] (answers without a
//! dependency), [`part`] (the process).

mod connection;
mod delay;
mod forward;
pub mod front;
mod lane;
mod link;
mod meter;
mod network;
mod observe;
pub mod part;
mod request;
mod stalls;
pub mod stub;
pub mod toxic;

pub use delay::Delay;
#[cfg(fuzzing)]
pub use observe::observe_pieces;
pub use toxic::{Toxic, ToxicEffect, ToxicSpan, ToxicStream};
