//! The path of a search: the size of each trial in running order, marked by its verdict.

use loadline_analysis::record::{TrialPurpose, TrialRecord, TrialVerdict};
use loadline_sizing::Bytes;

use super::frame::{At, KeySymbol, Mark, SvgDrawing, TextAnchor, WIDTH};
use crate::content::groups::{self, ConfigurationNames};
use crate::content::trials;
use crate::figures;
use crate::view::ResultView;

const STEP: f64 = 22.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 46.0;
const NUMBERS: usize = 12;

const KEY: [(KeySymbol, &str); 3] = [
    (KeySymbol::Mark(Mark::Kept), "kept the SLO"),
    (KeySymbol::Mark(Mark::Broke), "did not"),
    (KeySymbol::Mark(Mark::Silent), "says nothing: not valid"),
];

/// Sizes in the order they were tried: how a search narrowed in. The sizes stand evenly spaced, as
/// they crowd where the search ends. `None` for a matrix, when only one size was tried, or when the
/// CPU limit was searched too: memory alone is no path then.
pub fn search_path(view: &ResultView) -> Option<String> {
    let sizes = view.trials.iter().filter_map(|t| t.configuration.memory);
    let mut sizes: Vec<Bytes> = sizes.collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    let mut purposes = view.trials.iter().map(|t| t.purpose);
    let searched = purposes.any(|purpose| purpose == TrialPurpose::Search);
    let cpu = view.trials.first().map(|t| t.configuration.cpu);
    let is_one_cpu = view.trials.iter().all(|t| Some(t.configuration.cpu) == cpu);
    if !searched || !is_one_cpu || sizes.len() < 2 {
        return None;
    }
    let height = TOP + BOTTOM + STEP * (sizes.len() - 1) as f64;
    let last = (view.trials.len() - 1).max(1) as f64;
    let x = |i: usize| LEFT + 16.0 + i as f64 / last * (WIDTH - LEFT - RIGHT - 32.0);
    let y = |size: usize| TOP + STEP * size as f64;
    let label = "Memory limit of each trial in running order, marked by its verdict; the table of all trials has the values.";
    let mut drawing = SvgDrawing::new("path", height, label);
    let key = [&KEY[..], &[(KeySymbol::Ring, view.chosen_as())]].concat();
    drawing.draw_key(LEFT, &key);
    for (i, size) in sizes.iter().enumerate() {
        drawing.draw_line("grid", &[(LEFT, y(i)), (WIDTH - RIGHT, y(i))]);
        drawing.draw_text((LEFT - 8.0, y(i) + 4.0), TextAnchor::End, &size.to_string());
    }
    let names = ConfigurationNames::for_result(view);
    for (i, trial) in view.trials.iter().enumerate() {
        let memory = trial.configuration.memory;
        if let Some(size) = memory.and_then(|m| sizes.iter().position(|s| *s == m)) {
            mark(&mut drawing, (i, trial), (x(i), y(size)), view, &names);
        }
    }
    numbers(&mut drawing, view.trials.len(), height, x);
    Some(drawing.finish_svg())
}

fn mark(
    drawing: &mut SvgDrawing,
    (i, trial): (usize, &TrialRecord),
    at: At,
    view: &ResultView,
    names: &ConfigurationNames,
) {
    let title = format!(
        "Trial {}, {}, {}: {}. {}",
        i + 1,
        trials::purpose(trial.purpose),
        names.cell_name(&trial.configuration),
        figures::verdict_words(trial.verdict),
        trial.reason
    );
    let is_chosen = groups::is_chosen(view, &trial.configuration);
    drawing.draw_mark(of_verdict(trial.verdict), at, is_chosen, &title);
}

fn of_verdict(verdict: TrialVerdict) -> Mark {
    match verdict {
        TrialVerdict::Pass => Mark::Kept,
        TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => Mark::Broke,
        TrialVerdict::Invalid(_) => Mark::Silent,
    }
}

fn numbers(drawing: &mut SvgDrawing, trials: usize, height: f64, x: impl Fn(usize) -> f64) {
    let base = height - BOTTOM + 24.0;
    for i in (0..trials).step_by((trials / NUMBERS).max(1)) {
        drawing.draw_text((x(i), base), TextAnchor::Middle, &(i + 1).to_string());
    }
    let middle = ((LEFT + WIDTH - RIGHT) / 2.0, height - 4.0);
    drawing.draw_text(middle, TextAnchor::Middle, "trial, in running order");
}
