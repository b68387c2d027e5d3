//! Runs experiments: file to plan, plan to trials, trials to records, searches on top.
//!
//! Owns the experiment, the phases of a trial, the backends and the store. Never prints; never
//! judges: what a trial means is for `loadline-analysis`. Read [`backend`] first.

pub mod advice;
pub mod application_pauses;
pub mod backend;
pub mod cache;
pub mod cheapest;
pub mod command;
pub mod experiment;
pub mod gc_evidence;
pub mod ground;
pub mod host;
pub mod lock;
pub mod logs;
pub mod matrix;
pub mod plan;
pub mod refine;
pub mod samples;
pub mod session;
pub mod size;
pub mod store;
pub mod trial;
pub mod tune;
