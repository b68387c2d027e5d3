//! The cheapest size times replicas: branch-and-bound over the sizes a provider bills.
//!
//! Owns which cell is asked next, for how many replicas, and the bound that spares most cells.
//! Only rates that decide about replicas are asked: a cell is never measured finer than its price
//! can tell. Capacity is taken to grow with CPU and with memory inside one group (a GC and JIT
//! regime of one variant); nothing is concluded from one group about another.

use crate::price::InstanceSize;

#[derive(Debug, Clone, PartialEq)]
pub struct LatticeParameters {
    /// Requests a second of all replicas together.
    pub rate: f64,
    pub headroom: f64,
    /// Fewest replicas, for availability; at least 1.
    pub min_replicas: u32,
    pub max_replicas: u32,
    /// Replicas that may be lost while the rest still carries the rate.
    pub spare: u32,
    /// A cell that cannot be cheaper than the best by more than this share is not measured.
    pub improvement: f64,
    /// How much a cell may exceed a measured cell that dominates it, as a factor. Above 1 where
    /// capacities carry noise; 1 where they are bounds that trials have classified.
    pub slack: f64,
}

impl LatticeParameters {
    pub fn new(rate: f64) -> Self {
        Self {
            rate,
            headroom: 0.0,
            min_replicas: 2,
            max_replicas: 16,
            spare: 0,
            improvement: 0.001,
            slack: 1.0,
        }
    }

    /// Requests a second that each replica must carry; infinite without replicas.
    pub fn rate_of_each(&self, replicas: u32) -> f64 {
        let working = f64::from(replicas.saturating_sub(self.spare));
        self.rate * (1.0 + self.headroom) / working
    }

    /// The fewest replicas, at least `min_replicas`, of which each must carry less than this rate.
    fn fewest_below(&self, rate: f64) -> Option<u32> {
        // It may be infinite or no number: then none is found.
        let needed = (self.rate * (1.0 + self.headroom) / rate).floor();
        let needed = (needed as u32).saturating_add(self.spare);
        let from = needed.max(self.min_replicas).max(1);
        let is_below = |k: &u32| self.rate_of_each(*k) < rate * (1.0 - 1e-12);
        (from..=self.max_replicas.min(from.saturating_add(1))).find(is_below)
    }

