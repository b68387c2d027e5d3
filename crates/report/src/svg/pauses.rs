//! Why it paused, on one time axis: pauses and latency above, below them what went on meanwhile.
//!
//! Two drawings of the trial that paused most: the whole measured phase, and a few seconds around
//! its longest pause. Bars closer than half a pixel are one, so that a long trial stays small.

use std::fmt::Write as _;
use std::time::Duration;

use loadline_analysis::explain::Explanation;
use loadline_analysis::pauses::PauseEvidence;
use loadline_analysis::record::SecondEvidence;
use loadline_analysis::span::{TimeSpan, TimeSpans};

use crate::content::pauses::worst_pauses;
use crate::view::ResultView;
use crate::{escape, format};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 118.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 38.0;
const HIGH: f64 = 84.0;
/// Height of a lane below it, and of a lane with the gap below.
const LANE: f64 = 14.0;
const STEP: f64 = 20.0;
const BOTTOM: f64 = 34.0;
/// Length of the second drawing, ns.
const CLOSE: u64 = 3_000_000_000;
/// Narrowest bar: keeps spans shorter than a pixel visible.
const NARROWEST: f64 = 0.6;

struct PauseLane {
    label: &'static str,
    class: &'static str,
    spans: TimeSpans,
}

pub fn pause_axis(view: &ResultView) -> Option<String> {
    let (trial, explanation) = worst_pauses(view)?;
    let evidence = trial.evidence.pauses.as_ref()?;
    let whole = explanation.window;
    let close = close_up(&explanation)?;
    let windows = if whole.length_ns() > CLOSE * 4 / 3 {
        vec![whole, close]
    } else {
        vec![whole]
    };
    let drawing = PauseDrawing {
        explanation: &explanation,
        seconds: &trial.evidence.seconds,
        lanes: lanes(evidence),
        highest: highest(&explanation, &trial.evidence.seconds),
    };
    Some(windows.into_iter().map(|w| drawing.svg(w)).collect())
}

fn lanes(evidence: &PauseEvidence) -> Vec<PauseLane> {
    let sources = evidence.sources();
    let lane = |label, class, spans| PauseLane {
        label,
        class,
        spans,
    };
    let mut lanes = vec![
        lane("threads stopped", "stopped", sources.safepoints),
        lane("throttled", "throttled", sources.throttled),
        lane("waits for memory", "stalled", sources.allocation_stalls),
        lane("not sampled", "unseen-time", sources.gaps),
    ];
    // Collections and throttling are what people look for: an empty lane says that there was none.
    let mut at = 0;
    lanes.retain(|lane| {
        at += 1;
        at <= 2 || lane.spans.len_ns() > 0
    });
    lanes
}

fn close_up(explanation: &Explanation) -> Option<TimeSpan> {
    let longest = explanation.longest().first()?.pause;
    let middle = longest.start + longest.length_ns() / 2;
    let whole = explanation.window;
    let latest = whole.end.saturating_sub(CLOSE).max(whole.start);
    let start = middle.saturating_sub(CLOSE / 2).clamp(whole.start, latest);
    Some(TimeSpan::new(start, (start + CLOSE).min(whole.end)))
}

fn highest(explanation: &Explanation, seconds: &[SecondEvidence]) -> u64 {
    let within = explanation.window;
    let inside = seconds.iter().filter(|s| is_in(s.at_ns, within));
    let latency = inside.filter_map(|s| s.max).map(saturating_nanos).max();
    let pause = explanation.pauses.iter().map(|p| p.pause.length_ns()).max();
    latency.into_iter().chain(pause).max().unwrap_or(1).max(1)
}

fn is_in(at: u64, window: TimeSpan) -> bool {
    window.start <= at && at <= window.end
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

struct PauseDrawing<'a> {
    explanation: &'a Explanation,
    seconds: &'a [SecondEvidence],
    lanes: Vec<PauseLane>,
    highest: u64,
}

