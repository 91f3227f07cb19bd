//! Statistics of measured numbers, with their confidence.
//!
//! Pure computation over samples and [`Record`](crate::record::Record)s; no file is read here. All random functions
//! take a seed, so that a report is reproducible. Intervals are of 95 % unless a name states otherwise.
//!
//! | question | module |
//! |---|---|
//! | how long does it take, with which confidence? | [`percentile`] |
//! | is B faster than A? | [`compare`] |
//! | how does it grow with size or concurrency? | [`slope`], [`usl`] |
//! | one kind of request or two? | [`shape`] |
//! | flat, growing, or timing out? | [`mode`] |
//! | did it stop meanwhile? | [`stall`] |
//! | does it degrade over hours? | [`drift`] |
//! | what is the max load that it sustains? | [`breakpoint`] |
//! | do forecast and measurement have the same order? | [`spearman`] |

pub mod breakpoint;
pub mod compare;
pub mod drift;
pub mod mode;
pub mod percentile;
mod rank;
pub mod shape;
pub mod simplex;
pub mod slope;
pub mod stall;
mod timing;
pub mod usl;

pub use rank::spearman;

/// A value and the interval in which it lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Returns whether the interval holds `x`.
    pub fn holds(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

/// Returns the 97.5 % quantile of Student's t distribution.
///
/// It is the Cornish-Fisher expansion of the normal quantile (Abramowitz and Stegun 26.7.5). It is exact for 1 and 2
/// degrees of freedom, and within 0.01 from 3 on.
pub fn student(degrees: usize) -> f64 {
    let z: f64 = 1.959_963_985;
    match degrees {
        0 => f64::INFINITY,
        // The expansion is good from three degrees on; these two are from a table.
        1 => 12.706,
        2 => 4.303,
        n => {
            let n = n as f64;
            let g1 = (z.powi(3) + z) / 4.0;
            let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            let g4 =
                (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z) / 92_160.0;
            z + g1 / n + g2 / n.powi(2) + g3 / n.powi(3) + g4 / n.powi(4)
        }
    }
}

/// Returns the value that Student's t exceeds on either side with total probability `alpha`; degrees of freedom need
/// not be integers.
pub fn student_at(degrees: f64, alpha: f64) -> f64 {
    if degrees < 1.0 {
        return f64::INFINITY;
    }
    // Beyond that it equals the normal distribution's, and the sum below would need more steps.
    let degrees = degrees.min(200.0);
    let (mut low, mut high) = (0.0, 1.0);
    while outside(high, degrees) > alpha && high < 1e9 {
        high *= 2.0;
    }
    // Halved often enough for all digits of a double.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if outside(middle, degrees) > alpha { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Returns the probability that Student's t lies outside -t to t. Computed by Simpson's rule over the angle, where t =
/// sqrt(degrees) tan(angle) makes the density a power of the cosine.
fn outside(t: f64, degrees: f64) -> f64 {
    const STEPS: usize = 400;
    let end = (t / degrees.sqrt()).atan();
    let power = |angle: f64| angle.cos().max(0.0).powf(degrees - 1.0);
    let integral = |from: f64, to: f64| {
        let step = (to - from) / STEPS as f64;
        let weight = |i: usize| if i == 0 || i == STEPS { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
        (0..=STEPS).map(|i| weight(i) * power(from + step * i as f64)).sum::<f64>() * step / 3.0
    };
    let (inside, rest) = (integral(0.0, end), integral(end, std::f64::consts::FRAC_PI_2));
    rest / (inside + rest)
}

/// Returns the distribution function of the standard normal distribution (Abramowitz and Stegun 7.1.26, within 2e-7).
pub fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * (x.abs() / std::f64::consts::SQRT_2));
    let poly =
        t * (0.254_829_592 + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let upper = 0.5 * poly * (-x * x / 2.0).exp();
    if x >= 0.0 { 1.0 - upper } else { upper }
}

/// Returns the finite values, sorted.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    out.sort_by(f64::total_cmp);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_tables() {
        for (degrees, t) in [(3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1_000, 1.962)] {
            assert!((student(degrees) - t).abs() < 0.012, "{degrees}: {}", student(degrees));
        }
        for (degrees, alpha, t) in [
            (1.0, 0.05, 12.706),
            (2.0, 0.05, 4.303),
            (4.0, 0.05, 2.776),
            (4.0, 0.01, 4.604),
            (9.0, 0.001, 4.781),
            (200.0, 0.05, 1.972),
        ] {
            let found = student_at(degrees, alpha);
            assert!((found / t - 1.0).abs() < 0.001, "{degrees} {alpha}: {found}");
        }
        for (x, p) in [(0.0, 0.5), (1.0, 0.841_345), (-1.959_964, 0.025), (3.0, 0.998_650)] {
            assert!((normal_cdf(x) - p).abs() < 1e-5);
        }
    }
}
