//! Runs experiments: file to search, what it asks for to trials, trials to records.
//!
//! Owns the experiment, the runner, the phases of a local trial and the store. Never prints; never
//! judges: what a trial means is for `loadline-analysis`. Read [`host`] and [`runner`] first.

pub mod advice;
pub mod agenda;
pub mod backend;
pub mod cache;
pub mod command;
pub mod experiment;
pub mod ground;
pub mod host;
pub mod lock;
pub mod logs;
mod order;
pub mod runner;
pub mod searches;
pub mod store;
