//! Start time over the CPU limit: every start, the model, and what it says of limits left out.

use std::time::Duration;

use super::frame::shortened;
use super::frame::{Drawing, Key, Mark, WIDTH, line_class};
use super::scale::Scale;
use crate::content::startup::{Limits, limit_families};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 340.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 48.0;
/// Points of the model's curve.
const POINTS: usize = 60;
/// Families that can be told apart.
const MOST: usize = 4;
/// Longest name of a family, in characters.
const NAME: usize = 24;

/// The drawing; `None` where no CPU limits were compared.
pub fn start_cpu(view: &ResultView) -> Option<String> {
    let mut families = limit_families(view);
    families.truncate(MOST);
    let starts = || families.iter().flat_map(|family| &family.starts);
    let x = Scale::log_of(
        starts().map(|(limit, _)| limit.as_f64()),
        (LEFT + 20.0, WIDTH - RIGHT - 20.0),
    )?;
    let mut drawing = Drawing::new(
        "start-cpu",
        HEIGHT,
        "Start time over the CPU limit with the model; the table has the values.",
    );
    let top = key(&mut drawing, &families) + 22.0;
    let bottom = HEIGHT - BOTTOM;
    let limits = || families.iter().flat_map(|family| &family.study.limits);
    let predicted = limits().filter_map(|limit| limit.predicted);
    let times = starts().map(|(_, seconds)| *seconds).chain(predicted);
    let y = Scale::log(times, (bottom, top))?;
    let mut cpus: Vec<_> = limits().map(|limit| limit.limit).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let ticks: Vec<(f64, String)> = cpus.iter().map(|c| (c.as_f64(), c.to_string())).collect();
    drawing.x_axis(&x, (top, bottom), &ticks, "CPU limit (log scale)");
    let ticks: Vec<(f64, String)> = y.ticks().into_iter().map(|t| (t, time(t))).collect();
    drawing.y_axis(
        &y,
        (LEFT, WIDTH - RIGHT),
        &ticks,
        "exec to the first good response (log scale)",
    );
    for (i, family) in families.iter().enumerate() {
        draw(&mut drawing, family, i, &x, &y);
    }
    Some(drawing.end())
}

fn key(drawing: &mut Drawing, families: &[Limits]) -> f64 {
    let named = |(i, family): (usize, &Limits)| {
        let model = family.study.model;
        let formula = format!("{:.2} s + {:.2} s / CPUs", model.fixed, model.cpu);
        let name = match families.len() {
            1 => formula,
            _ => format!("{}: {formula}", shortened(&family.name, NAME)),
        };
        (i, name)
    };
    let names: Vec<(usize, String)> = families.iter().enumerate().map(named).collect();
    let mut entries = vec![(Key::Mark(Mark::Of(0)), "a start")];
    for (i, name) in &names {
        entries.push((Key::Line(line_class(*i)), name.as_str()));
    }
    entries.push((
        Key::Mark(Mark::Predicted),
        "predicted without the starts of this limit",
    ));
    drawing.key(LEFT, &entries)
}

fn draw(drawing: &mut Drawing, family: &Limits, series: usize, x: &Scale, y: &Scale) {
    let model = &family.study.model;
    let limits = family.study.limits.iter().map(|limit| limit.limit.as_f64());
    let ends = limits.clone().reduce(f64::min).zip(limits.reduce(f64::max));
    let Some((least, largest)) = ends else { return };
    let curve: Vec<(f64, f64)> = (0..=POINTS)
        .map(|i| least * (largest / least).powf(i as f64 / POINTS as f64))
        .map(|cpus| (x.at(cpus), y.at(model.at(cpus))))
        .collect();
    drawing.line(line_class(series), &curve);
    for (limit, seconds) in &family.starts {
        let title = format!(
            "{}, {limit} CPU: ready after {}",
            family.name,
            time(*seconds)
        );
        let at = (x.at(limit.as_f64()), y.at(*seconds));
        drawing.mark(Mark::Of(series), at, false, &title);
    }
    for limit in &family.study.limits {
        let Some(predicted) = limit.predicted else {
            continue;
        };
        let kind = if limit.is_between(&family.study.limits) {
            "between others"
        } else {
            "outside of all others"
        };
        let title = format!(
            "{} CPU, {kind}: predicted {}, measured {}",
            limit.limit,
            time(predicted),
            time(limit.measured)
        );
        let at = (x.at(limit.limit.as_f64()), y.at(predicted));
        drawing.mark(Mark::Predicted, at, false, &title);
    }
}

fn time(seconds: f64) -> String {
    format::time(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
}
