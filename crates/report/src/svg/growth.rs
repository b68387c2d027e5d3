//! The memory of a soak over time: what its processes take, and what stays in the heap.

use loadline_analysis::record::{Phase, SoakPoint};
use loadline_sizing::Bytes;

use super::frame::{Drawing, Key, WIDTH, line_class};
use super::scale::Scale;
use crate::content::growth::soak;
use crate::format;
use crate::series::{Series, thin};
use crate::view::ResultView;

const HEIGHT: f64 = 320.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 48.0;

/// The lines, by name.
type Line = (&'static str, fn(&SoakPoint) -> Option<Bytes>);

const LINES: [Line; 4] = [
    ("anonymous memory", |p| p.anon),
    ("heap after collections", |p| p.heap_after),
    ("pages of files", |p| p.file),
    ("metaspace", |p| p.metaspace),
];

/// The drawing; `None` where nothing was soaked.
pub fn growth(view: &ResultView) -> Option<String> {
    let (trial, soak) = soak(view)?;
    let begin = soak.points.first()?.at_ns;
    let minutes = |ns: u64| ns.saturating_sub(begin) as f64 / 6e10;
    let column = |line: &Line| {
        soak.points
            .iter()
            .map(|p| line.1(p).map(Bytes::as_mib))
            .collect()
    };
    let series = thin(Series {
        t: soak.points.iter().map(|p| minutes(p.at_ns)).collect(),
        columns: LINES.iter().map(column).collect(),
    });
    let limit = trial.configuration.memory.map(Bytes::as_mib);
    let x = Scale::linear(series.t.iter().copied(), (LEFT, WIDTH - RIGHT))?;
    let mut drawing = Drawing::new(
        "growth",
        HEIGHT,
        "Memory of a soak in parts over its minutes; the table has the parts at the looks.",
    );
    let names = LINES.iter().enumerate();
    let mut entries: Vec<(Key, &str)> =
        vec![(Key::Line("edge"), "limit, and the rest between the cycles")];
    entries.extend(names.map(|(i, line)| (Key::Line(line_class(i)), line.0)));
    let top = drawing.key(LEFT, &entries) + 22.0;
    let bottom = HEIGHT - BOTTOM;
    let values = series.columns.iter().flatten().copied().flatten();
    let y = Scale::linear(values.chain(limit).chain([0.0]), (bottom, top))?;
    let ticks: Vec<(f64, String)> = x
        .ticks()
        .into_iter()
        .map(|t| (t, format::number(t)))
        .collect();
    drawing.x_axis(&x, (top, bottom), &ticks, "minutes of the soak");
    let ticks: Vec<(f64, String)> = y
        .ticks()
        .into_iter()
        .map(|t| (t, format!("{}Mi", format::number(t))))
        .collect();
    drawing.y_axis(&y, (LEFT, WIDTH - RIGHT), &ticks, "memory");
    if let Some(limit) = limit {
        drawing.line("edge", &[(LEFT, y.at(limit)), (WIDTH - RIGHT, y.at(limit))]);
    }
    if let Some(again) = soak.points.iter().find(|p| p.phase == Phase::Again) {
        let at = x.at(minutes(again.at_ns));
        drawing.line("edge", &[(at, top), (at, bottom)]);
    }
    for (i, column) in series.columns.iter().enumerate() {
        // Collections are rarer than points: a line from one to the next.
        let places = series.t.iter().zip(column);
        let places = places.filter_map(|(t, value)| Some((x.at(*t), y.at((*value)?))));
        drawing.line(line_class(i), &places.collect::<Vec<_>>());
    }
    Some(drawing.end())
}
