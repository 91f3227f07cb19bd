//! Percentiles and their confidence: within one run by order statistics, over repeats by Student's t.

use super::{Estimate, sorted, student};
use hdrhistogram::Histogram;

/// Returns the quantile `q` in [0, 1] of sorted values: the min value with at least the share `q` at or below it.
/// `None` without values.
pub fn of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// Returns the quantile `q` with an interval for any distribution. Its ends are the order statistics between which a
/// binomial count lies with 95 % (normal approximation; David and Nagaraja, Order Statistics, 7.1). It assumes
/// independent values, which latencies of one run are not quite: repeats are more reliable. `None` if the run is too
/// short for the interval to have both ends.
pub fn within_run(values: &[f64], q: f64) -> Option<Estimate> {
    let sorted = sorted(values);
    let (low, high) = ranks(sorted.len() as u64, q)?;
    let at = |rank: u64| sorted[rank as usize - 1];
    Some(Estimate { value: of_sorted(&sorted, q)?, low: at(low), high: at(high) })
}

/// Like [`within_run`] for a histogram, with the histogram's precision.
pub fn within_histogram(values: &Histogram<u64>, q: f64) -> Option<Estimate> {
    let n = values.len();
    let (low, high) = ranks(n, q)?;
    let at = |rank: u64| values.value_at_quantile(rank as f64 / n as f64) as f64;
    Some(Estimate { value: values.value_at_quantile(q) as f64, low: at(low), high: at(high) })
}

/// Returns the ranks, from 1, of the order statistics between which the quantile of `n` values lies.
fn ranks(n: u64, q: f64) -> Option<(u64, u64)> {
    let most = n as f64;
    let (middle, reach) = (most * q, 1.96 * (most * q * (1.0 - q)).sqrt());
    let (low, high) = ((middle - reach).floor(), (middle + reach).ceil() + 1.0);
    // With too few values the interval would reach beyond the sample, where nothing is known.
    (low >= 1.0 && high <= most).then_some((low as u64, high as u64))
}

/// Returns the mean over repeats of one figure (the p95 of each run, for example), with its interval. `None` under two
/// repeats.
pub fn over_repeats(figures: &[f64]) -> Option<Estimate> {
    let n = figures.len() as f64;
    if figures.len() < 2 || figures.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let value = figures.iter().sum::<f64>() / n;
    let variance = figures.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n - 1.0);
    let reach = student(figures.len() - 1) * (variance / n).sqrt();
    Some(Estimate { value, low: value - reach, high: value + reach })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRng;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_the_smallest_value_with_its_share_below(values in prop::collection::vec(-1e6f64..1e6, 1..200), q in 0.0f64..=1.0) {
            let sorted = sorted(&values);
            let found = of_sorted(&sorted, q).unwrap();
            let share = |x: f64| sorted.iter().filter(|v| **v <= x).count() as f64;
            let wanted = (q * sorted.len() as f64).ceil().max(1.0);
            let expected = *sorted.iter().find(|v| share(**v) >= wanted).unwrap();
            prop_assert_eq!(found, expected);
        }
    }

    /// 95 % of intervals contain the true value: of 400, 380 are expected with a standard deviation of 4.4.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut rng = SeededRng::new(7);
        let (mut within, mut over) = (0, 0);
        for _ in 0..400 {
            let run: Vec<f64> = (0..500).map(|_| -(1.0 - rng.fraction()).ln()).collect();
            within += u32::from(within_run(&run, 0.9).unwrap().holds(10f64.ln()));
            let repeats: Vec<f64> = (0..5).map(|_| (0..12).map(|_| rng.fraction()).sum::<f64>()).collect();
            over += u32::from(over_repeats(&repeats).unwrap().holds(6.0));
        }
        assert!((365..=398).contains(&within), "{within}");
        assert!((365..=395).contains(&over), "{over}");
        assert_eq!(within_run(&[1.0; 20], 0.99), None);
        let counted = |n: u64| {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            (1..=n).for_each(|x| histogram.record(x).unwrap());
            within_histogram(&histogram, 0.9)
        };
        let exact = within_run(&(1..=1_000).map(f64::from).collect::<Vec<_>>(), 0.9).unwrap();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.003;
        let found = counted(1_000).unwrap();
        assert!(near(found.low, exact.low) && near(found.high, exact.high), "{found:?} {exact:?}");
        assert_eq!(counted(8), None);
    }
}
