//! The frame that every drawing shares: size, text, lines, marks, key and axes.
//!
//! Owns the SVG text and its escaping. No style attributes (the page's security policy forbids
//! them): colours come from classes of `assets/report.css`; shapes or dashes differ as well.

use loadline_analysis::text::join_words;

use super::scale::AxisScale;
use crate::{escape, text};

pub(super) const WIDTH: f64 = 760.0;

/// Room around a plot with both axes.
pub(super) const LEFT: f64 = 74.0;
pub(super) const RIGHT: f64 = 24.0;
pub(super) const BOTTOM: f64 = 48.0;

const LINE: f64 = 16.0;
const LETTER: f64 = 6.4;
const HALF: f64 = 5.0;

pub(super) type At = (f64, f64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Kept,
    Broke,
    Silent,
    Predicted,
    Of(usize),
}

impl Mark {
    pub(super) fn for_slo(is_kept: bool) -> Self {
        if is_kept { Self::Kept } else { Self::Broke }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySymbol {
    Area(&'static str),
    Mark(Mark),
    Line(&'static str),
    Ring,
}

#[derive(Debug)]
pub(super) struct SvgDrawing {
    out: String,
}

impl SvgDrawing {
    pub(super) fn new(class: &str, height: f64, label: &str) -> Self {
        Self {
            out: format!(
                "<svg class=\"{class}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
                escape::escape_html(label)
            ),
        }
    }

    pub(super) fn finish_svg(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    pub(super) fn draw_text(&mut self, (x, y): At, anchor: TextAnchor, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "",
            TextAnchor::Middle => " text-anchor=\"middle\"",
            TextAnchor::End => " text-anchor=\"end\"",
        };
        self.out.push_str(&format!(
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{}</text>\n",
            escape::escape_html(text)
        ));
    }

    pub(super) fn draw_line(&mut self, class: &str, places: &[At]) {
        if places.len() < 2 {
            return;
        }
        let steps = join_words(places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")), "L");
        self.out += &format!("<path class=\"{class}\" d=\"M{steps}\"/>\n");
    }

    pub(super) fn draw_area(&mut self, class: &str, (x, y): At, (width, height): At, title: &str) {
        self.out.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{}</title></rect>\n",
            escape::escape_html(title)
        ));
    }

    pub(super) fn draw_mark(&mut self, mark: Mark, at: At, is_chosen: bool, title: &str) {
        let (x, y) = at;
        let ring = if is_chosen {
            format!("<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/>")
        } else {
            String::new()
        };
        let (title, shape) = (escape::escape_html(title), shape(mark, at));
        self.out += &format!("<g><title>{title}</title>{ring}{shape}</g>\n");
    }

    /// What marks, lines and areas mean, side by side from `left` on, wrapped at the right edge.
    /// Gives the height it took.
    pub(super) fn draw_key(&mut self, left: f64, entries: &[(KeySymbol, &str)]) -> f64 {
        let (mut x, mut y) = (left, 12.0);
        for (key, name) in entries {
            let width = 40.0 + LETTER * name.chars().count() as f64;
            if x > left && x + width > WIDTH {
                (x, y) = (left, y + LINE);
            }
            let (middle, top) = (x + 6.0, y - 6.0);
            self.out += &match key {
                KeySymbol::Area(class) => format!(
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"12\" height=\"12\"/>"
                ),
                KeySymbol::Mark(mark) => shape(*mark, (middle, y)),
                KeySymbol::Ring => {
                    format!("<circle class=\"ring\" cx=\"{middle:.1}\" cy=\"{y:.1}\" r=\"6\"/>")
                }
                KeySymbol::Line(class) => {
                    format!("<path class=\"{class}\" d=\"M{x:.1} {y:.1}h14\"/>")
                }
            };
            self.draw_text((x + 18.0, y + 4.0), TextAnchor::Start, name);
            x += width;
        }
        y + LINE
    }

    /// Values from left to right, their lines from `top` to `bottom`, and what they are.
    pub(super) fn x_axis(
        &mut self,
        scale: &AxisScale,
        (top, bottom): (f64, f64),
        ticks: &[(f64, String)],
        title: &str,
    ) {
        for (value, text) in ticks {
            let x = scale.position_of(*value);
            self.draw_line("grid", &[(x, top), (x, bottom)]);
            self.draw_text((x, bottom + LINE), TextAnchor::Middle, text);
        }
        let (start, end) = scale.end_positions();
        let middle = ((start + end) / 2.0, bottom + 2.0 * LINE + 2.0);
        self.draw_text(middle, TextAnchor::Middle, title);
    }

    /// Values upwards; what they are stands above them.
    pub(super) fn y_axis(&mut self, scale: &AxisScale, show: impl Fn(f64) -> String, title: &str) {
        for value in scale.ticks() {
            let y = scale.position_of(value);
            self.draw_across("grid", y);
            self.draw_text((LEFT - 8.0, y + 4.0), TextAnchor::End, &show(value));
        }
        let (bottom, top) = scale.end_positions();
        let above = (LEFT - 8.0, top.min(bottom) - 10.0);
        self.draw_text(above, TextAnchor::Start, title);
    }

    pub(super) fn draw_across(&mut self, class: &str, y: f64) {
        self.draw_line(class, &[(LEFT, y), (WIDTH - RIGHT, y)]);
    }
}

fn shape(mark: Mark, (x, y): At) -> String {
    let (left, right, top, bottom) = (x - HALF, x + HALF, y - HALF, y + HALF);
    let circle = |class: &str| {
        format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{HALF}\"/>")
    };
    let path = |class: &str, d: String| format!("<path class=\"{class}\" d=\"{d}\"/>");
    let diamond =
        format!("M{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {bottom:.1}L{left:.1} {y:.1}Z");
    let cross = || {
        format!(
            "M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}L{right:.1} {top:.1}"
        )
    };
    let square = || format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z");
    let triangle = || format!("M{x:.1} {top:.1}L{right:.1} {bottom:.1}H{left:.1}Z");
    match mark {
        Mark::Kept => circle("pass"),
        Mark::Broke => path("fail", cross()),
        Mark::Silent => format!(
            "<rect class=\"none\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\"/>",
            x - 4.0,
            y - 4.0
        ),
        Mark::Predicted => path("none", diamond),
        Mark::Of(series) => {
            let class = format!("mark {}", series_class(series));
            match series % 4 {
                0 => circle(&class),
                1 => path(&class, square()),
                2 => path(&class, triangle()),
                _ => path(&class, diamond),
            }
        }
    }
}

pub(super) fn series_class(series: usize) -> &'static str {
    ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"][series % 8]
}

pub(super) fn line_class(series: usize) -> &'static str {
    [
        "trend s1", "trend s2", "trend s3", "trend s4", "trend s5", "trend s6", "trend s7",
        "trend s8",
    ][series % 8]
}

