//! What all trials of a result have in common.

use loadline_analysis::verdict::VerdictThresholds;
use loadline_experiment::Experiment;
use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_protocol::Account;

use crate::store::Store;

pub struct Measurement<'a> {
    pub store: &'a Store,
    pub result: String,
    pub experiment: &'a Experiment,
    pub jdks: &'a DetectedJdks,
    pub places: &'a JdkPlaces,
    pub account: Account,
    pub thresholds: VerdictThresholds,
    /// Fingerprint of the ground; trials of earlier results with the same one are reused. `None`
    /// never reuses.
    pub reuse: Option<String>,
    /// Whether a trial that failed in all [`ATTEMPTS`](crate::runner::ATTEMPTS) attempts gets as
    /// many again: for a result that had ended. An interrupted result continues as if nothing had
    /// happened.
    pub retries: bool,
}
