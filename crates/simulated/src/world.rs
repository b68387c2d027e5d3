//! Known truths: synthetic services with a known answer, to test searches against.
//!
//! Owns the response surfaces that the simulated backend and the tests of error rates share. They
//! are chosen to be hard where real services are hard (an S-shaped wall in memory, a knee in rate,
//! GC cost near the live set), not to look like any one service. Never used to judge.

use loadline_analysis::random::RandomStream;

/// The wall in memory: P(pass) = 1 / (1 + e^(−(m − middle)/width)), sizes in MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryWall {
    /// Where half of the starts pass, MiB.
    pub middle: f64,
    /// Width of the S-curve, MiB; a few tenths of a percent to a few percent of `middle`.
    pub width: f64,
}

impl MemoryWall {
    /// A wall drawn from the population of the published error rates: middle uniform in 110..700
    /// MiB, width 0.3, 1 or 3 %.
    pub fn draw_wall(random: &mut RandomStream) -> Self {
        let middle = random.uniform_between(110.0, 700.0);
        let width = middle * [0.003, 0.01, 0.03][random.uniform_below(3)];
        Self { middle, width }
    }

    /// Probability that a start with this much memory passes, in [0, 1].
    pub fn pass_probability(&self, mib: f64) -> f64 {
        1.0 / (1.0 + (-(mib - self.middle) / self.width).exp())
    }

    pub fn memory_for(&self, probability: f64) -> f64 {
        self.middle + self.width * (probability / (1.0 - probability)).ln()
    }

    /// The memory that one start needs, MiB: drawn so that it passes with
    /// [`MemoryWall::pass_probability`].
    pub fn draw_need(&self, random: &mut RandomStream) -> f64 {
        // Kept away from 0 and 1, where the logit is infinite.
        self.memory_for(random.uniform_between(1e-9, 1.0 - 1e-9))
    }
}

/// Estimate of a start's memory from the record of a passing trial, as a factor: nine of ten
/// records are off by up to 30 %, one in ten is useless (a quarter to four times).
pub fn draw_expectation(random: &mut RandomStream) -> f64 {
    if random.chance(0.1) {
        random.uniform_between(-(4.0_f64.ln()), 4.0_f64.ln()).exp()
    } else {
        random.uniform_between(0.7, 1.3)
    }
}

/// Highest rate of one instance as a function of CPU and memory.
///
/// C(c, m) = λ·max(0, c − floor/2) / (1 + σ·max(0, c − 1)) / (1 + g·b/(H − L)) with the heap
/// H = 0.95·(m − non_heap), and 0 when the heap cannot hold the live set (H ≤ 1.05·L).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surface {
    pub non_heap: f64,
    /// Live set L, GiB.
    pub live: f64,
    pub allocation: f64,
    /// GC cost b: CPU seconds per allocated GB, times GB of free heap.
    pub gc_cost: f64,
    /// Requests a second of one CPU, λ.
    pub per_cpu: f64,
    /// Contention of CPUs, σ.
    pub contention: f64,
    /// CPU that the service uses when idle, in CPUs.
    pub floor: f64,
}

impl Surface {
    /// The highest rate within the SLO, requests a second; 0 when it does not start.
    pub fn capacity(&self, cpus: f64, memory_gib: f64) -> f64 {
        let heap = 0.95 * (memory_gib - self.non_heap);
        if heap <= 1.05 * self.live {
            return 0.0;
        }
        let cpu = self.per_cpu * (cpus - self.floor / 2.0).max(0.0);
        let gc = 1.0 + self.allocation * self.gc_cost / (heap - self.live);
        cpu / (1.0 + self.contention * (cpus - 1.0).max(0.0)) / gc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_drawn_as_the_wall_says() {
        let wall = MemoryWall {
            middle: 300.0,
            width: 9.0,
        };
        assert!((wall.pass_probability(wall.memory_for(0.95)) - 0.95).abs() < 1e-12);
        let mut random = RandomStream::from_seed(3);
        let n = 20_000;
        let passes = (0..n)
            .filter(|_| wall.draw_need(&mut random) <= 310.0)
            .count();
        let share = passes as f64 / f64::from(n);
        assert!(
            (share - wall.pass_probability(310.0)).abs() < 0.01,
            "{share}"
        );
    }

    #[test]
    fn a_surface_gives_the_published_capacities() {
        let surface = Surface {
            non_heap: 0.3,
            live: 0.4,
            allocation: 0.3,
            gc_cost: 0.06,
            per_cpu: 400.0,
            contention: 0.05,
            floor: 0.1,
        };
        assert!((surface.capacity(1.0, 3.0) - 376.9).abs() < 0.05);
        assert_eq!(surface.capacity(1.0, 0.5), 0.0);
    }
}
