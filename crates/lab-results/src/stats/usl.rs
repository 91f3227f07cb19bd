//! The Universal Scalability Law: throughput X(N) = g N / (1 + a (N - 1) + b N (N - 1)) (Gunther 1993).
//!
//! `g` is the throughput of one, `a` the share of work that must queue, `b` the cost of agreement between each pair.
//! Throughput has its peak at N = sqrt((1 - a) / b).
//!
//! The law bends all along. A server with a fixed number of workers does not. Its throughput rises in a straight line
//! up to that number and then stays (the asymptotic bounds of operational analysis, Denning and Buzen 1978). No law
//! goes through such points, as its residuals show and [`Law::words`] reports.

use super::simplex;
use serde::{Deserialize, Serialize};

/// Throughput at a size (users, connections, workers, nodes).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The size.
    pub n: f64,
    /// Throughput at that size.
    pub throughput: f64,
    /// Standard deviation of that throughput over repeats, if known: the point is weighted by its inverse square.
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
    /// Size of the max throughput; `None` if it grows without limit.
    pub peak_n: Option<f64>,
    /// (size, measured over predicted minus one) of each point. A law whose residuals bend predicts nothing past its
    /// points.
    pub residuals: Vec<(f64, f64)>,
}

/// Max error of a law that fits, as a share at any point: throughput over some seconds varies by less.
const FITS_WITHIN: f64 = 0.1;

/// A straight line up to a size, and the same throughput from there on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// Size from which more brings no increase.
    pub from_n: f64,
    /// Throughput there and beyond.
    pub throughput: f64,
    /// Max relative error of a point.
    pub worst: f64,
}

impl Law {
    /// Returns the predicted throughput for a size.
    pub fn throughput(&self, n: f64) -> f64 {
        law(self.g, self.a, self.b, n)
    }

    /// Returns the points that the law was fitted to: size and throughput.
    pub fn measured(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.residuals.iter().map(|(n, residual)| (*n, self.throughput(*n) * (1.0 + residual)))
    }

    /// Returns the point with the largest error: its size and its residual.
    pub fn worst(&self) -> (f64, f64) {
        let all = self.residuals.iter().copied();
        all.max_by(|p, q| p.1.abs().total_cmp(&q.1.abs())).unwrap_or((1.0, 0.0))
    }

    /// Returns whether the points follow the law. Otherwise it predicts nothing, not even between them.
    pub fn fits(&self) -> bool {
        self.worst().1.abs() <= FITS_WITHIN
    }

    /// Returns the name of its curve in a picture.
    pub fn name(&self) -> &'static str {
        if self.fits() { "scalability law" } else { "scalability law (does not fit)" }
    }

    /// Fits a line and a plateau to the points; `None` if no point lies beyond the line's end.
    pub fn plateau(&self) -> Option<Plateau> {
        let mut points: Vec<(f64, f64)> = self.measured().collect();
        points.sort_by(|p, q| p.0.total_cmp(&q.0));
        // The line may take any number of points; the smallest error decides.
        let splits = (1..points.len()).filter(|at| points[*at].0 > points[*at - 1].0);
        let plateaus = splits.map(|at| {
            let (line, flat) = points.split_at(at);
            let mean = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
            let per_one = mean(&mut line.iter().map(|(n, x)| x / n), line.len());
            let throughput = mean(&mut flat.iter().map(|(_, x)| *x), flat.len());
            let off = |(n, x): &(f64, f64)| (x / throughput.min(per_one * n) - 1.0).abs();
            let worst = points.iter().map(off).fold(0.0, f64::max);
            Plateau { from_n: throughput / per_one, throughput, worst }
        });
        plateaus.min_by(|p, q| p.worst.total_cmp(&q.worst))
    }

    /// Describes what the residuals show about the law, in a sentence or two.
    pub fn words(&self) -> String {
        let (n, residual) = self.worst();
        let off = residual.abs() * 100.0;
        if self.fits() {
            return format!("The scalability law fits: it is off by at most {off:.0} %.");
        }
        let mut text = format!(
            "The scalability law does not fit: at {n:.0} users it is off by {off:.0} %, so it says nothing about other sizes."
        );
        if let Some(plateau) = self.plateau().filter(|plateau| plateau.worst <= FITS_WITHIN) {
            text += &format!(
                " Throughput rises in a straight line up to {:.1} users and stays at {:.1} a second from there, within {:.0} %: so does a \
                 server with a fixed number of workers.",
                plateau.from_n,
                plateau.throughput,
                plateau.worst * 100.0
            );
        }
        text
    }
}

