//! The records so far, by the ask that each answers.
//!
//! Owns the look-up of a record by its ask, in constant time: a search reads all its records each
//! time it is asked, and a matrix has thousands.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::TrialAsk;
use crate::record::TrialRecord;

#[derive(Debug, Clone)]
pub struct ByAsk<T> {
    entries: HashMap<u64, Vec<(TrialAsk, T)>>,
}

impl<T> Default for ByAsk<T> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }
}

impl<T> ByAsk<T> {
    pub fn value_for(&self, ask: &TrialAsk) -> Option<&T> {
        let entries = self.entries.get(&hash(ask))?;
        let mut same = entries.iter().filter(|(own, _)| own.is_same(ask));
        same.next().map(|(_, thing)| thing)
    }

    pub fn set_value(&mut self, ask: &TrialAsk, thing: T) {
        let entries = self.entries.entry(hash(ask)).or_default();
        match entries.iter_mut().find(|(own, _)| own.is_same(ask)) {
            Some((_, place)) => *place = thing,
            None => entries.push((ask.clone(), thing)),
        }
    }
}

/// The records of a result. Append-only.
#[derive(Debug, Clone, Default)]
pub struct SeenTrials {
    by_ask: ByAsk<(Arc<TrialRecord>, Duration)>,
}

impl SeenTrials {
    /// The record of this trial, if it exists. It may be INVALID: then it could not be measured,
    /// and is not tried again.
    pub fn record_for(&self, ask: &TrialAsk) -> Option<&Arc<TrialRecord>> {
        self.by_ask.value_for(ask).map(|(record, _)| record)
    }

    pub fn spent(&self, ask: &TrialAsk) -> Duration {
        let entry = self.by_ask.value_for(ask);
        entry.map_or(Duration::ZERO, |(_, spent)| *spent)
    }

    pub fn add_record(&mut self, ask: &TrialAsk, record: TrialRecord, spent: Duration) {
        self.by_ask.set_value(ask, (Arc::new(record), spent));
    }

    #[cfg(test)]
    pub(super) fn longest_chain(&self) -> usize {
        self.by_ask
            .entries
            .values()
            .map(Vec::len)
            .max()
            .unwrap_or(0)
    }
}

/// Of what mostly differs between the trials of one result; [`TrialAsk::is_same`] decides.
fn hash(ask: &TrialAsk) -> u64 {
    let mut hasher = DefaultHasher::new();
    let configuration = &ask.configuration;
    (ask.purpose, ask.repeat, configuration.instances).hash(&mut hasher);
    configuration.memory.map(|m| m.as_bytes()).hash(&mut hasher);
    for cpu in [configuration.cpu, configuration.cpu_request] {
        cpu.map(|c| c.as_millis()).hash(&mut hasher);
    }
    configuration.rate.map(f64::to_bits).hash(&mut hasher);
    configuration.warm_up.hash(&mut hasher);
    configuration.cpuset.hash(&mut hasher);
    configuration.jdk.hash(&mut hasher);
    configuration.args.hash(&mut hasher);
    configuration.env.hash(&mut hasher);
    configuration.application.hash(&mut hasher);
    for option in &configuration.jvm_options {
        option.text.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{TrialPurpose, TrialVerdict};

    fn ask(mib: u64, repeat: u32) -> TrialAsk {
        TrialAsk {
            configuration: fixture::configuration(mib),
            purpose: TrialPurpose::Matrix,
            repeat,
            start_deadline: Duration::from_secs(60),
            pair: None,
        }
    }

    #[test]
    fn a_record_is_found_by_what_ran_whatever_it_is_called() {
        let mut seen = SeenTrials::default();
        let record = fixture::trial_record("t1", TrialPurpose::Matrix, 256, TrialVerdict::Pass);
        seen.add_record(&ask(256, 1), record, Duration::from_secs(3));
        let mut renamed = ask(256, 1);
        renamed.configuration.label = "another".to_owned();
        renamed.start_deadline = Duration::from_secs(5);
        assert_eq!(seen.record_for(&renamed).map(|r| r.id.as_str()), Some("t1"));
        assert_eq!(seen.spent(&renamed), Duration::from_secs(3));
        assert!(seen.record_for(&ask(256, 2)).is_none() && seen.record_for(&ask(260, 1)).is_none());
        let mut with_shares = ask(256, 1);
        with_shares.configuration.cpu_shares = Some(2);
        assert!(seen.record_for(&with_shares).is_none());
    }
}
