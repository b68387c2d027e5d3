//! A soak: one long start of one configuration.
//!
//! Owns nothing but the ask: how long it takes is the experiment's, what it says is
//! [`crate::growth`]'s.

use std::sync::Arc;
use std::time::Duration;

use super::{Ask, Next, Search, Seen, each};
use crate::record::{Configuration, Purpose, TrialRecord};

/// One soak; the answer is its record, whatever its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Soaked {
    /// What is soaked.
    pub configuration: Configuration,
    /// How long the start may take.
    pub start_deadline: Duration,
}

impl Search for Soaked {
    type Answer = Option<Arc<TrialRecord>>;

    fn next(&self, seen: &Seen) -> Next<Self::Answer> {
        let ask = Ask {
            configuration: self.configuration.clone(),
            purpose: Purpose::Soak,
            repeat: 1,
            start_deadline: self.start_deadline,
            pair: None,
        };
        each(seen, vec![ask]).map(|mut records| records.pop())
    }
}
