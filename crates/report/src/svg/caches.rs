//! Start-up caches: start time and memory of each, relative to the JVM's default.

use loadline_analysis::interval::ConfidenceInterval;

use super::frame::{KeySymbol, SvgDrawing, TextAnchor, WIDTH, shorten_name};
use super::scale::AxisScale;
use crate::content::startup::{CacheRow, cache_families, ratio_words};
use crate::format;
use crate::view::ResultView;

const LEFT: f64 = 190.0;
const RIGHT: f64 = 60.0;
const BOTTOM: f64 = 48.0;
const BAR: f64 = 12.0;
const ROW: f64 = 36.0;
const HEAD: f64 = 24.0;
const NAME: usize = 26;
const FAMILY: usize = 90;

pub fn draw_caches(view: &ResultView) -> Option<String> {
    let families = cache_families(view);
    let rows = || families.iter().flat_map(|family| &family.rows);
    // Only the reference: nothing to compare.
    if rows().all(|row| row.start.is_none() && row.memory.is_none()) {
        return None;
    }
    let ends = rows().flat_map(|row| [row.start, row.memory]).flatten();
    let ends = ends.map(|interval| interval.high).chain([1.0]);
    let x = AxisScale::linear(ends, (LEFT, WIDTH - RIGHT))?;
    let body = HEAD * families.len() as f64 + ROW * rows().count() as f64;
    let top = 40.0;
    let height = top + body + BOTTOM;
    let label = "Start time and memory of each start-up cache, relative to the JVM's own; the tables have the values.";
    let mut drawing = SvgDrawing::new("caches", height, label);
    let key = [
        (KeySymbol::Area("start"), "start time"),
        (KeySymbol::Area("footprint"), "memory at ready"),
        (KeySymbol::Line("whisker"), "95 % interval"),
    ];
    drawing.draw_key(LEFT, &key);
    let ticks = x.labelled_ticks(show_share);
    let bottom = height - BOTTOM;
    let title = "relative to the JVM's own way, from 0";
    drawing.x_axis(&x, (top, bottom), &ticks, title);
    let mut y = top;
    for family in &families {
        let title = shorten_name(&family.name, FAMILY);
        drawing.draw_text((8.0, y + HEAD - 8.0), TextAnchor::Start, &title);
        y += HEAD;
        for row in &family.rows {
            draw_cache_row(&mut drawing, row, y, &x);
            y += ROW;
        }
    }
    let whole = x.position_of(1.0);
    drawing.draw_line("edge", &[(whole, top), (whole, bottom)]);
    Some(drawing.finish_svg())
}

fn draw_cache_row(drawing: &mut SvgDrawing, row: &CacheRow, y: f64, x: &AxisScale) {
    let middle = (LEFT - 8.0, y + BAR + 4.0);
    drawing.draw_text(middle, TextAnchor::End, &shorten_name(&row.name, NAME));
    let bars = [
        ("start", "start time", row.start),
        ("footprint", "memory at ready", row.memory),
    ];
    for (i, (class, what, interval)) in bars.into_iter().enumerate() {
        let y = y + i as f64 * (BAR + 1.0);
        if row.is_reference {
            let title = format!("{}, {what}: what the others are relative to", row.name);
            drawing.draw_area(class, (LEFT, y), (x.position_of(1.0) - LEFT, BAR), &title);
        }
        if let Some(interval) = interval {
            bar(drawing, (class, row.name.as_str(), what), interval, y, x);
        }
    }
}

fn bar(
    drawing: &mut SvgDrawing,
    (class, name, what): (&str, &str, &str),
    value: ConfidenceInterval,
    y: f64,
    x: &AxisScale,
) {
    let title = format!("{name}, {what}: {}", ratio_words(value));
    let width = x.position_of(value.estimate) - LEFT;
    drawing.draw_area(class, (LEFT, y), (width, BAR), &title);
    let [low, high] = [value.low, value.high].map(|end| (x.position_of(end), y + BAR / 2.0));
    drawing.draw_line("whisker", &[low, high]);
    let end = x.position_of(value.high.max(value.estimate)) + 6.0;
    let share = show_share(value.estimate);
    drawing.draw_text((end, y + BAR - 2.0), TextAnchor::Start, &share);
}

fn show_share(value: f64) -> String {
    if value.is_finite() {
        format!("{:.0} %", value * 100.0)
    } else {
        format::NONE.to_owned()
    }
}
