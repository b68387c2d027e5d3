//! A deployment in money: what to buy, what it costs, what the next cheaper one breaks.
//!
//! Owns the stored answer of `loadline size --prices` and its derivation from a search and its
//! trials; never runs anything, never prints. Everything that is claimed names the trial behind it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::median;
use crate::offer::Offer;
use crate::price::{self, DeploymentCost, InstanceSize};
use crate::record::{TrialRecord, TrialVerdict};
use crate::search::cheapest::{CellQuestion, CheaperDimension, CheapestSearch};
use crate::search::lattice::CellChoice;
use crate::search::min_memory::MemoryFound;
use crate::sli::Sli;
use crate::tuning::ComparedCandidate;
use crate::wire;

/// The cheapest deployment that was found, and its grounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deployment {
    /// Where the prices come from.
    pub offer: PriceSource,
    /// Requests a second of all replicas together.
    pub rate: f64,
    /// Extra on top of the rate, as a share.
    pub headroom: f64,
    /// Replicas that may be lost while the rest still carries the rate with its headroom.
    pub spare: u32,
    /// The answer.
    pub chosen: PricedSize,
    /// The size on offer that the search found, where its memory was then made smaller; `chosen` is
    /// what came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<InstanceSize>,
    /// Requests a second that each replica was seen to carry.
    pub each: f64,
    /// Enough fresh starts kept the SLO.
    pub is_proven: bool,
    /// Every cell that was asked, cheapest first.
    pub cells: Vec<CellResult>,
    /// The next cheaper neighbour in each dimension and what it breaks.
    pub why_not: Vec<WhyNot>,
    /// Deployments of which none is better in price, p99 and start time at once.
    pub front: Vec<FrontPoint>,
    /// Options that were compared in pairs at this size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<ComparedCandidate>,
    /// What the search did not look at, and why.
    pub left_out: Vec<String>,
}

/// Where a price comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriceSource {
    /// The offer's name.
    pub name: String,
    /// Region.
    pub region: String,
    /// Architecture the price is for.
    pub arch: String,
    /// Where the figure comes from.
    pub source: String,
    /// Terms of the figure.
    pub licence: String,
    /// Date of the figure.
    pub date: String,
    /// Why the price is doubtful; `None` when it is not.
    pub warning: Option<String>,
}

/// A size, its replicas and what they cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PricedSize {
    /// Label of the variant; empty if there is only one.
    pub variant: String,
    /// Limits of one container.
    pub limits: InstanceSize,
    /// The billed size.
    pub billed: InstanceSize,
    /// Replicas.
    pub replicas: u32,
    /// What all replicas cost.
    pub cost: DeploymentCost,
}

/// The trial results of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellResult {
    /// Label of the variant; empty if there is only one.
    pub variant: String,
    /// Limits of one container.
    pub limits: InstanceSize,
    /// Highest rate of one instance that was carried; `None` when none was.
    pub carried: Option<f64>,
    /// Lowest rate that was too high; `None` when none was.
    pub too_high: Option<f64>,
    /// The fewest replicas known to carry the rate, priced.
    pub priced: Option<PricedSize>,
    /// It could not be measured.
    pub could_not_measure: bool,
}

/// A cheaper neighbour that does not do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyNot {
    /// In which dimension it is cheaper.
    pub dimension: CheaperDimension,
    /// The neighbour.
    pub neighbour: PricedSize,
    /// The trial that shows it; `None` when none could be run.
    pub trial: Option<String>,
    /// What it breaks, with the numbers, or why it was not run.
    pub breaks: String,
}

/// A deployment that kept the SLO, with what one may want besides a low price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrontPoint {
    /// The deployment.
    pub priced: PricedSize,
    /// Median p99 over its passing trials.
    #[serde(rename = "p99_ns", with = "wire::nanos_opt", default)]
    pub p99: Option<Duration>,
    /// Median start time over its passing trials.
    #[serde(rename = "start_ns", with = "wire::nanos_opt", default)]
    pub start: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct AskedTrial {
    pub question: CellQuestion,
    pub record: Arc<TrialRecord>,
}

