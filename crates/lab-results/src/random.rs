//! Randomness: one seeded generator, for tests by simulation and for the simulator.

use rand::distr::Distribution;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A source of random numbers: the same seed gives the same draws on every machine.
#[derive(Debug, Clone)]
pub struct SeededRng(Pcg64Mcg);

impl SeededRng {
    /// Creates a generator at the start of its sequence.
    pub fn new(seed: u64) -> Self {
        SeededRng(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Returns an index below `n` (0 if `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        if n < 2 { 0 } else { self.0.random_range(0..n) }
    }

    /// Returns whether an event of this probability occurs.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.random::<f64>() < probability
    }

    /// Returns a value in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.0.random()
    }

    /// Returns a wait from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // The fraction is never 1, so the logarithm is finite.
        mean * -(1.0 - self.fraction()).ln()
    }

    /// Returns a value from a distribution.
    pub fn sample(&mut self, distribution: &impl Distribution<f64>) -> f64 {
        distribution.sample(&mut self.0)
    }
}