impl PauseDrawing<'_> {
    fn svg(&self, window: TimeSpan) -> String {
        let floor = TOP + HIGH;
        let height = floor + 8.0 + STEP * self.lanes.len() as f64 + BOTTOM;
        let mut out = format!(
            "<svg class=\"path\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Pauses, stopped threads and throttling on one time axis; the tables below have the values.\">\n"
        );
        out.push_str(&pause_key());
        out.push_str(&self.scale(floor));
        out.push_str(&self.pauses(window, floor));
        out.push_str(&self.latency_line(window, floor));
        for (i, lane) in self.lanes.iter().enumerate() {
            out.push_str(&self.lane(lane, window, floor + 8.0 + STEP * i as f64));
        }
        out.push_str(&self.time_axis(window, height));
        out.push_str("</svg>\n");
        out
    }

    fn y(&self, ns: u64, floor: f64) -> f64 {
        floor - HIGH * (ns as f64 / self.highest as f64).min(1.0)
    }

    fn scale(&self, floor: f64) -> String {
        let mut out = String::new();
        for ns in [0, self.highest / 2, self.highest] {
            let y = self.y(ns, floor);
            let label = format::measured_time(Duration::from_nanos(ns));
            // Writing to a String does not fail.
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
            );
        }
        out
    }

    fn pauses(&self, window: TimeSpan, floor: f64) -> String {
        let bars = self.explanation.pauses.iter().filter_map(|p| {
            let (left, right) = ends(p.pause, window)?;
            Some((left, right, floor - self.y(p.pause.length_ns(), floor)))
        });
        bars_path("seen", "pauses over 50 ms", floor, bars)
    }

    fn latency_line(&self, window: TimeSpan, floor: f64) -> String {
        let inside = self.seconds.iter().filter(|s| is_in(s.at_ns, window));
        let points = inside.filter_map(|s| Some((s.at_ns, saturating_nanos(s.max?))));
        let shown = |(at, max)| format!("{:.1},{:.1}", x(at, window), self.y(max, floor));
        let points: Vec<String> = points.map(shown).collect();
        if points.len() < 2 {
            return String::new();
        }
        let points = points.join(" ");
        format!(
            "<polyline class=\"slowest\" points=\"{points}\"><title>largest latency of each second</title></polyline>\n"
        )
    }

    fn lane(&self, lane: &PauseLane, window: TimeSpan, y: f64) -> String {
        let inside = lane.spans.within(window);
        let spans = inside.as_slice().iter();
        let bars = spans.filter_map(|span| ends(*span, window));
        let bars = bars.map(|(left, right)| (left, right, LANE));
        let share = 100.0 * inside.len_ns() as f64 / window.length_ns().max(1) as f64;
        let title = format!("{}: {share:.0} % of this time", lane.label);
        format!(
            "<rect class=\"lane\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{LANE}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n{}",
            WIDTH - RIGHT - LEFT,
            LEFT - 8.0,
            y + LANE - 3.0,
            escape::escape_html(lane.label),
            bars_path(lane.class, &title, y + LANE, bars),
        )
    }

    fn time_axis(&self, window: TimeSpan, height: f64) -> String {
        let begin = self.explanation.window.start;
        let step = tick(window.length_ns());
        let first = (window.start - begin).div_ceil(step);
        let last = (window.end - begin) / step;
        let base = height - BOTTOM + 14.0;
        let mut out = String::new();
        for n in first..=last {
            let at = n * step;
            let _ = writeln!(
                out,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"middle\">{}</text>",
                x(begin + at, window),
                at as f64 / 1e9
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">seconds since the measured phase began</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            height - 4.0
        );
        out
    }
}

fn pause_key() -> String {
    let line = LEFT + 160.0;
    format!(
        "<rect class=\"seen\" x=\"{LEFT}\" y=\"8\" width=\"12\" height=\"12\"/><text class=\"tick\" x=\"{:.1}\" y=\"18\">pauses over 50 ms</text>\
         <path class=\"slowest\" d=\"M{line:.1} 14h14\"/><text class=\"tick\" x=\"{:.1}\" y=\"18\">largest latency of each second</text>\n",
        LEFT + 18.0,
        line + 20.0
    )
}

fn x(at: u64, window: TimeSpan) -> f64 {
    let share = at.saturating_sub(window.start) as f64 / window.length_ns().max(1) as f64;
    LEFT + share.min(1.0) * (WIDTH - LEFT - RIGHT)
}

/// Left and right end of a span in the drawing; `None` if outside.
fn ends(span: TimeSpan, window: TimeSpan) -> Option<(f64, f64)> {
    let (start, end) = (span.start.max(window.start), span.end.min(window.end));
    (start < end).then(|| (x(start, window), x(end, window)))
}

/// Bars (left, right, height) on a floor as one path; bars closer than half a pixel are joined at
/// the greater height.
fn bars_path(
    class: &str,
    title: &str,
    floor: f64,
    bars: impl Iterator<Item = (f64, f64, f64)>,
) -> String {
    let mut joined: Vec<(f64, f64, f64)> = Vec::new();
    for (left, right, high) in bars {
        let right = right.max(left + NARROWEST);
        match joined.last_mut() {
            Some(last) if left - last.1 < 0.5 && (right - left < 1.0 || high == last.2) => {
                *last = (last.0, right.max(last.1), high.max(last.2));
            }
            _ => joined.push((left, right, high)),
        }
    }
    if joined.is_empty() {
        return String::new();
    }
    let bar = |(left, right, high): &(f64, f64, f64)| {
        format!("M{left:.1} {floor:.1}v-{high:.1}H{right:.1}v{high:.1}z")
    };
    let shape: String = joined.iter().map(bar).collect();
    let title = escape::escape_html(title);
    format!("<path class=\"{class}\" d=\"{shape}\"><title>{title}</title></path>\n")
}

/// Distance of the numbers on the axis, ns: 1, 2 or 5 times a power of ten, at most ten numbers.
fn tick(length: u64) -> u64 {
    let mut power = 10_000_000;
    loop {
        for step in [power, 2 * power, 5 * power] {
            if length / step <= 10 {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let second = 1_000_000_000;
        assert_eq!(tick(3 * second), second / 2);
        assert_eq!(tick(15 * second), 2 * second);
        assert_eq!(tick(600 * second), 100 * second);
        assert!(u64::MAX / tick(u64::MAX) <= 10);
    }

    #[test]
    fn many_short_bars_become_few() {
        let bars = (0..10_000).map(|n| {
            let left = LEFT + f64::from(n) * 0.07;
            (left, left + 0.02, 14.0)
        });
        let drawn = bars_path("throttled", "t", 20.0, bars);
        assert!(drawn.matches('M').count() < 10, "{}", drawn.len());
        assert_eq!(bars_path("throttled", "t", 20.0, std::iter::empty()), "");
    }
}
