//! What one replica carries over its CPU limit: kept below, too high above, the truth between.

use std::collections::BTreeSet;

use super::frame::shortened;
use super::frame::{Drawing, Key, Mark, WIDTH, line_class};
use super::scale::Scale;
use crate::content::scaling::{Size, sizes};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 340.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 48.0;
/// Between marks of the same CPU limit, so that none hides another.
const BESIDE: f64 = 9.0;
/// Longest name of a variant in the key, in characters.
const NAME: usize = 24;
/// Variants that can be told apart.
const MOST: usize = 4;

/// The drawing; `None` where rates were not varied over CPU limits.
pub fn scaling(view: &ResultView) -> Option<String> {
    let sizes = sizes(view);
    let cpus: BTreeSet<_> = sizes.iter().map(|s| s.cpu).collect();
    let ends = [cpus.first()?.as_f64(), cpus.last()?.as_f64()];
    let x = Scale::log_of(ends, (LEFT + 20.0, WIDTH - RIGHT - 20.0))?;
    let mut drawing = Drawing::new(
        "scaling",
        HEIGHT,
        "Requests a second of one replica over its CPU limit; the table has the values.",
    );
    let variants: BTreeSet<&str> = sizes.iter().map(|s| s.variant.as_str()).collect();
    let variants: Vec<&str> = variants.into_iter().take(MOST).collect();
    let top = key(&mut drawing, &variants) + 22.0;
    // As much for each CPU as the best size carries.
    let best = sizes
        .iter()
        .filter_map(|s| Some(s.carried? / s.cpu.as_f64()));
    let best = best.reduce(f64::max)?;
    let rates = sizes.iter().flat_map(|s| [s.carried, s.too_high]).flatten();
    let rates = rates.chain(ends.map(|cpu| best * cpu));
    let y = Scale::log(rates, (HEIGHT - BOTTOM, top))?;
    let ticks: Vec<(f64, String)> = cpus.iter().map(|c| (c.as_f64(), c.to_string())).collect();
    drawing.x_axis(&x, (top, HEIGHT - BOTTOM), &ticks, "CPU limit of a replica");
    let ticks: Vec<(f64, String)> = y
        .ticks()
        .into_iter()
        .map(|r| (r, format::rate(r)))
        .collect();
    drawing.y_axis(
        &y,
        (LEFT, WIDTH - RIGHT),
        &ticks,
        "requests a second of one replica",
    );
    drawing.line("aim", &ends.map(|cpu| (x.at(cpu), y.at(best * cpu))));
    for (i, variant) in variants.iter().enumerate() {
        let own: Vec<&Size> = sizes.iter().filter(|s| s.variant == *variant).collect();
        drawing.line(line_class(i), &crest(&own, &x, &y));
        for size in &own {
            bracket(&mut drawing, size, beside(size, &own, &x), &y);
        }
    }
    Some(drawing.end())
}

fn key(drawing: &mut Drawing, variants: &[&str]) -> f64 {
    let names: Vec<String> = variants.iter().map(|v| shortened(v, NAME)).collect();
    let mut entries = vec![
        (Key::Mark(Mark::Kept), "kept the SLO"),
        (Key::Mark(Mark::Broke), "too high"),
        (Key::Line("aim"), "as much for each CPU as the best size"),
    ];
    if names.len() > 1 {
        let lines = names.iter().enumerate();
        entries.extend(lines.map(|(i, name)| (Key::Line(line_class(i)), name.as_str())));
    }
    drawing.key(LEFT, &entries)
}

/// The highest rate that any memory carried, for each CPU limit.
fn crest(sizes: &[&Size], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let cpus: BTreeSet<_> = sizes.iter().map(|s| s.cpu).collect();
    let highest = |cpu| {
        let of = sizes.iter().filter(|s| s.cpu == cpu);
        let best = of.max_by(|a, b| {
            a.carried
                .unwrap_or(0.0)
                .total_cmp(&b.carried.unwrap_or(0.0))
        })?;
        Some((beside(best, sizes, x), y.at(best.carried?)))
    };
    cpus.into_iter().filter_map(highest).collect()
}

/// Where a size stands: at its CPU limit, beside those of another memory.
fn beside(size: &Size, sizes: &[&Size], x: &Scale) -> f64 {
    let same: Vec<&&Size> = sizes.iter().filter(|s| s.cpu == size.cpu).collect();
    let place = same.iter().position(|s| **s == size).unwrap_or(0) as f64;
    x.at(size.cpu.as_f64()) + BESIDE * (place - (same.len() - 1) as f64 / 2.0)
}

fn bracket(drawing: &mut Drawing, size: &Size, x: f64, y: &Scale) {
    let name = size.name();
    if let (Some(carried), Some(too_high)) = (size.carried, size.too_high) {
        drawing.line("between", &[(x, y.at(carried)), (x, y.at(too_high))]);
    }
    if let Some(rate) = size.too_high {
        let title = format!("{name}: {} was too much", format::rate(rate));
        drawing.mark(Mark::Broke, (x, y.at(rate)), false, &title);
    }
    if let Some(rate) = size.carried {
        let title = format!("{name}: carried {}", format::rate(rate));
        drawing.mark(Mark::Kept, (x, y.at(rate)), false, &title);
    }
}
