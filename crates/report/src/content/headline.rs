//! The verdict sentence, and the few sentences below it: how sure, how found, on which machine.
//!
//! First thing a reader sees. Every number in it comes from the records or the recommendation.

mod matrix;
mod place;
mod reported;

use loadline_analysis::deployment::Deployment;
use loadline_analysis::obstacle::{self, FlatMisses};
use loadline_analysis::recommend::{LevelSize, Recommendation};
use loadline_analysis::record::{TrialPurpose, TrialVerdict, ValueProvenance};
use loadline_analysis::slo::{Objective, print_peak_objective};
use loadline_analysis::verdict::{may_need_memory, why_infeasible};
use loadline_analysis::{attained, warming};

use super::claim::AnswerClaim;
use super::groups::{self, ConfigurationNames};
use super::proven::{pooled_sentences, proven_how};
use super::{
    budget, dependencies, growth, jdks, money, node, peak, runs, saving, smaller, start_cpu,
    throttling, toxics,
};
use crate::figures::{self, SeenLatency, TrialFigures, spread};
use crate::table::Tone;
use crate::view::ResultView;
use crate::{format, redact};

/// Jump from the refuted size just below: at this factor or more, the search did not approach the
/// answer step by step.
const JUMP: f64 = 1.25;

/// Longest text of JVM options that a sentence takes, in bytes.
const MOST_OPTIONS: usize = 80;

/// Below this multiple of what the SLO allows, three digits of the multiple say nothing.
const SO_NEAR: f64 = 1.01;

#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    pub tone: Tone,
    pub badge: &'static str,
    pub sentence: String,
    pub details: Vec<String>,
}

impl Headline {
    fn new(tone: Tone, badge: &'static str, sentence: String, details: Vec<String>) -> Self {
        Self {
            tone,
            badge,
            sentence,
            details,
        }
    }
}

pub fn headline(view: &ResultView) -> Headline {
    let are_all = |purpose| view.trials.iter().all(|t| t.purpose == purpose);
    let mut headline = match &view.recommendation {
        Some(recommendation) => recommendation_headline(view, recommendation),
        None if view.trials.is_empty() => {
            let sentence = "No trial has finished yet.".to_owned();
            Headline::new(Tone::Muted, "No trial", sentence, Vec::new())
        }
        None if are_all(TrialPurpose::Soak) => soak_headline(view),
        None if view.evidence_trials().next().is_none() => nothing_measured(view),
        None if are_all(TrialPurpose::Matrix) => matrix::matrix_headline(view),
        None if view.incomplete.is_some() => nothing_found(view),
        None => nothing_feasible(view),
    };
    // What makes an answer weaker comes first: a short screen leaves out the last.
    let first = [
        incomplete_sentence(view),
        saving::saving_sentence(view),
        place::load_command_sentence(view),
    ];
    let details = &mut headline.details;
    details.splice(0..0, first.into_iter().flatten());
    details.extend(toxics::toxics_sentence(view));
    details.extend(dependencies::dependency_sentences(view));
    details.extend(reported::reported_sentence(view));
    details.push(place::measured_where(view));
    headline
}

pub(super) fn incomplete_sentence(view: &ResultView) -> Option<String> {
    let why = view.incomplete.as_ref()?;
    Some(format!("The result is not complete: {why}."))
}

fn soak_headline(view: &ResultView) -> Headline {
    let Some((trial, growth)) = growth::soak_growth(view) else {
        return nothing_measured(view);
    };
    let (tone, badge) = match growth.verdict {
        growth::Grows::Stable { .. } => (Tone::Good, "Stable"),
        growth::Grows::Growing => (Tone::Bad, "Growing"),
        growth::Grows::TooShort { .. } => (Tone::Muted, "Too short"),
    };
    let size = groups::size_words(&trial.configuration);
    let what = format!("{} with {size}", view.title);
    let under = format!("Under {}.", view.load_of(&trial.configuration));
    if growth::did_not_last(trial) {
        let lasted = growth::show_length(growth.soaked);
        let sentence = format!("{what} did not last: after {lasted} {}.", trial.reason);
        let details = [under, growth::growth_sentence(&growth)].into_iter();
        let details = details.chain(growth::tracked(view)).collect();
        return Headline::new(Tone::Bad, "Did not last", sentence, details);
    }
    let kept = match trial.verdict {
        TrialVerdict::Pass => format!("It kept {} over all of it.", slo_words(view)),
        verdict => format!("As a trial it was {verdict}: {}.", trial.reason),
    };
    let growth = growth::lower(&growth::growth_sentence(&growth));
    Headline::new(tone, badge, format!("{what}: {growth}"), vec![under, kept])
}

