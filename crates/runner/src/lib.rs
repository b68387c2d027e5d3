//! Runs experiments: experiment to search, what it asks for to trials, trials to records.
//!
//! Owns the runner, this machine as a host, and the store. Never prints; never judges: what a trial
//! means is for `loadline-analysis`. Read [`host`] and [`runner`] first.

pub mod agenda;
pub mod apart;
pub mod baseline;
pub mod before;
pub mod cache;
pub mod command;
pub mod commit;
pub mod consumer;
mod error;
pub mod ground;
pub mod heaps;
pub mod host;
mod keeper;
pub mod left;
mod load_command;
pub mod local;
pub mod lock;
pub mod logs;
mod measurement;
mod order;
pub mod runner;
pub mod searches;
pub mod soak;
pub mod store;