pub fn shorten_name(name: &str, most: usize) -> String {
    cut_name(&text::label(name), most)
}

/// A name that has room: of a long one the begin.
pub fn cut_name(name: &str, most: usize) -> String {
    if name.chars().count() > most {
        name.chars().take(most - 1).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_stays_text() {
        let attack = "\"><script>x</script>";
        let mut drawing = SvgDrawing::new("x", 10.0, attack);
        drawing.draw_text((0.0, 0.0), TextAnchor::Start, attack);
        drawing.draw_mark(Mark::Kept, (1.0, 1.0), true, attack);
        drawing.draw_area("limit", (0.0, 0.0), (1.0, 1.0), attack);
        drawing.draw_key(0.0, &[(KeySymbol::Mark(Mark::Broke), attack)]);
        let svg = drawing.finish_svg();
        assert!(!svg.contains("<script") && !svg.contains("\"\">"), "{svg}");
        assert_eq!(svg.matches("&lt;script&gt;").count(), 5, "{svg}");
    }

    #[test]
    fn a_key_that_is_too_long_for_a_line_goes_on_in_the_next() {
        let mut drawing = SvgDrawing::new("x", 10.0, "");
        let name = "a".repeat(50);
        let entries = [
            (KeySymbol::Line("grid"), &*name),
            (KeySymbol::Area("limit"), &*name),
        ];
        assert_eq!(drawing.draw_key(60.0, &entries), 2.0 * LINE + 12.0);
        assert_eq!(drawing.draw_key(60.0, &entries[..1]), LINE + 12.0);
    }

    #[test]
    fn marks_differ_in_shape() {
        let marks = [
            Mark::Kept,
            Mark::Broke,
            Mark::Silent,
            Mark::Predicted,
            Mark::Of(1),
            Mark::Of(2),
        ];
        let bare = |mark: Mark| {
            let text = shape(mark, (10.0, 10.0));
            let (_, geometry) = text.split_once("\" ").expect("a class first");
            geometry.to_owned()
        };
        let shapes: std::collections::BTreeSet<String> = marks.map(bare).into();
        assert_eq!(shapes.len(), marks.len(), "{shapes:#?}");
    }
}
