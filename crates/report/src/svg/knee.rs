//! The knee of a search: latency, or how long a run takes, over the memory limit, and where it breaks.
//!
//! The picture of the first screen. Each size appears once, by its worst trial, as in the table of
//! sizes; sizes without a time, because they died or their requests failed, appear at the upper
//! edge.

use std::time::Duration;

use loadline_analysis::record::{TrialRecord, ValueProvenance};
use loadline_analysis::slo::{Objective, Quantile, RunObjective};
use loadline_sizing::Bytes;

use super::frame::{BOTTOM, KeySymbol, LEFT, Mark, RIGHT, SvgDrawing, TextAnchor, WIDTH};
use super::scale::AxisScale;
use crate::content::groups::{self, ConfigurationGroup};
use crate::content::runs::is_of_runs;
use crate::figures::{self, SeenLatency, TrialFigures};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 300.0;
const LABEL: f64 = 46.0;
/// Sizes beyond this many times the answer's are left out: they do not show the knee, and squeeze
/// it into a corner.
const WIDEST: u64 = 2;

struct KneeSize {
    memory: Bytes,
    /// The headline quantile of its trials or the time of its runs, lowest and highest; `None` where it
    /// lies in failures.
    latency: Option<(Duration, Option<Duration>)>,
    keeps_slo: bool,
    is_chosen: bool,
    title: String,
}

/// The drawing; `None` without a recommendation by memory, where the CPU limit or the options were
/// searched too, or where fewer than two sizes say something.
pub fn draw_knee(view: &ResultView) -> Option<String> {
    let recommendation = view.recommendation.as_ref()?;
    if recommendation.deployment.is_some() || !is_by_memory_alone(view) {
        return None;
    }
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let groups = groups::group_trials(view);
    let sizes = groups
        .iter()
        .filter_map(|group| knee_size(view, group, quantile));
    let mut all: Vec<KneeSize> = sizes.collect();
    let widest = recommendation.recommended_memory().as_bytes();
    let widest = widest.saturating_mul(WIDEST);
    all.retain(|s| s.memory.as_bytes() <= widest);
    all.sort_by_key(|s| s.memory);
    if all.len() < 2 {
        return None;
    }
    let what = shown_figure(view, quantile);
    let label = format!(
        "Worst {what} over the memory limit, marked by verdict; the table of sizes has the values."
    );
    let mut drawing = SvgDrawing::new("knee", HEIGHT, &label);
    let bound = bound(view, quantile);
    let top = draw_knee_key(&mut drawing, view.chosen_as(), bound.is_some()) + 26.0;
    let bottom = HEIGHT - BOTTOM;
    let x = AxisScale::log_of(all.iter().map(|s| s.memory.as_mib()), (LEFT, WIDTH - RIGHT))?;
    let highest = |s: &KneeSize| s.latency.and_then(|(low, high)| high.or(Some(low)));
    let latencies = all.iter().filter_map(highest).chain(bound).map(ms);
    let y = AxisScale::log_around(latencies, (bottom, top + 24.0))?;
    too_small(&mut drawing, &all, &x, (top, bottom));
    let title = if is_of_runs(view) {
        format!("worst {what}")
    } else {
        format!("worst {what}, {}", view.latency_origin())
    };
    axes(&mut drawing, &all, (&x, &y), (top, bottom), &title);
    if let Some(bound) = bound {
        drawing.draw_across("bound", y.position_of(ms(bound)));
    }
    let kept = all.iter().filter(|s| s.keeps_slo);
    let across = |s: &KneeSize| x.position_of(s.memory.as_mib());
    let step = |s: &KneeSize| Some((across(s), y.position_of(ms(highest(s)?))));
    let steps: Vec<(f64, f64)> = kept.filter_map(step).collect();
    drawing.draw_line("trend s1", &steps);
    for size in &all {
        let across = across(size);
        let place = |time: Option<Duration>| time.map_or(top, |time| y.position_of(ms(time)));
        let at = size.latency.map_or(top, |(_, high)| place(high));
        let low = size.latency.map_or(at, |(low, _)| place(Some(low)));
        if low - at > 1.0 {
            drawing.draw_line("whisker", &[(across, low), (across, at)]);
        }
        let mark = Mark::for_slo(size.keeps_slo);
        drawing.draw_mark(mark, (across, at), size.is_chosen, &size.title);
    }
    Some(drawing.finish_svg())
}

fn shown_figure(view: &ResultView, quantile: Quantile) -> String {
    if is_of_runs(view) {
        "run time".to_owned()
    } else {
        quantile.to_string()
    }
}

fn shown_time(view: &ResultView, trial: &TrialRecord, quantile: Quantile) -> Option<SeenLatency> {
    if is_of_runs(view) {
        trial.evidence.start.ready.map(SeenLatency::At)
    } else {
        TrialFigures::for_trial(trial, quantile).headline
    }
}

