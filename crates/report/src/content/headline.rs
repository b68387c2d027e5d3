//! The verdict sentence, and the few sentences below it: how sure, how found, on which machine.
//!
//! First thing a reader sees. Every number in it comes from the records or the recommendation.

use loadline_analysis::deployment::Deployment;
use loadline_analysis::recommend::{Proof, Recommendation};
use loadline_analysis::record::{Machine, Purpose, Verdict};

use super::groups::{self, Group, Names};
use super::money;
use crate::figures::{self, Figures, spread};
use crate::format;
use crate::table::Tone;
use crate::view::ResultView;

/// The top of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Whether it is good news.
    pub tone: Tone,
    /// The verdict in two words.
    pub badge: &'static str,
    /// The verdict.
    pub sentence: String,
    /// Why it may be believed.
    pub details: Vec<String>,
}

/// The verdict on a result.
pub fn headline(view: &ResultView) -> Headline {
    let mut headline = match &view.recommendation {
        Some(recommendation) => recommended(view, recommendation),
        None if view.trials.is_empty() => Headline {
            tone: Tone::Muted,
            badge: "No trial",
            sentence: "No trial has finished: there is nothing to say yet.".to_owned(),
            details: Vec::new(),
        },
        None if view.evidence().next().is_none() => nothing_measured(view),
        None if view.trials.iter().all(|t| t.purpose == Purpose::Matrix) => matrix(view),
        None => nothing_feasible(view),
    };
    if let Some(why) = &view.incomplete {
        headline
            .details
            .insert(0, format!("The result is not complete: {why}."));
    }
    headline.details.push(measured_where(view));
    headline
}

fn recommended(view: &ResultView, recommendation: &Recommendation) -> Headline {
    if let Some(deployment) = &recommendation.deployment {
        return deployed(view, recommendation, deployment);
    }
    let proof = &recommendation.proof;
    let is_proven = proof.starts > 0 && proof.passes == proof.starts;
    let mut details = vec![measured_what(view, recommendation)];
    details.push(proven_how(proof));
    details.push(format!(
        "{} is the smallest memory that kept the SLO in every confirmation; the margin of {} on top is for what was not measured.",
        recommendation.confirmed,
        format::percent(recommendation.margin),
    ));
    if let Some(next) = &recommendation.next_smaller {
        let trial = view.number(&next.trial);
        let trial = trial.map_or_else(String::new, |n| format!(" (trial {n})"));
        details.push(sentence(&format!(
            "{} is too small{trial}: {}",
            next.memory,
            super::in_short(&next.breaks)
        )));
    }
    Headline {
        tone: if is_proven { Tone::Good } else { Tone::Muted },
        badge: if is_proven { "SLO kept" } else { "Not proven" },
        sentence: format!(
            "Give {} {}: it then keeps {}.",
            view.title,
            groups::size(&recommendation.configuration),
            slo_words(view),
        ),
        details,
    }
}

/// A deployment in money: the sentence that the whole search was for.
fn deployed(
    view: &ResultView,
    recommendation: &Recommendation,
    deployment: &Deployment,
) -> Headline {
    let chosen = &deployment.chosen;
    let variant = if chosen.variant.is_empty() {
        String::new()
    } else {
        format!(" with {}", chosen.variant)
    };
    let spare = match deployment.spare {
        0 => String::new(),
        n => format!(", also with {n} of them lost"),
    };
    let mut details = vec![
        format!(
            "Each replica carried {} of the {} and its {} of headroom{spare}; one instance was measured at a time.",
            format::rate(deployment.each),
            format::rate(deployment.rate),
            format::percent(deployment.headroom),
        ),
        proven_how(&recommendation.proof),
    ];
    if let Some(seen) = latency_seen(view, recommendation) {
        details.insert(1, format!("At that rate, {seen}."));
    }
    details.extend(
        deployment
            .offer
            .warning
            .iter()
            .map(|w| format!("Warning: {w}.")),
    );
    Headline {
        tone: if deployment.is_proven {
            Tone::Good
        } else {
            Tone::Muted
        },
        badge: if deployment.is_proven {
            "SLO kept"
        } else {
            "Not proven"
        },
        sentence: format!(
            "Run {} of {}, each with {}{variant}: {}. They keep {}.",
            format::count(chosen.replicas as usize, "replica"),
            view.title,
            groups::size(&recommendation.configuration),
            money::price_words(chosen),
            slo_words(view),
        ),
        details,
    }
}