fn recommendation_headline(view: &ResultView, recommendation: &Recommendation) -> Headline {
    if let Some(deployment) = &recommendation.deployment {
        return deployment_headline(view, recommendation, deployment);
    }
    let claim = AnswerClaim::new(view, recommendation);
    if !recommendation.is_proven()
        && let Some(flat) = obstacle::find_flat_misses(obstacle::same_but_memory(
            &view.trials,
            &recommendation.configuration,
        ))
    {
        return misses_alike(view, &flat);
    }
    if runs::is_of_runs(view) {
        let details = runs::details(view, recommendation, &claim);
        let sentence = answer_sentence(view, recommendation, &claim);
        return headline_of(&claim, sentence, details);
    }
    let mut details = claim.doubts();
    // The answer names the work of a consumer already.
    if view.sends_requests() {
        details.push(measured_what(view, recommendation));
    }
    details.extend(peak::peak_sentence(view, recommendation));
    details.extend(budget_or_margin(view, recommendation));
    details.push(proven_how(&claim));
    details.extend(pooled_sentences(&recommendation.proof));
    details.extend(next_smaller(view, recommendation));
    details.extend(claim.describe_first_second());
    details.extend(peak::burst_sentence(claim.fresh_starts()));
    details.push(with_full_stop(&warming::answers_for(
        recommendation.question,
        claim.fresh_starts(),
        recommendation.configuration.warm_up,
    )));
    let less_cpu = smaller::smaller_cpu(view, recommendation).into_iter();
    details.extend(less_cpu.map(|words| with_full_stop(&words)));
    let answer = &recommendation.configuration;
    details.extend(start_cpu::start_cpu_sentence(view, answer));
    details.extend(jdks::knee_sentence(&recommendation.by_level));
    details.extend(throttling::throttling_sentence(view, claim.fresh_starts()));
    details.extend(node::node_sentences(view));
    details.extend(growth::tracked(view).filter(|_| claim.is_refuted()));
    let sentence = answer_sentence(view, recommendation, &claim);
    headline_of(&claim, sentence, details)
}

fn answer_sentence(
    view: &ResultView,
    recommendation: &Recommendation,
    claim: &AnswerClaim<'_>,
) -> String {
    let what = what_to_give(view, recommendation);
    let soak = claim.describe_soak();
    let sentence = match (claim.is_refuted(), recommendation.is_proven()) {
        (true, _) => format!("Do not give {} {what}. {soak}", view.title),
        (false, true) => {
            let tested = claim.describe_test("it");
            format!("Give {} {what}: {tested}. {soak}", view.title)
        }
        (false, false) => {
            let but = claim.describe_doubt();
            format!("For {} {what} was found, but {but}.", view.title)
        }
    };
    sentence.trim_end().to_owned()
}

fn headline_of(claim: &AnswerClaim<'_>, sentence: String, details: Vec<String>) -> Headline {
    let (tone, badge) = claim.badge();
    Headline::new(tone, badge, sentence, details)
}

fn what_to_give(view: &ResultView, recommendation: &Recommendation) -> String {
    let configuration = &recommendation.configuration;
    let heap = recommendation.heap_words();
    let winner = winner(view, recommendation);
    // A label of the experiment stands for its options.
    let is_labelled = winner.is_some() && recommendation.by_level.len() <= 1;
    let options = own_options(recommendation).filter(|_| !is_labelled);
    let with: Vec<String> = heap.into_iter().chain(options).chain(winner).collect();
    let with = if with.is_empty() {
        String::new()
    } else {
        format!(" with {}", with.join(" and "))
    };
    format!("{}{with}", groups::limits_of(configuration))
}

