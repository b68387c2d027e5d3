//! Random numbers from a seed, so that a finding can be reproduced.

/// A linear congruential generator: the quality of the numbers does not matter, only that they
/// repeat.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn from_seed(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// From 0, less than `below`, which is more than 0.
    pub fn below(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    /// Takes this many, in no order.
    pub fn sample<T>(&mut self, mut from: Vec<T>, count: usize) -> Vec<T> {
        let mut taken = Vec::new();
        while taken.len() < count && !from.is_empty() {
            taken.push(from.swap_remove(self.below(from.len())));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_different_things_and_the_same_for_a_seed() {
        let sample = || Random::from_seed(7).sample((0..100).collect(), 10);
        let mut taken = sample();
        assert_eq!(taken, sample());
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 10);
        assert_eq!(Random::from_seed(7).sample(vec![1, 2], 10).len(), 2);
    }
}
