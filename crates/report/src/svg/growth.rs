//! The memory of a soak over time: what its processes take, and what stays in the heap.

use loadline_analysis::record::{SoakPoint, TrialPhase};
use loadline_sizing::Bytes;

use super::frame::{BOTTOM, KeySymbol, LEFT, RIGHT, SvgDrawing, WIDTH, line_class};
use super::scale::AxisScale;
use crate::content::growth::last_soak;
use crate::format;
use crate::series::{ChartSeries, thin};
use crate::view::ResultView;

const HEIGHT: f64 = 320.0;

type Line = (&'static str, fn(&SoakPoint) -> Option<Bytes>);

const LINES: [Line; 4] = [
    ("anonymous memory", |p| p.anon),
    ("heap after collections", |p| p.heap_after),
    ("pages of files", |p| p.file),
    ("metaspace", |p| p.metaspace),
];

pub fn draw_growth(view: &ResultView) -> Option<String> {
    let (trial, soak) = last_soak(view)?;
    let begin = soak.points.first()?.at_ns;
    let minutes = |ns: u64| ns.saturating_sub(begin) as f64 / 6e10;
    let points = || soak.points.iter();
    let column = |line: &Line| points().map(|p| line.1(p).map(Bytes::as_mib)).collect();
    let series = thin(ChartSeries {
        t: soak.points.iter().map(|p| minutes(p.at_ns)).collect(),
        columns: LINES.iter().map(column).collect(),
    });
    let limit = trial.configuration.memory.map(Bytes::as_mib);
    let x = AxisScale::linear(series.t.iter().copied(), (LEFT, WIDTH - RIGHT))?;
    let label = "Memory of a soak in parts over its minutes; the table has the parts at the looks.";
    let mut drawing = SvgDrawing::new("growth", HEIGHT, label);
    let names = LINES.iter().enumerate();
    let mut entries: Vec<(KeySymbol, &str)> = vec![(
        KeySymbol::Line("edge"),
        "limit, and the rest between the cycles",
    )];
    entries.extend(names.map(|(i, line)| (KeySymbol::Line(line_class(i)), line.0)));
    let top = drawing.draw_key(LEFT, &entries) + 22.0;
    let bottom = HEIGHT - BOTTOM;
    let values = series.columns.iter().flatten().copied().flatten();
    let y = AxisScale::linear(values.chain(limit).chain([0.0]), (bottom, top))?;
    let ticks = x.labelled_ticks(format::three_digits);
    drawing.x_axis(&x, (top, bottom), &ticks, "minutes of the soak");
    drawing.y_axis(&y, |t| format!("{}Mi", format::three_digits(t)), "memory");
    if let Some(limit) = limit {
        drawing.draw_across("edge", y.position_of(limit));
    }
    if let Some(again) = soak.points.iter().find(|p| p.phase == TrialPhase::Again) {
        let at = x.position_of(minutes(again.at_ns));
        drawing.draw_line("edge", &[(at, top), (at, bottom)]);
    }
    for (i, column) in series.columns.iter().enumerate() {
        // Collections are rarer than points: a line from one to the next.
        let places = series.t.iter().zip(column);
        let places =
            places.filter_map(|(t, value)| Some((x.position_of(*t), y.position_of((*value)?))));
        drawing.draw_line(line_class(i), &places.collect::<Vec<_>>());
    }
    Some(drawing.finish_svg())
}