/// The heap of a run follows its limit.
fn is_by_memory_alone(view: &ResultView) -> bool {
    let Some(first) = view.trials.first() else {
        return false;
    };
    let rest = |t: &TrialRecord| {
        let mut configuration = t.configuration.clone();
        configuration.memory = first.configuration.memory;
        if is_of_runs(view) {
            let options = &mut configuration.jvm_options;
            options.retain(|option| option.provenance != ValueProvenance::Measured);
        }
        configuration
    };
    let first = rest(first);
    let mut trials = view.trials.iter();
    trials.all(|t| groups::is_same(&rest(t), &first))
}

fn knee_size(
    view: &ResultView,
    group: &ConfigurationGroup<'_>,
    quantile: Quantile,
) -> Option<KneeSize> {
    let memory = group.configuration.memory?;
    group.evidence_trials().next()?;
    let trials = group.evidence_trials();
    let seen = figures::spread(trials.filter_map(|t| shown_time(view, t, quantile)));
    let is_chosen = groups::is_chosen(view, group.configuration);
    let (kept, of) = group.passes();
    let worst = seen.map_or_else(String::new, |s| {
        format!(", worst {} {}", shown_figure(view, quantile), s.high.show())
    });
    let chosen = if is_chosen {
        format!(", {}", view.chosen_as())
    } else {
        String::new()
    };
    let why = group
        .first_failure()
        .map(|failure| failure.reason.in_short());
    let why = why.map_or_else(String::new, |why| format!(". {why}"));
    Some(KneeSize {
        memory,
        latency: seen.and_then(|s| Some((s.low.known_time()?, s.high.known_time()))),
        keeps_slo: group.keeps_slo(),
        is_chosen,
        title: format!("{memory}{chosen}: {kept} of {of} kept the SLO{worst}{why}"),
    })
}

fn bound(view: &ResultView, quantile: Quantile) -> Option<Duration> {
    let bound = |objective: &Objective| match objective {
        Objective::Latency { quantile: q, bound } if *q == quantile => Some(*bound),
        Objective::Run(RunObjective::Time { bound }) => Some(*bound),
        _ => None,
    };
    view.slo.objectives.iter().find_map(bound)
}

fn draw_knee_key(drawing: &mut SvgDrawing, chosen_as: &str, has_bound: bool) -> f64 {
    let mut entries = vec![
        (KeySymbol::Mark(Mark::Kept), "kept the SLO"),
        (
            KeySymbol::Mark(Mark::Broke),
            "did not; at the edge: no answer",
        ),
        (KeySymbol::Ring, chosen_as),
        (KeySymbol::Area("broken"), "too small"),
    ];
    if has_bound {
        entries.push((KeySymbol::Line("bound"), "the SLO"));
    }
    drawing.draw_key(LEFT, &entries)
}

fn too_small(drawing: &mut SvgDrawing, all: &[KneeSize], x: &AxisScale, (top, bottom): (f64, f64)) {
    let chosen = all.iter().find(|s| s.is_chosen).map(|s| s.memory);
    let below = |s: &&KneeSize| !s.keeps_slo && chosen.is_none_or(|chosen| s.memory < chosen);
    if let Some(largest) = all.iter().rev().find(below) {
        let width = x.position_of(largest.memory.as_mib()) - LEFT;
        let title = format!("{} and less is too small", largest.memory);
        drawing.draw_area("broken", (LEFT, top), (width, bottom - top), &title);
    }
}

/// Sizes below, the answer's and its neighbour's first where they crowd; latencies on the left.
fn axes(
    drawing: &mut SvgDrawing,
    all: &[KneeSize],
    (x, y): (&AxisScale, &AxisScale),
    (top, bottom): (f64, f64),
    title: &str,
) {
    let chosen = all.iter().position(|s| s.is_chosen).unwrap_or(0);
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|i| match *i {
        i if i == chosen => 0,
        0 => 1,
        i if i + 1 == all.len() => 2,
        i => 3 + i.abs_diff(chosen),
    });
    let mut shown: Vec<f64> = Vec::new();
    let mut ticks = Vec::new();
    for i in order {
        let at = x.position_of(all[i].memory.as_mib());
        if shown.iter().all(|other| (other - at).abs() >= LABEL) {
            shown.push(at);
            ticks.push((all[i].memory.as_mib(), all[i].memory.to_string()));
        }
    }
    drawing.x_axis(x, (top, bottom), &ticks, "memory limit, logarithmic");
    let time = |ms: f64| format::measured_seconds(ms / 1e3);
    drawing.y_axis(y, time, "");
    drawing.draw_text((8.0, top - 10.0), TextAnchor::Start, title);
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
