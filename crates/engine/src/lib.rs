//! Runs experiments: file to plan, plan to trials, trials to records, searches on top.
//!
//! Owns the experiment, the phases of a trial, the backends and the store. Never prints; never
//! judges: what a trial means is for `loadline-analysis`. Read [`backend`] first.

pub mod backend;
pub mod experiment;
pub mod lock;
pub mod owner;
pub mod samples;
pub mod store;
pub mod trial;
