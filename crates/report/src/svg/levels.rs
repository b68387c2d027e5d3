//! The sizes of several JDKs, applications or CPU limits, one bar each.

use loadline_analysis::recommend::LevelSize;
use loadline_sizing::Bytes;

use super::frame::{Anchor, Drawing, Key, WIDTH, shortened};
use super::scale::Scale;
use crate::content::jdks;
use crate::view::ResultView;

const LEFT: f64 = 170.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;
const BAR: f64 = 14.0;
const ROW: f64 = 30.0;
/// Longest name of a row, in characters.
const NAME: usize = 24;

/// The drawing; `None` where one was asked about, or none has a size.
pub fn levels(view: &ResultView) -> Option<String> {
    let recommendation = view.recommendation.as_ref()?;
    let all = &recommendation.by_level;
    if all.len() < 2 {
        return None;
    }
    let sizes = all.iter().filter_map(memory).map(Bytes::as_mib);
    let x = Scale::linear(sizes, (LEFT, WIDTH - RIGHT))?;
    let bottom = TOP + ROW * all.len() as f64;
    let label = "The recommended memory of each that was asked about; the table has the values.";
    let mut drawing = Drawing::new("levels", bottom + BOTTOM, label);
    drawing.key(
        LEFT,
        &[
            (Key::Area("footprint"), "recommended memory"),
            (
                Key::Line("edge"),
                "smallest that kept the SLO in every confirmation",
            ),
        ],
    );
    let size = |mib: f64| Bytes::from_mib(mib.round() as u64).to_string();
    let ticks: Vec<(f64, String)> = x.ticks().into_iter().map(|v| (v, size(v))).collect();
    drawing.x_axis(&x, (TOP, bottom), &ticks, "memory limit, from 0");
    for (i, of) in all.iter().enumerate() {
        draw(&mut drawing, of, TOP + ROW * i as f64, &x);
    }
    Some(drawing.end())
}

fn memory(of: &LevelSize) -> Option<Bytes> {
    of.configuration.as_ref()?.memory
}

fn draw(drawing: &mut Drawing, of: &LevelSize, top: f64, x: &Scale) {
    let (bar, middle) = (top + (ROW - BAR) / 2.0, top + ROW / 2.0 + 4.0);
    let name = shortened(&jdks::name(of), NAME);
    drawing.text((LEFT - 8.0, middle), Anchor::End, &name);
    let Some(memory) = memory(of) else {
        drawing.text((LEFT + 8.0, middle), Anchor::Start, "no size keeps the SLO");
        return;
    };
    let end = x.at(memory.as_mib());
    let proven = if of.is_proven() { "" } else { ", not proven" };
    let said = format!("{memory}{proven}");
    let title = format!("{name}: {said}");
    drawing.area("footprint", (LEFT, bar), (end - LEFT, BAR), &title);
    if let Some(confirmed) = of.confirmed {
        let at = x.at(confirmed.as_mib());
        drawing.line("edge", &[(at, bar - 3.0), (at, bar + BAR + 3.0)]);
    }
    drawing.text((end + 8.0, middle), Anchor::Start, &said);
}
