//! Memory against the limit: one bar a configuration, its parts side by side up to the limit.

use loadline_sizing::Bytes;

use super::frame::{KeySymbol, SvgDrawing, TextAnchor, WIDTH, shorten_name};
use crate::content::memory::{MemoryFill, fills};
use crate::format;
use crate::view::ResultView;

const LEFT: f64 = 190.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 30.0;
const BAR: f64 = 18.0;
const STEP: f64 = 28.0;
const NAME: usize = 26;

pub fn memory_bars(view: &ResultView) -> Option<String> {
    let fills = fills(view);
    let largest = fills.iter().map(|(_, f)| f.limit).max()?;
    let height = TOP + STEP * fills.len() as f64 + 6.0;
    let scale = (WIDTH - LEFT - RIGHT) / largest.as_mib().max(1.0);
    let label = "Memory of each size against its limit; the table below has the values.";
    let mut drawing = SvgDrawing::new("bars", height, label);
    let key = [
        (KeySymbol::Area("anon"), "anonymous"),
        (KeySymbol::Area("files"), "files in use"),
        (KeySymbol::Area("drop"), "can be dropped"),
        (KeySymbol::Area("limit"), "free, up to the limit"),
    ];
    drawing.draw_key(LEFT, &key);
    for (i, (name, fill)) in fills.iter().enumerate() {
        bar(&mut drawing, name, fill, TOP + STEP * i as f64, scale);
    }
    Some(drawing.finish_svg())
}

fn parts(fill: &MemoryFill) -> [(&'static str, &'static str, Bytes); 3] {
    [
        ("anon", "anonymous", fill.anon),
        ("files", "files in use", fill.in_use),
        ("drop", "can be dropped", fill.droppable),
    ]
}

fn bar(drawing: &mut SvgDrawing, name: &str, fill: &MemoryFill, y: f64, scale: f64) {
    let middle = y + BAR - 5.0;
    let name = shorten_name(name, NAME);
    drawing.draw_text((LEFT - 8.0, middle), TextAnchor::End, &name);
    let width = fill.limit.as_mib() * scale;
    let limit = format!("limit {}", fill.limit);
    drawing.draw_area("limit", (LEFT, y), (width, BAR), &limit);
    let mut x = LEFT;
    for (class, part, bytes) in parts(fill) {
        // Never beyond the limit, whatever a record says.
        let width = (bytes.as_mib() * scale).min(LEFT + width - x).max(0.0);
        let title = format!("{part}: {}", format::measured_bytes(bytes));
        drawing.draw_area(class, (x, y), (width, BAR), &title);
        x += width;
    }
    let end = (LEFT + width + 6.0, middle);
    drawing.draw_text(end, TextAnchor::Start, &fill.limit.to_string());
}
