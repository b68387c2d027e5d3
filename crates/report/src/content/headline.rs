//! The verdict sentence, and the few sentences below it: how sure, how found, on which machine.
//!
//! First thing a reader sees. Every number in it comes from the records or the recommendation.

mod matrix;
mod place;

use std::time::Duration;

use loadline_analysis::abreast::AbreastStanding;
use loadline_analysis::attained;
use loadline_analysis::deployment::Deployment;
use loadline_analysis::obstacle::{self, FlatMisses};
use loadline_analysis::proof::Proof;
use loadline_analysis::recommend::{LevelSize, Recommendation};
use loadline_analysis::record::{TrialPurpose, TrialRecord, TrialVerdict};
use loadline_analysis::search::abreast;
use loadline_analysis::slo::Objective;
use loadline_analysis::warming;

use super::groups::{self, ConfigurationNames};
use super::growth;
use super::proven::{pooled_sentences, proven_how};
use super::{dependencies, jdks, money, node, saving, throttling, toxics};
use crate::figures::{self, SeenLatency, TrialFigures, spread_latencies};
use crate::format;
use crate::table::Tone;
use crate::view::ResultView;

/// A size so many times the one that fresh starts refuted just before was not led up to.
const JUMP: f64 = 1.25;

/// Below this multiple of what the SLO allows, three digits of the multiple say nothing.
const SO_NEAR: f64 = 1.01;

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
        Some(recommendation) => recommendation_headline(view, recommendation),
        None if view.trials.is_empty() => Headline {
            tone: Tone::Muted,
            badge: "No trial",
            sentence: "No trial has finished: there is nothing to say yet.".to_owned(),
            details: Vec::new(),
        },
        None if view.trials.iter().all(|t| t.purpose == TrialPurpose::Soak) => soak_headline(view),
        None if view.evidence_trials().next().is_none() => nothing_measured(view),
        None if view
            .trials
            .iter()
            .all(|t| t.purpose == TrialPurpose::Matrix) =>
        {
            matrix::matrix_headline(view)
        }
        None if view.incomplete.is_some() => nothing_found(view),
        None => nothing_feasible(view),
    };
    if let Some(saved) = saving::saving_sentence(view) {
        headline.details.insert(0, saved);
    }
    if let Some(incomplete) = incomplete_sentence(view) {
        headline.details.insert(0, incomplete);
    }
    headline.details.extend(toxics::toxics_sentence(view));
    headline
        .details
        .extend(dependencies::dependency_sentences(view));
    headline.details.push(place::measured_where(view));
    headline
}

/// Why the result is not complete, where it is not.
pub(super) fn incomplete_sentence(view: &ResultView) -> Option<String> {
    let why = view.incomplete.as_ref()?;
    Some(format!("The result is not complete: {why}."))
}

/// A soak by itself: what grows.
fn soak_headline(view: &ResultView) -> Headline {
    let Some((trial, growth)) = growth::soak_growth(view) else {
        return nothing_measured(view);
    };
    let (tone, badge) = match growth.verdict {
        growth::Grows::Stable { .. } => (Tone::Good, "Stable"),
        growth::Grows::Growing => (Tone::Bad, "Growing"),
        growth::Grows::TooShort { .. } => (Tone::Muted, "Too short"),
    };
    let what = format!(
        "{} with {}",
        view.title,
        groups::size_words(&trial.configuration)
    );
    let under = format!("Under {}.", view.load_of(&trial.configuration));
    if growth::did_not_last(trial) {
        let lasted = growth::show_length(growth.soaked);
        return Headline {
            tone: Tone::Bad,
            badge: "Did not last",
            sentence: format!("{what} did not last: after {lasted} {}.", trial.reason),
            details: vec![
                under,
                growth::growth_sentence(&growth),
                growth::TRACKED.to_owned(),
            ],
        };
    }
    let kept = match trial.verdict {
        TrialVerdict::Pass => format!("It kept {} over all of it.", slo_words(view)),
        verdict => format!("As a trial it was {verdict}: {}.", trial.reason),
    };
    Headline {
        tone,
        badge,
        sentence: format!(
            "{what}: {}",
            growth::lower(&growth::growth_sentence(&growth))
        ),
        details: vec![under, kept],
    }
}

