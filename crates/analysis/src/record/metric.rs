//! A metric of the application over the measure phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One sample a second from the begin of the measure phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MetricEvidence {
    /// Its name in the SLO.
    pub name: String,
    /// The samples. Null: the application did not answer in time, or the value was missing or no number.
    pub values: Vec<Option<f64>>,
    /// Why the last missing sample is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

impl MetricEvidence {
    pub fn missing(&self) -> usize {
        self.values.iter().filter(|value| value.is_none()).count()
    }
}
