//! Distributions named by simulated scenarios.

use super::events::{Micros, micros};
use meridian_lab_results::random::SeededRng;
use rand_distr::{Beta, LogNormal};
use serde::{Deserialize, Serialize};

/// A random duration: log-normal with this mean and coefficient of variation (0: always the mean). Service times and
/// network calls are never negative and have a longer tail to the right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Mean in seconds.
    pub mean_s: f64,
    /// Standard deviation divided by the mean.
    #[serde(default)]
    pub cv: f64,
}

impl Times {
    /// Returns the error in it, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        if !(self.mean_s.is_finite() && self.mean_s >= 0.0) {
            return Err(format!("mean_s = {}: expected seconds of at least 0", self.mean_s));
        }
        if !(self.cv.is_finite() && self.cv >= 0.0) {
            return Err(format!("cv = {}: expected a ratio of at least 0", self.cv));
        }
        Ok(())
    }

    /// Returns a factor with mean 1 and this spread.
    fn factor(cv: f64, rng: &mut SeededRng) -> f64 {
        // Keeps the mean at 1 for every spread: a log-normal with mu 0 would have a mean that grows with it.
        let sigma2 = (1.0 + cv * cv).ln();
        match LogNormal::new(-sigma2 / 2.0, sigma2.sqrt()) {
            Ok(normal) if cv > 0.0 => rng.sample(&normal),
            _ => 1.0,
        }
    }

    /// Draws a duration.
    pub fn draw(&self, rng: &mut SeededRng) -> Micros {
        micros(self.draw_s(rng))
    }

    /// Draws a duration in seconds, for work that is counted in finer units than the clock.
    pub fn draw_s(&self, rng: &mut SeededRng) -> f64 {
        self.mean_s * Times::factor(self.cv, rng)
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
    /// Min.
    pub min: f64,
    /// Max.
    pub max: f64,
}

impl Sizes {
    /// Returns the error in it, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.beta().map(|_| ())
    }

    fn beta(&self) -> Result<Beta<f64>, String> {
        let width = self.max - self.min;
        // Method of moments. A spread that no beta distribution has gives a parameter below 0, which `Beta::new`
        // refuses.
        let (m, v) = ((self.mean - self.min) / width, (self.sd / width).powi(2));
        let n = m * (1.0 - m) / v - 1.0;
        let wrong = "expected min < mean < max and an sd that fits between them";
        Beta::new(m * n, (1.0 - m) * n)
            .map_err(|_| format!("mean {}, sd {}, {} to {}: {wrong}", self.mean, self.sd, self.min, self.max))
    }

    /// Returns a sampler of these sizes.
    pub fn drawer(&self) -> Result<impl Fn(&mut SeededRng) -> f64 + use<>, String> {
        let (beta, min, width) = (self.beta()?, self.min, self.max - self.min);
        Ok(move |rng: &mut SeededRng| min + width * rng.sample(&beta))
    }
}
