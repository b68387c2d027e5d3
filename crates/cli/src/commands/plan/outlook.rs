//! What a search for the smallest memory takes: its starts and its time, in a sentence.

use std::path::Path;
use std::time::Duration;

use loadline_analysis::search::outlook::Outlook;
use loadline_analysis::search::start_cpu::STARTS;
use loadline_analysis::warming::{JvmQuestion, LONGEST};
use loadline_experiment::Experiment;
use loadline_report::format::count_of;
use loadline_runner::agenda::{START_GUESS, trial_length, trial_length_with};
use loadline_runner::before;
use loadline_runner::searches::size_search;
use loadline_runner::store::Store;

use crate::measuring::{open_store_to_read, state_directory};
use crate::ui::text::format_span;

const MOST_SIMULATED: u32 = 60;

pub struct SearchOutlook {
    pub outlook: Outlook,
    pub is_seen: bool,
    is_run: bool,
    question: JvmQuestion,
}

/// Starts with which the CPU limit is found, usually and at most.
const USUAL_CPU_STARTS: u32 = 6;
const MOST_CPU_STARTS: u32 = 9;

pub fn outlook_from_state(experiment: &Experiment, state: Option<&Path>) -> SearchOutlook {
    let is_there = Store::is_in(&state_directory(state));
    // `size` reports an unreadable store, because it needs one.
    let store = is_there.then(|| open_store_to_read(state).ok()).flatten();
    outlook_from_store(experiment, store.as_ref())
}

pub fn outlook_from_store(experiment: &Experiment, store: Option<&Store>) -> SearchOutlook {
    let seen = store.and_then(|store| before::around_the_load(store, experiment));
    let each = match seen {
        Some(besides) => trial_length_with(experiment, besides),
        None => trial_length(experiment),
    };
    // How much memory the machine has matters where the largest size fails, which is not expected.
    let mut bounded = experiment.clone();
    let beyond = bounded.search.prove.saturating_sub(MOST_SIMULATED);
    bounded.search.prove -= beyond;
    let search = size_search(&bounded, None);
    let mut outlook = Outlook::for_search(&search, &experiment.slo, each);
    outlook.starts += beyond;
    outlook.starts_95 += beyond;
    outlook.time += outlook.each * beyond;
    outlook.time_95 += outlook.each * beyond;
    let more = [
        (experiment.searches_cpu(), USUAL_CPU_STARTS, MOST_CPU_STARTS),
        // Of each amount of CPU until ready, and two are tried.
        (experiment.search.is_start_cpu_asked, STARTS, 2 * STARTS),
    ];
    for (_, usual, most) in more.into_iter().filter(|(is_asked, ..)| *is_asked) {
        outlook.starts += usual;
        outlook.starts_95 += most;
        outlook.time += outlook.each * usual;
        outlook.time_95 += outlook.each * most;
    }
    SearchOutlook {
        outlook,
        is_seen: seen.is_some(),
        is_run: experiment.app.run.is_some(),
        question: experiment.search.question,
    }
}

impl SearchOutlook {
    /// `a search takes about 35 starts of 24s (...), ...`.
    pub fn search_sentence(&self) -> String {
        let Outlook {
            starts,
            starts_95,
            each,
            time,
            time_95,
        } = self.outlook;
        if self.is_run {
            return format!(
                "a search takes about {starts} runs, {} if each takes {}; 95 in 100 searches take at most {starts_95} runs",
                minutes(time),
                format_span(each),
            );
        }
        let source = match self.is_seen {
            true => "as this application's took here before".to_owned(),
            false => format!("if it starts and stops within {}", format_span(START_GUESS)),
        };
        let longer = match self.question {
            JvmQuestion::Start => String::new(),
            JvmQuestion::Steady => format!(
                "; with warm-ups that get longer, up to {}, for the JVM to be warm",
                format_span(LONGEST)
            ),
        };
        format!(
            "a search takes about {starts} starts of {} ({source}): {}; 95 in 100 searches take at most {starts_95} starts, {}{longer}",
            format_span(each),
            minutes(time),
            minutes(time_95),
        )
    }
}

fn minutes(time: Duration) -> String {
    loadline_report::format::elapsed(time)
}

pub fn search_text(experiment: &Experiment, told: &SearchOutlook) -> String {
    let search = &experiment.search;
    let bases = size_search(experiment, None).bases;
    let labels: Vec<&str> = bases.iter().map(|of| of.base.label.as_str()).collect();
    let largest = bases.iter().map(|of| of.parameters.high).max();
    let more = match search.max_memory {
        Some(_) => "",
        None => ", more where that fails",
    };
    let cpu = match experiment.searches_cpu() {
        true => "the smallest CPU limit, and there ",
        false => "",
    };
    let start = match search.is_start_cpu_asked {
        true => ", then the CPU until ready",
        false => "",
    };
    format!(
        "`size`: {cpu}the smallest memory from {} to {}{more}{start}, of {}: {}\n{}\n{}",
        search.min_memory,
        largest.unwrap_or(search.min_memory),
        count_of(bases.len(), "configuration"),
        labels.join(", "),
        match search.prove {
            0 => "no fresh start: nothing will be proven".to_owned(),
            starts => format!("{} prove it", count_of(starts as usize, "fresh start")),
        },
        told.search_sentence(),
    )
}
