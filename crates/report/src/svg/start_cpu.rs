//! Start time over the CPU limit: every start, the model, and what it says of limits left out.

use super::frame::{
    BOTTOM, KeySymbol, LEFT, Mark, RIGHT, SvgDrawing, WIDTH, line_class, shorten_name,
};
use super::scale::AxisScale;
use crate::content::startup::{LimitFamily, limit_families};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 340.0;
const POINTS: usize = 60;
const MOST: usize = 4;
const NAME: usize = 24;

pub fn start_cpu(view: &ResultView) -> Option<String> {
    let mut families = limit_families(view);
    families.truncate(MOST);
    let starts = || families.iter().flat_map(|family| &family.starts);
    let limits = starts().map(|(limit, _)| limit.as_f64());
    let x = AxisScale::log_of(limits, (LEFT + 20.0, WIDTH - RIGHT - 20.0))?;
    let label = "Start time over the CPU limit with the model; the table has the values.";
    let mut drawing = SvgDrawing::new("start-cpu", HEIGHT, label);
    let top = draw_start_key(&mut drawing, &families) + 22.0;
    let bottom = HEIGHT - BOTTOM;
    let limits = || families.iter().flat_map(|family| &family.study.limits);
    let predicted = limits().filter_map(|limit| limit.predicted);
    let times = starts().map(|(_, seconds)| *seconds).chain(predicted);
    let y = AxisScale::log_around(times, (bottom, top))?;
    let mut cpus: Vec<_> = limits().map(|limit| limit.limit).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let ticks: Vec<(f64, String)> = cpus.iter().map(|c| (c.as_f64(), c.to_string())).collect();
    drawing.x_axis(&x, (top, bottom), &ticks, "CPU limit (log scale)");
    drawing.y_axis(&y, format::measured_seconds, "exec to ready (log scale)");
    for (i, family) in families.iter().enumerate() {
        draw_limit_family(&mut drawing, family, i, &x, &y);
    }
    Some(drawing.finish_svg())
}

fn draw_start_key(drawing: &mut SvgDrawing, families: &[LimitFamily]) -> f64 {
    let named = |(i, family): (usize, &LimitFamily)| {
        let model = family.study.model;
        let formula = format!("{:.2} s + {:.2} s / CPUs", model.fixed, model.cpu);
        let name = match families.len() {
            1 => formula,
            _ => format!("{}: {formula}", shorten_name(&family.name, NAME)),
        };
        (i, name)
    };
    let names: Vec<(usize, String)> = families.iter().enumerate().map(named).collect();
    let mut entries = vec![(KeySymbol::Mark(Mark::Of(0)), "a start")];
    let lines = names.iter();
    entries.extend(lines.map(|(i, name)| (KeySymbol::Line(line_class(*i)), name.as_str())));
    let predicted = "predicted without the starts of this limit";
    entries.push((KeySymbol::Mark(Mark::Predicted), predicted));
    drawing.draw_key(LEFT, &entries)
}

fn draw_limit_family(
    drawing: &mut SvgDrawing,
    family: &LimitFamily,
    series: usize,
    x: &AxisScale,
    y: &AxisScale,
) {
    let model = &family.study.model;
    let limits = family.study.limits.iter().map(|limit| limit.limit.as_f64());
    let ends = limits.clone().reduce(f64::min).zip(limits.reduce(f64::max));
    let Some((least, largest)) = ends else { return };
    let curve: Vec<(f64, f64)> = (0..=POINTS)
        .map(|i| least * (largest / least).powf(i as f64 / POINTS as f64))
        .map(|cpus| (x.position_of(cpus), y.position_of(model.seconds_at(cpus))))
        .collect();
    drawing.draw_line(line_class(series), &curve);
    for (limit, seconds) in &family.starts {
        let title = format!(
            "{}, {limit} CPU: ready after {}",
            family.name,
            format::measured_seconds(*seconds)
        );
        let at = (x.position_of(limit.as_f64()), y.position_of(*seconds));
        drawing.draw_mark(Mark::Of(series), at, false, &title);
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
            format::measured_seconds(predicted),
            format::measured_seconds(limit.measured)
        );
        let at = (
            x.position_of(limit.limit.as_f64()),
            y.position_of(predicted),
        );
        drawing.draw_mark(Mark::Predicted, at, false, &title);
    }
}
