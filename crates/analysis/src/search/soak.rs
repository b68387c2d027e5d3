//! A soak: one long start of one configuration.
//!
//! Owns nothing but the ask: how long it takes is the experiment's, what it says is
//! [`crate::growth`]'s.

use std::sync::Arc;
use std::time::Duration;

use super::{Next, SeenTrials, TrialAsk, TrialSearch, read_records};
use crate::record::{Configuration, TrialPurpose, TrialRecord};

#[derive(Debug, Clone, PartialEq)]
pub struct SoakSearch {
    pub configuration: Configuration,
    pub start_deadline: Duration,
}

impl TrialSearch for SoakSearch {
    type Answer = Option<Arc<TrialRecord>>;

    fn next(&self, seen: &SeenTrials) -> Next<Self::Answer> {
        let configuration = self.configuration.clone();
        let ask = TrialAsk::new(configuration, TrialPurpose::Soak, 1, self.start_deadline);
        read_records(seen, vec![ask]).map(|mut records| records.pop())
    }
}
