//! Chance: one seeded generator, for tests by simulation and for the simulator.

use rand::distr::Distribution;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A source of random numbers: the same seed gives the same draws on every machine.
#[derive(Debug, Clone)]
pub struct SeededRng(Pcg64Mcg);

impl SeededRng {
    /// A generator at the start of its sequence.
    pub fn new(seed: u64) -> Self {
        SeededRng(Pcg64Mcg::seed_from_u64(seed))
    }

    /// An index below `n` (0 where `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        if n < 2 { 0 } else { self.0.random_range(0..n) }
    }

    /// Whether an event of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.random::<f64>() < probability
    }

    /// A value of [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.0.random()
    }

    /// A wait from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // The fraction is never 1, so the logarithm is finite.
        mean * -(1.0 - self.fraction()).ln()
    }

    /// A value from a distribution.
    pub fn sample(&mut self, distribution: &impl Distribution<f64>) -> f64 {
        distribution.sample(&mut self.0)
    }
}
