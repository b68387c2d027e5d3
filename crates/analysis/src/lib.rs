//! What the numbers mean: verdicts, intervals, search rules, recommendations.
//!
//! Pure: no I/O, no clock, randomness only from a seed that is passed in. Owns the record of a
//! trial ([`record`]), so that every result can be judged again from it, on another machine.
//! Read [`record`] first, then [`slo`].

pub mod record;
pub mod slo;
pub mod wire;