/// The JVM options that the user gave next to the heap, or how many: the size holds with them only.
pub(super) fn own_options(recommendation: &Recommendation) -> Option<String> {
    let heaps = ["-Xmx", "-Xms", "-XX:MaxHeapSize="];
    let is_heap = |text: &str| heaps.iter().any(|heap| text.starts_with(heap));
    let options = recommendation.configuration.jvm_options.iter();
    let own = options.filter(|o| o.provenance == ValueProvenance::User && !is_heap(&o.text));
    let own: Vec<String> = own.map(|o| redact::redact_line(&o.text)).collect();
    let words = own.join(" ");
    match words.len() {
        0 => None,
        1..=MOST_OPTIONS => Some(words),
        _ => {
            let count = format::count_of(own.len(), "JVM option");
            Some(format!("{count} of yours"))
        }
    }
}

/// `195Mi is too small (trial 22): ...`, where a trial shows it.
pub(super) fn next_smaller(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let Some(next) = &recommendation.next_smaller else {
        return unmeasured_below(view, recommendation)
            .or_else(|| smaller_that_passed(view, recommendation));
    };
    let trial = view.trial_words(&next.trial);
    Some(with_full_stop(&format!(
        "{} is too small{trial}: {}",
        next.memory,
        next.breaks.in_short()
    )))
}

/// Where the search passed over a size that it could not measure, smaller ones may be enough.
fn unmeasured_below(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let answer = &recommendation.configuration;
    let groups = groups::group_trials(view).into_iter();
    let unmeasured = groups.filter(|group| {
        let own = group.configuration;
        let is_below = own.memory < answer.memory && own.cpu == answer.cpu && own.jdk == answer.jdk;
        is_below && !group.has_evidence()
    });
    let largest = unmeasured.max_by_key(|group| group.configuration.memory)?;
    let last = largest.trials.last()?;
    Some(format!(
        "Less memory may be enough: {} could not be measured ({}: {}). Size again when the machine is quiet.",
        groups::memory_words(largest.configuration),
        figures::verdict_words(last.verdict),
        last.reason.in_short(),
    ))
}

/// Where no smaller size was seen to fail: the smallest that kept the SLO, so that the answer is not
/// taken for the edge.
fn smaller_that_passed(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let groups = groups::group_trials(view).into_iter();
    let smaller = groups.filter(|group| {
        group.configuration.cpu == recommendation.configuration.cpu
            && group.configuration.memory < recommendation.configuration.memory
            && group
                .trials
                .iter()
                .all(|t| t.purpose != TrialPurpose::Squeeze)
    });
    let kept = smaller.filter(|group| group.keeps_slo());
    let least = kept.min_by_key(|group| group.configuration.memory)?;
    Some(format!(
        "No smaller size failed: {} kept the SLO, too, in {} of {}. The search ended at its floor or its last step; `--min-memory` lowers the floor.",
        groups::memory_words(least.configuration),
        least.passes().0,
        format::count_of(least.passes().1, "start"),
    ))
}

fn winner(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let of =
        |level: &&LevelSize| level.configuration.as_ref() == Some(&recommendation.configuration);
    if recommendation.by_level.len() > 1 {
        return jdks::of_level(recommendation.by_level.iter().find(of)?);
    }
    let names = ConfigurationNames::for_result(view);
    let label = names.label(&recommendation.configuration);
    label.map(str::to_owned)
}

fn misses_alike(view: &ResultView, flat: &FlatMisses) -> Headline {
    let sentence = format!(
        "No size of {} was seen to keep {}{}: {}.",
        view.title,
        slo_words(view),
        runs::under_load(view, view.load_of_all()),
        flat.miss_sentence(),
    );
    let details = [flat.causes_sentence(), flat.lever_hint()].map(|words| with_full_stop(&words));
    Headline::new(Tone::Bad, "Test failed", sentence, details.into())
}

