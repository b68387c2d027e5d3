//! The proxy between an application and what it depends on: slow, unstable and absent on purpose, or
//! a stub in its place.
//!
//! Owns the toxics (named and shaped as Toxiproxy's), what they do to the bytes of a connection, the
//! loop that forwards, and what is counted on the way. One process for all dependencies of a trial,
//! one thread, one epoll. Knows of no trial and no verdict: `loadline-trial` starts it, gives it its
//! orders and puts its counters into the record. Read in this order: [`toxic`] (what can be wrong),
//! `lane` (what becomes of bytes, without any socket), `forward` (the loop), [`stub`] (what answers
//! by itself), [`part`] (the process).

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
pub use toxic::{Toxic, ToxicEffect, ToxicSpan, ToxicStream};
