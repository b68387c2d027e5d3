//! What a search for the cheapest deployment is asked: what can be bought, which combinations and
//! sizes, how it is proven and what it may take.
//!
//! Owns the question that the parts of the search share ([`prices`](super::prices)); asks nothing
//! itself.

use std::time::Duration;

use loadline_sizing::jdk::JdkRelease;

use super::lattice::{self, LatticeCell};
use super::min_memory;
use crate::offer::Offer;
use crate::record::Configuration;

#[derive(Debug, Clone, PartialEq)]
pub struct PricingTerms {
    pub offer: Offer,
    pub parameters: lattice::LatticeParameters,
    /// Pairs of trials for each option that is compared at the size found; `None` is no comparison.
    pub compare: Option<u32>,
    pub budget: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct Variant {
    pub configuration: Configuration,
    /// The HotSpot JVM that it starts; `None` where that is not known.
    pub jdk: Option<JdkRelease>,
}

#[derive(Debug)]
pub struct Purchase {
    pub pricing: PricingTerms,
    pub variants: Vec<Variant>,
    pub cells: Vec<LatticeCell>,
    pub left_out: Vec<String>,
    pub prove: u32,
    pub trial_length: Duration,
    pub start_deadline: Duration,
    /// Smallest memory, step, confirmations and margin of the search for less memory; its largest
    /// is the size that was found.
    pub memory: min_memory::MemoryParameters,
    /// Words of the application's command and environment: what they set is not varied.
    pub words: Vec<String>,
    pub seed: u64,
}

impl Purchase {
    pub(super) fn has_room(&self, spent: Duration, more: Duration) -> bool {
        let budget = self.pricing.budget;
        budget.is_none_or(|budget| spent.saturating_add(more) <= budget)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use loadline_sizing::Bytes;

    /// One that searches down to 64Mi on nodes of one's own, a minute a trial, two starts a proof.
    pub(in crate::search) fn purchase(budget: Option<Duration>) -> Purchase {
        Purchase {
            pricing: PricingTerms {
                offer: Offer::built_in("own-nodes", None).expect("built in"),
                parameters: lattice::LatticeParameters::new(100.0),
                compare: None,
                budget,
            },
            variants: Vec::new(),
            cells: Vec::new(),
            left_out: Vec::new(),
            prove: 2,
            trial_length: Duration::from_secs(60),
            start_deadline: Duration::from_secs(60),
            memory: min_memory::MemoryParameters::new(Bytes::from_mib(64), Bytes::from_mib(1024)),
            words: Vec::new(),
            seed: 1,
        }
    }

    #[test]
    fn a_budget_has_room_for_what_fits_in_to_the_second() {
        let seconds = Duration::from_secs;
        let limited = purchase(Some(seconds(100)));
        assert!(limited.has_room(seconds(40), seconds(60)));
        assert!(!limited.has_room(seconds(41), seconds(60)));
        assert!(!limited.has_room(seconds(1), Duration::MAX));
        assert!(purchase(None).has_room(seconds(41), Duration::MAX));
    }
}