#[derive(Debug, Clone, Copy)]
pub struct DeploymentGrounds<'a> {
    pub offer: &'a Offer,
    pub search: &'a CheapestSearch,
    pub asked: &'a [AskedTrial],
    pub variants: &'a [String],
    pub left_out: &'a [String],
    /// `YYYY-MM-DD`, to say how old the price is.
    pub today: &'a str,
}

impl DeploymentGrounds<'_> {
    pub fn to_deployment(&self, choice: CellChoice, is_proven: bool) -> Deployment {
        let parameters = self.search.lattice().parameters();
        Deployment {
            offer: self.source(),
            rate: parameters.rate,
            headroom: parameters.headroom,
            spare: parameters.spare,
            chosen: self.price_cell(choice.cell, choice.replicas),
            each: parameters.rate_of_each(choice.replicas),
            found: None,
            is_proven,
            cells: self.cell_results(),
            why_not: self.why_not(choice),
            front: self.pareto_front(),
            compared: Vec::new(),
            left_out: self.left_out(),
        }
    }

    pub fn trials_of(&self, cell: usize, replicas: u32) -> impl Iterator<Item = &TrialRecord> {
        let is_of =
            move |a: &&AskedTrial| a.question.cell == cell && a.question.replicas == replicas;
        self.asked.iter().filter(is_of).map(|a| &*a.record)
    }

    fn source(&self) -> PriceSource {
        let price = &self.offer.price;
        PriceSource {
            name: self.offer.name.clone(),
            region: price.region.clone(),
            arch: price.arch.clone(),
            source: price.source.clone(),
            licence: price.licence.clone(),
            date: price.date.clone(),
            warning: price.staleness(self.today),
        }
    }

    fn price_cell(&self, cell: usize, replicas: u32) -> PricedSize {
        let cell = self.search.lattice().cells()[cell];
        let billed = self.offer.billed_size(cell.size);
        let rate = self.search.lattice().parameters().rate;
        PricedSize {
            variant: self.variant_label(cell.variant),
            limits: cell.size,
            billed,
            replicas,
            cost: price::deployment_cost(&self.offer.price, billed, replicas, rate),
        }
    }

    fn variant_label(&self, index: u32) -> String {
        let named = self.variants.get(index as usize);
        let named = named.filter(|_| self.variants.len() > 1);
        named.cloned().unwrap_or_default()
    }

    fn cell_results(&self) -> Vec<CellResult> {
        let lattice = self.search.lattice();
        let result = |cell: usize| {
            let known = lattice.known_rates(cell);
            let choice = lattice.choice(cell);
            known.is_touched.then(|| CellResult {
                variant: self.variant_label(lattice.cells()[cell].variant),
                limits: lattice.cells()[cell].size,
                carried: (known.carried > 0.0).then_some(known.carried),
                too_high: known.too_high.is_finite().then_some(known.too_high),
                priced: choice.map(|choice| self.price_cell(cell, choice.replicas)),
                could_not_measure: choice.is_none() && lattice.unmeasured(cell).is_some(),
            })
        };
        let all = 0..lattice.cells().len();
        let mut cells: Vec<CellResult> = all.filter_map(result).collect();
        let per_hour = |c: &CellResult| c.priced.as_ref().map_or(f64::MAX, |p| p.cost.per_hour);
        cells.sort_by(|a, b| per_hour(a).total_cmp(&per_hour(b)));
        cells
    }

    fn why_not(&self, choice: CellChoice) -> Vec<WhyNot> {
        let neighbours = self.search.neighbours(choice).into_iter();
        let line = |n: crate::search::cheapest::CheaperNeighbour| {
            let is_evidence = |t: &&TrialRecord| t.verdict.is_evidence();
            let trials: Vec<_> = self.trials_of(n.cell, n.replicas).collect();
            let judged = trials.iter().copied().filter(is_evidence);
            let failed = judged.clone().rfind(|t| t.verdict != TrialVerdict::Pass);
            let breaks = match (failed, trials.last()) {
                (Some(trial), _) => trial.reason.to_string(),
                (None, Some(trial)) => format!("could not be measured: {}", trial.reason),
                (None, None) => "not run: the budget was spent".to_owned(),
            };
            WhyNot {
                dimension: n.dimension,
                neighbour: self.price_cell(n.cell, n.replicas),
                trial: failed.map(|t| t.id.clone()),
                breaks,
            }
        };
        neighbours.map(line).collect()
    }

    fn pareto_front(&self) -> Vec<FrontPoint> {
        let passed = self.asked.iter();
        let passed = passed.filter(|a| a.record.verdict == TrialVerdict::Pass);
        let keys = passed.map(|a| (a.question.cell, a.question.replicas));
        let keys: BTreeSet<(usize, u32)> = keys.collect();
        // A rate that further trials or a proof later refuted had passed by luck.
        let lattice = self.search.lattice();
        let rate = |replicas| lattice.parameters().rate_of_each(replicas);
        let holds =
            |(cell, replicas): &(usize, u32)| rate(*replicas) < lattice.known_rates(*cell).too_high;
        let point = |(cell, replicas)| self.front_point(cell, replicas);
        let points: Vec<FrontPoint> = keys.into_iter().filter(holds).map(point).collect();
        let is_best = |p: &&FrontPoint| !points.iter().any(|other| other.dominates(p));
        let mut front: Vec<FrontPoint> = points.iter().filter(is_best).cloned().collect();
        front.sort_by(|a, b| a.priced.cost.per_hour.total_cmp(&b.priced.cost.per_hour));
        front
    }

    fn front_point(&self, cell: usize, replicas: u32) -> FrontPoint {
        let trials = self.trials_of(cell, replicas);
        let passed = trials.filter(|t| t.verdict == TrialVerdict::Pass);
        let slis: Vec<Sli> = passed.filter_map(|t| Sli::from_record(t).ok()).collect();
        let middle = |of: fn(&Sli) -> Option<Duration>| {
            let values = slis.iter().filter_map(of).map(|d| d.as_secs_f64());
            median(&values.collect::<Vec<_>>()).map(Duration::from_secs_f64)
        };
        FrontPoint {
            priced: self.price_cell(cell, replicas),
            p99: middle(|s| s.p99),
            start: middle(|s| s.start),
        }
    }

    /// Questions left open: known before, not measurable, or cut off by the budget.
    pub fn left_out(&self) -> Vec<String> {
        let mut lines = self.left_out.to_vec();
        let lattice = self.search.lattice();
        for cell in 0..lattice.cells().len() {
            if let Some(rate) = lattice.unmeasured(cell) {
                let size = lattice.cells()[cell].size;
                lines.push(format!(
                    "{size} could not be measured at {rate:.1}/s of one instance"
                ));
            }
        }
        let mut open = lattice.open_cells();
        open.sort_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((cell, least)) = open.first() {
            let (cells, size) = (open.len(), lattice.cells()[*cell].size);
            lines.push(format!(
                "the budget ended with {cells} cells open; the cheapest of them, {size}, may cost as little as ${least:.4} an hour"
            ));
        }
        lines
    }
}

