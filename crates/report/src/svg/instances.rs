//! Instances: throughput with the fitted law on the left, memory with its line on the right.

use loadline_analysis::instances::{InstanceCount, InstanceStudy};

use super::frame::{At, KeySymbol, Mark, SvgDrawing, TextAnchor, WIDTH};
use crate::content::instances::studies;
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 266.0;
const NAME: f64 = 40.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 38.0;
const LEFT: f64 = 56.0;
const HALF: f64 = WIDTH / 2.0;
const STEPS: u32 = 48;

pub fn draw_instances(view: &ResultView) -> Option<String> {
    let (_, study) = studies(view).into_iter().next()?;
    let label = "Throughput and memory over the number of instances; the table has the values.";
    let mut drawing = SvgDrawing::new("instances", HEIGHT, label);
    drawing.draw_key(LEFT, &KEY);
    draw_throughput(&mut drawing, &study);
    draw_memory(&mut drawing, &study);
    Some(drawing.finish_svg())
}

const KEY: [(KeySymbol, &str); 4] = [
    (KeySymbol::Mark(Mark::Kept), "requests a second, measured"),
    (KeySymbol::Mark(Mark::Of(0)), "RSS (dots)"),
    (KeySymbol::Area("files"), "PSS (squares)"),
    (KeySymbol::Line("curve"), "the fitted law"),
];

fn draw_throughput(drawing: &mut SvgDrawing, study: &InstanceStudy) {
    let points = points(study, |c| Some(c.throughput));
    let axes = FigureAxes::for_study(0.0, study, &points);
    axes.draw_axes(drawing, "requests a second, all instances");
    if let Some(scaling) = &study.scaling {
        axes.draw_curve(drawing, |n| scaling.model.throughput(n));
    }
    axes.draw_points(drawing, &points, Mark::Kept, format::as_rate);
}

fn draw_memory(drawing: &mut SvgDrawing, study: &InstanceStudy) {
    let mib = |bytes: Option<f64>| bytes.map(|b| b / f64::from(1 << 20));
    let rss = points(study, |c| mib(c.rss));
    let axes = FigureAxes::for_study(HALF, study, &rss);
    let words = |value: f64| format!("{value:.0} MiB");
    axes.draw_axes(drawing, "MiB of all instances");
    if let Some(line) = study.rss {
        axes.draw_curve(drawing, |n| line.bytes_for(n) / f64::from(1 << 20));
    }
    axes.draw_points(drawing, &rss, Mark::Of(0), words);
    for (n, value) in points(study, |c| mib(c.pss)) {
        let corner = (axes.x(n) - 3.5, axes.y(value) - 3.5);
        let title = format!("{n} instances: PSS {}", words(value));
        drawing.draw_area("files", corner, (7.0, 7.0), &title);
    }
}

fn points(study: &InstanceStudy, of: impl Fn(&InstanceCount) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |c: &InstanceCount| Some((f64::from(c.instances), of(c)?));
    study.counts.iter().filter_map(point).collect()
}

struct FigureAxes {
    left: f64,
    most: f64,
    highest: f64,
}

impl FigureAxes {
    fn for_study(left: f64, study: &InstanceStudy, points: &[(f64, f64)]) -> Self {
        let most = study.counts.last().map_or(1, |c| c.instances);
        let highest = points.iter().map(|p| p.1).fold(0.0, f64::max);
        Self {
            left,
            most: f64::from(most),
            highest: (highest * 1.1).max(f64::MIN_POSITIVE),
        }
    }

    fn x(&self, n: f64) -> f64 {
        self.left + LEFT + n / self.most * (HALF - LEFT - 16.0)
    }

    fn y(&self, value: f64) -> f64 {
        let room = HEIGHT - TOP - BOTTOM;
        HEIGHT - BOTTOM - (value / self.highest).clamp(0.0, 1.0) * room
    }

    fn draw_axes(&self, drawing: &mut SvgDrawing, name: &str) {
        let (from, to) = (self.x(0.0), self.x(self.most));
        drawing.draw_text((from, NAME), TextAnchor::Start, name);
        drawing.draw_line("grid", &[(from, self.y(0.0)), (to, self.y(0.0))]);
        for share in [0.5, 1.0] {
            let value = self.highest / 1.1 * share;
            let y = self.y(value);
            drawing.draw_line("grid", &[(from, y), (to, y)]);
            let text = format::three_digits(value);
            drawing.draw_text((from - 6.0, y + 4.0), TextAnchor::End, &text);
        }
        let middle = ((from + to) / 2.0, HEIGHT - 4.0);
        drawing.draw_text(middle, TextAnchor::Middle, "instances");
    }

    fn draw_curve(&self, drawing: &mut SvgDrawing, curve: impl Fn(f64) -> f64) {
        let step = (self.most - 1.0) / f64::from(STEPS);
        let counts = (0..=STEPS).map(|i| 1.0 + f64::from(i) * step);
        let places: Vec<At> = counts.map(|n| (self.x(n), self.y(curve(n)))).collect();
        drawing.draw_line("curve", &places);
    }

    fn draw_points(
        &self,
        drawing: &mut SvgDrawing,
        points: &[(f64, f64)],
        mark: Mark,
        words: impl Fn(f64) -> String,
    ) {
        for (n, value) in points {
            let at = (self.x(*n), self.y(*value));
            let title = format!("{n} instances: {}", words(*value));
            drawing.draw_mark(mark, at, false, &title);
            let below = (at.0, self.y(0.0) + 16.0);
            drawing.draw_text(below, TextAnchor::Middle, &n.to_string());
        }
    }
}
