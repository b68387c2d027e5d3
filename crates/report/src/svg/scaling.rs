//! What one replica carries over its CPU limit: kept below, too high above, the truth between.

use std::collections::BTreeSet;

use super::frame::{
    BOTTOM, KeySymbol, LEFT, Mark, RIGHT, SvgDrawing, WIDTH, line_class, shorten_name,
};
use super::scale::AxisScale;
use crate::content::scaling::{CarriedSize, sizes};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 340.0;
const BESIDE: f64 = 9.0;
const NAME: usize = 24;
const MOST: usize = 4;

pub fn draw_scaling(view: &ResultView) -> Option<String> {
    let sizes = sizes(view);
    let cpus: BTreeSet<_> = sizes.iter().map(|s| s.cpu).collect();
    let ends = [cpus.first()?.as_f64(), cpus.last()?.as_f64()];
    let x = AxisScale::log_of(ends, (LEFT + 20.0, WIDTH - RIGHT - 20.0))?;
    let label = "Requests a second of one replica over its CPU limit; the table has the values.";
    let mut drawing = SvgDrawing::new("scaling", HEIGHT, label);
    let variants: BTreeSet<&str> = sizes.iter().map(|s| s.variant.as_str()).collect();
    let variants: Vec<&str> = variants.into_iter().take(MOST).collect();
    let top = draw_scaling_key(&mut drawing, &variants) + 22.0;
    // As much for each CPU as the best size carries.
    let best = sizes.iter();
    let best = best.filter_map(|s| Some(s.carried? / s.cpu.as_f64()));
    let best = best.reduce(f64::max)?;
    let rates = sizes.iter().flat_map(|s| [s.carried, s.too_high]).flatten();
    let rates = rates.chain(ends.map(|cpu| best * cpu));
    let y = AxisScale::log_around(rates, (HEIGHT - BOTTOM, top))?;
    let ticks: Vec<(f64, String)> = cpus.iter().map(|c| (c.as_f64(), c.to_string())).collect();
    drawing.x_axis(&x, (top, HEIGHT - BOTTOM), &ticks, "CPU limit of a replica");
    drawing.y_axis(&y, format::as_rate, "requests a second of one replica");
    let aim = ends.map(|cpu| (x.position_of(cpu), y.position_of(best * cpu)));
    drawing.draw_line("aim", &aim);
    for (i, variant) in variants.iter().enumerate() {
        let own: Vec<&CarriedSize> = sizes.iter().filter(|s| s.variant == *variant).collect();
        drawing.draw_line(line_class(i), &crest(&own, &x, &y));
        for size in &own {
            bracket(&mut drawing, size, x_beside(size, &own, &x), &y);
        }
    }
    Some(drawing.finish_svg())
}

fn draw_scaling_key(drawing: &mut SvgDrawing, variants: &[&str]) -> f64 {
    let names: Vec<String> = variants.iter().map(|v| shorten_name(v, NAME)).collect();
    let mut entries = vec![
        (KeySymbol::Mark(Mark::Kept), "kept the SLO"),
        (KeySymbol::Mark(Mark::Broke), "too high"),
        (
            KeySymbol::Line("aim"),
            "as much for each CPU as the best size",
        ),
    ];
    if names.len() > 1 {
        let lines = names.iter().enumerate();
        entries.extend(lines.map(|(i, name)| (KeySymbol::Line(line_class(i)), name.as_str())));
    }
    drawing.draw_key(LEFT, &entries)
}

fn crest(sizes: &[&CarriedSize], x: &AxisScale, y: &AxisScale) -> Vec<(f64, f64)> {
    let cpus: BTreeSet<_> = sizes.iter().map(|s| s.cpu).collect();
    let carried = |size: &CarriedSize| size.carried.unwrap_or(0.0);
    let highest = |cpu| {
        let of = sizes.iter().filter(|s| s.cpu == cpu);
        let best = of.max_by(|a, b| carried(a).total_cmp(&carried(b)))?;
        Some((x_beside(best, sizes, x), y.position_of(best.carried?)))
    };
    cpus.into_iter().filter_map(highest).collect()
}

/// Offsets sizes with the same CPU limit by their memory.
fn x_beside(size: &CarriedSize, sizes: &[&CarriedSize], x: &AxisScale) -> f64 {
    let same: Vec<&&CarriedSize> = sizes.iter().filter(|s| s.cpu == size.cpu).collect();
    let place = same.iter().position(|s| **s == size).unwrap_or(0) as f64;
    x.position_of(size.cpu.as_f64()) + BESIDE * (place - (same.len() - 1) as f64 / 2.0)
}

fn bracket(drawing: &mut SvgDrawing, size: &CarriedSize, x: f64, y: &AxisScale) {
    let name = size.size_name();
    if let (Some(carried), Some(too_high)) = (size.carried, size.too_high) {
        let ends = [carried, too_high].map(|rate| (x, y.position_of(rate)));
        drawing.draw_line("between", &ends);
    }
    if let Some(rate) = size.too_high {
        let title = format!("{name}: {} was too much", format::as_rate(rate));
        drawing.draw_mark(Mark::Broke, (x, y.position_of(rate)), false, &title);
    }
    if let Some(rate) = size.carried {
        let title = format!("{name}: carried {}", format::as_rate(rate));
        drawing.draw_mark(Mark::Kept, (x, y.position_of(rate)), false, &title);
    }
}
