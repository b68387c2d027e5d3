//! The table of `judge`: each advice, its verdict, its price, and the difference to a reference.
//!
//! Owns which deployment the others are held against: the recommendation of a result, where one is
//! given, else the cheapest advice that passes every start.

use std::sync::Arc;

use loadline_analysis::offer::Offer;
use loadline_analysis::price::{DeploymentCost, InstanceSize, deployment_cost};
use loadline_analysis::record::{Configuration, TrialRecord, TrialVerdict};
use loadline_analysis::search::matrix::Matrix;
use loadline_analysis::sli::Sli;
use loadline_report::format;
use loadline_report::table::Table;

use crate::say::width;

/// The size of a configuration; `None` where it does not limit both CPU and memory.
pub fn limited_size(configuration: &Configuration) -> Option<InstanceSize> {
    let (cpu, memory) = configuration.sure_cpu().zip(configuration.memory)?;
    Some(InstanceSize { cpu, memory })
}

struct AdviceRow<'a> {
    configuration: &'a Configuration,
    trials: Vec<&'a TrialRecord>,
    slis: Vec<Sli>,
    cost: Option<DeploymentCost>,
}

impl AdviceRow<'_> {
    fn passes(&self) -> usize {
        let trials = self.trials.iter();
        trials.filter(|r| r.verdict == TrialVerdict::Pass).count()
    }

    fn keeps_slo(&self) -> bool {
        !self.trials.is_empty() && self.passes() == self.trials.len()
    }
}

pub fn advice_table(
    matrix: &Matrix,
    records: &[Arc<TrialRecord>],
    offer: &Offer,
    recommended: Option<InstanceSize>,
) -> String {
    let firsts = matrix.cells.iter().filter(|cell| cell.repeat == 1);
    let rows: Vec<AdviceRow<'_>> = firsts
        .map(|cell| advice_row(&cell.configuration, records, offer))
        .collect();
    let reference = match recommended {
        Some(reference) => Some(instance_cost(offer, reference, 0.0).per_month),
        None => cheapest(&rows),
    };
    let mut table = Table::new()
        .left("advice")
        .right("CPU | memory")
        .left("passes")
        .right("p99 | start | $/month | difference | $/M requests")
        .wrapping("why it fails");
    for row in &rows {
        let c = row.configuration;
        let money = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
        };
        let failure = row.trials.iter().find(|r| r.verdict != TrialVerdict::Pass);
        let per_month = row.cost.map(|p| p.per_month);
        table.add_texts([
            c.label.clone(),
            c.cpu.map_or_else(|| "-".to_owned(), |c| c.to_string()),
            c.memory.map_or_else(|| "-".to_owned(), |m| m.to_string()),
            format!("{} of {}", row.passes(), row.trials.len()),
            format::time_or(row.slis.iter().filter_map(|s| s.p99).max()),
            format::time_or(row.slis.iter().filter_map(|s| s.start).max()),
            money(per_month, 2),
            difference(per_month, reference),
            money(row.cost.and_then(|p| p.per_million_requests), 4),
            failure.map_or_else(String::new, |r| r.reason.to_string()),
        ]);
    }
    let below = text_below(offer, recommended, reference);
    format!("{}\n{below}", table.to_terminal(width()))
}

fn advice_row<'a>(
    configuration: &'a Configuration,
    records: &'a [Arc<TrialRecord>],
    offer: &Offer,
) -> AdviceRow<'a> {
    let is_own = |r: &&TrialRecord| r.configuration == *configuration && r.verdict.is_evidence();
    let trials: Vec<&TrialRecord> = records.iter().map(|r| &**r).filter(is_own).collect();
    let slis = trials.iter().filter_map(|r| Sli::from_record(r).ok());
    let slis: Vec<Sli> = slis.collect();
    let rate = slis.iter().find_map(|s| s.achieved_rate).unwrap_or(0.0);
    AdviceRow {
        cost: limited_size(configuration).map(|size| instance_cost(offer, size, rate)),
        configuration,
        trials,
        slis,
    }
}

pub fn instance_cost(offer: &Offer, size: InstanceSize, rate: f64) -> DeploymentCost {
    deployment_cost(&offer.price, offer.billed_size(size), 1, rate)
}

fn cheapest(rows: &[AdviceRow<'_>]) -> Option<f64> {
    let good = rows.iter().filter(|r| r.keeps_slo());
    let prices = good.filter_map(|r| r.cost.map(|c| c.per_month));
    prices.reduce(f64::min)
}

/// `+$3.24 (+45 %)`; a dash without a price or a reference.
fn difference(per_month: Option<f64>, reference: Option<f64>) -> String {
    match (per_month, reference) {
        (Some(own), Some(reference)) if (own - reference).abs() < 0.005 => "same".to_owned(),
        (Some(own), Some(reference)) => {
            let sign = if own > reference { '+' } else { '-' };
            let share = (own / reference - 1.0).abs() * 100.0;
            format!("{sign}${:.2} ({sign}{share:.0} %)", (own - reference).abs())
        }
        _ => "-".to_owned(),
    }
}

fn text_below(offer: &Offer, recommended: Option<InstanceSize>, reference: Option<f64>) -> String {
    let against = match (recommended, reference) {
        (Some(size), Some(price)) => {
            format!("The difference is to the recommended {size}, ${price:.2} a month.")
        }
        (None, Some(_)) => "The difference is to the cheapest that passes.".to_owned(),
        (_, None) => "Nothing passes, so there is nothing to compare prices with.".to_owned(),
    };
    format!(
        "One instance at {} {} prices of {}, in the smallest size billed that holds it; p99 and start are the worst seen. {against}",
        offer.name, offer.price.region, offer.price.date
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_money_and_a_share() {
        assert_eq!(difference(Some(14.5), Some(10.0)), "+$4.50 (+45 %)");
        assert_eq!(difference(Some(7.5), Some(10.0)), "-$2.50 (-25 %)");
        assert_eq!(difference(Some(10.001), Some(10.0)), "same");
        assert_eq!(difference(None, Some(10.0)), "-");
        assert_eq!(difference(Some(10.0), None), "-");
    }

    #[test]
    fn what_it_is_held_against_is_said() {
        let offer = Offer::built_in("fargate", None).expect("built in");
        let reference = InstanceSize {
            cpu: "500m".parse().expect("CPUs"),
            memory: "1Gi".parse().expect("memory"),
        };
        let price = instance_cost(&offer, reference, 0.0).per_month;
        let words = text_below(&offer, Some(reference), Some(price));
        assert!(
            words.contains("to the recommended") && words.contains("$18.0"),
            "{words}"
        );
        assert!(text_below(&offer, None, None).contains("Nothing passes"));
    }
}
