//! Whether there are one or two kinds of requests: the number of humps of a distribution of durations.
//!
//! Silverman's test (1981) on the logarithms. It takes the smallest bandwidth at which a Gaussian kernel estimate has
//! one hump. It compares this with the bandwidths that samples of that estimate need. If they rarely need as much, one
//! hump does not explain the data. Logarithms, because the tail of a single kind of request is long to the right and
//! would pass for a second hump.

use super::sorted;
use crate::random::SeededRng;
use serde::Serialize;

/// The shape of a distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// 1, or 2 for two or more.
    pub humps: u32,
    /// Upper bound of the probability that a distribution with one hump would look like this.
    pub p: f64,
    /// With two humps: the duration at the lowest point between the two highest, and the share of values below it.
    pub split: Option<(f64, f64)>,
}

/// Max values for the test, which is quadratic; of more, evenly spaced ones of the sorted values.
const VALUES: usize = 400;
const GRID: usize = 160;
const SAMPLES: usize = 100;
/// Probability below which two humps are claimed.
const LEVEL: f64 = 0.05;
/// Min prominence of a hump, as a share of the highest: isolated values in a tail are no hump.
const PROMINENCE: f64 = 0.03;

/// Tests a sample of durations; `None` under 50 values above zero.
pub fn of(durations: &[f64], seed: u64) -> Option<Shape> {
    let logs: Vec<f64> = durations.iter().filter(|x| **x > 0.0).map(|x| x.ln()).collect();
    let all = sorted(&logs);
    if all.len() < 50 {
        return None;
    }
    let take = all.len().min(VALUES);
    // Evenly spaced quantiles represent the whole, since the test is quadratic in the number of values.
    let values: Vec<f64> = (0..take).map(|i| all[(2 * i + 1) * all.len() / (2 * take)]).collect();
    let (mean, sd) = moments(&values);
    if sd == 0.0 {
        return Some(Shape { humps: 1, p: 1.0, split: None });
    }
    // The smallest bandwidth with one hump, by halving: humps only merge as the bandwidth grows (Silverman 1981).
    let (mut low, mut high) = (sd / 100.0, sd * 2.0);
    while high / low > 1.02 {
        let middle = (low * high).sqrt();
        if humps(&values, middle).len() > 1 { low = middle } else { high = middle }
    }
    // Samples of the estimate at that bandwidth, shrunk to the variance of the data.
    let mut rng = SeededRng::new(seed);
    let shrink = 1.0 / (1.0 + (high / sd).powi(2)).sqrt();
    let more = (0..SAMPLES)
        .filter(|_| {
            let sample: Vec<f64> = (0..values.len())
                .map(|_| {
                    // The sum of twelve uniform numbers is close enough to a normal one, and needs no table.
                    let noise = (0..12).map(|_| rng.fraction()).sum::<f64>() - 6.0;
                    mean + (values[rng.below(values.len())] - mean + high * noise) * shrink
                })
                .collect();
            humps(&sample, high).len() > 1
        })
        .count();
    let p = more as f64 / SAMPLES as f64;
    if p >= LEVEL {
        return Some(Shape { humps: 1, p, split: None });
    }
    // Slightly below the bandwidth at which the second hump merges with the first, so that both exist.
    let tops = humps(&values, high * 0.8);
    let split = tops.first().zip(tops.get(1)).map(|(a, b)| {
        let (from, to) = (a.min(*b), a.max(*b));
        let at = |i: usize| from + (to - from) * i as f64 / GRID as f64;
        let lowest = (0..=GRID)
            .map(at)
            .min_by(|x, y| density(&values, high * 0.8, *x).total_cmp(&density(&values, high * 0.8, *y)));
        let lowest = lowest.unwrap_or(from);
        let below = all.iter().filter(|x| **x < lowest).count() as f64 / all.len() as f64;
        (lowest.exp(), below)
    });
    Some(Shape { humps: 2, p, split })
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

fn density(values: &[f64], bandwidth: f64, x: f64) -> f64 {
    values.iter().map(|v| (-((x - v) / bandwidth).powi(2) / 2.0).exp()).sum()
}

/// Returns the positions of the prominent humps, the highest first.
fn humps(values: &[f64], bandwidth: f64) -> Vec<f64> {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min) - 2.0 * bandwidth;
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) + 2.0 * bandwidth;
    let at = |i: usize| min + (max - min) * i as f64 / (GRID - 1) as f64;
    let heights: Vec<f64> = (0..GRID).map(|i| density(values, bandwidth, at(i))).collect();
    let floor = heights.iter().copied().fold(0.0, f64::max) * PROMINENCE;
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut valley = 0.0;
    let mut top: Option<(f64, f64)> = None;
    for (i, height) in heights.iter().copied().enumerate() {
        match top {
            // Climbing out of a valley: a hump begins once it is prominent.
            None if height > valley + floor => top = Some((height, at(i))),
            None => valley = f64::min(valley, height),
            Some((highest, _)) if height > highest => top = Some((height, at(i))),
            Some(hump) if height < hump.0 - floor => {
                found.push(hump);
                top = None;
                valley = height;
            }
            Some(_) => {}
        }
    }
    found.extend(top);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_normal(median: f64, sigma: f64, rng: &mut SeededRng) -> f64 {
        median * (sigma * ((0..12).map(|_| rng.fraction()).sum::<f64>() - 6.0)).exp()
    }

    /// Modelled on the comparison of GeoMesa and GeoWave on tracks with one user (studies.md 1.7). In GeoMesa some 71
    /// % of responses take less than 0.8 s and 28 % more than 1.2 s. Its p50 is 0.49 s and its p95 is 8 s. GeoWave has
    /// one hump, p50 1.65 s, p95 3.4 s.
    #[test]
    fn the_published_shapes_are_told_apart() {
        let mut rng = SeededRng::new(9);
        for seed in 0..5 {
            let geowave: Vec<f64> = (0..600).map(|_| log_normal(1.65, 0.44, &mut rng)).collect();
            let geomesa: Vec<f64> = (0..600)
                .map(|_| match rng.chance(0.29) {
                    true => log_normal(4.0, 0.5, &mut rng),
                    false => log_normal(0.42, 0.25, &mut rng),
                })
                .collect();
            assert_eq!(of(&geowave, seed).unwrap().humps, 1);
            let two = of(&geomesa, seed).unwrap();
            assert_eq!(two.humps, 2);
            let (at, below) = two.split.unwrap();
            assert!((0.7..2.5).contains(&at) && (0.65..0.77).contains(&below), "{two:?}");
        }
    }

    #[test]
    fn one_hump_is_rarely_taken_for_two() {
        let mut rng = SeededRng::new(1);
        let wrong = (0..30)
            .filter(|seed| {
                let values: Vec<f64> = (0..200).map(|_| log_normal(10.0, 0.8, &mut rng)).collect();
                of(&values, *seed).unwrap().humps > 1
            })
            .count();
        assert!(wrong <= 4, "{wrong}");
        assert_eq!(of(&[1.0; 49], 1), None);
        assert_eq!(of(&[1.0; 80], 1).unwrap().humps, 1);
    }
}
