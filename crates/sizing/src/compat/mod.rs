//! The results of other launchers: to compare with, and to migrate from.
//!
//! Owns the formulas of Paketo libjvm, the Cloud Foundry memory calculator v4, fabric8 run-java.sh
//! Argus `rightsize` and OpenJ9's own defaults, with their texts. Written from their behaviour and
//! checked against recorded rows (`tests/data/memory-calculator.csv`); contains no third-party code.

pub mod calculator;
pub mod fabric8;
pub mod openj9;
pub mod rightsize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherOutput {
    pub options: Vec<String>,
    pub leaves_out: &'static str,
}
