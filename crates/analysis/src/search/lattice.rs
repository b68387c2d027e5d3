//! The cheapest size times replicas: branch-and-bound over the sizes a provider bills.
//!
//! Owns the order in which sizes are measured and the bound that spares most of them. Capacity is
//! taken to grow with CPU and with memory; that holds inside one GC and JIT regime, so search one
//! lattice per garbage collector. A cell that carries nothing removes all smaller ones.

use crate::price::{Price, Size, replicas};

/// What to carry and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Requests a second of all replicas together.
    pub rate: f64,
    /// Extra on top of the rate, as a share.
    pub headroom: f64,
    /// Fewest replicas, for availability.
    pub min_replicas: u32,
    /// Replicas that may be lost while the rest still carries the rate.
    pub spare: u32,
    /// A cell that cannot be cheaper than the best by more than this share is not measured.
    pub improvement: f64,
    /// How much a cell may exceed a measured cell that dominates it, as a factor: noise.
    pub slack: f64,
}

impl Parameters {
    /// The default: two replicas at least, no headroom, 5 % slack.
    pub fn new(rate: f64) -> Self {
        Self {
            rate,
            headroom: 0.0,
            min_replicas: 2,
            spare: 0,
            improvement: 0.001,
            slack: 1.05,
        }
    }
}

/// A measured cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Its size.
    pub size: Size,
    /// Highest rate of one instance within the SLO; 0 when it does not run.
    pub capacity: f64,
    /// Replicas for the rate; `None` when it carries nothing.
    pub replicas: Option<u32>,
    /// USD per hour of those replicas; infinite when it carries nothing.
    pub per_hour: f64,
}

/// What the search wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Measure the capacity of this size.
    Measure(Size),
    /// Nothing left can be cheaper. `None` when no cell carries anything.
    Done(Option<Cell>),
}

/// The search. The same capacities lead to the same state.
#[derive(Debug, Clone, PartialEq)]
pub struct Lattice {
    parameters: Parameters,
    price: Price,
    /// All sizes, by CPU, then memory.
    sizes: Vec<Size>,
    measured: Vec<Cell>,
}

impl Lattice {
    /// A search over these sizes at this price.
    pub fn new(mut sizes: Vec<Size>, price: Price, parameters: Parameters) -> Self {
        sizes.sort_unstable();
        sizes.dedup();
        Self {
            parameters,
            price,
            sizes,
            measured: Vec::new(),
        }
    }

    /// What to do next; the same until a capacity is recorded.
    pub fn next(&self) -> Step {
        let open: Vec<(Size, f64)> = self.open().collect();
        if open.is_empty() {
            return Step::Done(self.best());
        }
        let row = self
            .sizes
            .iter()
            .rev()
            .find(|size| !self.row_is_measured(size));
        // An unmeasured row may have been closed by a smaller bound already.
        let largest_of_row = row.filter(|size| open.iter().any(|(o, _)| o.cpu == size.cpu));
        let cheapest = open.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        match (largest_of_row, cheapest) {
            (Some(size), _) => Step::Measure(*size),
            (None, Some((size, _))) => Step::Measure(*size),
            (None, None) => Step::Done(self.best()),
        }
    }

    /// Takes the capacity (requests a second within the SLO, 0 for none) of a measured size.
    pub fn record(&mut self, size: Size, capacity: f64) {
        let replicas = self.replicas(capacity);
        let per_hour = replicas.map_or(f64::INFINITY, |k| f64::from(k) * self.price.per_hour(size));
        self.measured.push(Cell {
            size,
            capacity,
            replicas,
            per_hour,
        });
    }

    /// Everything measured, in order.
    pub fn measured(&self) -> &[Cell] {
        &self.measured
    }

    /// The cheapest cell measured so far; of equals the one with fewer replicas.
    pub fn best(&self) -> Option<Cell> {
        let carrying = self.measured.iter().filter(|cell| cell.replicas.is_some());
        carrying
            .min_by(|a, b| {
                // Prices are sums of products: equal to nine digits is equal.
                let is_tie = (a.per_hour - b.per_hour).abs() <= 1e-9 * b.per_hour;
                let by_price = a.per_hour.total_cmp(&b.per_hour);
                match is_tie {
                    true => a.replicas.cmp(&b.replicas),
                    false => by_price,
                }
            })
            .copied()
    }

