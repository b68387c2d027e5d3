//! What a search for the smallest memory takes: its starts and its time, in a sentence.

use std::path::Path;
use std::time::Duration;

use loadline_analysis::search::outlook::Outlook;
use loadline_analysis::search::size::cpu::CpuPolicy;
use loadline_analysis::search::start_cpu::STARTS;
use loadline_analysis::warming::{JvmQuestion, LONGEST};
use loadline_experiment::Experiment;
use loadline_report::format::{count_of, elapsed};
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
    budget: Option<Duration>,
}

/// Starts more than with a given CPU, usually and in 95 of 100 searches: crate simulated,
/// tests/cpu_error_rates.rs.
fn cpu_starts(experiment: &Experiment) -> (u32, u32) {
    if searches_limit_too(experiment) {
        (10, 30)
    } else {
        (4, 13)
    }
}

/// Whether it is a request and a limit; a given limit stays.
fn searches_limit_too(experiment: &Experiment) -> bool {
    let has_limit = experiment.configurations().iter().any(|c| c.cpu.is_some());
    experiment.search.cpu_policy == CpuPolicy::Both && !has_limit
}

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
    let (usual, most) = cpu_starts(experiment);
    let more = [
        (experiment.searches_cpu(), usual, most),
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
        budget: experiment.search.budget,
    }
}

impl SearchOutlook {
    /// `a search takes about 35 starts of 24s (...), ...`.
    pub fn search_sentence(&self) -> String {
        let (starts, starts_95) = (self.outlook.starts, self.outlook.starts_95);
        let Outlook { time, time_95, .. } = self.outlook;
        let each = format_span(self.outlook.each);
        let budget = self.budget.filter(|budget| *budget < time_95);
        let ends =
            budget.map(|budget| format!("; the budget ends it after {}", format_span(budget)));
        let ends = ends.unwrap_or_default();
        let (time, time_95) = (elapsed(time), elapsed(time_95));
        if self.is_run {
            return format!(
                "a search takes about {starts} runs, {time} if each takes {each}; 95 in 100 searches take at most {starts_95} runs{ends}"
            );
        }
        let source = if self.is_seen {
            "as this application's took here before".to_owned()
        } else {
            format!("if it starts and stops within {}", format_span(START_GUESS))
        };
        let longer = match self.question {
            JvmQuestion::Start => String::new(),
            JvmQuestion::Steady => format!(
                "; with warm-ups that get longer, up to {}, for the JVM to be warm",
                format_span(LONGEST)
            ),
        };
        format!(
            "a search takes about {starts} starts of {each} ({source}): {time}; 95 in 100 searches take at most {starts_95} starts, {time_95}{longer}{ends}"
        )
    }
}

pub fn search_text(experiment: &Experiment, told: &SearchOutlook) -> String {
    let search = &experiment.search;
    let bases = size_search(experiment, None).bases;
    let labels: Vec<&str> = bases.iter().map(|of| of.base.label.as_str()).collect();
    let largest = bases.iter().map(|of| of.parameters.high).max();
    let more = match search.max_memory {
        Some(_) => "",
        None => ", more if that fails",
    };
    let variable = experiment.base.options_variable.as_deref();
    let heap = variable.map_or_else(String::new, |variable| format!(", a heap in {variable}"));
    let cpu = match (experiment.searches_cpu(), search.cpu_policy) {
        (false, _) => "",
        (true, CpuPolicy::Limit) => "the smallest CPU limit, and there ",
        _ if searches_limit_too(experiment) => {
            "the smallest CPU request, the limit above it, and there "
        }
        (true, _) => "the smallest CPU request, and there ",
    };
    let start = if search.is_start_cpu_asked {
        ", then the CPU until ready"
    } else {
        ""
    };
    format!(
        "`size`: {cpu}the smallest memory from {} to {}{more}{start}{heap}, of {}: {}\n{}\n{}",
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
