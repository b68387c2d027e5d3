//! The picture of a matrix: its headline figure over the first numeric factor.
//!
//! Every configuration of the matrix appears once: the middle of its trials, a line from the lowest
//! to the highest, and a cross if one trial missed the SLO. Each combination of the other factors
//! has a line.

use std::time::Duration;

use loadline_analysis::record::Configuration;
use loadline_analysis::sli::Sli;
use loadline_analysis::slo::{Objective, Quantile, RunObjective};

use super::frame::{
    BOTTOM, KeySymbol, LEFT, Mark, RIGHT, SvgDrawing, TextAnchor, WIDTH, line_class, shorten_name,
};
use super::scale::AxisScale;
use crate::content::groups::{self, ConfigurationGroup, ConfigurationNames};
use crate::figures::{self, SeenLatency, Spread, TrialFigures};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 320.0;
const MOST: usize = 8;
const NAME: usize = 24;
const LABEL: f64 = 46.0;

struct FactorAxis {
    title: &'static str,
    level: fn(&Configuration) -> Option<(f64, String)>,
    clear: fn(&mut Configuration),
}

const AXES: [FactorAxis; 4] = [
    FactorAxis {
        title: "memory limit, logarithmic",
        level: |c| c.memory.map(|m| (m.as_mib(), m.to_string())),
        clear: |c| c.memory = None,
    },
    FactorAxis {
        title: "CPU limit, logarithmic",
        level: |c| c.cpu.map(|cpu| (cpu.as_f64(), cpu.to_string())),
        clear: |c| c.cpu = None,
    },
    FactorAxis {
        title: "CPU shares, logarithmic",
        level: |c| Some((c.cpu_shares? as f64, c.cpu_shares?.to_string())),
        clear: |c| c.cpu_shares = None,
    },
    FactorAxis {
        title: "requests a second, logarithmic",
        level: |c| c.rate.map(|rate| (rate, format::as_rate(rate))),
        clear: |c| c.rate = None,
    },
];

struct MatrixPoint {
    level: (f64, String),
    seen: Spread<SeenLatency>,
    keeps_slo: bool,
    title: String,
}

struct MatrixLine {
    name: String,
    points: Vec<MatrixPoint>,
}

