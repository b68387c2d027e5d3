//! What a search for the smallest memory takes: its starts and its time, in a sentence.

use std::path::Path;
use std::time::Duration;

use loadline_analysis::search::outlook::Outlook;
use loadline_analysis::warming::{LONGEST, Question};
use loadline_engine::agenda::{START_GUESS, trial_length, trial_length_with};
use loadline_engine::before;
use loadline_engine::experiment::Experiment;
use loadline_engine::searches::sizes;
use loadline_engine::store::Store;
use loadline_report::format::count;

use crate::measuring::{open_store_to_read, state_directory};
use crate::ui::text::span;

/// The outlook of a search, and where the length of its trials is from.
pub struct Told {
    /// Starts and time.
    pub outlook: Outlook,
    /// Whether start and stop take as long as this application's took here before.
    pub is_seen: bool,
    /// Which JVM the answer is for.
    question: Question,
}

/// The outlook with what the store of this directory knows; makes none.
pub fn of(experiment: &Experiment, state: Option<&Path>) -> Told {
    let is_there = Store::is_in(&state_directory(state));
    // What cannot be read is told by `size`, which needs it.
    let store = is_there.then(|| open_store_to_read(state).ok()).flatten();
    told(experiment, store.as_ref())
}

/// The outlook with what a store knows.
pub fn told(experiment: &Experiment, store: Option<&Store>) -> Told {
    let seen = store.and_then(|store| before::around_the_load(store, experiment));
    let each = match seen {
        Some(besides) => trial_length_with(experiment, besides),
        None => trial_length(experiment),
    };
    // How much memory the machine has matters where the largest size fails, which is not expected.
    let search = sizes(experiment, None);
    Told {
        outlook: Outlook::of(&search, &experiment.slo, each),
        is_seen: seen.is_some(),
        question: experiment.search.question,
    }
}

impl Told {
    /// `a search takes about 35 starts of 24s (...), ...`.
    pub fn sentence(&self) -> String {
        let Outlook {
            starts,
            starts_95,
            each,
            time,
            time_95,
        } = self.outlook;
        let source = match self.is_seen {
            true => "as this application's took here before".to_owned(),
            false => format!("if it starts and stops within {}", span(START_GUESS)),
        };
        let longer = match self.question {
            Question::Start => String::new(),
            Question::Steady => format!(
                "; with warm-ups that get longer, up to {}, for the JVM to be warm",
                span(LONGEST)
            ),
        };
        format!(
            "a search takes about {starts} starts of {} ({source}): {}; 95 in 100 searches take at most {starts_95} starts, {}{longer}",
            span(each),
            minutes(time),
            minutes(time_95),
        )
    }
}

/// An estimate: whole minutes.
fn minutes(time: Duration) -> String {
    loadline_report::format::elapsed(time)
}

/// What is searched, and what that takes.
pub fn as_text(experiment: &Experiment, told: &Told) -> String {
    let search = &experiment.search;
    let bases = sizes(experiment, None).bases;
    let labels: Vec<&str> = bases.iter().map(|of| of.base.label.as_str()).collect();
    let largest = bases.iter().map(|of| of.parameters.high).max();
    let more = match search.max_memory {
        Some(_) => "",
        None => ", more where that fails",
    };
    format!(
        "the smallest memory from {} to {}{more}, of {}: {}\n{} prove it\n{}",
        search.min_memory,
        largest.unwrap_or(search.min_memory),
        count(bases.len(), "configuration"),
        labels.join(", "),
        count(search.prove as usize, "fresh start"),
        told.sentence(),
    )
}
