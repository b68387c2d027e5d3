//! What a price buys: p99 over the price of a month, with the SLO's line.

use loadline_analysis::slo::Objective;

use super::frame::{
    BOTTOM, KeySymbol, LEFT, Mark, RIGHT, SvgDrawing, TextAnchor, WIDTH, shorten_name,
};
use super::scale::AxisScale;
use crate::content::money::{MeasuredDeployment, measured_deployments};
use crate::format;
use crate::view::ResultView;

const HEIGHT: f64 = 320.0;
/// Longest name next to a mark, in characters.
const NAME: usize = 28;
/// Room for a name to the right of its mark; with less room it goes to the left.
const ROOM: f64 = 190.0;

pub fn draw_price(view: &ResultView) -> Option<String> {
    let all = measured_deployments(view);
    if all.len() < 2 {
        return None;
    }
    let label = "p99 of each deployment over its price; the tables have the values.";
    let mut drawing = SvgDrawing::new("price", HEIGHT, label);
    let key = [
        (KeySymbol::Mark(Mark::Kept), "kept the SLO"),
        (KeySymbol::Mark(Mark::Broke), "did not"),
        (KeySymbol::Ring, "recommended"),
        (KeySymbol::Line("bound"), "the SLO"),
    ];
    let top = drawing.draw_key(LEFT, &key) + 22.0;
    let bottom = HEIGHT - BOTTOM;
    let x = AxisScale::linear(all.iter().map(|b| b.per_month), (LEFT, WIDTH - RIGHT))?;
    let bound = bound(view);
    let latencies = all.iter().filter_map(ms).chain(bound);
    let y = AxisScale::log_around(latencies, (bottom, top + 14.0))?;
    let ticks = x.labelled_ticks(dollars);
    drawing.x_axis(&x, (top, bottom), &ticks, "price of a month, from 0");
    let latency = format!("p99, {}", view.latency_origin());
    drawing.y_axis(&y, |ms| format::measured_seconds(ms / 1e3), &latency);
    if let Some(bound) = bound {
        drawing.draw_across("bound", y.position_of(bound));
    }
    let kept = all.iter().filter(|b| b.keeps_slo);
    let step = |b: &MeasuredDeployment| Some((x.position_of(b.per_month), y.position_of(ms(b)?)));
    let steps: Vec<(f64, f64)> = kept.filter_map(step).collect();
    drawing.draw_line("trend s1", &steps);
    let mut texts: Vec<(f64, f64)> = Vec::new();
    for one in &all {
        // Without a p99 it is beyond every latency: at the upper edge.
        let height = ms(one).map_or(top, |ms| y.position_of(ms));
        let at = (x.position_of(one.per_month), height);
        let mark = Mark::for_slo(one.keeps_slo);
        drawing.draw_mark(mark, at, one.is_chosen, &title(one));
        let is_free = |(tx, ty): &(f64, f64)| (tx - at.0).abs() > ROOM || (ty - at.1).abs() > 13.0;
        if texts.iter().all(is_free) {
            texts.push(at);
            let (place, anchor) = if at.0 + ROOM < WIDTH {
                ((at.0 + 10.0, at.1 - 8.0), TextAnchor::Start)
            } else {
                ((at.0 - 10.0, at.1 - 8.0), TextAnchor::End)
            };
            drawing.draw_text(place, anchor, &shorten_name(&one.name, NAME));
        }
    }
    Some(drawing.finish_svg())
}

fn ms(bought: &MeasuredDeployment) -> Option<f64> {
    bought.p99.map(|p99| p99.as_secs_f64() * 1e3)
}

fn bound(view: &ResultView) -> Option<f64> {
    let mut objectives = view.slo.objectives.iter();
    objectives.find_map(|objective| match objective {
        Objective::Latency { quantile, bound } if quantile.as_fraction() == 0.99 => {
            Some(bound.as_secs_f64() * 1e3)
        }
        _ => None,
    })
}

fn dollars(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("${value:.0}")
    } else {
        format!("${value:.2}")
    }
}

fn title(one: &MeasuredDeployment) -> String {
    let p99 = match one.p99 {
        Some(p99) => format!("p99 {}", format::measured_time(p99)),
        None => "p99 lies in requests that failed".to_owned(),
    };
    let chosen = if one.is_chosen { ", recommended" } else { "" };
    let breaks = match one.breaks.as_str() {
        "" => String::new(),
        breaks => format!(". {breaks}"),
    };
    let (name, price) = (&one.name, one.per_month);
    format!("{name}{chosen}: ${price:.2} a month, {p99}{breaks}")
}