    /// Unmeasured cells that may be cheaper than the best, with the least they can cost.
    fn open(&self) -> impl Iterator<Item = (Size, f64)> + '_ {
        let best = self.best().map_or(f64::INFINITY, |cell| cell.per_hour);
        let limit = best * (1.0 - self.parameters.improvement);
        let is_new = |size: &&Size| !self.measured.iter().any(|cell| cell.size == **size);
        let sizes = self.sizes.iter().filter(is_new);
        sizes
            .map(|size| (*size, self.least_cost(*size)))
            .filter(move |(_, least)| *least < limit)
    }

    fn least_cost(&self, size: Size) -> f64 {
        let dominates = |cell: &&Cell| cell.size.cpu >= size.cpu && cell.size.memory >= size.memory;
        let bound = self.measured.iter().filter(dominates);
        let bound = bound.map(|cell| cell.capacity).reduce(f64::min);
        let capacity = bound.map_or(f64::INFINITY, |c| c * self.parameters.slack);
        let replicas = self.replicas(capacity);
        replicas.map_or(f64::INFINITY, |k| f64::from(k) * self.price.per_hour(size))
    }

    fn replicas(&self, capacity: f64) -> Option<u32> {
        let p = &self.parameters;
        replicas(p.rate, p.headroom, capacity, p.min_replicas, p.spare)
    }

    fn row_is_measured(&self, size: &Size) -> bool {
        self.measured.iter().any(|cell| cell.size.cpu == size.cpu)
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::Cpus;

    use super::*;
    use crate::price::{BUILT_IN, FARGATE, parse_lattice, parse_prices};
    use crate::random::Random;
    use crate::world::Surface;

    /// The first five CPU rows of Fargate: 50 cells.
    fn fargate() -> (Vec<Size>, Price) {
        let mut sizes = parse_lattice(FARGATE).unwrap();
        sizes.retain(|size| size.cpu <= Cpus::from_whole(4));
        assert_eq!(sizes.len(), 50);
        let price = parse_prices(BUILT_IN).unwrap().swap_remove(0);
        (sizes, price)
    }

    fn surface(p: [f64; 7]) -> Surface {
        Surface {
            non_heap: p[0],
            live: p[1],
            allocation: p[2],
            gc_cost: p[3],
            per_cpu: p[4],
            contention: p[5],
            floor: p[6],
        }
    }

    fn search(rate: f64, mut capacity: impl FnMut(Size) -> f64) -> Lattice {
        let (sizes, price) = fargate();
        let mut search = Lattice::new(sizes, price, Parameters::new(rate));
        while let Step::Measure(size) = search.next() {
            let capacity = capacity(size);
            search.record(size, capacity);
        }
        search
    }

    fn story(p: [f64; 7], rate: f64) -> String {
        let surface = surface(p);
        let search = search(rate, |s| {
            surface.capacity(s.cpu.as_f64(), s.memory.as_gib())
        });
        let cell = |c: &Cell| format!("({},{})", c.size.cpu.as_f64(), c.size.memory.as_gib());
        let path: Vec<String> = search.measured().iter().map(cell).collect();
        let best = search.best().unwrap();
        format!(
            "{} x {} C {:.1} ${:.4}/h: {}",
            best.replicas.unwrap(),
            cell(&best),
            best.capacity,
            best.per_hour,
            path.join(" ")
        )
    }

    #[test]
    fn the_golden_searches_measure_the_golden_cells() {
        let stories = [
            story([0.3, 0.4, 0.3, 0.06, 400.0, 0.05, 0.1], 3000.0),
            story([0.25, 0.15, 0.8, 0.05, 900.0, 0.1, 0.2], 4000.0),
            story([0.4, 1.2, 0.5, 0.1, 200.0, 0.02, 0.05], 2500.0),
        ];
        insta::assert_snapshot!(stories.join("\n"), @"
        8 x (1,3) C 376.9 $0.4305/h: (4,30) (2,16) (1,8) (0.5,4) (0.25,2) (0.5,1) (1,2) (2,4) (2,5) (1,3)
        5 x (1,4) C 800.6 $0.2913/h: (4,30) (2,16) (1,8) (0.5,4) (0.25,2) (1,2) (1,3) (0.5,1) (1,4)
        7 x (2,4) C 378.7 $0.6912/h: (4,30) (2,16) (1,8) (0.5,4) (0.25,2) (0.5,1) (1,2) (2,4)
        ");
    }

    /// The published regret over 400 noisy services: 8.3 searches (p95 12), exact 73 %, mean 2.1 %.
    #[test]
    fn few_searches_find_a_nearly_cheapest_cell() {
        let seeds = Random::from_seed(4);
        let (mut searches, mut regrets, mut exact) = (Vec::new(), Vec::new(), 0);
        for service in 0..400 {
            let mut random = seeds.derive(service);
            let surface = Surface::draw(&mut random);
            let rate = surface.per_cpu * random.between(1.5, 30.0);
            let truth = |s: Size| surface.capacity(s.cpu.as_f64(), s.memory.as_gib());
            let noisy = search(rate, |s| truth(s) * (1.0 + 0.03 * random.normal()));
            let exhaustive = search(rate, truth);
            let (sizes, price) = fargate();
            let mut judge = Lattice::new(sizes.clone(), price, Parameters::new(rate));
            for size in sizes {
                judge.record(size, truth(size));
            }
            let cheapest = judge.best().unwrap().per_hour;
            let chosen = noisy.best().unwrap().size;
            let real = judge
                .measured()
                .iter()
                .find(|c| c.size == chosen)
                .unwrap()
                .per_hour;
            // Without noise the bound is safe but for the 0.1 % improvement it asks for.
            assert!(exhaustive.best().unwrap().per_hour <= cheapest * 1.0011);
            searches.push(noisy.measured().len() as f64);
            regrets.push(real / cheapest - 1.0);
            exact += u32::from(real <= cheapest * 1.0001);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let p95 = crate::interval::quantile(&searches, 0.95).unwrap();
        assert!((mean(&searches) - 8.3).abs() < 0.6, "{}", mean(&searches));
        assert!(p95 <= 13.0, "{p95}");
        assert!((mean(&regrets) - 0.021).abs() < 0.01, "{}", mean(&regrets));
        assert!((f64::from(exact) / 400.0 - 0.73).abs() < 0.08, "{exact}");
    }

    #[test]
    fn nothing_that_runs_means_no_answer() {
        let search = search(100.0, |_| 0.0);
        assert_eq!(search.best(), None);
        // The largest cell carries nothing, so nothing smaller does.
        assert_eq!(search.measured().len(), 1);
    }
}