fn recommendation_headline(view: &ResultView, recommendation: &Recommendation) -> Headline {
    if let Some(deployment) = &recommendation.deployment {
        return deployment_headline(view, recommendation, deployment);
    }
    let proof = &recommendation.proof;
    let is_proven = recommendation.is_proven();
    if !is_proven
        && let Some(flat) = obstacle::find_flat_misses(obstacle::same_but_memory(
            &view.trials,
            &recommendation.configuration,
        ))
    {
        return misses_alike(view, &flat);
    }
    let size = groups::size_words(&recommendation.configuration);
    let mut details = vec![measured_what(view, recommendation)];
    details.push(proven_how(proof));
    details.extend(pooled_sentences(proof));
    details.extend(rests_on(view, recommendation));
    details.push(with_full_stop(&warming::answers_for(
        recommendation.question,
        proofs(view, recommendation),
        recommendation.configuration.warm_up,
    )));
    details.push(on_top(view, recommendation));
    details.extend(next_smaller(view, recommendation));
    details.extend(at_once(view));
    details.extend(jdks::knee_sentence(&recommendation.by_level));
    details.extend(throttling::throttling_sentence(
        view,
        proofs(view, recommendation),
    ));
    details.extend(node::node_sentences(view));
    if let Some((trial, growth)) =
        growth::soak_growth(view).filter(|(t, _)| growth::did_not_last(t))
    {
        let (slo, lasted) = (slo_words(view), growth::show_length(growth.soaked));
        details.push(growth::TRACKED.to_owned());
        return Headline {
            tone: Tone::Bad,
            badge: "Did not last",
            sentence: format!(
                "{} with {size} keeps {slo} in fresh starts and did not last: after {lasted} {}.",
                view.title, trial.reason
            ),
            details,
        };
    }
    Headline {
        sentence: if is_proven {
            let slo = slo_words(view);
            let winner = winner(view, recommendation);
            format!("Give {} {size}{winner}: it then keeps {slo}.", view.title)
        } else {
            let but = unproven_reason(view, proof);
            format!("For {} {size} was found, but {but}.", view.title)
        },
        ..proven_or_not(is_proven, details)
    }
}

/// `195Mi is too small (trial 22): ...`, where a trial shows it.
pub(super) fn next_smaller(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let next = recommendation.next_smaller.as_ref()?;
    let trial = view.trial_number(&next.trial);
    let trial = trial.map_or_else(String::new, |n| format!(" (trial {n})"));
    Some(with_full_stop(&format!(
        "{} is too small{trial}: {}",
        next.memory,
        next.breaks.in_short()
    )))
}

/// ` with JDK 25`: which of several that were asked about the answer is for; nothing for one.
fn winner(view: &ResultView, recommendation: &Recommendation) -> String {
    let of =
        |level: &&LevelSize| level.configuration.as_ref() == Some(&recommendation.configuration);
    if recommendation.by_level.len() > 1 {
        let level = recommendation.by_level.iter().find(of);
        return level.map_or_else(String::new, jdks::with_level);
    }
    let names = ConfigurationNames::for_result(view);
    let label = names.label(&recommendation.configuration);
    label.map_or_else(String::new, |label| format!(" with {label}"))
}

/// No size is proven, and more memory is not what lacks.
fn misses_alike(view: &ResultView, flat: &FlatMisses) -> Headline {
    Headline {
        tone: Tone::Bad,
        badge: "Not proven",
        sentence: format!(
            "No size of {} is proven to keep {} under {}: {}.",
            view.title,
            slo_words(view),
            view.load_of_all(),
            flat.miss_sentence(),
        ),
        details: vec![
            with_full_stop(&flat.causes_sentence()),
            with_full_stop(&flat.lever_hint()),
        ],
    }
}

/// A headline without its sentence.
fn proven_or_not(is_proven: bool, details: Vec<String>) -> Headline {
    let (tone, badge) = match is_proven {
        true => (Tone::Good, "SLO kept"),
        false => (Tone::Muted, "Not proven"),
    };
    Headline {
        tone,
        badge,
        sentence: String::new(),
        details,
    }
}

