//! Known truths about rates that only tests of error rates have: the knee of one size, and the terrain
//! over all sizes.

#![allow(dead_code, reason = "each test uses a part")]

use loadline_analysis::random::RandomStream;
use loadline_simulated::world::Surface;

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

pub fn draw_surface(random: &mut RandomStream) -> Surface {
    Surface {
        non_heap: random.uniform_between(0.15, 0.5),
        live: random.uniform_between(0.05, 1.5),
        allocation: random.uniform_between(0.05, 1.0),
        gc_cost: random.uniform_between(0.03, 0.12),
        per_cpu: random.uniform_between(50.0, 1500.0),
        contention: random.uniform_between(0.0, 0.15),
        floor: random.uniform_between(0.0, 0.25),
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
        let surface = draw_surface(random);
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
