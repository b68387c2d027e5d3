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
    match random.chance(0.1) {
        true => random.uniform_between(-(4.0_f64.ln()), 4.0_f64.ln()).exp(),
        false => random.uniform_between(0.7, 1.3),
    }
}

/// The knee in rate: the probability that a trial at a rate breaks the SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateKnee {
    /// Where half of the undisturbed trials break it, requests a second.
    pub rate: f64,
    pub width: f64,
    /// Share of trials that break it whatever the rate: external disturbance.
    pub glitch: f64,
}

impl RateKnee {
    pub fn fail_probability(&self, rate: f64) -> f64 {
        let above = (rate / self.rate).ln() / self.width;
        self.glitch + (1.0 - self.glitch) / (1.0 + (-above).exp())
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
    pub fn draw_surface(random: &mut RandomStream) -> Self {
        Self {
            non_heap: random.uniform_between(0.15, 0.5),
            live: random.uniform_between(0.05, 1.5),
            allocation: random.uniform_between(0.05, 1.0),
            gc_cost: random.uniform_between(0.03, 0.12),
            per_cpu: random.uniform_between(50.0, 1500.0),
            contention: random.uniform_between(0.0, 0.15),
            floor: random.uniform_between(0.0, 0.25),
        }
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerrainShape {
    Smooth,
    /// A pool (threads, connections): from some rate on, no size helps.
    Pool,
    /// The JVM takes another collector where it thinks that it is on a server: capacity jumps
    /// there, and may fall.
    Border,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terrain {
    pub surface: Surface,
    /// Highest rate of one instance at any size, requests a second.
    pub pool: f64,
    /// Capacity on the server side of the border, as a factor.
    pub server: f64,
}

impl Terrain {
    /// A terrain of this shape: pools of 0.8 to 3 CPUs' worth, borders that cost up to 25 % or
    /// give up to 25 %.
    pub fn draw_terrain(shape: TerrainShape, random: &mut RandomStream) -> Self {
        let surface = Surface::draw_surface(random);
        let (pool, server) = (
            random.uniform_between(0.8, 3.0),
            random.uniform_between(0.75, 1.25),
        );
        Self {
            surface,
            pool: match shape {
                TerrainShape::Pool => pool * surface.per_cpu,
                TerrainShape::Smooth | TerrainShape::Border => f64::INFINITY,
            },
            server: match shape {
                TerrainShape::Border => server,
                TerrainShape::Smooth | TerrainShape::Pool => 1.0,
            },
        }
    }

    /// The highest rate within the SLO, requests a second; `is_server` says on which side of the
    /// border the size lies.
    pub fn capacity(&self, cpus: f64, memory_gib: f64, is_server: bool) -> f64 {
        let factor = if is_server { self.server } else { 1.0 };
        (factor * self.surface.capacity(cpus, memory_gib)).min(self.pool)
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

    #[test]
    fn the_knee_has_half_its_failures_at_its_rate() {
        let knee = RateKnee {
            rate: 1000.0,
            width: 0.02,
            glitch: 0.1,
        };
        assert!((knee.fail_probability(1000.0) - 0.55).abs() < 1e-12);
        assert!((knee.fail_probability(500.0) - 0.1).abs() < 1e-9);
    }
}
