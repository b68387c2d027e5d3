//! The headline of a matrix: the best and the worst configuration, how many keep the SLO, and the
//! smallest of these.

use std::time::Duration;

use loadline_analysis::record::Configuration;
use loadline_analysis::slo::Quantile;

use super::{Headline, slo_words};
use crate::content::groups::{self, ConfigurationGroup, ConfigurationNames};
use crate::content::peak;
use crate::content::runs::{is_of_runs, under_load};
use crate::figures::{self, TrialFigures, spread};
use crate::format;
use crate::table::Tone;
use crate::view::ResultView;

/// Medians that differ by less say nothing about their configurations.
const NOTABLE: f64 = 1.05;

pub fn matrix_headline(view: &ResultView) -> Headline {
    let groups = groups::group_trials(view);
    let judged = groups.iter().filter(|g| g.has_evidence()).count();
    let good: Vec<&ConfigurationGroup> = groups.iter().filter(|g| g.keeps_slo()).collect();
    let sentence = match good.len() {
        _ if judged == 1 => single_configuration(view, &groups),
        1.. => format!(
            "{} of {} keep {}{}{}.",
            good.len(),
            format::count_of(judged, "configuration"),
            slo_words(view),
            under_load(view, view.load_of_all()),
            smallest_words(view, &good),
        ),
        0 => format!(
            "None of {} keeps {}{}.",
            format::count_of(judged, "configuration"),
            slo_words(view),
            under_load(view, view.load_of_all())
        ),
    };
    let sentence = match extremes_sentence(view, &groups) {
        Some(extremes) => format!("{extremes} {sentence}"),
        None => sentence,
    };
    let mut peak = groups.iter().filter(|_| judged == 1);
    let peak = peak.find_map(|group| peak::starts_sentence(group.evidence_trials()));
    let (tone, badge) = if good.is_empty() {
        (Tone::Bad, "SLO not kept")
    } else {
        (Tone::Good, "Some keep it")
    };
    let question = view.question.iter().map(|q| format!("The question: {q}"));
    Headline::new(tone, badge, sentence, question.chain(peak).collect())
}

/// What an experiment compares, and how its best and its worst value are called.
struct ComparedFigure {
    best: String,
    worst: &'static str,
    is_rate: bool,
    read: fn(&TrialFigures) -> Option<f64>,
}

/// A closed load shows how many requests a configuration carries, an open one how late they are answered.
fn compared_figure(view: &ResultView, quantile: Quantile) -> ComparedFigure {
    let mut loads = view
        .evidence_trials()
        .flat_map(|trial| &trial.evidence.load);
    let is_closed = loads.all(|load| load.offered_rate.is_none());
    match (view.is_of_starts(), is_closed) {
        (true, _) => ComparedFigure {
            best: "Shortest start".to_owned(),
            worst: "longest",
            is_rate: false,
            read: |figures| Some(figures.sli.start?.as_secs_f64()),
        },
        (false, true) => ComparedFigure {
            best: "Most requests".to_owned(),
            worst: "fewest",
            is_rate: true,
            read: |figures| figures.sli.achieved_rate,
        },
        (false, false) => ComparedFigure {
            best: format!("Lowest {quantile}"),
            worst: "highest",
            is_rate: false,
            read: |figures| Some(figures.headline?.known_time()?.as_secs_f64()),
        },
    }
}

/// `Lowest p99: 2 CPUs (9.31ms); highest: 250m CPU (62.0ms).`, if the memory is the same everywhere:
/// otherwise the smallest size is the answer.
fn extremes_sentence(view: &ResultView, groups: &[ConfigurationGroup]) -> Option<String> {
    let memory = groups.first()?.configuration.memory;
    if is_of_runs(view) || groups.iter().any(|g| g.configuration.memory != memory) {
        return None;
    }
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let figure = compared_figure(view, quantile);
    let median = |group: &ConfigurationGroup| {
        let figures = group.figures(quantile);
        Some(spread(figures.iter().filter_map(figure.read))?.median)
    };
    let known = groups.iter().filter_map(|g| Some((median(g)?, g)));
    let mut known: Vec<(f64, &ConfigurationGroup)> = known.collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    if figure.is_rate {
        known.reverse();
    }
    let ((best, first), (worst, last)) = (known.first()?, known.last()?);
    if (best / worst).max(worst / best) < NOTABLE {
        return None;
    }
    let names = ConfigurationNames::for_result(view);
    let show = |value: f64| {
        if figure.is_rate {
            format::as_rate(value)
        } else {
            format::measured_time(Duration::from_secs_f64(value))
        }
    };
    Some(format!(
        "{}: {} ({}); {}: {} ({}).",
        figure.best,
        names.variant(first.configuration),
        show(*best),
        figure.worst,
        names.variant(last.configuration),
        show(*worst),
    ))
}

fn single_configuration(view: &ResultView, groups: &[ConfigurationGroup]) -> String {
    let Some(group) = groups.iter().find(|g| g.has_evidence()) else {
        return String::new();
    };
    let (kept, of) = group.passes();
    let size = match group.configuration.memory {
        Some(_) => format!(" with {}", groups::size_words(group.configuration)),
        None => String::new(),
    };
    let keeps = if kept == of { "keeps" } else { "does not keep" };
    format!(
        "{}{size} {keeps} {}{}: {kept} of {} did.",
        view.title,
        slo_words(view),
        under_load(view, view.load_of_all()),
        format::count_of(of, if is_of_runs(view) { "run" } else { "start" }),
    )
}

/// `; the smallest of them is 212Mi`, all instances together; empty without a smallest one.
fn smallest_words(view: &ResultView, good: &[&ConfigurationGroup]) -> String {
    let size = |g: &&&ConfigurationGroup| {
        let c = g.configuration;
        let memory = c.memory.map_or(u64::MAX, |m| m.as_bytes());
        let cpu = c.cpu.map_or(u64::MAX, |c| c.as_millis().into());
        let all = u64::from(c.instances);
        (memory.saturating_mul(all), cpu.saturating_mul(all))
    };
    let Some(least) = good.iter().map(|g| size(&g)).min() else {
        return String::new();
    };
    let least = good.iter().filter(|g| size(g) == least);
    let least: Vec<&Configuration> = least.map(|g| g.configuration).collect();
    match least.as_slice() {
        [one] if one.memory.is_some() => {
            format!(
                "; the smallest of them is {}",
                ConfigurationNames::for_result(view).cell_name(one)
            )
        }
        // They differ in other things than the size.
        [one, others @ ..] if one.memory.is_some() => {
            let words = groups::size_words(one);
            if others.iter().all(|c| groups::size_words(c) == words) {
                format!("; the smallest of them have {words}")
            } else {
                String::new()
            }
        }
        _ => String::new(),
    }
}
