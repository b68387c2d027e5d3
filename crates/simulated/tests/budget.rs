//! A budget of time ends any search in time, with the best answer so far.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

mod rig;

use std::time::Duration;

use loadline_analysis::proof::is_proof;
use loadline_analysis::recommend::recommend;
use loadline_analysis::record::TrialRecord;
use loadline_runner::host::TrialHost;
use loadline_runner::searches::size_search_on;
use loadline_simulated::{SimulatedHost, World};

/// Searches with every budget from nothing to enough; `tables` is the experiment.
fn search_with_budgets(tables: &str) {
    let plain = rig::experiment(tables, "20/s");
    let machine = SimulatedHost::new(World::default(), 0, 1).host_machine();
    let search = size_search_on(&plain, &machine);
    let (whole, _, needed) = rig::answer(World::default(), 1, 1, &plain, &search);
    let whole = whole.best.expect("it has an answer");
    let mut outcomes = Vec::new();
    for tenth in 0..=12_u32 {
        let mut experiment = plain.clone();
        let budget = (needed * tenth / 10).max(Duration::from_secs(1));
        experiment.search.budget = Some(budget);
        let (sized, _, took) = rig::answer(World::default(), 1, 1, &experiment, &search);
        // The first trial has no length to compare with.
        let slack = Duration::from_secs(2);
        assert!(took <= budget + slack, "{took:?} of {budget:?}");
        let Some(best) = sized.best else {
            outcomes.push("none");
            continue;
        };
        let records: Vec<TrialRecord> = best.trials.iter().map(|t| (**t).clone()).collect();
        let given = recommend(best.configuration.clone(), &best.answer, &records, &[]);
        assert!(given.evidence.iter().all(|id| !id.is_empty()));
        let proof = &given.proof;
        if given.is_proven() {
            assert_eq!(best.answer.size, whole.answer.size);
            assert!(is_proof(proof.passes, proof.starts + proof.not_measured));
        }
        // Never below what the whole search found to be needed.
        assert!(best.answer.size >= whole.answer.confirmed, "{tenth}");
        outcomes.push(if given.is_proven() { "proven" } else { "found" });
    }
    println!("{tables:?}: {outcomes:?}");
    assert_eq!(outcomes.first(), Some(&"none"));
    assert!(outcomes.contains(&"found"), "{outcomes:?}");
    assert_eq!(outcomes.last(), Some(&"proven"));
}

#[test]
fn a_bisection_ends_in_time() {
    search_with_budgets("[limits]\ncpu = \"1\"\n[search]\nheap = \"keep\"\nprove = 20");
}

#[test]
fn a_search_for_the_cpu_ends_in_time() {
    search_with_budgets("[limits]\ncpu = \"auto\"");
}
