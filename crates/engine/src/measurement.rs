//! What all trials of a result have in common.

use loadline_analysis::verdict::VerdictThresholds;
use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_protocol::Account;

use crate::experiment::Experiment;
use crate::store::Store;

pub struct Measurement<'a> {
    pub store: &'a Store,
    pub result: String,
    pub experiment: &'a Experiment,
    pub jdks: &'a DetectedJdks,
    pub places: &'a JdkPlaces,
    pub account: Account,
    pub thresholds: VerdictThresholds,
    /// Fingerprint of the ground whose trials in earlier results are used again; `None` is never.
    pub reuse: Option<String>,
    /// Whether what could not be measured in [`ATTEMPTS`](crate::runner::ATTEMPTS) attempts before is tried as often again:
    /// for a result that had ended. One that was cut goes on as if it had not been.
    pub retries: bool,
}