fn proven_how(proof: &Proof) -> String {
    if proof.starts == 0 {
        return "It has not been proven by fresh starts.".to_owned();
    }
    format!(
        "{} of {} fresh starts of exactly this size kept the SLO: with 95 % confidence fewer than {} of all starts miss it.",
        proof.passes,
        proof.starts,
        format::percent(proof.failure_upper_bound),
    )
}

/// The load, and the latency that was seen under it at the recommended size.
fn measured_what(view: &ResultView, recommendation: &Recommendation) -> String {
    match latency_seen(view, recommendation) {
        Some(seen) => format!("Under {}, {seen}.", view.load),
        None => format!("Under {}.", view.load),
    }
}

/// `p99 was 69.9ms (67.9ms to 76.0ms)` of the recommended configuration.
fn latency_seen(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let group = groups::group_of(view, &recommendation.configuration)?;
    let of_trial = |t| Figures::of(t, quantile).headline;
    let seen = spread(group.evidence().filter_map(of_trial))?;
    Some(format!("{quantile} was {}", seen.show(format::time)))
}

/// The SLO in words: `p99<50ms, errors<0.1% and start<20s`.
pub fn slo_words(view: &ResultView) -> String {
    let mut objectives: Vec<String> = view
        .slo
        .objectives
        .iter()
        .map(ToString::to_string)
        .collect();
    let last = objectives.pop().unwrap_or_default();
    if objectives.is_empty() {
        last
    } else {
        format!("{} and {last}", objectives.join(", "))
    }
}

/// A text as a sentence: it ends in a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

fn nothing_measured(view: &ResultView) -> Headline {
    let mut sentence = "Could not measure: no trial was valid".to_owned();
    if let Some(Verdict::Invalid(cause)) = view.trials.last().map(|t| t.verdict) {
        sentence.push_str(&format!(" (last: {})", figures::invalid_reason(cause)));
    }
    Headline {
        tone: Tone::Muted,
        badge: "Not measured",
        sentence: sentence + ".",
        details: Vec::new(),
    }
}

fn matrix(view: &ResultView) -> Headline {
    let groups = groups::groups(view);
    let judged = groups
        .iter()
        .filter(|g| g.evidence().next().is_some())
        .count();
    let good: Vec<&Group> = groups.iter().filter(|g| g.keeps_slo()).collect();
    let smallest = good.iter().min_by_key(|g| {
        let c = g.configuration;
        (
            c.memory.map_or(u64::MAX, |m| m.as_bytes()),
            c.cpu.map_or(u32::MAX, |c| c.as_millis()),
        )
    });
    let sentence = match smallest {
        Some(group) => format!(
            "{} of {} keep {} under {}; the smallest of them is {}.",
            good.len(),
            format::count(judged, "configuration"),
            slo_words(view),
            view.load,
            Names::of(view).name(group.configuration),
        ),
        None => format!(
            "None of {} keeps {} under {}.",
            format::count(judged, "configuration"),
            slo_words(view),
            view.load
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

fn nothing_feasible(view: &ResultView) -> Headline {
    let largest = view
        .evidence()
        .filter(|t| t.verdict != Verdict::Pass)
        .max_by_key(|t| t.configuration.memory.map_or(u64::MAX, |m| m.as_bytes()));
    Headline {
        tone: Tone::Bad,
        badge: "SLO not kept",
        sentence: match largest {
            Some(trial) => format!(
                "No size keeps {} under {}: {} fails too.",
                slo_words(view),
                view.load,
                groups::size(&trial.configuration)
            ),
            None => format!("The search for {} did not finish.", slo_words(view)),
        },
        details: largest.map(|t| sentence(&t.reason)).into_iter().collect(),
    }
}

fn measured_where(view: &ResultView) -> String {
    let Machine {
        kernel,
        cpu_model,
        cpus,
        memory,
        cgroup,
        jdks,
        loadline,
    } = &view.machine;
    let when = view.trials.iter().map(|t| t.started_at_unix_ms).min();
    let when = when.map_or_else(String::new, |ms| format!(", {}", format::date(ms)));
    let memory = memory.map_or_else(String::new, |m| format!(", {}", format::bytes(m)));
    let jdks = if jdks.is_empty() {
        String::new()
    } else {
        format!("; {}", jdks.join(", "))
    };
    format!(
        "Measured by {} in {}{when}, on {} of {cpu_model}{memory}, {kernel}, cgroup {cgroup}{jdks}; loadline {loadline}.",
        format::count(view.trials.len(), "trial"),
        format::elapsed(view.elapsed()),
        format::count(*cpus as usize, "CPU"),
    )
}