/// The drawing; `None` without a matrix, without a numeric factor, or with too many lines.
pub fn draw_matrix(view: &ResultView) -> Option<String> {
    if view.recommendation.is_some() {
        return None;
    }
    let axis = AXES.iter().find(|axis| has_several_levels(view, axis))?;
    let quantile = of_latency(view);
    let lines = lines(view, axis, quantile);
    let is_told_apart = |i: usize| lines[i + 1..].iter().all(|l| l.name != lines[i].name);
    if lines.len() > MOST || !(0..lines.len()).all(is_told_apart) {
        return None;
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = AxisScale::log_of(points().map(|p| p.level.0), (LEFT, WIDTH - RIGHT))?;
    let figure = match quantile {
        Some(quantile) => format!("{quantile}, {}", view.latency_origin()),
        None => "exec to ready".to_owned(),
    };
    let over = axis.title;
    let label = format!("{figure}, over the {over}; the table has the values.");
    let mut drawing = SvgDrawing::new("matrix", HEIGHT, &label);
    let bound = bound(view, quantile);
    let top = draw_matrix_key(&mut drawing, &lines, bound.is_some()) + 26.0;
    let bottom = HEIGHT - BOTTOM;
    let times = points().flat_map(|p| [p.seen.low, p.seen.median, p.seen.high]);
    let times = times.filter_map(SeenLatency::known_time).chain(bound);
    let y = AxisScale::log_around(times.map(|time| time.as_secs_f64()), (bottom, top + 24.0))?;
    axes(&mut drawing, points(), (&x, &y), (top, bottom), axis.title);
    drawing.draw_text((8.0, top - 10.0), TextAnchor::Start, &figure);
    if let Some(bound) = bound {
        drawing.draw_across("bound", y.position_of(bound.as_secs_f64()));
    }
    for (i, line) in lines.iter().enumerate() {
        draw_matrix_line(&mut drawing, (i, lines.len()), line, (&x, &y), top);
    }
    Some(drawing.finish_svg())
}

fn has_several_levels(view: &ResultView, axis: &FactorAxis) -> bool {
    let levels = view.trials.iter();
    let mut levels = levels.filter_map(|t| (axis.level)(&t.configuration));
    let first = levels.next();
    first.is_some_and(|(first, _)| levels.any(|(level, _)| level.total_cmp(&first).is_ne()))
}

fn of_latency(view: &ResultView) -> Option<Quantile> {
    let of_latency = !view.is_of_starts();
    of_latency.then(|| figures::headline_quantile(&view.slo.objectives))
}

fn bound(view: &ResultView, quantile: Option<Quantile>) -> Option<Duration> {
    let bound = |objective: &Objective| match (objective, quantile) {
        (Objective::Latency { quantile: q, bound }, Some(quantile)) if *q == quantile => {
            Some(*bound)
        }
        (Objective::Start { bound } | Objective::Run(RunObjective::Time { bound }), None) => {
            Some(*bound)
        }
        _ => None,
    };
    view.slo.objectives.iter().find_map(bound)
}

fn lines(view: &ResultView, axis: &FactorAxis, quantile: Option<Quantile>) -> Vec<MatrixLine> {
    let without = |configuration: &Configuration| {
        let mut rest = configuration.clone();
        (axis.clear)(&mut rest);
        rest
    };
    let mut plain = view.clone();
    for trial in &mut plain.trials {
        trial.configuration = without(&trial.configuration);
    }
    let names = ConfigurationNames::for_result(&plain);
    let mut lines: Vec<(Configuration, MatrixLine)> = Vec::new();
    for group in groups::group_trials(view) {
        let Some(point) = point(&group, axis, quantile) else {
            continue;
        };
        let rest = without(group.configuration);
        match lines.iter_mut().find(|(of, _)| groups::is_same(of, &rest)) {
            Some((_, line)) => line.points.push(point),
            None => {
                let name = shorten_name(&names.variant(&rest), NAME);
                let points = vec![point];
                lines.push((rest, MatrixLine { name, points }));
            }
        }
    }
    let mut lines: Vec<MatrixLine> = lines.into_iter().map(|(_, line)| line).collect();
    for line in &mut lines {
        line.points.sort_by(|a, b| a.level.0.total_cmp(&b.level.0));
    }
    lines
}

fn point(
    group: &ConfigurationGroup<'_>,
    axis: &FactorAxis,
    quantile: Option<Quantile>,
) -> Option<MatrixPoint> {
    let level = (axis.level)(group.configuration)?;
    let seen = group.evidence_trials().filter_map(|trial| match quantile {
        Some(quantile) => TrialFigures::for_trial(trial, quantile).headline,
        None => Sli::from_record(trial).ok()?.start.map(SeenLatency::At),
    });
    let n = group.evidence_trials().count();
    // Configurations that died before any answer appear at the edge.
    let none = (n > 0).then_some(Spread {
        low: SeenLatency::InFailures,
        median: SeenLatency::InFailures,
        high: SeenLatency::InFailures,
        n,
    });
    let seen = figures::spread(seen).or(none)?;
    let (kept, of) = group.passes();
    let range = match seen.n {
        1 => seen.median.show(),
        _ => format!(
            "{} ({} to {})",
            seen.median.show(),
            seen.low.show(),
            seen.high.show()
        ),
    };
    Some(MatrixPoint {
        title: format!("{}: {range}, {kept} of {of} kept the SLO", level.1),
        level,
        seen,
        keeps_slo: group.keeps_slo(),
    })
}

fn draw_matrix_key(drawing: &mut SvgDrawing, lines: &[MatrixLine], has_bound: bool) -> f64 {
    let mut entries: Vec<(KeySymbol, &str)> = Vec::new();
    let names = lines.iter().map(|line| line.name.as_str()).enumerate();
    let names = names.map(|(i, name)| (KeySymbol::Mark(Mark::Of(i)), name));
    match lines.len() {
        1 => entries.push((KeySymbol::Mark(Mark::Kept), "kept the SLO")),
        _ => entries.extend(names),
    }
    let broke = "did not keep the SLO; at the edge: no answer";
    entries.push((KeySymbol::Mark(Mark::Broke), broke));
    entries.push((KeySymbol::Line("whisker"), "lowest to highest trial"));
    if has_bound {
        entries.push((KeySymbol::Line("bound"), "the SLO"));
    }
    drawing.draw_key(LEFT, &entries)
}

fn axes<'a>(
    drawing: &mut SvgDrawing,
    points: impl Iterator<Item = &'a MatrixPoint>,
    (x, y): (&AxisScale, &AxisScale),
    (top, bottom): (f64, f64),
    title: &str,
) {
    let mut levels: Vec<&(f64, String)> = points.map(|point| &point.level).collect();
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels.dedup();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for level in levels {
        let is_clear =
            |last: &(f64, String)| x.position_of(level.0) - x.position_of(last.0) >= LABEL;
        if ticks.last().is_none_or(is_clear) {
            ticks.push(level.clone());
        }
    }
    drawing.x_axis(x, (top, bottom), &ticks, title);
    drawing.y_axis(y, format::measured_seconds, "");
}

fn draw_matrix_line(
    drawing: &mut SvgDrawing,
    (index, of): (usize, usize),
    line: &MatrixLine,
    (x, y): (&AxisScale, &AxisScale),
    top: f64,
) {
    let place = |seen: SeenLatency| {
        let time = seen.known_time();
        time.map_or(top, |time| y.position_of(time.as_secs_f64()))
    };
    let answered = line.points.iter();
    let answered = answered.filter(|p| p.seen.median.known_time().is_some());
    let steps = answered.map(|p| (x.position_of(p.level.0), place(p.seen.median)));
    let steps: Vec<(f64, f64)> = steps.collect();
    drawing.draw_line(line_class(index), &steps);
    for point in &line.points {
        let across = x.position_of(point.level.0);
        let (low, high) = (place(point.seen.low), place(point.seen.high));
        if low - high > 1.0 {
            drawing.draw_line("whisker", &[(across, low), (across, high)]);
        }
        let mark = match (point.keeps_slo, of) {
            (false, _) => Mark::Broke,
            (true, 1) => Mark::Kept,
            (true, _) => Mark::Of(index),
        };
        let title = match of {
            1 => point.title.clone(),
            _ => format!("{}, {}", line.name, point.title),
        };
        drawing.draw_mark(mark, (across, place(point.seen.median)), false, &title);
    }
}