impl Deployment {
    pub fn with_refined_memory(self, offer: &Offer, answer: &MemoryFound) -> Self {
        let found = self.chosen.limits;
        let limits = InstanceSize {
            memory: answer.size,
            ..found
        };
        let billed = offer.billed_size(limits);
        let mut refined = self;
        let chosen = &mut refined.chosen;
        chosen.cost = price::deployment_cost(&offer.price, billed, chosen.replicas, refined.rate);
        (chosen.limits, chosen.billed) = (limits, billed);
        refined.found = Some(found);
        refined
    }
}

impl FrontPoint {
    fn dominates(&self, other: &Self) -> bool {
        let figures = |point: &Self| {
            let [p99, start] = [point.p99, point.start].map(|time| time.unwrap_or(Duration::MAX));
            (point.priced.cost.per_hour, p99, start)
        };
        let (own, its) = (figures(self), figures(other));
        own.0 <= its.0 && own.1 <= its.1 && own.2 <= its.2 && own != its
    }
}

impl WhyNot {
    /// `one replica less (2 x 1 vCPU, 2Gi, $84.10 a month): p99 was 83 ms, the SLO allows 50 ms`.
    pub fn neighbour_sentence(&self) -> String {
        let what = match self.dimension {
            CheaperDimension::Replicas => "one replica less",
            CheaperDimension::Memory => "less memory",
            CheaperDimension::Cpu => "less CPU",
        };
        let neighbour = self.neighbour.size_and_price();
        format!("{what} ({neighbour}): {}", self.breaks)
    }
}