/// `8 of 20 fresh starts missed p99<50ms`: why an answer is not proven.
fn unproven_reason(view: &ResultView, proof: &Proof) -> String {
    let slo = slo_words(view);
    if let Some(broken) = proof.broken_together() {
        return broken.percentile_sentence();
    }
    match (proof.starts, proof.starts.saturating_sub(proof.passes)) {
        (0, _) => format!("no fresh start has shown that it keeps {slo}"),
        (starts, 0) => format!(
            "{} that kept {slo} prove too little",
            format::count_of(starts as usize, "fresh start")
        ),
        (starts, missed) => format!("{missed} of {starts} fresh starts missed {slo}"),
    }
}

/// A deployment in money: the sentence that the whole search was for.
fn deployment_headline(
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
    let what = format!(
        "{} of {}, each with {}{variant}: {}",
        format::count_of(chosen.replicas as usize, "replica"),
        view.title,
        groups::size_words(&recommendation.configuration),
        money::price_words(chosen),
    );
    let is_proven = recommendation.is_proven();
    let mut details = vec![
        carried_sentence(deployment),
        proven_how(&recommendation.proof),
    ];
    if let Some(seen) = latency_seen(view, recommendation) {
        details.insert(1, format!("At that rate, {seen}."));
    }
    details.extend(pooled_sentences(&recommendation.proof));
    details.extend(memory_margin(view, recommendation, deployment));
    details.extend(
        deployment
            .offer
            .warning
            .iter()
            .map(|w| format!("Warning: {w}.")),
    );
    details.extend(throttling::throttling_sentence(
        view,
        proofs(view, recommendation),
    ));
    details.extend(node::node_sentences(view));
    Headline {
        sentence: if is_proven {
            format!("Run {what}. They keep {}.", slo_words(view))
        } else {
            let but = unproven_reason(view, &recommendation.proof);
            format!("Found: {what}. But {but}.")
        },
        ..proven_or_not(is_proven, details)
    }
}

/// What each replica carried of the rate.
pub(super) fn carried_sentence(deployment: &Deployment) -> String {
    let spare = match deployment.spare {
        0 => String::new(),
        n => format!(", also with {n} of them lost"),
    };
    let headroom = if deployment.headroom > 0.0 {
        let share = format::as_percent(deployment.headroom);
        format!(" and its {share} of headroom")
    } else {
        String::new()
    };
    format!(
        "Each replica carried {} of the {}{headroom}{spare}; one instance was measured at a time.",
        format::as_rate(deployment.each),
        format::as_rate(deployment.rate),
    )
}

/// How much memory is left over: by the search below the size, or by what its starts used of it.
fn memory_margin(
    view: &ResultView,
    recommendation: &Recommendation,
    deployment: &Deployment,
) -> Option<String> {
    if let Some(found) = deployment.found {
        return Some(format!(
            "Memory was searched below the {} of the size found: {} is the smallest that kept the SLO in every confirmation, with a margin of {} on top.",
            found.memory,
            recommendation.confirmed,
            format::as_percent(recommendation.margin),
        ));
    }
    let group = groups::group_of(view, &recommendation.configuration)?;
    let used = group
        .evidence_trials()
        .map(|t| t.evidence.cgroup.peak_working_set);
    let used = used.max()??;
    let limit = recommendation.configuration.memory?;
    let share = used.as_bytes() as f64 / limit.as_bytes().max(1) as f64;
    Some(format!(
        "The fullest of its starts used {} of {limit} ({}).",
        format::measured_bytes(used),
        format::as_percent(share),
    ))
}

/// The fresh starts at the recommended size.
fn proofs<'a>(
    view: &'a ResultView,
    recommendation: &'a Recommendation,
) -> impl Iterator<Item = &'a TrialRecord> {
    // Another JDK may have been proven at the same size.
    let is_proof = |t: &&TrialRecord| {
        t.purpose == TrialPurpose::Prove
            && groups::is_same(&t.configuration, &recommendation.configuration)
    };
    view.evidence_trials().filter(is_proof)
}

