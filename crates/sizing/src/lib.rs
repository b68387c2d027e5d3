//! What a container's limits mean to a JVM: units, limits, ergonomics, memory regions.
//!
//! Owns every formula that turns a limit into a JVM option. Never does I/O, never reads a clock,
//! never depends on another crate: the recommender and the container launcher share it, so they
//! cannot compute different options. Read [`units`] first, then [`limits`], [`hotspot`],
//! [`regions`] and [`decision`], which is the order in which a decision is made.

pub mod cache;
pub mod compat;
mod cpuset;
pub mod decision;
pub mod hotspot;
pub mod jdk;
pub mod limits;
pub mod openj9;
pub mod options;
pub mod profile;
pub mod regions;
pub mod secret;
pub mod sight;
pub mod units;

pub use cpuset::CpuSet;
pub use jdk::{JavaVersion, JdkRelease, Vm};
pub use options::{JvmOptionSet, OptionOrigin};
pub use units::{Bytes, Cpus, ParseUnitError};
