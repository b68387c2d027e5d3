//! The load of an experiment in words, separate from its rate.
//!
//! Owns the sentence. The rate is separate because configurations may have different rates, and the
//! rest of the sentence is common.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;

/// A load in words: `GET /owners, open model, 300/s for 20 s`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadWords {
    /// The words before the rate: `GET /owners, open model, `; the whole text without a rate.
    pub before: String,
    /// Requests a second; null for a closed model, which has none.
    pub rate_per_second: Option<f64>,
    /// What stands after the rate: ` for 20 s`.
    pub after: String,
}

impl LoadWords {
    pub fn without_rate(words: String) -> Self {
        Self {
            before: words,
            rate_per_second: None,
            after: String::new(),
        }
    }

    pub fn at_rate(&self, rate: &str) -> String {
        let Self { before, after, .. } = self;
        match self.rate_per_second {
            Some(_) => format!("{before}{rate}{after}"),
            None => format!("{before} ({rate})"),
        }
    }
}

impl fmt::Display for LoadWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate_per_second {
            Some(rate) => f.write_str(&self.at_rate(&format::as_rate(rate))),
            None => f.write_str(&self.before),
        }
    }
}
