//! The headline of a matrix: how many of its configurations keep the SLO, and the smallest of them.

use loadline_analysis::record::Configuration;

use super::{Headline, slo_words};
use crate::content::groups::{self, Group, Names};
use crate::format;
use crate::table::Tone;
use crate::view::ResultView;

/// The headline of a matrix.
pub fn matrix(view: &ResultView) -> Headline {
    let groups = groups::groups(view);
    let judged = groups
        .iter()
        .filter(|g| g.evidence().next().is_some())
        .count();
    let good: Vec<&Group> = groups.iter().filter(|g| g.keeps_slo()).collect();
    let sentence = match good.len() {
        _ if judged == 1 => alone(view, &groups),
        1.. => format!(
            "{} of {} keep {} under {}{}.",
            good.len(),
            format::count(judged, "configuration"),
            slo_words(view),
            view.load_of_all(),
            smallest(view, &good),
        ),
        0 => format!(
            "None of {} keeps {} under {}.",
            format::count(judged, "configuration"),
            slo_words(view),
            view.load_of_all()
        ),
    };
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
            .collect(),
    }
}

/// What one configuration came to: there is nothing to compare it with.
fn alone(view: &ResultView, groups: &[Group]) -> String {
    let Some(group) = groups.iter().find(|g| g.evidence().next().is_some()) else {
        return String::new();
    };
    let (kept, of) = group.passes();
    let size = match group.configuration.memory {
        Some(_) => format!(" with {}", groups::size(group.configuration)),
        None => String::new(),
    };
    let keeps = match kept == of {
        true => "keeps",
        false => "does not keep",
    };
    format!(
        "{}{size} {keeps} {} under {}: {kept} of {} did.",
        view.title,
        slo_words(view),
        view.load_of_all(),
        format::count(of, "start"),
    )
}

/// `; the smallest of them is 212Mi`, all instances together; empty where no size is the smallest.
fn smallest(view: &ResultView, good: &[&Group]) -> String {
    let size = |g: &&&Group| {
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
            format!("; the smallest of them is {}", Names::of(view).name(one))
        }
        // They differ in other things than the size.
        [one, others @ ..] if one.memory.is_some() => {
            let words = groups::size(one);
            match others.iter().all(|c| groups::size(c) == words) {
                true => format!("; the smallest of them have {words}"),
                false => String::new(),
            }
        }
        _ => String::new(),
    }
}
