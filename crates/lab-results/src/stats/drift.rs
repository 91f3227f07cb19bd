//! Drift of a figure over a long run, by Mann and Kendall's test on blocks, with Sen's slope.
//!
//! The test uses only which of two blocks is higher, so a few stalls do not decide it. Blocks are long enough for
//! neighbours to be nearly independent.

use super::{normal_cdf, percentile, sorted};
use serde::Serialize;

/// A trend over time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    /// Change of the median per hour (Sen 1968): the median of the slopes between all pairs of blocks.
    pub per_hour: f64,
    /// The same over the whole run, as a share of the first quarter's median.
    pub share: f64,
    /// Upper bound of the probability that a run without drift would look like this.
    pub p: f64,
    /// Whether a drift is claimed: p under 1 %, because soaks are tested often and are long.
    pub drifts: bool,
}

/// Number of blocks into which the run is divided.
const BLOCKS: usize = 24;

/// Tests values over time (seconds, value). `None` with fewer than ten values per block.
pub fn of(values: &[(f64, f64)]) -> Option<Drift> {
    let mut values: Vec<(f64, f64)> = values.iter().copied().filter(|v| v.0.is_finite() && v.1.is_finite()).collect();
    if values.len() < BLOCKS * 10 {
        return None;
    }
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let median =
        |part: &[(f64, f64)]| percentile::of_sorted(&sorted(&part.iter().map(|v| v.1).collect::<Vec<_>>()), 0.5);
    let blocks: Vec<(f64, f64)> = (0..BLOCKS)
        .filter_map(|i| {
            let part = &values[i * values.len() / BLOCKS..(i + 1) * values.len() / BLOCKS];
            Some((part.iter().map(|v| v.0).sum::<f64>() / part.len() as f64, median(part)?))
        })
        .collect();
    let (mut score, mut slopes) = (0.0, Vec::new());
    for (i, a) in blocks.iter().enumerate() {
        for b in &blocks[i + 1..] {
            // Only the sign counts, so one huge stall weighs no more than any other block.
            score += (b.1 - a.1).partial_cmp(&0.0).map_or(0.0, |order| f64::from(order as i8));
            slopes.push((b.1 - a.1) / (b.0 - a.0));
        }
    }
    let n = blocks.len() as f64;
    let sd = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    // The continuity correction: the score is an integer, but the normal distribution is continuous.
    let z = (score.abs() - 1.0).max(0.0) / sd;
    let p = 2.0 * (1.0 - normal_cdf(z));
    // Sen's slope: the median of all slopes between two blocks, which no single stall can tilt.
    let slope = percentile::of_sorted(&sorted(&slopes), 0.5)?;
    let length = values[values.len() - 1].0 - values[0].0;
    let first = median(&values[..values.len() / 4])?;
    let share = if first == 0.0 { 0.0 } else { slope * length / first };
    Some(Drift { per_hour: slope * 3_600.0, share, p, drifts: p < 0.01 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRng;

    fn soak(per_hour: f64, rng: &mut SeededRng) -> Vec<(f64, f64)> {
        let noise = |rng: &mut SeededRng| if rng.chance(0.01) { 500.0 } else { 20.0 * -(1.0 - rng.fraction()).ln() };
        (0..2_000).map(|i| (f64::from(i) * 7.2, 10.0 + noise(rng) + per_hour * f64::from(i) * 7.2 / 3_600.0)).collect()
    }

    #[test]
    fn a_drift_is_found_through_stalls_and_rarely_invented() {
        let mut rng = SeededRng::new(2);
        let invented = (0..100).filter(|_| of(&soak(0.0, &mut rng)).unwrap().drifts).count();
        assert!(invented <= 4, "{invented}");
        for _ in 0..20 {
            let drift = of(&soak(4.0, &mut rng)).unwrap();
            assert!(drift.drifts && (drift.per_hour - 4.0).abs() < 1.5, "{drift:?}");
        }
        assert_eq!(of(&soak(0.0, &mut rng)[..200]), None);
    }
}
