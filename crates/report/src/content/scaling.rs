//! "How much does each size carry?": the highest rate of one replica that kept the SLO, by size.
//!
//! Owns the figures behind the table and its chart. They come from a search for the cheapest
//! deployment, or from a matrix over rates. Results with a single CPU limit have no such section.

use loadline_analysis::record::Configuration;
use loadline_sizing::{Bytes, Cpus};

use super::groups::{self, ConfigurationGroup, ConfigurationNames};
use super::section::Section;
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

#[derive(Debug, Clone, PartialEq)]
pub struct CarriedSize {
    pub variant: String,
    pub cpu: Cpus,
    pub memory: Option<Bytes>,
    /// Highest rate that kept the SLO, requests a second; `None` when none did.
    pub carried: Option<f64>,
    /// Lowest rate above it that did not; `None` when none was tried.
    pub too_high: Option<f64>,
}

impl CarriedSize {
    /// `500m CPU, 1Gi`, with the variant if there is one.
    pub fn size_name(&self) -> String {
        let cpu = format!("{} CPU", self.cpu);
        let memory = self.memory.map(|m| m.to_string()).unwrap_or_default();
        let mut parts = vec![cpu, memory, self.variant.clone()];
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }
}

pub fn sizes(view: &ResultView) -> Vec<CarriedSize> {
    let recommended = view.recommendation.as_ref();
    let mut sizes: Vec<CarriedSize> = match recommended.and_then(|r| r.deployment.as_ref()) {
        Some(deployment) => (deployment.cells.iter())
            .filter(|cell| !cell.could_not_measure)
            .map(|cell| CarriedSize {
                variant: cell.variant.clone(),
                cpu: cell.limits.cpu,
                memory: Some(cell.limits.memory),
                carried: cell.carried.filter(|rate| is_rate(*rate)),
                too_high: cell.too_high.filter(|rate| is_rate(*rate)),
            })
            .collect(),
        None => of_matrix(view),
    };
    sizes.sort_by(|a, b| (&a.variant, a.cpu, a.memory).cmp(&(&b.variant, b.cpu, b.memory)));
    let differ = sizes.iter().any(|s| s.cpu != sizes[0].cpu);
    if !differ || sizes.iter().all(|s| s.carried.is_none()) {
        sizes.clear();
    }
    sizes
}

fn is_rate(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

/// Configurations that differ in their rate only are one size.
fn of_matrix(view: &ResultView) -> Vec<CarriedSize> {
    let mut sizes: Vec<(Configuration, Vec<ConfigurationGroup<'_>>)> = Vec::new();
    for group in groups::group_trials(view) {
        let plain = Configuration {
            label: String::new(),
            rate: None,
            ..group.configuration.clone()
        };
        let has_rate = group.configuration.rate.is_some() && plain.cpu.is_some();
        match sizes.iter_mut().find(|(known, _)| *known == plain) {
            _ if !has_rate || group.passes().1 == 0 => {}
            Some((_, groups)) => groups.push(group),
            None => sizes.push((plain, vec![group])),
        }
    }
    let names = ConfigurationNames::for_result(view);
    let size = |(plain, groups): (Configuration, Vec<ConfigurationGroup<'_>>)| {
        let rate = |g: &ConfigurationGroup<'_>| g.configuration.rate.filter(|rate| is_rate(*rate));
        let broke = |g: &&ConfigurationGroup<'_>| !g.keeps_slo();
        let lowest = groups.iter().filter(broke).filter_map(rate);
        let lowest = lowest.reduce(f64::min);
        // A kept rate above a missed one is luck.
        let kept = groups.iter().filter(|g| g.keeps_slo()).filter_map(rate);
        let kept = kept.filter(|rate| lowest.is_none_or(|lowest| *rate < lowest));
        Some(CarriedSize {
            variant: names.besides_size(&plain),
            cpu: plain.cpu?,
            memory: plain.memory,
            carried: kept.reduce(f64::max),
            too_high: lowest,
        })
    };
    sizes.into_iter().filter_map(size).collect()
}

pub fn scaling_section(view: &ResultView) -> Option<Section> {
    let sizes = sizes(view);
    if sizes.is_empty() {
        return None;
    }
    let has_variants = sizes.iter().any(|s| !s.variant.is_empty());
    let mut table = Table::new();
    if has_variants {
        table = table.left("Variant");
    }
    let mut table = table.right("CPU | Memory | Carried | Too high | Carried per CPU");
    let rate = |rate: Option<f64>| format::or_none(rate.map(format::as_rate));
    for size in &sizes {
        let mut row: Vec<TableCell> = Vec::new();
        if has_variants {
            row.push(size.variant.clone().into());
        }
        let memory = size.memory.map(|m| m.to_string());
        row.extend([
            TableCell::from(size.cpu.to_string()),
            format::or_none(memory).into(),
            rate(size.carried).into(),
            rate(size.too_high).into(),
            rate(size.carried.map(|c| c / size.cpu.as_f64())).into(),
        ]);
        table.add_row(row);
    }
    let words = "One replica alone. Carried is the highest rate that kept the SLO, too high is the lowest rate above it that did not: what the size can carry lies between. If carried per CPU falls with the size, more and smaller replicas carry more for the same CPUs; if it falls with ever smaller sizes, each replica has fixed costs: its heap, its collector, its compiler.";
    let section = Section::new("scaling", "How much does each size carry?").in_depth();
    Some(section.with_paragraph(words).with_table(table))
}
