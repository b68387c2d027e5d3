//! A refusal: what cannot be done, why, and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Nothing was measured, and another attempt would come to the same. It ends a run, unlike an
/// INVALID trial, and reaches the user as it is: its three parts are never joined and split again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct RunRefusal {
    pub what: String,
    pub why: String,
    pub hint: String,
}

impl RunRefusal {
    pub fn new(what: impl ToString, why: impl ToString, hint: impl ToString) -> Self {
        Self {
            what: what.to_string(),
            why: why.to_string(),
            hint: hint.to_string(),
        }
    }
}

impl fmt::Display for RunRefusal {
    /// Problem and reason; whoever prints it puts the hint on a separate line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}
