//! The headline of a matrix: how many configurations keep the SLO, and the smallest of these.

use loadline_analysis::record::Configuration;

use super::{Headline, slo_words};
use crate::content::groups::{self, ConfigurationGroup, ConfigurationNames};
use crate::content::peak;
use crate::content::runs::{is_of_runs, under_load};
use crate::format;
use crate::table::Tone;
use crate::view::ResultView;

pub fn matrix_headline(view: &ResultView) -> Headline {
    let groups = groups::group_trials(view);
    let judged = groups
        .iter()
        .filter(|g| g.evidence_trials().next().is_some())
        .count();
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
    let mut peak = groups.iter().filter(|_| judged == 1);
    let peak = peak.find_map(|group| peak::starts_sentence(group.evidence_trials()));
    Headline {
        badge: if good.is_empty() {
            "SLO not kept"
        } else {
            "Some keep it"
        },
        tone: if good.is_empty() {
            Tone::Bad
        } else {
            Tone::Good
        },
        sentence,
        details: view
            .question
            .iter()
            .map(|q| format!("The question: {q}"))
            .chain(peak)
            .collect(),
    }
}

fn single_configuration(view: &ResultView, groups: &[ConfigurationGroup]) -> String {
    let Some(group) = groups.iter().find(|g| g.evidence_trials().next().is_some()) else {
        return String::new();
    };
    let (kept, of) = group.passes();
    let size = match group.configuration.memory {
        Some(_) => format!(" with {}", groups::size_words(group.configuration)),
        None => String::new(),
    };
    let keeps = match kept == of {
        true => "keeps",
        false => "does not keep",
    };
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
    let least: Vec<&Configuration> = good
        .iter()
        .filter(|g| size(g) == least)
        .map(|g| g.configuration)
        .collect();
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
            match others.iter().all(|c| groups::size_words(c) == words) {
                true => format!("; the smallest of them have {words}"),
                false => String::new(),
            }
        }
        _ => String::new(),
    }
}
