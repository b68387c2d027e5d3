//! Small charts as SVG text: the path of a search.
//!
//! Owns geometry only. No style attributes (the page's security policy forbids them): colours come
//! from classes, shapes differ as well, and every mark has a title.

use loadline_analysis::record::{Purpose, TrialRecord, Verdict};

use crate::content::{groups, trials};
use crate::figures;
use crate::html::escape;
use crate::view::ResultView;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;

/// Sizes in the order they were tried: how a search narrowed in. `None` for a matrix, or when
/// only one size was tried.
pub fn search_path(view: &ResultView) -> Option<String> {
    let shown: Vec<(usize, &TrialRecord, f64)> = view
        .trials
        .iter()
        .enumerate()
        .filter_map(|(i, t)| Some((i, t, t.configuration.memory?.as_mib())))
        .filter(|(_, _, mib)| *mib > 0.0)
        .collect();
    let low = shown.iter().map(|s| s.2).fold(f64::INFINITY, f64::min);
    let high = shown.iter().map(|s| s.2).fold(0.0, f64::max);
    let searched = view.trials.iter().any(|t| t.purpose == Purpose::Search);
    if !searched || low >= high {
        return None;
    }
    let last = (view.trials.len() - 1).max(1) as f64;
    let x = |i: usize| LEFT + 10.0 + i as f64 / last * (WIDTH - LEFT - RIGHT - 20.0);
    let (bottom, top) = (low.ln() - 0.08, high.ln() + 0.08);
    let y = |mib: f64| TOP + (top - mib.ln()) / (top - bottom) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg class=\"path\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Memory limit of each trial in running order, marked by its verdict; the table of all trials has the values.\">\n"
    );
    for mib in levels(&shown, &y) {
        let at = y(mib);
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}Mi</text>\n",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            mib.round()
        ));
    }
    for (i, trial, mib) in &shown {
        out.push_str(&mark(trial, *i, x(*i), y(*mib), view));
    }
    out.push_str(&axis(view.trials.len(), x));
    out.push_str("</svg>\n");
    Some(out)
}

/// Sizes that get a line: those that were tried, from the largest, where their labels have room.
fn levels(shown: &[(usize, &TrialRecord, f64)], y: &impl Fn(f64) -> f64) -> Vec<f64> {
    let mut sizes: Vec<f64> = shown.iter().map(|s| s.2).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    sizes.dedup();
    let mut levels: Vec<f64> = Vec::new();
    for mib in sizes {
        if levels.last().is_none_or(|last| y(mib) - y(*last) >= 16.0) {
            levels.push(mib);
        }
    }
    levels
}

fn mark(trial: &TrialRecord, i: usize, x: f64, y: f64, view: &ResultView) -> String {
    let title = escape(&format!(
        "Trial {}, {}, {}: {}. {}",
        i + 1,
        trials::purpose(trial.purpose),
        groups::name(&trial.configuration),
        figures::verdict(trial.verdict),
        trial.reason
    ));
    let chosen = view
        .recommendation
        .as_ref()
        .is_some_and(|r| groups::is_same(&r.configuration, &trial.configuration));
    let ring = if chosen {
        format!("<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/>")
    } else {
        String::new()
    };
    let shape = match trial.verdict {
        Verdict::Pass => {
            format!("<circle class=\"pass\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>")
        }
        Verdict::SloMiss | Verdict::AppKo(_) => {
            let (a, b, c, d) = (x - 5.0, y - 5.0, x + 5.0, y + 5.0);
            format!(
                "<path class=\"fail\" d=\"M{a:.1} {b:.1}L{c:.1} {d:.1}M{a:.1} {d:.1}L{c:.1} {b:.1}\"/>"
            )
        }
        Verdict::Invalid(_) | Verdict::Interrupted => format!(
            "<rect class=\"none\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\"/>",
            x - 4.0,
            y - 4.0
        ),
    };
    format!("<g><title>{title}</title>{ring}{shape}</g>\n")
}

/// Trial numbers below, and what the marks mean.
fn axis(trials: usize, x: impl Fn(usize) -> f64) -> String {
    let step = (trials / 12).max(1);
    let base = HEIGHT - BOTTOM + 16.0;
    let mut out = String::new();
    for i in (0..trials).step_by(step) {
        out.push_str(&format!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"middle\">{}</text>\n",
            x(i),
            i + 1
        ));
    }
    out.push_str(&format!(
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">trial, in running order</text>\n",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0
    ));
    out
}
