//! The one clock of a trial, and where the wall clock lies on it.

pub use loadline_load::clock_ns as monotonic_ns;

/// Readings of both clocks of which the closest pair counts: a thread may lose its CPU between them.
const READINGS: usize = 9;

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns; right to the distance of two readings, which is less
/// than a microsecond where the machine is quiet.
pub fn wall_ahead_ns() -> i64 {
    let pair = || {
        let before = monotonic_ns();
        let wall = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let after = monotonic_ns();
        let wall = wall.tv_sec * 1_000_000_000 + wall.tv_nsec;
        let middle = (before + (after - before) / 2).cast_signed();
        (after - before, wall - middle)
    };
    let closest = (0..READINGS).map(|_| pair()).min();
    closest.map_or(0, |(_, ahead)| ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_keeps_its_distance() {
        let first = wall_ahead_ns();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!((wall_ahead_ns() - first).abs() < 1_000_000);
    }
}