    fn fewest_at(&self, rate: f64) -> Option<u32> {
        self.fewest_below(rate * (1.0 + 1e-9))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatticeCell {
    pub size: InstanceSize,
    /// USD per hour of one replica.
    pub per_hour: f64,
    /// Which of the variants (options, JDK, factors of the application) runs in it.
    pub variant: u32,
    /// The JVM's own choices at this size. Within one variant and one regime, more CPU and more
    /// memory carries no less.
    pub regime: u32,
}

impl LatticeCell {
    fn regime_group(&self) -> (u32, u32) {
        (self.variant, self.regime)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownRates {
    pub carried: f64,
    pub too_high: f64,
    pub is_touched: bool,
    /// Lowest rate that could not be measured; infinite if all could. It says nothing about lower
    /// rates or about rates carried before.
    pub unmeasured: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellChoice {
    pub cell: usize,
    pub replicas: u32,
    pub per_hour: f64,
}

/// The search. The same knowledge leads to the same question.
#[derive(Debug, Clone, PartialEq)]
pub struct Lattice {
    parameters: LatticeParameters,
    /// All cells, by variant, CPU, then memory.
    cells: Vec<LatticeCell>,
    known: Vec<KnownRates>,
    /// The cell that was asked last: it is finished before another begins.
    current: Option<usize>,
    best: Option<CellChoice>,
}

impl Lattice {
    pub fn new(mut cells: Vec<LatticeCell>, parameters: LatticeParameters) -> Self {
        cells.sort_by_key(|cell| (cell.variant, cell.size));
        cells.dedup_by_key(|cell| (cell.variant, cell.size));
        let nothing = KnownRates {
            carried: 0.0,
            too_high: f64::INFINITY,
            is_touched: false,
            unmeasured: f64::INFINITY,
        };
        Self {
            known: vec![nothing; cells.len()],
            parameters,
            cells,
            current: None,
            best: None,
        }
    }

    pub fn next(&self) -> Option<(usize, u32)> {
        let is_open = |cell: &usize| self.range(*cell).is_some();
        let current = self.current.filter(|cell| is_open(cell));
        let cell = current.or_else(|| self.first_of_a_row()).or_else(|| {
            let open = (0..self.cells.len()).filter(is_open);
            open.min_by(|a, b| self.least_cost(*a).total_cmp(&self.least_cost(*b)))
        })?;
        Some((cell, self.replicas_to_ask(cell)?))
    }

    /// Records a rate that one instance of a cell carries, a rate that is too high, or both.
    pub fn record_rates(&mut self, cell: usize, carried: Option<f64>, too_high: Option<f64>) {
        let known = &mut self.known[cell];
        known.is_touched = true;
        known.carried = known.carried.max(carried.unwrap_or(0.0));
        known.too_high = known.too_high.min(too_high.unwrap_or(f64::INFINITY));
        // A rate that was too high overrides an earlier success.
        if known.carried >= known.too_high {
            known.carried = 0.0;
        }
        self.current = Some(cell);
        self.best = self.cheapest_choice();
    }

    /// Records that a cell could not be measured at a rate: neither that rate nor a higher one is
    /// asked again. Other knowledge of the cell stays.
    pub fn could_not_measure(&mut self, cell: usize, rate: f64) {
        let known = &mut self.known[cell];
        known.is_touched = true;
        known.unmeasured = known.unmeasured.min(rate);
        self.current = Some(cell);
    }

    /// The lowest rate at which a cell could not be measured, where that leaves a question: nothing
    /// else shows that the cell carries it, or that it does not.
    pub fn unmeasured(&self, cell: usize) -> Option<f64> {
        let known = self.known[cell];
        let is_open = known.unmeasured > known.carried && known.unmeasured < self.upper_bound(cell);
        is_open.then_some(known.unmeasured)
    }

    pub fn parameters(&self) -> &LatticeParameters {
        &self.parameters
    }

    pub fn cells(&self) -> &[LatticeCell] {
        &self.cells
    }

    pub fn known_rates(&self, cell: usize) -> KnownRates {
        self.known[cell]
    }

    pub fn best(&self) -> Option<CellChoice> {
        self.best
    }

    fn cheapest_choice(&self) -> Option<CellChoice> {
        let choices = (0..self.cells.len()).filter_map(|cell| self.choice(cell));
        choices.min_by(|a, b| {
            // Prices are sums of products: equal to nine digits is equal.
            let is_tie = (a.per_hour - b.per_hour).abs() <= 1e-9 * b.per_hour;
            if is_tie {
                a.replicas.cmp(&b.replicas)
            } else {
                a.per_hour.total_cmp(&b.per_hour)
            }
        })
    }

    pub fn choice(&self, cell: usize) -> Option<CellChoice> {
        let known = self.known[cell];
        if known.carried <= 0.0 {
            return None;
        }
        let replicas = self.parameters.fewest_at(known.carried)?;
        Some(CellChoice {
            cell,
            replicas,
            per_hour: f64::from(replicas) * self.cells[cell].per_hour,
        })
    }

    pub fn open_cells(&self) -> Vec<(usize, f64)> {
        let open = (0..self.cells.len()).filter(|cell| self.range(*cell).is_some());
        open.map(|cell| (cell, self.least_cost(cell))).collect()
    }

    fn range(&self, cell: usize) -> Option<(u32, u32)> {
        let below = self.upper_bound(cell).min(self.known[cell].unmeasured);
        let low = self.parameters.fewest_below(below)?;
        let best = self.best().map_or(f64::INFINITY, |best| best.per_hour);
        let limit = best * (1.0 - self.parameters.improvement);
        let affordable = (limit / self.cells[cell].per_hour).min(f64::from(u32::MAX));
        let mut high = self.parameters.max_replicas.min(affordable as u32);
        // Strictly cheaper than the limit.
        if f64::from(high) * self.cells[cell].per_hour >= limit {
            high = high.saturating_sub(1);
        }
        // Where nothing costs anything, one replica less is no cheaper either.
        let is_cheaper = f64::from(low) * self.cells[cell].per_hour < limit;
        (low <= high && is_cheaper).then_some((low, high))
    }

    /// Where to ask about a cell: first whether it can beat the best, and whether it can be
    /// measured at all if a higher rate could not; then the geometric middle, which halves the
    /// uncertainty about the rate.
    fn replicas_to_ask(&self, cell: usize) -> Option<u32> {
        let (low, high) = self.range(cell)?;
        let has_rival = self.best().is_some() || self.known[cell].unmeasured.is_finite();
        if has_rival && self.choice(cell).is_none() {
            return Some(high);
        }
        let middle = (f64::from(low) * f64::from(high)).sqrt().floor() as u32;
        Some(middle.clamp(low, high))
    }

    fn least_cost(&self, cell: usize) -> f64 {
        let least = self.range(cell).map_or(f64::INFINITY, |r| f64::from(r.0));
        least * self.cells[cell].per_hour
    }

    fn upper_bound(&self, cell: usize) -> f64 {
        let own = self.cells[cell];
        let bounds = self.cells.iter().zip(&self.known).enumerate();
        let bounds = bounds.filter(|(_, (other, _))| {
            let is_larger = other.size.cpu >= own.size.cpu && other.size.memory >= own.size.memory;
            other.regime_group() == own.regime_group() && is_larger
        });
        let bounds = bounds.map(|(index, (_, known))| {
            let is_own = index == cell;
            known.too_high * if is_own { 1.0 } else { self.parameters.slack }
        });
        bounds.fold(f64::INFINITY, f64::min)
    }

    fn first_of_a_row(&self) -> Option<usize> {
        let row = |cell: usize| (self.cells[cell].regime_group(), self.cells[cell].size.cpu);
        let is_new = |cell: &usize| {
            !(0..self.cells.len()).any(|o| self.known[o].is_touched && row(o) == row(*cell))
        };
        let open = (0..self.cells.len()).filter(|cell| self.range(*cell).is_some());
        open.filter(is_new).max_by_key(|cell| {
            let own = self.cells[*cell];
            (std::cmp::Reverse(own.variant), own.size)
        })
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::{Bytes, Cpus};

    use super::*;

    #[test]
    fn spare_replicas_carry_nothing() {
        let p = LatticeParameters {
            spare: 1,
            headroom: 0.2,
            ..LatticeParameters::new(3000.0)
        };
        assert_eq!(p.rate_of_each(1), f64::INFINITY);
        assert_eq!(p.rate_of_each(4), 1200.0);
        assert_eq!(p.fewest_at(1200.0), Some(4));
        assert_eq!(p.fewest_below(1200.0), Some(5));
        assert_eq!(p.fewest_below(f64::INFINITY), Some(2));
        assert_eq!(p.fewest_below(0.0), None);
        assert_eq!(p.fewest_below(f64::NAN), None);
        assert_eq!(p.fewest_at(10.0), None);
    }

    /// Cells of this many CPUs and GiB; a CPU costs nine times a GiB.
    fn cells(sizes: &[(u32, u64, u32, u32)]) -> Vec<LatticeCell> {
        let cell = |&(millis, gib, variant, regime): &(u32, u64, u32, u32)| LatticeCell {
            size: InstanceSize {
                cpu: Cpus::from_millis(millis),
                memory: Bytes::from_gib(gib),
            },
            per_hour: f64::from(millis) * 0.009 + gib as f64,
            variant,
            regime,
        };
        sizes.iter().map(cell).collect()
    }

    /// Every question of a search with its outcome: `capacity` tells whether a cell carries the
    /// rate or cannot be measured; then the known and the open cells.
    fn story(mut lattice: Lattice, capacity: impl Fn(&LatticeCell, f64) -> Option<f64>) -> String {
        let mut text = String::new();
        while let Some((cell, replicas)) = lattice.next() {
            let rate = lattice.parameters().rate_of_each(replicas);
            let own = lattice.cells()[cell];
            let (cpu, gib) = (own.size.cpu, own.size.memory.as_gib());
            let mark = match capacity(&own, rate) {
                Some(most) if rate <= most => {
                    lattice.record_rates(cell, Some(rate), None);
                    "+"
                }
                Some(_) => {
                    lattice.record_rates(cell, None, Some(rate));
                    "-"
                }
                None => {
                    lattice.could_not_measure(cell, rate);
                    "?"
                }
            };
            let best = lattice.best().map_or(0.0, |best| best.per_hour);
            let open = lattice.open_cells();
            let least = open.iter().map(|(_, cost)| *cost).reduce(f64::min);
            text += &format!(
                "{}.{}: {replicas} x {cpu},{gib} {rate:.1}{mark} {best:.2}; {} open, {least:.2?}\n",
                own.variant,
                own.regime,
                open.len()
            );
            assert!(text.lines().count() < 200, "it does not end:\n{text}");
        }
        let unmeasured: Vec<_> = (0..lattice.cells().len())
            .map(|cell| lattice.unmeasured(cell))
            .collect();
        text + &format!("= {:?}, {unmeasured:.1?}", lattice.best())
    }

    const SIZES: [(u32, u64, u32, u32); 10] = [
        (250, 1, 0, 0),
        (250, 2, 0, 0),
        (500, 1, 0, 0),
        (500, 2, 0, 1),
        (1000, 2, 0, 1),
        (1000, 4, 0, 1),
        (500, 2, 1, 0),
        (1000, 2, 1, 0),
        (1000, 4, 1, 0),
        (1000, 4, 1, 0),
    ];

    /// 100 a second for each CPU and 20 for each GiB; the second variant a tenth more.
    fn carries(cell: &LatticeCell) -> f64 {
        let base = 100.0 * cell.size.cpu.as_f64() + 20.0 * cell.size.memory.as_gib();
        base * (1.0 + 0.1 * f64::from(cell.variant))
    }

    #[test]
    fn rows_are_opened_by_their_largest_cell_and_the_cheapest_is_found() {
        let parameters = LatticeParameters::new(600.0);
        let lattice = Lattice::new(cells(&SIZES), parameters.clone());
        assert_eq!(lattice.cells().len(), 9, "equal ones are asked once");
        insta::assert_snapshot!(story(lattice, |cell, _| Some(carries(cell))));
        let spare = LatticeParameters {
            spare: 1,
            headroom: 0.2,
            slack: 1.05,
            improvement: 0.05,
            ..parameters
        };
        let lattice = Lattice::new(cells(&SIZES), spare);
        insta::assert_snapshot!(story(lattice, |cell, _| Some(carries(cell))));
    }

    #[test]
    fn what_cannot_be_measured_is_asked_at_less_and_stays_unknown() {
        let lattice = Lattice::new(cells(&SIZES), LatticeParameters::new(600.0));
        let measured = |cell: &LatticeCell, rate: f64| (rate <= 80.0).then(|| carries(cell));
        insta::assert_snapshot!(story(lattice, measured));
    }

    #[test]
    fn where_nothing_carries_or_nothing_costs_it_ends() {
        let lattice = Lattice::new(cells(&SIZES), LatticeParameters::new(600.0));
        insta::assert_snapshot!(story(lattice, |_, _| Some(0.0)));
        let mut free = cells(&SIZES);
        free.iter_mut().for_each(|cell| cell.per_hour = 0.0);
        let lattice = Lattice::new(free, LatticeParameters::new(600.0));
        insta::assert_snapshot!(story(lattice, |cell, _| Some(carries(cell))));
    }

    #[test]
    fn of_equal_prices_fewer_replicas_are_chosen_and_what_was_too_high_is_not_carried() {
        let twice = [(500, 1, 0, 0), (1000, 2, 1, 0)];
        let mut lattice = Lattice::new(cells(&twice), LatticeParameters::new(400.0));
        lattice.record_rates(0, Some(50.0), None);
        lattice.record_rates(1, Some(100.0), None);
        let best = lattice
            .best()
            .map(|best| (best.cell, best.replicas, best.per_hour));
        assert_eq!(best, Some((1, 4, 44.0)));
        lattice.record_rates(1, None, Some(100.0));
        let known = lattice.known_rates(1);
        assert_eq!((known.carried, known.too_high), (0.0, 100.0));
        assert_eq!(lattice.best().map(|best| best.cell), Some(0));
        lattice.record_rates(0, None, Some(50.0001));
        assert_eq!(lattice.choice(0).map(|choice| choice.replicas), Some(8));
    }

    #[test]
    fn a_rate_that_could_not_be_measured_is_a_question_between_two_answers() {
        let unmeasured = |rate: f64, carried: f64, too_high: f64| {
            let mut lattice = Lattice::new(cells(&SIZES), LatticeParameters::new(600.0));
            lattice.record_rates(0, Some(carried), Some(too_high));
            lattice.could_not_measure(0, rate);
            lattice.unmeasured(0)
        };
        assert_eq!(unmeasured(110.0, 100.0, 120.0), Some(110.0));
        assert_eq!(unmeasured(100.0, 100.0, 120.0), None);
        assert_eq!(unmeasured(120.0, 100.0, 120.0), None);
    }
}