/// What lies between the smallest confirmed memory and the answer.
fn on_top(view: &ResultView, recommendation: &Recommendation) -> String {
    let (confirmed, size) = (
        recommendation.confirmed,
        recommendation.recommended_memory(),
    );
    let begin =
        format!("{confirmed} is the smallest memory that kept the SLO in every confirmation");
    let trials = obstacle::same_but_memory(&view.trials, &recommendation.configuration);
    let missed =
        trials.filter(|t| t.purpose == TrialPurpose::Prove && t.verdict != TrialVerdict::Pass);
    let refuted = missed.filter(|t| t.verdict.is_evidence());
    let refuted = refuted
        .filter_map(|t| t.configuration.memory)
        .filter(|m| *m < size);
    match refuted.max() {
        // The search went straight to the largest size: the answer is no smallest size.
        Some(refuted) if size.as_bytes() as f64 > JUMP * refuted.as_bytes() as f64 => format!(
            "{begin}, but fresh starts missed up to {refuted}, and what was proven next is {size}: a size between may do, and --min-memory {refuted} looks there."
        ),
        _ => format!(
            "{begin}; the margin of {} on top is for starts that differ and for later: {}.",
            format::as_percent(recommendation.margin),
            growth::later_need(view),
        ),
    }
}

/// Whether trials ran at once, by the comparison that was made first.
fn at_once(view: &ResultView) -> Option<String> {
    let compared = view
        .trials
        .iter()
        .filter(|t| t.purpose == TrialPurpose::Abreast);
    let compared: Vec<&TrialRecord> = compared.collect();
    let number = (!compared.is_empty()).then_some(compared.len())?;
    let standing = abreast::judge_rounds(compared);
    let ran = match standing {
        AbreastStanding::Alike => "Trials ran at once",
        _ => "Trials ran one after the other",
    };
    let why = standing.comparison_sentence()?;
    Some(format!(
        "{ran}: {why} ({}).",
        format::count_of(number, "trial")
    ))
}

/// On how much time the proof rests, and what no time of that length shows.
fn rests_on(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let starts: Vec<&TrialRecord> = proofs(view, recommendation).collect();
    let all: Duration = starts.iter().map(|t| t.total_length()).sum();
    let each = all.checked_div(u32::try_from(starts.len()).ok()?)?;
    let soaked = growth::soak_growth(view).map(|(trial, growth)| growth::in_short(trial, &growth));
    let soaked = soaked.map_or_else(
        || "not soaked: what grows for longer than that was not seen.".to_owned(),
        |soaked| format!("{soaked}."),
    );
    Some(format!(
        "That rests on {} of {}; {soaked}",
        format::count_of(starts.len(), "start"),
        format::elapsed(each),
    ))
}

/// The load, and the latency that was seen under it at the recommended size.
pub(super) fn measured_what(view: &ResultView, recommendation: &Recommendation) -> String {
    match latency_seen(view, recommendation) {
        Some(seen) => format!(
            "Under {}, {seen}.",
            view.load_of(&recommendation.configuration)
        ),
        None => format!("Under {}.", view.load_of(&recommendation.configuration)),
    }
}

/// `p99 was 69.9ms (67.9ms to 76.0ms)` of the recommended configuration.
fn latency_seen(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let group = groups::group_of(view, &recommendation.configuration)?;
    let of_trial = |t| TrialFigures::for_trial(t, quantile).headline;
    let seen = spread_latencies(group.evidence_trials().filter_map(of_trial))?;
    // The bound stands in the sentence above.
    let mut bounds = view.slo.objectives.iter();
    let bound =
        bounds.find(|o| matches!(o, Objective::Latency { quantile: q, .. } if *q == quantile));
    let show = |seen: SeenLatency| match (bound, seen) {
        (Some(bound), SeenLatency::At(time)) => bound.show_measured(time.as_secs_f64()),
        _ => seen.show(),
    };
    Some(format!("{quantile} was {}", seen.show(show)))
}

/// The SLO in words: `p99<50ms, errors<0.1% and start<20s`.
pub fn slo_words(view: &ResultView) -> String {
    let of_all = view.slo.objectives.iter().map(ToString::to_string);
    let of_one = view.slo.by_request.iter().map(ToString::to_string);
    let outage = view.slo.outage.iter().map(ToString::to_string);
    let mut objectives: Vec<String> = of_all.chain(of_one).chain(outage).collect();
    let last = objectives.pop().unwrap_or_default();
    if objectives.is_empty() {
        last
    } else {
        format!("{} and {last}", objectives.join(", "))
    }
}