impl PricedSize {
    /// `2 x 1 vCPU, 2Gi, $84.10 a month`.
    pub fn size_and_price(&self) -> String {
        let space = if self.variant.is_empty() { "" } else { " " };
        let (replicas, limits, variant) = (self.replicas, self.limits, &self.variant);
        let price = self.cost.per_month;
        format!("{replicas} x {limits}{space}{variant}, ${price:.2} a month")
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::{Bytes, Cpus};

    use super::*;
    use crate::fixture;
    use crate::record::TrialPurpose;
    use crate::search::TrialOutcome;
    use crate::search::cheapest::{CheapestEnd, CheapestStep};
    use crate::search::lattice::{LatticeCell, LatticeParameters};

    /// Two small replicas pass the search by luck and fail every start of their proof.
    fn searched() -> (CheapestSearch, Vec<AskedTrial>, CheapestEnd) {
        let cell = |millis: u32| LatticeCell {
            size: InstanceSize {
                cpu: Cpus::from_millis(millis),
                memory: Bytes::from_gib(2),
            },
            per_hour: f64::from(millis),
            variant: 0,
            regime: 0,
        };
        let parameters = LatticeParameters {
            min_replicas: 2,
            max_replicas: 4,
            ..LatticeParameters::new(300.0)
        };
        let mut search = CheapestSearch::new(vec![cell(250), cell(1000)], parameters, 5);
        let mut asked = Vec::new();
        loop {
            let ask = match search.next() {
                CheapestStep::Try(ask) => ask,
                CheapestStep::Done(end) => return (search, asked, end),
            };
            let is_lucky = ask.purpose != TrialPurpose::Prove;
            let (outcome, verdict) = if ask.replicas > 2 || ask.cell == 1 || is_lucky {
                (TrialOutcome::Pass, TrialVerdict::Pass)
            } else {
                (TrialOutcome::Fail, TrialVerdict::SloMiss)
            };
            let id = format!("t{}", asked.len());
            let record = fixture::trial_record(&id, ask.purpose, 2048, verdict);
            asked.push(AskedTrial {
                question: ask,
                record: Arc::new(record),
            });
            search.record_outcome(outcome);
        }
    }

    #[test]
    fn what_a_proof_refuted_is_not_on_the_front() {
        let (search, asked, end) = searched();
        let CheapestEnd::Found { choice, is_proven } = end else {
            panic!("{end:?}");
        };
        assert_eq!((choice.cell, choice.replicas, is_proven), (0, 3, true));
        let grounds = DeploymentGrounds {
            offer: &Offer::built_in("fargate", None).expect("it is built in"),
            search: &search,
            asked: &asked,
            variants: &[String::new()],
            left_out: &[],
            today: "2026-11-22",
        };
        let front = grounds.to_deployment(choice, is_proven).front;
        assert!(!front.is_empty());
        let refuted =
            |p: &&FrontPoint| p.priced.replicas == 2 && p.priced.limits.cpu < Cpus::from_whole(1);
        assert_eq!(front.iter().find(refuted), None);
    }
}
