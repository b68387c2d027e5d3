//! The price, and why not less: the deployment, its next cheaper neighbours, the other choices.
//!
//! Also owns the points of the price curve: the result at each price.

use std::time::Duration;

use loadline_analysis::deployment::{Deployment, FrontPoint, PricedSize, WhyNot};
use loadline_analysis::interval::median;
use loadline_analysis::record::{TrialPurpose, TrialRecord, TrialVerdict};
use loadline_analysis::sli::Sli;

use super::section::Section;
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredDeployment {
    pub name: String,
    pub per_month: f64,
    /// p99; `None` when it lies in requests that failed, or none was answered.
    pub p99: Option<Duration>,
    pub keeps_slo: bool,
    pub is_chosen: bool,
    pub breaks: String,
}

/// Measurements at the deployment's rate: the Pareto-optimal choices, and the next cheaper ones
/// that failed. Cheapest first; empty without prices.
pub fn measured_deployments(view: &ResultView) -> Vec<MeasuredDeployment> {
    let recommended = view.recommendation.as_ref();
    let Some(deployment) = recommended.and_then(|r| r.deployment.as_ref()) else {
        return Vec::new();
    };
    let kept = |point: &FrontPoint| MeasuredDeployment {
        name: priced_name(&point.priced),
        per_month: point.priced.cost.per_month,
        p99: point.p99,
        keeps_slo: true,
        is_chosen: point.priced == deployment.chosen,
        breaks: String::new(),
    };
    let broke = |why: &WhyNot| {
        // Without a trial there are no figures.
        let trial = view.trial_by_id(why.trial.as_ref()?)?;
        Some(MeasuredDeployment {
            name: priced_name(&why.neighbour),
            per_month: why.neighbour.cost.per_month,
            p99: Sli::from_record(trial).ok().and_then(|sli| sli.p99),
            keeps_slo: false,
            is_chosen: false,
            breaks: why.breaks.clone(),
        })
    };
    let mut all: Vec<MeasuredDeployment> = deployment.front.iter().map(kept).collect();
    // With less memory than the size that was found it is no point of the search.
    if deployment.found.is_some() {
        all.push(proven_deployment(view, deployment));
    }
    all.extend(deployment.why_not.iter().filter_map(broke));
    all.retain(|one| one.per_month.is_finite());
    all.sort_by(|a, b| a.per_month.total_cmp(&b.per_month));
    all
}

fn proven_deployment(view: &ResultView, deployment: &Deployment) -> MeasuredDeployment {
    let chosen = view.recommendation.as_ref().map(|r| &r.configuration);
    let proofs = view.trials.iter().filter(|t| {
        t.purpose == TrialPurpose::Prove
            && t.verdict == TrialVerdict::Pass
            && Some(&t.configuration) == chosen
    });
    let seconds = |t: &TrialRecord| Some(Sli::from_record(t).ok()?.p99?.as_secs_f64());
    let p99: Vec<f64> = proofs.filter_map(seconds).collect();
    MeasuredDeployment {
        name: priced_name(&deployment.chosen),
        per_month: deployment.chosen.cost.per_month,
        p99: median(&p99).map(Duration::from_secs_f64),
        keeps_slo: true,
        is_chosen: true,
        breaks: String::new(),
    }
}

fn priced_name(priced: &PricedSize) -> String {
    let variant = match priced.variant.as_str() {
        "" => String::new(),
        variant => format!(" {variant}"),
    };
    format!("{} x {}{variant}", priced.replicas, priced.limits)
}

pub fn money_section(view: &ResultView) -> Option<Section> {
    let deployment = view.recommendation.as_ref()?.deployment.as_ref()?;
    let why_not = deployment.why_not.iter().map(|w| why_not(view, w));
    let next = if deployment.why_not.is_empty() {
        "Nothing cheaper is on offer: it is the smallest size with the fewest replicas."
    } else {
        "The next cheaper deployment in each direction, and what it breaks:"
    };
    let mut section = Section::new("money", "What it costs, and why not less")
        .with_paragraph(source(deployment))
        .with_table(size_price_table(deployment))
        .with_paragraph(next)
        .with_list(why_not.collect());
    if deployment.front.len() > 1 {
        let words = "Nothing measured is better than these in price, p99 and start time at once:";
        section = section.with_paragraph(words).with_table(front(deployment));
    }
    if !deployment.compared.is_empty() {
        let table = compared_options_table(deployment);
        section = section.with_paragraph(COMPARED).with_table(table);
    }
    if !deployment.left_out.is_empty() {
        section = section.with_paragraph("Not looked at:");
        section = section.with_list(deployment.left_out.clone());
    }
    Some(section)
}

