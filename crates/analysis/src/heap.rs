//! Which heap is cheapest: GC cost against the price of memory.
//!
//! Owns the law c(M) = a + b/(M − L) (GC CPU seconds per allocated GB at a heap of M MB over a
//! live set L), its fit from a few probes, and the heap that minimises price. Derived from the
//! square-root heap rule (Kirisame et al., "Optimal heap limits for reducing browser memory use",
//! OOPSLA 2022). The law is a guide: never answer outside the probes, and run the answer.

use crate::least_squares;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeapProbe {
    pub heap: f64,
    /// GC CPU seconds per allocated GB, above 0.
    pub cost: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeapLaw {
    /// Cost that no heap avoids, a ≥ 0, CPU s/GB.
    pub floor: f64,
    /// Cost times free heap, b > 0, CPU s/GB · MB.
    pub slope: f64,
    /// Live set as the collector feels it, MB, 0 ≤ L < smallest probe.
    pub live: f64,
}

impl HeapLaw {
    /// Fits the probes by residuals of ln c. `None` for fewer than four probes, or probes that
    /// are not positive.
    pub fn fit_probes(probes: &[HeapProbe]) -> Option<Self> {
        let is_valid = |p: &HeapProbe| p.heap > 0.0 && p.cost > 0.0;
        if probes.len() < 4 || !probes.iter().all(is_valid) {
            return None;
        }
        let smallest = probes.iter().map(|p| p.heap).fold(f64::MAX, f64::min);
        let law = |p: &[f64; 3]| Self {
            floor: p[0],
            slope: p[1] * smallest,
            live: p[2] * smallest,
        };
        let residuals = |p: &[f64; 3]| {
            let law = law(p);
            let residual = |probe: &HeapProbe| match law.gc_cost(probe.heap) {
                Some(cost) if cost > 0.0 => (probe.cost / cost).ln(),
                _ => f64::INFINITY,
            };
            probes.iter().map(residual).collect()
        };
        // Several live sets to start from: the sum has more than one minimum.
        let starts = [0.05, 0.3, 0.5, 0.7, 0.85, 0.95];
        let cheapest = probes.iter().map(|p| p.cost).fold(f64::MAX, f64::min);
        let fits = starts.iter().filter_map(|live| {
            let slope = cheapest.max(0.1) * (1.0 - live);
            least_squares::minimise_squares([cheapest / 2.0, slope, *live], residuals)
        });
        let (best, _) = fits.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(law(&best)).filter(|law| law.slope > 0.0)
    }

    /// GC CPU seconds per allocated GB; `None` for a heap that does not hold the live set.
    pub fn gc_cost(&self, heap: f64) -> Option<f64> {
        (heap > self.live).then(|| self.floor + self.slope / (heap - self.live))
    }

    /// The cheapest heap, MB: M* = L + √(b·g·p_c/p_m).
    ///
    /// `allocation` g in GB/s; `cpu_price` p_c for a vCPU-hour and `memory_price` p_m for a
    /// MB-hour, in the same money. Infinite where memory is free.
    pub fn cheapest_heap(&self, allocation: f64, cpu_price: f64, memory_price: f64) -> f64 {
        self.live + (self.slope * allocation * cpu_price / memory_price).sqrt()
    }
}

/// The heap to try next: the cheapest by the law, never outside the probes that passed.
pub fn choose(law: &HeapLaw, probes: &[HeapProbe], cheapest: f64) -> f64 {
    let heaps = || probes.iter().map(|p| p.heap).filter(|h| *h > law.live);
    match (heaps().reduce(f64::min), heaps().reduce(f64::max)) {
        (Some(low), Some(high)) => cheapest.clamp(low, high),
        _ => cheapest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::median;

    /// Measured on JDK 25 with a live set of 60 MB: heap, GC CPU seconds per allocated GB.
    const SERIAL: [(f64, f64); 8] = [
        (92.0, 3.13),
        (100.0, 2.56),
        (108.0, 2.38),
        (119.0, 1.50),
        (135.0, 0.78),
        (174.0, 0.44),
        (232.0, 0.32),
        (348.0, 0.30),
    ];
    const G1: [(f64, f64); 8] = [
        (96.0, 1.81),
        (104.0, 1.41),
        (112.0, 1.18),
        (124.0, 1.05),
        (140.0, 0.98),
        (180.0, 0.44),
        (240.0, 0.30),
        (360.0, 0.28),
    ];

    fn probes(points: &[(f64, f64)]) -> Vec<HeapProbe> {
        points
            .iter()
            .map(|(heap, cost)| HeapProbe {
                heap: *heap,
                cost: *cost,
            })
            .collect()
    }

    #[test]
    fn the_cheapest_heap_is_the_golden_one() {
        let law = HeapLaw {
            floor: 0.0,
            slope: 65.5,
            live: 60.0,
        };
        let heap = law.cheapest_heap(0.25, 9.1 * 1024.0, 1.0);
        assert!((heap - 450.6).abs() < 0.05, "{heap}");
        let heap = law.cheapest_heap(0.25, 9100.0, 1.0);
        assert!((heap - 446.0).abs() < 0.05, "{heap}");
        // The measured curve is flat long before: the largest probe is the answer.
        assert_eq!(choose(&law, &probes(&G1), heap), 360.0);
    }

    #[test]
    fn a_known_law_is_recovered() {
        let law = HeapLaw {
            floor: 0.2,
            slope: 50.0,
            live: 70.0,
        };
        let exact: Vec<HeapProbe> = [105.0, 140.0, 210.0, 420.0]
            .map(|heap| HeapProbe {
                heap,
                cost: law.gc_cost(heap).unwrap(),
            })
            .into();
        let got = HeapLaw::fit_probes(&exact).unwrap();
        assert!(
            (got.floor - 0.2).abs() < 1e-3 && (got.slope - 50.0).abs() < 0.1,
            "{got:?}"
        );
        assert!((got.live - 70.0).abs() < 0.1, "{got:?}");
    }

    /// Four probes predict the other four heaps; published medians: G1 12 %, Serial 21 %.
    #[test]
    fn four_probes_predict_unseen_heaps() {
        let error = |points: &[(f64, f64); 8]| {
            let all = probes(points);
            let (seen, unseen): (Vec<_>, Vec<_>) = all
                .iter()
                .enumerate()
                .partition(|(i, _)| [0, 3, 5, 7].contains(i));
            let seen: Vec<HeapProbe> = seen.into_iter().map(|(_, p)| *p).collect();
            let law = HeapLaw::fit_probes(&seen).unwrap();
            let errors: Vec<f64> = unseen
                .iter()
                .map(|(_, p)| (law.gc_cost(p.heap).unwrap() / p.cost - 1.0).abs())
                .collect();
            median(&errors).unwrap()
        };
        assert!((error(&G1) - 0.12).abs() < 0.02, "{}", error(&G1));
        assert!((error(&SERIAL) - 0.21).abs() < 0.02, "{}", error(&SERIAL));
    }

    #[test]
    fn too_few_probes_give_no_law() {
        assert_eq!(HeapLaw::fit_probes(&probes(&G1[..3])), None);
        assert_eq!(
            HeapLaw::fit_probes(
                &[HeapProbe {
                    heap: 0.0,
                    cost: 1.0
                }; 4]
            ),
            None
        );
    }
}
