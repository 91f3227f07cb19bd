//! Percentiles and how sure they are: within one run by order statistics, over repeats by Student's t.

use super::{Estimate, sorted, student};

/// The quantile `q` in [0, 1] of sorted values: the least value with at least the share `q` at or below it. `None` of nothing.
pub fn of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The quantile `q` with an interval that supposes nothing of the distribution: the order statistics between which a binomial count
/// lies with 95 % (normal approximation; David and Nagaraja, Order Statistics, 7.1). It supposes independent values, which
/// latencies of one run are not quite: repeats say more. `None` where the run is too short for the interval to have both ends.
pub fn within_run(values: &[f64], q: f64) -> Option<Estimate> {
    let sorted = sorted(values);
    let n = sorted.len() as f64;
    let (middle, reach) = (n * q, 1.96 * (n * q * (1.0 - q)).sqrt());
    let (low, high) = ((middle - reach).floor(), (middle + reach).ceil() + 1.0);
    if low < 1.0 || high > n {
        return None;
    }
    let value = of_sorted(&sorted, q)?;
    Some(Estimate { value, low: sorted[low as usize - 1], high: sorted[high as usize - 1] })
}

/// The mean over repeats of one figure (the p95 of each run, for example), with its interval. `None` under two repeats.
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
    use crate::simulate::draw::Dice;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_the_least_value_with_its_share_below(values in prop::collection::vec(-1e6f64..1e6, 1..200), q in 0.0f64..=1.0) {
            let sorted = sorted(&values);
            let found = of_sorted(&sorted, q).unwrap();
            let share = |x: f64| sorted.iter().filter(|v| **v <= x).count() as f64;
            let wanted = (q * sorted.len() as f64).ceil().max(1.0);
            let expected = *sorted.iter().find(|v| share(**v) >= wanted).unwrap();
            prop_assert_eq!(found, expected);
        }
    }

    /// 95 % of intervals hold the truth: of 400, 380 are expected with a standard deviation of 4.4.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut dice = Dice::new(7);
        let (mut within, mut over) = (0, 0);
        for _ in 0..400 {
            let run: Vec<f64> = (0..500).map(|_| -(1.0 - dice.fraction()).ln()).collect();
            within += u32::from(within_run(&run, 0.9).unwrap().holds(10f64.ln()));
            let repeats: Vec<f64> = (0..5).map(|_| (0..12).map(|_| dice.fraction()).sum::<f64>()).collect();
            over += u32::from(over_repeats(&repeats).unwrap().holds(6.0));
        }
        assert!((365..=398).contains(&within), "{within}");
        assert!((365..=395).contains(&over), "{over}");
        assert_eq!(within_run(&[1.0; 20], 0.99), None);
    }
}
