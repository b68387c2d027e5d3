//! The sizes of several JDKs, applications or CPU limits, one bar each.

use loadline_analysis::recommend::LevelSize;
use loadline_sizing::Bytes;

use super::frame::{KeySymbol, SvgDrawing, TextAnchor, WIDTH, shorten_name};
use super::scale::AxisScale;
use crate::content::jdks;
use crate::view::ResultView;

const LEFT: f64 = 170.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;
const BAR: f64 = 14.0;
const ROW: f64 = 30.0;
const NAME: usize = 24;

pub fn draw_levels(view: &ResultView) -> Option<String> {
    let recommendation = view.recommendation.as_ref()?;
    let all = &recommendation.by_level;
    if all.len() < 2 {
        return None;
    }
    let sizes = all.iter().filter_map(level_memory).map(Bytes::as_mib);
    let x = AxisScale::linear(sizes, (LEFT, WIDTH - RIGHT))?;
    let bottom = TOP + ROW * all.len() as f64;
    let label = "The recommended memory of each that was asked about; the table has the values.";
    let mut drawing = SvgDrawing::new("levels", bottom + BOTTOM, label);
    let key = [
        (KeySymbol::Area("footprint"), "recommended memory"),
        (
            KeySymbol::Line("edge"),
            "smallest that kept the SLO in every confirmation",
        ),
    ];
    drawing.draw_key(LEFT, &key);
    let size = |mib: f64| Bytes::from_mib(mib.round() as u64).to_string();
    let ticks = x.labelled_ticks(size);
    drawing.x_axis(&x, (TOP, bottom), &ticks, "memory limit, from 0");
    for (i, of) in all.iter().enumerate() {
        draw_level(&mut drawing, of, TOP + ROW * i as f64, &x);
    }
    Some(drawing.finish_svg())
}

fn level_memory(of: &LevelSize) -> Option<Bytes> {
    of.configuration.as_ref()?.memory
}

fn draw_level(drawing: &mut SvgDrawing, of: &LevelSize, top: f64, x: &AxisScale) {
    let (bar, middle) = (top + (ROW - BAR) / 2.0, top + ROW / 2.0 + 4.0);
    let name = shorten_name(&jdks::level_name(of), NAME);
    drawing.draw_text((LEFT - 8.0, middle), TextAnchor::End, &name);
    let Some(memory) = level_memory(of) else {
        let none = "no size keeps the SLO";
        return drawing.draw_text((LEFT + 8.0, middle), TextAnchor::Start, none);
    };
    let end = x.position_of(memory.as_mib());
    let tested = if of.is_proven() { "" } else { ", not tested" };
    let said = format!("{memory}{tested}");
    let title = format!("{name}: {said}");
    drawing.draw_area("footprint", (LEFT, bar), (end - LEFT, BAR), &title);
    if let Some(confirmed) = of.confirmed {
        let at = x.position_of(confirmed.as_mib());
        drawing.draw_line("edge", &[(at, bar - 3.0), (at, bar + BAR + 3.0)]);
    }
    drawing.draw_text((end + 8.0, middle), TextAnchor::Start, &said);
}
