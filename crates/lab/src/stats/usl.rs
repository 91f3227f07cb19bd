//! The Universal Scalability Law: throughput X(N) = g N / (1 + a (N - 1) + b N (N - 1)) (Gunther 1993).
//!
//! `g` is the throughput of one, `a` the share of work that must queue, `b` the cost of agreement between each pair. Throughput
//! has its peak at N = sqrt((1 - a) / b).

use super::simplex;
use serde::{Deserialize, Serialize};

/// Throughput at a size (users, connections, workers, nodes).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The size.
    pub n: f64,
    /// Throughput at that size.
    pub throughput: f64,
    /// Standard deviation of that throughput over repeats, where it is known: the point weighs by its inverse square.
    pub sd: Option<f64>,
}

/// A fitted law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Law {
    /// Throughput of one.
    pub g: f64,
    /// Contention.
    pub a: f64,
    /// Coherency.
    pub b: f64,
    /// Size of the greatest throughput; `None` where it grows without end.
    pub peak_n: Option<f64>,
    /// (size, measured over predicted minus one) of each point. A law whose residuals bend has no say past its points.
    pub residuals: Vec<(f64, f64)>,
}

impl Law {
    /// Throughput that the law gives for a size.
    pub fn throughput(&self, n: f64) -> f64 {
        law(self.g, self.a, self.b, n)
    }
}

fn law(g: f64, a: f64, b: f64, n: f64) -> f64 {
    g * n / (1.0 + a * (n - 1.0) + b * n * (n - 1.0))
}

/// Fits the law by weighted least squares. Fewer than six points, or six at fewer than four sizes, fit anything: they are refused
/// with a sentence. Points without a standard deviation weigh as if it were 5 % of their throughput.
pub fn fit(points: &[Point]) -> Result<Law, String> {
    let sound = |p: &Point| p.n >= 1.0 && p.n.is_finite() && p.throughput > 0.0 && p.throughput.is_finite();
    if let Some(bad) = points.iter().find(|p| !sound(p)) {
        return Err(format!(
            "size {} with throughput {}: expected a size of 1 or more and a throughput above 0",
            bad.n, bad.throughput
        ));
    }
    let mut sizes: Vec<f64> = points.iter().map(|p| p.n).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if points.len() < 6 || sizes.len() < 4 {
        let (n, m) = (points.len(), sizes.len());
        return Err(format!("{n} points at {m} sizes: the scalability law needs at least six, at four sizes or more"));
    }
    let unit = points.iter().map(|p| p.throughput / p.n).fold(0.0, f64::max);
    let loss = |p: &[f64]| -> f64 {
        let (g, a, b) = (unit * p[0].exp(), p[1].exp(), p[2].exp());
        points
            .iter()
            .map(|point| {
                let sd = point.sd.filter(|sd| *sd > 0.0).unwrap_or(0.05 * point.throughput);
                ((law(g, a, b, point.n) - point.throughput) / sd).powi(2)
            })
            .sum()
    };
    // Several beginnings: the valley between contention and coherency is long, and the simplex may rest in it.
    let starts = [[0.0, -3.0, -8.0], [0.0, -1.0, -6.0], [0.1, -6.0, -5.0], [0.1, -8.0, -12.0]];
    let ends = starts.iter().map(|start| {
        simplex::least(&simplex::least(start, 0.7, 2_000, &mut |p| loss(p)), 0.3, 2_000, &mut |p| loss(p))
    });
    let best = ends.min_by(|p, q| loss(p).total_cmp(&loss(q))).unwrap_or_else(|| starts[0].to_vec());
    // What is too small to be seen at the largest size is none.
    let largest = sizes[sizes.len() - 1];
    let (g, a) = (unit * best[0].exp(), best[1].exp());
    let a = if a * largest < 1e-3 { 0.0 } else { a };
    let b = if best[2].exp() * largest * largest < 1e-3 { 0.0 } else { best[2].exp() };
    let peak_n = (b > 0.0 && a < 1.0).then(|| ((1.0 - a) / b).sqrt());
    let residuals = points.iter().map(|p| (p.n, p.throughput / law(g, a, b, p.n) - 1.0)).collect();
    Ok(Law { g, a, b, peak_n, residuals })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::draw::Dice;

    #[test]
    fn a_law_is_found_again_from_noisy_points() {
        let mut dice = Dice::new(5);
        for (g, a, b) in [(1_000.0_f64, 0.05_f64, 0.0005_f64), (20.0, 0.2, 0.002), (300.0, 0.01, 0.0001)] {
            let points: Vec<Point> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0]
                .iter()
                .map(|n| {
                    let throughput = law(g, a, b, *n) * (1.0 + 0.01 * (dice.fraction() - 0.5));
                    Point { n: *n, throughput, sd: None }
                })
                .collect();
            let fitted = fit(&points).unwrap();
            assert!((fitted.g / g - 1.0).abs() < 0.03, "{fitted:?}");
            let peak: f64 = ((1.0 - a) / b).sqrt();
            assert!((fitted.peak_n.unwrap() / peak - 1.0).abs() < 0.1, "{fitted:?} {peak}");
            assert!(fitted.residuals.iter().all(|(_, r)| r.abs() < 0.02));
            assert!((fitted.throughput(24.0) / law(g, a, b, 24.0) - 1.0).abs() < 0.02);
        }
    }

    #[test]
    fn a_service_that_scales_without_end_has_no_peak() {
        let points: Vec<Point> =
            (1..=8).map(|n| Point { n: f64::from(n), throughput: 50.0 * f64::from(n), sd: Some(1.0) }).collect();
        let fitted = fit(&points).unwrap();
        assert_eq!(fitted.peak_n, None);
        assert!((fitted.throughput(16.0) - 800.0).abs() < 16.0, "{fitted:?}");
        assert!(fit(&points[..5]).unwrap_err().contains("needs at least six"));
        let mut bad = points.clone();
        bad[0].throughput = f64::NAN;
        assert!(fit(&bad).unwrap_err().contains("expected a size"));
    }
}
