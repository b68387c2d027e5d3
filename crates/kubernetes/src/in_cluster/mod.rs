//! loadline itself as a Job of the cluster, for searches that take hours: the *controller*.
//!
//! Owns how a result goes there and comes back. What a loadline on a laptop and the controller say to
//! each other stands in config maps that belong to the Job ([`pieces`]): the result as it was begun,
//! the kind of machine, every finished trial, the end. They survive pod and node, are read by the next
//! pod of the Job and by whoever takes over, and go with the Job. Judges nothing, runs no trial. Read in
//! this order: [`pieces`] (what is kept), `kept` (writing and reading it), `job` (what is made),
//! [`inside`] (the controller's own end), [`outside`] (the laptop's).

pub mod identity;
pub mod inside;
pub(crate) mod job;
mod kept;
pub mod outside;
pub mod pieces;