fn law(g: f64, a: f64, b: f64, n: f64) -> f64 {
    g * n / (1.0 + a * (n - 1.0) + b * n * (n - 1.0))
}

/// Fits the law by weighted least squares. Fewer than six points, or six at fewer than four sizes, fit anything: they
/// are refused with a sentence. Points without a standard deviation are weighted as if it were 5 % of their
/// throughput.
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
        // As exponentials: negative contention and coherency have no meaning, and the simplex has no bounds.
        let (g, a, b) = (unit * p[0].exp(), p[1].exp(), p[2].exp());
        points
            .iter()
            .map(|point| {
                // Relative, so that the large throughputs do not decide the fit alone.
                let sd = point.sd.filter(|sd| *sd > 0.0).unwrap_or(0.05 * point.throughput);
                ((law(g, a, b, point.n) - point.throughput) / sd).powi(2)
            })
            .sum()
    };
    // Several start points: the valley between contention and coherency is long, and the simplex may get stuck in it.
    let starts = [[0.0, -3.0, -8.0], [0.0, -1.0, -6.0], [0.1, -6.0, -5.0], [0.1, -8.0, -12.0]];
    let ends = starts.iter().map(|start| {
        simplex::minimize(&simplex::minimize(start, 0.7, 2_000, &mut |p| loss(p)), 0.3, 2_000, &mut |p| loss(p))
    });
    let best = ends.min_by(|p, q| loss(p).total_cmp(&loss(q))).unwrap_or_else(|| starts[0].to_vec());
    // A coefficient without an effect at the largest size is zero.
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
    use crate::random::SeededRng;

    #[test]
    fn a_law_is_found_again_from_noisy_points() {
        let mut rng = SeededRng::new(5);
        for (g, a, b) in [(1_000.0_f64, 0.05_f64, 0.0005_f64), (20.0, 0.2, 0.002), (300.0, 0.01, 0.0001)] {
            let points: Vec<Point> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0]
                .iter()
                .map(|n| {
                    let throughput = law(g, a, b, *n) * (1.0 + 0.01 * (rng.fraction() - 0.5));
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

    /// Simulates a server with `workers` workers of 20 ms each, with these numbers of users.
    fn of_workers(workers: f64, noise: f64) -> Vec<Point> {
        let mut rng = SeededRng::new(9);
        let users = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0];
        let throughput = |n: f64, rng: &mut SeededRng| 50.0 * n.min(workers) * (1.0 + noise * (rng.fraction() - 0.5));
        users.map(|n| Point { n, throughput: throughput(n, &mut rng), sd: None }).to_vec()
    }

    #[test]
    fn a_line_and_a_plateau_are_no_scalability_law_and_the_words_say_so() {
        let points = of_workers(4.0, 0.04);
        let fitted = fit(&points).unwrap();
        // The law is wrong here, not its fit: no other law of a fine grid comes nearer to the points.
        let loss = |g: f64, a: f64, b: f64| -> f64 {
            points.iter().map(|p| (law(g, a, b, p.n) / p.throughput - 1.0).powi(2)).sum()
        };
        let grid = (0..60).flat_map(|g| (0..60).flat_map(move |a| (0..60).map(move |b| (g, a, b))));
        let best = grid
            .map(|(g, a, b)| loss(40.0 + f64::from(g), f64::from(a) * 0.02, f64::from(b) * 0.001))
            .fold(f64::INFINITY, f64::min);
        assert!(loss(fitted.g, fitted.a, fitted.b) <= best * 1.01, "{fitted:?} {best}");
        assert!(!fitted.fits(), "{fitted:?}");
        let plateau = fitted.plateau().unwrap();
        assert!((plateau.from_n - 4.0).abs() < 0.2 && (plateau.throughput - 200.0).abs() < 5.0, "{plateau:?}");
        let words = fitted.words();
        assert!(words.contains("does not fit") && words.contains("fixed number of workers"), "{words}");
    }

    #[test]
    fn what_follows_the_law_is_said_to_fit_it() {
        let sizes = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let points = sizes.map(|n| Point { n, throughput: law(100.0, 0.05, 0.001, n), sd: None });
        let fitted = fit(&points).unwrap();
        assert!(fitted.fits() && fitted.words().contains("fits: it is off by at most"), "{}", fitted.words());
        // Points that fit neither are not called a plateau.
        let odd = [100.0, 60.0, 300.0, 100.0, 500.0, 80.0, 900.0];
        let points: Vec<Point> =
            sizes.iter().zip(odd).map(|(n, throughput)| Point { n: *n, throughput, sd: None }).collect();
        let words = fit(&points).unwrap().words();
        assert!(words.contains("does not fit") && !words.contains("straight line"), "{words}");
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
