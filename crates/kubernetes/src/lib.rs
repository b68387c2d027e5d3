//! A cluster of Kubernetes as a host: each trial is a Job with one pod.
//!
//! Owns everything that speaks to the API server, and is the only crate that does so
//! asynchronously: one runtime of one thread, which works while the runner waits
//! ([`TrialHost::wait_for_events`](loadline_engine::host::TrialHost::wait_for_events)). What happens inside a pod is
//! [`loadline_trial::pod`]'s. Judges nothing but whether a pod is what was ordered. Read in this order:
//! [`manifest`] (what is made), [`nodes`] (where it may run), `look` (which nodes are fit), `trial` (how
//! one is carried out), `generators` (what sends its load from elsewhere), `shipped` (how one ends whose
//! pod is the one that ships), [`workload`] (what they take of one that runs), [`standing`] (what the
//! cluster says of a pod), `refused` (what it says of a request), [`labels`] (what all of it is called), [`in_cluster`] (loadline itself as a
//! Job), [`rights`] (what all of it needs). Facts: the
//! Kubernetes API reference; what was tried on a cluster stands beside the code that rests on it.

mod census;
mod cluster;
mod gate;
mod generators;
pub mod in_cluster;
mod kubernetes;
pub mod labels;
mod log_lines;
mod look;
mod making;
pub mod manifest;
pub mod nodes;
mod refused;
pub mod rights;
mod shipped;
#[cfg(test)]
mod simulation;
pub mod standing;
mod sweep;
#[cfg(test)]
mod testing;
mod trial;
mod watched;
pub mod workload;

pub use kubernetes::{KubernetesHost, NodeDemand};
pub use sweep::ClusterSweep;
