//! Figures of a service over its releases: the middle start of each, and how far its starts lie apart.

use super::frame::{
    BOTTOM, KeySymbol, LEFT, Mark, RIGHT, SvgDrawing, TextAnchor, WIDTH, cut_name, line_class,
};
use super::scale::AxisScale;
use crate::figures::{SeenLatency, Spread};
use crate::format;
use crate::live::ServiceRelease;

const HEIGHT: f64 = 220.0;
const TOP: f64 = 34.0;
const NAMED: usize = 7;
/// Longest name of a release, in characters.
const LONGEST: usize = 13;

type Of = fn(&ServiceRelease) -> Option<[f64; 3]>;

type Show = fn(f64) -> String;

const FIGURES: [(&str, Of, Show, Means); 4] = [
    (
        "Memory limit (Mi), with what the starts needed below it",
        |r| {
            let limit = r.memory?.as_mib();
            let needed = r.needed.map_or(limit, |s| s.median.as_mib());
            Some([needed, limit, limit])
        },
        |v| format!("{}Mi", format::three_digits(v)),
        ["the limit", "down to what its starts needed"],
    ),
    (
        "CPU time a request (ms)",
        |r| {
            Some(low_median_high(r.cpu_per_request?, |d| {
                d.as_secs_f64() * 1e3
            }))
        },
        |v| format!("{} ms", format::three_digits(v)),
        SPREAD,
    ),
    (
        "Start: exec to ready (s)",
        |r| Some(low_median_high(r.start?, |d| d.as_secs_f64())),
        |v| format!("{} s", format::three_digits(v)),
        SPREAD,
    ),
    (
        "p99 (ms)",
        |r| {
            let p99 = r.p99?;
            let ms = |seen: SeenLatency| seen.known_time().map(|t| t.as_secs_f64() * 1e3);
            Some([ms(p99.low)?, ms(p99.median)?, ms(p99.high)?])
        },
        |v| format!("{} ms", format::three_digits(v)),
        SPREAD,
    ),
];

fn low_median_high<T>(spread: Spread<T>, of: fn(T) -> f64) -> [f64; 3] {
    [of(spread.low), of(spread.median), of(spread.high)]
}

pub fn draw_releases(releases: &[ServiceRelease]) -> Vec<(&'static str, String)> {
    let drawn = |(title, of, show, means): &(&'static str, Of, Show, Means)| {
        Some((*title, drawing(releases, title, (*of, *show), means)?))
    };
    FIGURES.iter().filter_map(drawn).collect()
}

type Means = [&'static str; 2];

const SPREAD: Means = ["the middle start", "from the lowest to the highest"];

fn drawing(
    releases: &[ServiceRelease],
    title: &str,
    (of, show): (Of, Show),
    [mark, line]: &Means,
) -> Option<String> {
    let values = releases.iter().enumerate();
    let values: Vec<_> = values.filter_map(|(i, r)| Some((i, of(r)?))).collect();
    values.first()?;
    let bottom = HEIGHT - BOTTOM;
    let ends = values.iter().flat_map(|(_, v)| *v).chain([0.0]);
    let y = AxisScale::linear(ends, (bottom, TOP))?;
    let places = (LEFT + 20.0, WIDTH - RIGHT - 20.0);
    let last = releases.len().saturating_sub(1).max(1) as f64;
    let at = |i: usize| match releases.len() {
        1 => (places.0 + places.1) / 2.0,
        _ => places.0 + (places.1 - places.0) * i as f64 / last,
    };
    let label = format!("{title}, of each release; the table has the values.");
    let mut drawing = SvgDrawing::new("releases", HEIGHT, &label);
    drawing.y_axis(&y, show, "");
    let key = [
        (KeySymbol::Mark(Mark::Of(0)), *mark),
        (KeySymbol::Line("whisker"), *line),
    ];
    drawing.draw_key(LEFT, &key);
    let step = releases.len().div_ceil(NAMED).max(1);
    for (i, release) in releases.iter().enumerate().step_by(step) {
        let day = format::day(release.begun_unix_ms);
        let version = release.short_version.iter();
        let names = version.map(|v| cut_name(v, LONGEST)).chain([day]);
        for (name, below) in names.zip([18.0, 34.0]) {
            drawing.draw_text((at(i), bottom + below), TextAnchor::Middle, &name);
        }
    }
    let middle = |(i, v): &(usize, [f64; 3])| (at(*i), y.position_of(v[1]));
    let middles: Vec<_> = values.iter().map(middle).collect();
    drawing.draw_line(line_class(0), &middles);
    for (i, own) in &values {
        let x = at(*i);
        let [low, middle, high] = own.map(|value| (x, y.position_of(value)));
        drawing.draw_line("whisker", &[low, high]);
        let release = &releases[*i];
        let version = release.version.as_ref();
        let version = version.map_or_else(String::new, |v| format!("{v}; "));
        let id = format::short_id(&release.id);
        let day = format::day(release.begun_unix_ms);
        let [least, usual, most] = own.map(show);
        let title = format!("{version}{id}, {day}: {usual} ({least} to {most})");
        drawing.draw_mark(Mark::Of(0), middle, false, &title);
    }
    Some(drawing.finish_svg())
}