pub fn price_words(priced: &PricedSize) -> String {
    let million = priced.cost.per_million_requests;
    let million = million.map_or_else(String::new, |m| format!(", ${m:.4} per million requests"));
    format!("${:.2} a month{million}", priced.cost.per_month)
}

fn source(deployment: &Deployment) -> String {
    let offer = &deployment.offer;
    let warning = offer.warning.as_ref();
    let warning = warning.map_or_else(String::new, |w| format!(" Warning: {w}."));
    format!(
        "Prices: {} {} {}, of {} ({}; {}).{warning}",
        offer.name, offer.region, offer.arch, offer.date, offer.source, offer.licence
    )
}

fn size_price_table(deployment: &Deployment) -> Table {
    let has_variants = deployment.cells.iter().any(|c| !c.variant.is_empty());
    let mut table = Table::new();
    if has_variants {
        table = table.left("variant");
    }
    let mut table =
        table.right("CPU | memory | carried | too high | replicas | $/month | $/M requests");
    let or_dash = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), format::as_rate);
    for cell in &deployment.cells {
        let priced = cell.priced.as_ref();
        let text = |of: &dyn Fn(&PricedSize) -> String| priced.map_or_else(|| "-".to_owned(), of);
        let mut row = Vec::new();
        if has_variants {
            row.push(cell.variant.clone());
        }
        row.push(cell.limits.cpu.to_string());
        row.push(cell.limits.memory.to_string());
        row.push(if cell.could_not_measure {
            "not measurable".to_owned()
        } else {
            or_dash(cell.carried)
        });
        row.push(or_dash(cell.too_high));
        row.push(text(&|p| p.replicas.to_string()));
        row.push(text(&|p| format!("{:.2}", p.cost.per_month)));
        row.push(text(&|p| {
            let million = p.cost.per_million_requests;
            million.map_or_else(|| "-".to_owned(), |m| format!("{m:.4}"))
        }));
        table.add_texts(row);
    }
    table
}

pub(super) fn why_not(view: &ResultView, why: &WhyNot) -> String {
    let trial = why.trial.as_ref().map(|id| view.trial_words(id));
    why.neighbour_sentence() + &trial.unwrap_or_default()
}

const COMPARED: &str = "Options compared in pairs of trials that ran in turn at this size, by CPU time per good response against what each would replace; below 1 is better. One is adopted when its whole interval (those of one stage hold together with 95 %) lies below 0.98 and it misses the SLO no more often.";

fn compared_options_table(deployment: &Deployment) -> Table {
    let mut table = Table::new()
        .left("compared | candidate")
        .wrapping("options")
        .right("pairs | kept the SLO | CPU per request")
        .left("adopted");
    for one in &deployment.compared {
        let ratio = one.ratio.zip(one.interval);
        let ratio = ratio.map_or_else(
            || "-".to_owned(),
            |(ratio, (low, high))| format!("{ratio:.2} ({low:.2} to {high:.2})"),
        );
        table.add_texts([
            one.stage.stage_name().to_owned(),
            one.label.clone(),
            one.options.join(" "),
            one.pairs.to_string(),
            format!("{} of {}", one.passes, one.trials),
            ratio,
            if one.is_adopted { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn front(deployment: &Deployment) -> Table {
    let mut table = Table::new()
        .left("deployment")
        .right("$/month | p99 | start");
    for point in &deployment.front {
        table.add_texts([
            priced_name(&point.priced),
            format!("{:.2}", point.priced.cost.per_month),
            format::time_or(point.p99),
            format::time_or(point.start),
        ]);
    }
    table
}
