//! loadline itself as a Job of the cluster, for searches that take hours: the *controller*.
//!
//! Owns how a result goes there and comes back. A loadline on a laptop and the controller
//! communicate through config maps that belong to the Job ([`pieces`]): the initial result, the
//! kind of machine, every finished trial, the end. They survive pod and node, are read by the next
//! pod of the Job and by a taking-over laptop, and are removed with the Job. Judges nothing, runs
//! no trial. Read in this order: [`pieces`] (the data), `kept` (writing and reading it), `job` (the
//! objects), [`inside`] (the controller's side), [`outside`] (the laptop's).

pub mod identity;
pub mod inside;
pub(crate) mod job;
mod kept;
pub mod outside;
pub mod pieces;
