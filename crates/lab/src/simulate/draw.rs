//! Chance: one seeded generator, and the distributions that scenarios name.

use super::agenda::{Micros, micros};
use rand::{RngExt, SeedableRng};
use rand_distr::{Beta, Distribution, LogNormal};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// The one source of chance of a run.
#[derive(Debug, Clone)]
pub struct Dice(Pcg64Mcg);

impl Dice {
    /// The same seed gives the same draws.
    pub fn new(seed: u64) -> Self {
        Dice(Pcg64Mcg::seed_from_u64(seed))
    }

    /// An index below `n` (0 where `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        if n < 2 { 0 } else { self.0.random_range(0..n) }
    }

    /// Whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.random::<f64>() < probability
    }

    /// A value of [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.0.random()
    }

    /// A wait for something that comes without memory, this often in the mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        mean * -(1.0 - self.fraction()).ln()
    }
}

/// A duration that varies: log-normal with this mean and coefficient of variation (0: always the mean). Service times and
/// calls over a network are never negative and have a longer tail to the right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Mean in seconds.
    pub mean_s: f64,
    /// Standard deviation divided by the mean.
    #[serde(default)]
    pub cv: f64,
}

impl Times {
    /// What is wrong with it, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        if !(self.mean_s.is_finite() && self.mean_s >= 0.0) {
            return Err(format!("mean_s = {}: expected seconds of at least 0", self.mean_s));
        }
        if !(self.cv.is_finite() && self.cv >= 0.0) {
            return Err(format!("cv = {}: expected a ratio of at least 0", self.cv));
        }
        Ok(())
    }

    /// A factor with mean 1 and this spread.
    fn factor(cv: f64, dice: &mut Dice) -> f64 {
        let sigma2 = (1.0 + cv * cv).ln();
        match LogNormal::new(-sigma2 / 2.0, sigma2.sqrt()) {
            Ok(normal) if cv > 0.0 => normal.sample(&mut dice.0),
            _ => 1.0,
        }
    }

    /// Draws a duration.
    pub fn draw(&self, dice: &mut Dice) -> Micros {
        micros(self.mean_s * Times::factor(self.cv, dice))
    }
}

/// A size of known mean, spread and bounds: a beta distribution stretched between the bounds, by the method of moments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

impl Sizes {
    /// What is wrong with it, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.beta().map(|_| ())
    }

    fn beta(&self) -> Result<Beta<f64>, String> {
        let width = self.max - self.min;
        let (m, v) = ((self.mean - self.min) / width, (self.sd / width).powi(2));
        let n = m * (1.0 - m) / v - 1.0;
        let wrong = "expected min < mean < max and an sd that fits between them";
        Beta::new(m * n, (1.0 - m) * n)
            .map_err(|_| format!("mean {}, sd {}, {} to {}: {wrong}", self.mean, self.sd, self.min, self.max))
    }

    /// A drawing device for these sizes.
    pub fn drawer(&self) -> Result<impl Fn(&mut Dice) -> f64 + use<>, String> {
        let (beta, min, width) = (self.beta()?, self.min, self.max - self.min);
        Ok(move |dice: &mut Dice| min + width * beta.sample(&mut dice.0))
    }
}