fn deployment_headline(
    view: &ResultView,
    recommendation: &Recommendation,
    deployment: &Deployment,
) -> Headline {
    let chosen = &deployment.chosen;
    let variant = match chosen.variant.as_str() {
        "" => String::new(),
        variant => format!(" with {variant}"),
    };
    let claim = AnswerClaim::new(view, recommendation);
    let what = format!(
        "{} of {}, each with {}{variant}: {}",
        format::count_of(chosen.replicas as usize, "replica"),
        view.title,
        groups::size_words(&recommendation.configuration),
        money::price_words(chosen),
    );
    let mut details = claim.doubts();
    details.push(carried_sentence(deployment));
    details.extend(latency_seen(view, recommendation).map(|seen| format!("At that rate, {seen}.")));
    details.extend(peak::peak_sentence(view, recommendation));
    details.push(proven_how(&claim));
    details.extend(pooled_sentences(&recommendation.proof));
    details.extend(memory_used(view, recommendation, deployment));
    details.extend(claim.describe_first_second());
    let warnings = deployment.offer.warning.iter();
    details.extend(warnings.map(|w| format!("Warning: {w}.")));
    details.extend(throttling::throttling_sentence(view, claim.fresh_starts()));
    details.extend(node::node_sentences(view));
    let sentence = match (claim.is_refuted(), recommendation.is_proven()) {
        (true, _) => format!("Do not run {what}. {}", claim.describe_soak()),
        (false, true) => {
            let (tested, soak) = (claim.describe_test("one"), claim.describe_soak());
            format!("Run {what}. {}. {soak}", capital(&tested))
        }
        (false, false) => format!("Found: {what}. But {}.", claim.describe_doubt()),
    };
    headline_of(&claim, sentence, details)
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

pub(super) fn carried_sentence(deployment: &Deployment) -> String {
    let spare = match deployment.spare {
        0 => String::new(),
        n => format!(", also with {n} of them lost"),
    };
    let headroom = match format::as_percent(deployment.headroom) {
        share if deployment.headroom > 0.0 => format!(" and its {share} of headroom"),
        _ => String::new(),
    };
    format!(
        "Each replica carried {} of the {}{headroom}{spare}; one instance was measured at a time.",
        format::as_rate(deployment.each),
        format::as_rate(deployment.rate),
    )
}

/// The use of the memory: its budget, the search below the size, or the usage of its starts.
fn memory_used(
    view: &ResultView,
    recommendation: &Recommendation,
    deployment: &Deployment,
) -> Option<String> {
    if let Some(budget) = budget::describe_with_coverage(recommendation) {
        return Some(budget);
    }
    if let Some(found) = deployment.found {
        return Some(format!(
            "Memory was searched below the {} of the size found: {} is the smallest that kept the SLO in every confirmation.",
            found.memory, recommendation.confirmed,
        ));
    }
    let group = groups::group_of(view, &recommendation.configuration)?;
    let starts = group.evidence_trials();
    let used = starts.map(|t| t.evidence.cgroup.peak_working_set);
    let used = used.max()??;
    let limit = recommendation.configuration.memory?;
    let share = used.as_bytes() as f64 / limit.as_bytes().max(1) as f64;
    Some(format!(
        "The fullest of its starts used {} of {limit} ({}).",
        format::measured_bytes(used),
        format::as_percent(share),
    ))
}

/// What fills the size; without a budget what lies between the smallest confirmed memory and the answer.
fn budget_or_margin(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let size = recommendation.recommended_memory();
    let confirmed = recommendation.confirmed;
    let trials = obstacle::same_but_memory(&view.trials, &recommendation.configuration);
    let missed =
        trials.filter(|t| t.purpose == TrialPurpose::Prove && t.verdict != TrialVerdict::Pass);
    let refuted = missed.filter(|t| t.verdict.is_evidence());
    let refuted = refuted.filter_map(|t| t.configuration.memory);
    let refuted = refuted.filter(|m| *m < size).max();
    // The search went straight to the largest size: the answer is no smallest size.
    if let Some(refuted) = refuted.filter(|m| size.as_bytes() as f64 > JUMP * m.as_bytes() as f64) {
        return Some(format!(
            "{confirmed} is the smallest memory that kept the SLO in every confirmation, but fresh starts missed up to {refuted}, and what was tested next is {size}: a size between may do, and --min-memory {refuted} looks there."
        ));
    }
    let found = || {
        format!(
            "{confirmed} is the smallest memory that kept the SLO in every confirmation; {} more is for starts that differ and for growth.",
            format::as_percent(recommendation.margin)
        )
    };
    let has_margin = recommendation.margin > 0.0;
    budget::describe_with_coverage(recommendation).or_else(|| has_margin.then(found))
}

/// The load, and the latency that was seen under it at the recommended size.
pub(super) fn measured_what(view: &ResultView, recommendation: &Recommendation) -> String {
    let load = view.load_of(&recommendation.configuration);
    match latency_seen(view, recommendation) {
        Some(seen) => format!("Under {load}, {seen}."),
        None => format!("Under {load}."),
    }
}

fn latency_seen(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let group = groups::group_of(view, &recommendation.configuration)?;
    let of_trial = |t| TrialFigures::for_trial(t, quantile).headline;
    let seen = spread(group.evidence_trials().filter_map(of_trial))?;
    // The sentence above has the bound.
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
    let peak = view.slo.peak.iter().map(print_peak_objective);
    let objectives = of_all.chain(of_one).chain(outage).chain(peak);
    let mut objectives: Vec<String> = objectives.collect();
    let last = objectives.pop().unwrap_or_default();
    if objectives.is_empty() {
        last
    } else {
        format!("{} and {last}", objectives.join(", "))
    }
}

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
    Headline::new(Tone::Muted, "Not measured", sentence + ".", Vec::new())
}

