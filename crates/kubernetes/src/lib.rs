//! A Kubernetes cluster as a host: each trial is a Job with one pod.
//!
//! Owns all communication with the API server, and is the only asynchronous crate: one runtime of
//! one thread, which works while the runner waits
//! ([`TrialHost::wait_for_events`](loadline_runner::host::TrialHost::wait_for_events)).
//! [`loadline_trial::pod`] works inside a pod. Judges only whether a pod is as ordered. Read in
//! this order: [`manifest`] (the objects), [`nodes`] (where they may run), `look` (which nodes are
//! fit), `trial` (how a trial is carried out), `generators` (load from other nodes), `shipped` (the
//! end of a pod in its shipped layout), [`workload`] (the part of a running workload that trials
//! copy), [`standing`] (the state of a pod), `refused` (refused requests), [`labels`] (names of all
//! objects), [`in_cluster`] (loadline itself as a Job), [`rights`] (the rights that all this
//! needs). Facts: the Kubernetes API reference; results of experiments on a cluster are next to the
//! code that depends on them.

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

pub use cluster::check_context;
pub use kubernetes::{KubernetesHost, NodeDemand};
pub use sweep::ClusterSweep;