/// A text as a sentence: it ends in a full stop.
pub(super) fn with_full_stop(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

fn nothing_measured(view: &ResultView) -> Headline {
    let mut sentence = "Could not measure: no trial was valid".to_owned();
    if let Some(TrialVerdict::Invalid(cause)) = view.trials.last().map(|t| t.verdict) {
        sentence.push_str(&format!(" (last: {})", figures::invalid_reason(cause)));
    }
    Headline {
        tone: Tone::Muted,
        badge: "Not measured",
        sentence: sentence + ".",
        details: Vec::new(),
    }
}

/// The best that was attained, as a sentence: where, and which objective stands in the way.
fn attained_sentence(view: &ResultView) -> Option<String> {
    let best = attained::nearest_to_slo(view.trials.iter())?;
    let trial = view.trial_number(&best.trial.id);
    let trial = trial.map_or_else(String::new, |n| format!(" (trial {n})"));
    let size = groups::size_words(&best.trial.configuration);
    let rate = best.trial.configuration.rate.map(format::as_rate);
    if best.is_kept() {
        let rate = rate.unwrap_or_else(|| "the load".to_owned());
        let end = match view.incomplete {
            Some(_) => ".",
            None => "; as many replicas as are allowed do not carry the rate with that.",
        };
        return Some(format!(
            "The best attained: {size} kept the SLO at {rate}{trial}{end}"
        ));
    }
    let rate = rate.map_or_else(String::new, |rate| format!(" at {rate}"));
    let binding = best.binding?;
    if binding.ratio < 1.0 {
        // Every objective was met: the rate was not answered, or the collector took the CPU.
        let why = best.trial.reason.in_short();
        return Some(with_full_stop(&format!(
            "The best attained: {size}{rate}{trial}. What stands in the way: {why}"
        )));
    }
    let objective = binding.result.objective_text();
    let how = match binding.result.measured {
        Some(measured) if binding.ratio < SO_NEAR => {
            format!(
                "it was {}",
                binding.result.objective.show_measured(measured)
            )
        }
        Some(_) => format!(
            "it is {} times what the SLO allows",
            format::three_digits(binding.ratio)
        ),
        None => "it lies in requests that failed".to_owned(),
    };
    Some(format!(
        "The best attained: {size}{rate}{trial}. What stands in the way is {objective}: {how}."
    ))
}

/// A search that ended before it knew: that nothing was found is no proof that there is nothing.
fn nothing_found(view: &ResultView) -> Headline {
    Headline {
        tone: Tone::Muted,
        badge: "Not decided",
        sentence: format!(
            "No size was found that keeps {} under {}; not everything was looked at.",
            slo_words(view),
            view.load,
        ),
        details: attained_sentence(view).into_iter().collect(),
    }
}

fn nothing_feasible(view: &ResultView) -> Headline {
    let largest = view
        .evidence_trials()
        .filter(|t| t.verdict != TrialVerdict::Pass)
        .max_by_key(|t| t.configuration.memory.map_or(u64::MAX, |m| m.as_bytes()));
    if let Some(flat) = largest.and_then(|t| {
        obstacle::find_flat_misses(obstacle::same_but_memory(&view.trials, &t.configuration))
    }) {
        return misses_alike(view, &flat);
    }
    Headline {
        tone: Tone::Bad,
        badge: "SLO not kept",
        sentence: match largest {
            Some(trial) => format!(
                "No size keeps {} under {}: {} fails too.",
                slo_words(view),
                view.load_of(&trial.configuration),
                groups::size_words(&trial.configuration)
            ),
            None => format!("The search for {} did not finish.", slo_words(view)),
        },
        details: largest
            .map(|t| with_full_stop(&t.reason.to_string()))
            .into_iter()
            // With prices the sizes are those of the offer, each at its own rate.
            .chain(largest.filter(|t| t.configuration.rate.is_none()).map(|_| {
                "Larger sizes were not tried: --max-memory names the largest; without it, 1Gi is doubled while it fails, up to 4/5 of this machine's memory.".to_owned()
            }))
            .chain(attained_sentence(view))
            .collect(),
    }
}
