//! Seeded random numbers: the same seed gives the same numbers on every machine.
//!
//! Owns one small generator (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014) for bootstraps, simulations, arrivals and templates. Never used for secrets.

#[derive(Debug, Clone)]
pub struct RandomStream {
    state: u64,
}

impl RandomStream {
    pub fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Another stream, for the `key`-th part of the work; streams of different keys are unrelated.
    pub fn derive(&self, key: u64) -> Self {
        let mut mixed = Self::from_seed(self.state ^ key.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Self::from_seed(mixed.next_u64())
    }

    pub fn next_u64(&mut self) -> u64 {
        // The constants are those of the paper's reference implementation.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        // 53 bits: all that a double holds.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn uniform_between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in 0..n; 0 when `n` is 0.
    pub fn uniform_below(&mut self, n: usize) -> usize {
        // Multiply-shift; the bias is below n / 2^64.
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// Uniform in 0..=`limit`; its bias is below 1 in 2^20 for limits below 2^44.
    pub fn next_up_to(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit.saturating_add(1)
    }

    /// Uniform in (0, 1]: its logarithm is finite.
    pub fn uniform_open(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform_open().ln()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller 1958, the cosine branch).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs for seed 1234567, as published with the reference implementation
        // (Rosetta Code, "Pseudo-random numbers/Splitmix64").
        let mut random = RandomStream::from_seed(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(random.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn draws_have_the_moments_they_should() {
        let mut random = RandomStream::from_seed(7);
        let n = 100_000;
        let uniform: f64 = (0..n).map(|_| random.uniform()).sum::<f64>() / f64::from(n);
        let normal: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(n);
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02);
        assert!((0..1000).all(|_| random.uniform_below(3) < 3));
        assert_eq!(random.uniform_below(0), 0);
    }

    #[test]
    fn derived_streams_differ() {
        let random = RandomStream::from_seed(1);
        assert_ne!(random.derive(1).next_u64(), random.derive(2).next_u64());
    }

    #[test]
    fn exponential_numbers_have_mean_and_variance_one() {
        let mut random = RandomStream::from_seed(7);
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }
}