fn attained_sentence(view: &ResultView) -> Option<String> {
    let best = attained::nearest_to_slo(view.trials.iter())?;
    let trial = view.trial_words(&best.trial.id);
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
            "The best attained: {size}{rate}{trial}. What prevents more: {why}"
        )));
    }
    let objective = binding.result.objective_text();
    let how = match binding.result.measured {
        Some(measured) if binding.ratio < SO_NEAR => {
            let measured = binding.result.objective.show_measured(measured);
            format!("it was {measured}")
        }
        Some(_) => {
            let times = format::three_digits(binding.ratio);
            format!("it is {times} times what the SLO allows")
        }
        None => "it lies in requests that failed".to_owned(),
    };
    Some(format!(
        "The best attained: {size}{rate}{trial}. What prevents more is {objective}: {how}."
    ))
}

/// A search that ended before it knew: that nothing was found is no proof that there is nothing.
fn nothing_found(view: &ResultView) -> Headline {
    let sentence = format!(
        "No size was found that keeps {}{}; not everything was looked at.",
        slo_words(view),
        runs::under_load(view, &view.load),
    );
    let details = attained_sentence(view).into_iter().collect();
    Headline::new(Tone::Muted, "Not decided", sentence, details)
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
    let slo = slo_words(view);
    let Some(largest) = largest else {
        let sentence = format!("The search for {slo} did not finish.");
        let details = attained_sentence(view).into_iter().collect();
        return Headline::new(Tone::Bad, "SLO not kept", sentence, details);
    };
    let sentence = format!(
        "No size keeps {slo}{}: {} fails too.",
        runs::under_load(view, view.load_of(&largest.configuration)),
        groups::size_words(&largest.configuration)
    );
    let mut details = vec![with_full_stop(&why_infeasible(largest))];
    // With prices the sizes are those of the offer, each at its own rate.
    if largest.configuration.rate.is_none() && may_need_memory(largest) {
        details.push("Larger sizes were not tried: --max-memory names the largest; without it, the first size is doubled while it fails, up to 4/5 of this machine's memory.".to_owned());
    }
    details.extend(attained_sentence(view));
    Headline::new(Tone::Bad, "SLO not kept", sentence, details)
}
