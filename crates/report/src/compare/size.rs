//! The change of the recommendation: of its price if both have one, else of CPU and memory.
//!
//! Owns when such a change counts. Prices of different offers are never compared.

use std::fmt::Display;

use loadline_analysis::deployment::Deployment;
use loadline_analysis::price;
use loadline_analysis::recommend::{Recommendation, SAME_SIZE};
use loadline_analysis::record::Configuration;
use loadline_sizing::{Bytes, Cpus};

use crate::content::groups;
use crate::format;

#[derive(Debug, Clone, PartialEq)]
pub struct RecommendedSize {
    /// `1 CPU and 212Mi`, or `2 x 1 vCPU, 2Gi, $84.10 a month`.
    pub name: String,
    pub cpu: Option<Cpus>,
    pub memory: Bytes,
    pub replicas: Option<u32>,
    /// USD a month for all replicas; `None` without prices.
    pub usd_per_month: Option<f64>,
}

impl RecommendedSize {
    pub fn from_recommendation(recommendation: &Recommendation) -> Self {
        let chosen = recommendation.deployment.as_ref().map(|d| &d.chosen);
        Self {
            name: chosen.map_or_else(
                || recommended_size(recommendation),
                |chosen| chosen.size_and_price(),
            ),
            cpu: recommendation.configuration.cpu,
            memory: recommendation.recommended_memory(),
            replicas: chosen.map(|c| c.replicas),
            usd_per_month: chosen.map(|c| c.cost.per_month),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeChange {
    pub sentence: String,
    pub is_worse: bool,
}

pub fn size_change(before: &Recommendation, after: &Recommendation) -> SizeChange {
    match (&before.deployment, &after.deployment) {
        (Some(one), Some(two)) => price_change(one, two),
        (None, None) if has_same_shape(before, after) => memory_change(before, after),
        (None, None) => shape_change(before, after),
        _ => no_verdict(format!(
            "One has a price and the other has none: {} and {}.",
            RecommendedSize::from_recommendation(after).name,
            RecommendedSize::from_recommendation(before).name
        )),
    }
}

pub fn offer(deployment: &Deployment) -> String {
    let offer = &deployment.offer;
    format!(
        "{} in {} ({}) of {}",
        offer.name, offer.region, offer.arch, offer.date
    )
}

fn no_verdict(sentence: String) -> SizeChange {
    SizeChange {
        sentence,
        is_worse: false,
    }
}

/// The change of a value, in a sentence that takes `more` or `less`, or in the one for none that counts.
fn change_of(
    [before, after]: [f64; 2],
    sentence: impl Fn(&str) -> String,
    same: String,
) -> SizeChange {
    let is_worse = after > before * (1.0 + SAME_SIZE);
    let sentence = if is_worse {
        sentence("more")
    } else if after * (1.0 + SAME_SIZE) < before {
        sentence("less")
    } else {
        same
    };
    SizeChange { sentence, is_worse }
}

fn price_change(one: &Deployment, two: &Deployment) -> SizeChange {
    let [before, after] = [one, two].map(|d| d.chosen.size_and_price());
    if offer(one) != offer(two) {
        return no_verdict(format!(
            "The prices are those of different offers: {after} and {before}."
        ));
    }
    let costs = [one, two].map(|d| d.chosen.cost.per_month);
    let percent = change_percent(costs);
    let sentence =
        |more: &str| format!("It costs {more}: {after} instead of {before}, {percent} {more}.");
    change_of(costs, sentence, no_change(&after, &before))
}

fn change_percent([before, after]: [f64; 2]) -> String {
    format::as_percent((after / before - 1.0).abs())
}

fn no_change(after: &dyn Display, before: &dyn Display) -> String {
    format!(
        "No change that counts: {after} and {before}; two searches of one service differ by up to {}.",
        format::as_percent(SAME_SIZE)
    )
}

fn has_same_shape(a: &Recommendation, b: &Recommendation) -> bool {
    let shape = |r: &Recommendation| {
        let of = &r.configuration;
        (of.cpu, of.cpu_request, of.instances)
    };
    shape(a) == shape(b)
}

fn memory_change(before: &Recommendation, after: &Recommendation) -> SizeChange {
    let sizes = [before, after].map(|r| (r.recommended_memory().as_bytes() as f64).max(1.0));
    let [before, after] = [before, after].map(|r| groups::memory_and_heap(&r.configuration));
    let percent = change_percent(sizes);
    let sentence = |more: &str| {
        format!("It needs {more}: {after} instead of {before}, {percent} {more} memory.")
    };
    change_of(sizes, sentence, no_change(&after, &before))
}

/// Another CPU limit or number of instances: CPU and memory are weighed as in the search.
fn shape_change(before: &Recommendation, after: &Recommendation) -> SizeChange {
    let has_cpu = [before, after].map(|r| r.configuration.sure_cpu().is_some());
    let weigh = |r: &Recommendation| {
        let cpus = match r.configuration.sure_cpu() {
            Some(cpu) => cpu.as_f64(),
            None if has_cpu.contains(&true) => f64::INFINITY,
            None => 0.0,
        };
        f64::from(r.configuration.instances) * price::size_weight(cpus, r.recommended_memory())
    };
    let weights = [before, after].map(weigh);
    let [before, after] = [before, after].map(recommended_size);
    let same = format!(
        "It needs another size, about as much in all: {after} instead of {before}; 1 CPU counts as {} GiB.",
        price::GIB_PER_CPU
    );
    let sentence = |more: &str| format!("It needs {more}: {after} instead of {before}.");
    change_of(weights, sentence, same)
}

fn recommended_size(recommendation: &Recommendation) -> String {
    groups::size_words(&Configuration {
        memory: Some(recommendation.recommended_memory()),
        ..recommendation.configuration.clone()
    })
}

/// Whether a configuration is the recommended one, or has at least its resources and at most its
/// load.
pub fn is_at_least(configuration: &Configuration, recommendation: &Recommendation) -> bool {
    let least = &recommendation.configuration;
    let has_memory = configuration
        .memory
        .is_none_or(|memory| memory >= recommendation.recommended_memory());
    let is_enough = |amounts: (Option<Cpus>, Option<Cpus>)| match amounts {
        (None, _) => true,
        (Some(cpu), Some(least)) => cpu >= least,
        (Some(_), None) => false,
    };
    let has_cpu = is_enough((configuration.cpu, least.cpu))
        && is_enough((configuration.sure_cpu(), least.sure_cpu()));
    let has_no_more_to_do = match (configuration.rate, least.rate) {
        (None, None) => true,
        (Some(rate), Some(most)) => rate <= most,
        _ => false,
    };
    let is_same_else = configuration.instances == least.instances
        && configuration.jdk == least.jdk
        && groups::option_words(configuration) == groups::option_words(least);
    has_memory && has_cpu && has_no_more_to_do && is_same_else
}
