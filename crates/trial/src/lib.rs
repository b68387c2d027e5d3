//! What a trial is, in words that cross processes and machines: the order, its events, a refusal.
//!
//! Owns plain types, their serialised form, and the file they travel in ([`log`]). Runs nothing,
//! reads no clock, judges nothing: a host carries an [`Order`] out and answers in [`Event`]s,
//! whichever machine it is on.

mod dependency;
mod event;
pub mod log;
mod order;
mod refusal;

pub use dependency::{Dependency, Kept, KeptDependency, Namespace, Proxied, Scope, Stub};
pub use event::{Ending, Event, Progress};
pub use order::{
    Account, App, Engine, EngineKind, Image, LoadPhase, Network, Order, Readiness, Sampling, Soak,
    Writable,
};
pub use refusal::Refusal;
