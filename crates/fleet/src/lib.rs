//! Which workload of a fleet to measure first, by what its Prometheus already knows.
//!
//! Owns the questions to Prometheus ([`questions`]), what their answers say of each workload
//! ([`workload`]), what to do about it ([`advice`]), and the experiment file to begin with
//! ([`experiment`]). Reads only; it changes neither the cluster nor Prometheus, and what it says is
//! where to look: what a size can carry is for a trial to say.

pub mod advice;
mod experiment;
mod prometheus;
pub mod promised;
mod questions;
pub mod workload;

pub use experiment::experiment_toml;
#[cfg(fuzzing)]
pub use prometheus::parse_anything;
pub use prometheus::{Prometheus, PrometheusAccess};
pub use questions::{FleetAnswers, QueryWindow, ask_everything};
