//! What all trials of a result have in common.

use loadline_analysis::verdict::VerdictThresholds;
use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_protocol::Account;

use crate::experiment::Experiment;
use crate::store::Store;

/// What is measured: the same for all trials of a result.
pub struct Measurement<'a> {
    /// Where records go.
    pub store: &'a Store,
    /// Id of the result.
    pub result: String,
    /// What is measured.
    pub experiment: &'a Experiment,
    /// JDKs of this machine.
    pub jdks: &'a DetectedJdks,
    /// Where programs are looked for.
    pub places: &'a JdkPlaces,
    /// Who the application runs as.
    pub account: Account,
    /// When a measurement is not valid.
    pub thresholds: VerdictThresholds,
    /// Fingerprint of the ground whose trials in earlier results are used again; `None` is never.
    pub reuse: Option<String>,
    /// Whether what could not be measured in [`ATTEMPTS`](crate::runner::ATTEMPTS) attempts before is tried as often again:
    /// for a result that had ended. One that was cut goes on as if it had not been.
    pub retries: bool,
}
