//! What one request of a mix came to in a load phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcomes of one request of a mix. Requests that were never sent belong to none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestEvidence {
    /// Its name.
    pub name: String,
    /// Good responses.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
    /// Requests that were sent and had no outcome at the end of the drain.
    pub unfinished: u64,
    /// Latency from the intended send time, good responses, in the form of that of all requests.
    pub latency: String,
}
