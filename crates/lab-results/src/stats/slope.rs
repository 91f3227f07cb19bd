//! Straight lines: growth of a duration with each request, each result, each concurrent user.

use super::{Estimate, student};
use serde::Serialize;

/// A least-squares line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Line {
    /// y per x.
    pub slope: Estimate,
    /// y at x = 0.
    pub intercept: f64,
    /// Share of the variance of y that the line explains.
    pub r2: f64,
}

/// Fits a line; `None` for fewer than three points or if all x are equal. The interval assumes independent errors of
/// equal size.
pub fn fit(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    if points.len() < 3 || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
    let (sxx, syy) = (sum(&|p| (p.0 - mx).powi(2)), sum(&|p| (p.1 - my).powi(2)));
    if sxx <= 0.0 {
        return None;
    }
    let slope = sum(&|p| (p.0 - mx) * (p.1 - my)) / sxx;
    let intercept = my - slope * mx;
    let rest = sum(&|p| (p.1 - intercept - slope * p.0).powi(2));
    let reach = student(points.len() - 2) * (rest / (n - 2.0) / sxx).sqrt();
    let r2 = if syy > 0.0 { 1.0 - rest / syy } else { 1.0 };
    Some(Line { slope: Estimate { value: slope, low: slope - reach, high: slope + reach }, intercept, r2 })
}

/// Number of batches whose means are treated as independent, and the min points of one.
const BATCHES: usize = 10;
const BATCH_MIN: usize = 3;

/// Like [`fit`], for ordered points with correlated errors, such as waits in a queue. With enough points, the interval
/// is no narrower than that of the line through ten means of consecutive batches (the method of batch means).
pub fn fit_in_order(points: &[(f64, f64)]) -> Option<Line> {
    let mut line = fit(points)?;
    if points.len() >= BATCHES * BATCH_MIN {
        let mean = |batch: &[(f64, f64)]| {
            let n = batch.len() as f64;
            let (x, y) = batch.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            (x / n, y / n)
        };
        let means: Vec<(f64, f64)> = points.chunks(points.len().div_ceil(BATCHES)).map(mean).collect();
        let reach = |line: &Line| line.slope.high - line.slope.value;
        // The wider interval counts: that of single points is too narrow if neighbours are correlated, and that of the
        // means if they agree by chance.
        let reach = fit(&means).as_ref().map_or(0.0, reach).max(reach(&line));
        line.slope =
            Estimate { value: line.slope.value, low: line.slope.value - reach, high: line.slope.value + reach };
    }
    Some(line)
}

/// Sums for a line through more points than are kept.
#[derive(Debug, Default)]
pub struct Sums {
    n: usize,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    /// Adds a point.
    pub fn add(&mut self, x: f64, y: f64) {
        self.n += 1;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// Returns the line through all of them, like [`fit`].
    pub fn line(&self) -> Option<Line> {
        let n = self.n as f64;
        let spread = |squares: f64, a: f64, b: f64| squares - a * b / n;
        let sxx = spread(self.xx, self.x, self.x);
        // A relative limit: the difference of two large sums leaves rounding errors if all x are equal.
        if self.n < 3 || sxx <= 1e-9 * self.xx {
            return None;
        }
        let (sxy, syy) = (spread(self.xy, self.x, self.y), spread(self.yy, self.y, self.y).max(0.0));
        let slope = sxy / sxx;
        let rest = (syy - slope * sxy).max(0.0);
        let reach = student(self.n - 2) * (rest / (n - 2.0) / sxx).sqrt();
        let r2 = if syy > 0.0 { 1.0 - rest / syy } else { 1.0 };
        let slope = Estimate { value: slope, low: slope - reach, high: slope + reach };
        Some(Line { slope, intercept: (self.y - slope.value * self.x) / n, r2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRng;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_line_is_found_again(a in -5.0f64..5.0, b in -100.0f64..100.0, n in 3usize..50) {
            let points: Vec<_> = (0..n).map(|x| (x as f64, a * x as f64 + b)).collect();
            let line = fit(&points).unwrap();
            prop_assert!((line.slope.value - a).abs() < 1e-9 && (line.intercept - b).abs() < 1e-7);
        }
    }

    #[test]
    fn the_interval_of_a_slope_holds_the_truth_as_often_as_it_says() {
        let mut rng = SeededRng::new(11);
        let noise = |rng: &mut SeededRng| (0..12).map(|_| rng.fraction()).sum::<f64>() - 6.0;
        let held = (0..400)
            .filter(|_| {
                let points: Vec<_> = (0..15).map(|x| (f64::from(x), 2.5 * f64::from(x) + noise(&mut rng))).collect();
                fit(&points).unwrap().slope.holds(2.5)
            })
            .count();
        assert!((365..=395).contains(&held), "{held}");
        assert_eq!(fit(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
