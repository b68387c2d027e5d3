//! Instances: throughput with the fitted law on the left, memory with its line on the right.

use loadline_analysis::instances::{InstanceCount, InstanceStudy};
use loadline_analysis::text::join_words;

use super::frame::{KeySymbol, Mark, SvgDrawing, WIDTH};
use crate::content::instances::studies;
use crate::view::ResultView;
use crate::{escape, format};

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
    drawing.raw(&throughput(&study));
    drawing.raw(&memory_figure(&study));
    Some(drawing.finish_svg())
}

const KEY: [(KeySymbol, &str); 4] = [
    (KeySymbol::Mark(Mark::Kept), "requests a second, measured"),
    (KeySymbol::Area("anon"), "RSS (dots)"),
    (KeySymbol::Area("files"), "PSS (squares)"),
    (KeySymbol::Line("curve"), "the fitted law"),
];

fn throughput(study: &InstanceStudy) -> String {
    let points: Vec<(f64, f64)> = points(study, |c| Some(c.throughput));
    let model = study.scaling.as_ref().map(|s| s.model);
    let curve = model.map(|m| move |n: f64| m.throughput(n));
    let curve = curve.as_ref().map(|c| c as &dyn Fn(f64) -> f64);
    let axes = FigureAxes::for_study(0.0, study, &points);
    let name = "requests a second, all instances";
    axes.draw_figure(name, &points, curve, "pass", format::as_rate)
}

fn memory_figure(study: &InstanceStudy) -> String {
    let mib = |bytes: Option<f64>| bytes.map(|b| b / f64::from(1 << 20));
    let rss = points(study, |c| mib(c.rss));
    let line = study.rss;
    let line = line.map(|line| move |n: f64| line.bytes_for(n) / f64::from(1 << 20));
    let line = line.as_ref().map(|l| l as &dyn Fn(f64) -> f64);
    let axes = FigureAxes::for_study(HALF, study, &rss);
    let words = |value: f64| format!("{value:.0} MiB");
    let mut out = axes.draw_figure("MiB of all instances", &rss, line, "anon", words);
    for (n, value) in points(study, |c| mib(c.pss)) {
        let (x, y) = (axes.x(n), axes.y(value));
        out.push_str(&format!(
            "<rect class=\"files\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"><title>{n} instances: PSS {}</title></rect>\n",
            x - 3.5,
            y - 3.5,
            words(value)
        ));
    }
    out
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

    fn draw_figure(
        &self,
        name: &str,
        points: &[(f64, f64)],
        curve: Option<&dyn Fn(f64) -> f64>,
        class: &str,
        words: impl Fn(f64) -> String,
    ) -> String {
        let (from, to, base) = (self.x(0.0), self.x(self.most), self.y(0.0));
        let mut out = format!(
            "<text class=\"tick\" x=\"{from:.1}\" y=\"{NAME}\">{}</text><line class=\"grid\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{base:.1}\" y2=\"{base:.1}\"/>\n",
            escape::escape_html(name)
        );
        for share in [0.5, 1.0] {
            let value = self.highest / 1.1 * share;
            let y = self.y(value);
            out.push_str(&format!(
                "<line class=\"grid\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                from - 6.0,
                y + 4.0,
                format::three_digits(value)
            ));
        }
        if let Some(curve) = curve {
            let at = |i: u32| {
                let n = 1.0 + (self.most - 1.0) * f64::from(i) / f64::from(STEPS);
                format!("{:.1} {:.1}", self.x(n), self.y(curve(n)))
            };
            let path = join_words((0..=STEPS).map(at), "L");
            out += &format!("<path class=\"curve\" d=\"M{path}\"/>\n");
        }
        for (n, value) in points {
            let (x, y) = (self.x(*n), self.y(*value));
            out.push_str(&format!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{n} instances: {}</title></circle><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{n}</text>\n",
                escape::escape_html(&words(*value)),
                base + 16.0
            ));
        }
        out.push_str(&format!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">instances</text>\n",
            (from + to) / 2.0,
            HEIGHT - 4.0
        ));
        out
    }
}
