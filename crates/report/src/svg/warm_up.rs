//! The warm-up: the usual answer (p50) of every second since the load began.

use std::time::Duration;

use super::frame::{BOTTOM, KeySymbol, LEFT, RIGHT, SvgDrawing, WIDTH, line_class, shorten_name};
use super::scale::AxisScale;
use crate::content::warm_up::{WarmUpCurve, curves};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 300.0;
const MOST: usize = 4;
const POINTS: usize = 200;
const NAME: usize = 30;

pub fn warm_up(view: &ResultView) -> Option<String> {
    let curves = curves(view, MOST);
    let ms = |p50: &Option<Duration>| Some((*p50)?.as_secs_f64() * 1e3);
    let ms = |curve: &WarmUpCurve| -> Vec<Option<f64>> { curve.p50.iter().map(ms).collect() };
    let values: Vec<Vec<Option<f64>>> = curves.iter().map(ms).collect();
    let longest = values.iter().map(Vec::len).max()?;
    let x = AxisScale::linear([longest as f64], (LEFT, WIDTH - RIGHT))?;
    let label = "p50 of each second since the load began; the table has the ends.";
    let mut drawing = SvgDrawing::new("warm-up", HEIGHT, label);
    let names: Vec<String> = curves.iter().map(|c| shorten_name(&c.name, NAME)).collect();
    let mut entries = vec![(KeySymbol::Line("edge"), "from here on judged")];
    let lines = names.iter().enumerate();
    entries.extend(lines.map(|(i, name)| (KeySymbol::Line(line_class(i)), name.as_str())));
    let top = drawing.draw_key(LEFT, &entries) + 22.0;
    let bottom = HEIGHT - BOTTOM;
    let y = AxisScale::log_around(values.iter().flatten().copied().flatten(), (bottom, top))?;
    let ticks = x.labelled_ticks(|s| s.to_string());
    drawing.x_axis(&x, (top, bottom), &ticks, "seconds of load");
    let title = "p50, the median over the trials (log scale)";
    drawing.y_axis(&y, |ms| format::measured_seconds(ms / 1e3), title);
    if let Some(judged) = curves.first().map(|c| x.position_of(c.warm_up as f64)) {
        drawing.draw_line("edge", &[(judged, top), (judged, bottom)]);
    }
    for (i, values) in values.iter().enumerate() {
        let place = |(second, ms): (usize, &Option<f64>)| {
            Some((x.position_of(second as f64 + 0.5), y.position_of((*ms)?)))
        };
        let places: Vec<_> = values.iter().enumerate().map(place).collect();
        // A gap where nothing was answered.
        for run in places.split(Option::is_none) {
            let run: Vec<(f64, f64)> = run.iter().copied().flatten().collect();
            drawing.draw_line(line_class(i), &thin_places(&run));
        }
    }
    Some(drawing.finish_svg())
}

fn thin_places(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = places.len().div_ceil(POINTS).max(1);
    let middle = |chunk: &[(f64, f64)]| {
        let mut chunk = chunk.to_vec();
        let x = chunk[chunk.len() / 2].0;
        chunk.sort_by(|a, b| a.1.total_cmp(&b.1));
        (x, chunk[chunk.len() / 2].1)
    };
    places.chunks(size).map(middle).collect()
}
