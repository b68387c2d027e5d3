//! Memory against the limit: one bar a configuration, its parts side by side up to the limit.

use loadline_sizing::Bytes;

use crate::content::memory::{Fill, fills};
use crate::format;
use crate::html::escape;
use crate::text;
use crate::view::ResultView;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 30.0;
/// Height of a bar, and of a bar with the gap below it.
const BAR: f64 = 18.0;
const STEP: f64 = 28.0;
/// Longest name that fits left of a bar, in characters.
const NAME: usize = 26;

/// The bars; all on one scale that starts at 0. `None` when nothing was recorded.
pub fn memory_bars(view: &ResultView) -> Option<String> {
    let fills = fills(view);
    let largest = fills.iter().map(|(_, f)| f.limit).max()?;
    let height = TOP + STEP * fills.len() as f64 + 6.0;
    let scale = (WIDTH - LEFT - RIGHT) / largest.as_mib().max(1.0);
    let mut out = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Memory of each size against its limit; the table below has the values.\">\n"
    );
    out.push_str(&legend());
    for (i, (name, fill)) in fills.iter().enumerate() {
        out.push_str(&bar(name, fill, TOP + STEP * i as f64, scale));
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// The parts of a fill with their class and name.
fn parts(fill: &Fill) -> [(&'static str, &'static str, Bytes); 3] {
    [
        ("anon", "anonymous", fill.anon),
        ("files", "files in use", fill.in_use),
        ("drop", "can be dropped", fill.droppable),
    ]
}

fn legend() -> String {
    let mut x = LEFT;
    let mut out = String::new();
    for (class, name) in [
        ("anon", "anonymous"),
        ("files", "files in use"),
        ("drop", "can be dropped"),
        ("limit", "free, up to the limit"),
    ] {
        out.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"6\" width=\"12\" height=\"12\"/><text class=\"tick\" x=\"{:.1}\" y=\"16\">{name}</text>\n",
            x + 17.0
        ));
        x += 40.0 + 6.4 * name.len() as f64;
    }
    out
}

fn bar(name: &str, fill: &Fill, y: f64, scale: f64) -> String {
    let middle = y + BAR - 5.0;
    let mut out = format!(
        "<text class=\"tick\" x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\n",
        LEFT - 8.0,
        escape(&shortened(name)),
    );
    let width = fill.limit.as_mib() * scale;
    out.push_str(&format!(
        "<rect class=\"limit\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"><title>limit {}</title></rect>\n",
        fill.limit
    ));
    let mut x = LEFT;
    for (class, part, bytes) in parts(fill) {
        // Never beyond the limit, whatever a record says.
        let width = (bytes.as_mib() * scale).min(LEFT + width - x).max(0.0);
        out.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"><title>{part}: {}</title></rect>\n",
            escape(&format::bytes(bytes)),
        ));
        x += width;
    }
    out.push_str(&format!(
        "<text class=\"tick\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>\n",
        LEFT + width + 6.0,
        fill.limit
    ));
    out
}

fn shortened(name: &str) -> String {
    let name = text::label(name);
    if name.chars().count() <= NAME {
        return name;
    }
    name.chars().take(NAME - 1).chain(['…']).collect()
}
