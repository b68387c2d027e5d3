//! What a search concluded, as this crate reads it.

use loadline_analysis::record::Configuration;
use loadline_sizing::Bytes;

/// What to deploy, and why it may be believed.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// What to deploy: limits, options, environment.
    pub configuration: Configuration,
    /// Smallest memory that kept the SLO in every confirmation.
    pub minimum: Bytes,
    /// What was added to it, as a share of the minimum (0.08 is 8 %).
    pub margin: f64,
    /// Ids of the trials it rests on.
    pub evidence: Vec<String>,
    /// Fresh starts of exactly this configuration.
    pub proof: Proof,
    /// The next smaller size, and what it breaks.
    pub next_smaller: Option<NextSmaller>,
}

/// Fresh starts of the recommended configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proof {
    /// Starts that kept the SLO.
    pub passes: u32,
    /// Starts that gave evidence.
    pub starts: u32,
    /// With 95 % confidence a start fails less often than this share.
    pub failure_upper: f64,
}

/// The next smaller size that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct NextSmaller {
    /// Its memory.
    pub size: Bytes,
    /// The trial that broke the SLO.
    pub trial: String,
    /// What it broke, one sentence.
    pub breaks: String,
}
