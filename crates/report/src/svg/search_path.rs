//! The path of a search: the size of each trial in running order, marked by its verdict.

use loadline_analysis::record::{Purpose, TrialRecord, Verdict};
use loadline_sizing::Bytes;

use crate::content::groups::{self, Names};
use crate::content::trials;
use crate::figures;
use crate::html::escape;
use crate::view::ResultView;

const WIDTH: f64 = 760.0;
/// Height of one size.
const STEP: f64 = 22.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// Sizes in the order they were tried: how a search narrowed in. The sizes stand evenly spaced, as
/// they crowd where the search ends. `None` for a matrix, or when only one size was tried.
pub fn search_path(view: &ResultView) -> Option<String> {
    let mut sizes: Vec<Bytes> = view
        .trials
        .iter()
        .filter_map(|t| t.configuration.memory)
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    let searched = view.trials.iter().any(|t| t.purpose == Purpose::Search);
    if !searched || sizes.len() < 2 {
        return None;
    }
    let height = TOP + BOTTOM + STEP * (sizes.len() - 1) as f64;
    let last = (view.trials.len() - 1).max(1) as f64;
    let x = |i: usize| LEFT + 16.0 + i as f64 / last * (WIDTH - LEFT - RIGHT - 32.0);
    let y = |size: usize| TOP + STEP * size as f64;
    let mut out = format!(
        "<svg class=\"path\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Memory limit of each trial in running order, marked by its verdict; the table of all trials has the values.\">\n"
    );
    for (i, size) in sizes.iter().enumerate() {
        let at = y(i);
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{size}</text>\n",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
        ));
    }
    let names = Names::of(view);
    for (i, trial) in view.trials.iter().enumerate() {
        let size = trial
            .configuration
            .memory
            .and_then(|m| sizes.iter().position(|s| *s == m));
        if let Some(size) = size {
            out.push_str(&mark(trial, i, (x(i), y(size)), view, &names));
        }
    }
    out.push_str(&axis(view.trials.len(), height, x));
    out.push_str("</svg>\n");
    Some(out)
}

fn mark(
    trial: &TrialRecord,
    i: usize,
    (x, y): (f64, f64),
    view: &ResultView,
    names: &Names,
) -> String {
    let title = escape(&format!(
        "Trial {}, {}, {}: {}. {}",
        i + 1,
        trials::purpose(trial.purpose),
        names.name(&trial.configuration),
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
fn axis(trials: usize, height: f64, x: impl Fn(usize) -> f64) -> String {
    let step = (trials / 12).max(1);
    let base = height - BOTTOM + 24.0;
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
        height - 4.0
    ));
    out
}
