//! What a container's limits mean to a JVM: units, limits, ergonomics, memory regions.
//!
//! Owns every formula that turns a limit into a JVM option. Never does I/O, never reads a clock,
//! never depends on another crate: the recommender and the container launcher share it, so they
//! cannot compute different options. Read [`units`] first.

pub mod units;

pub use units::{Bytes, Cpus, ParseUnitError};
