//! Spearman's rank correlation: whether two lists of numbers have the same order.

/// Returns the correlation of the ranks of pairs, from -1 to 1; equal values share the mean of their ranks. `None` for
/// fewer than three pairs, or if all values of one side are equal.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let left = ranks(pairs.iter().map(|(a, _)| *a).collect());
    let right = ranks(pairs.iter().map(|(_, b)| *b).collect());
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let scale = (product(&left, &left) * product(&right, &right)).sqrt();
    (scale > 0.0).then(|| product(&left, &right) / scale)
}

/// Returns the rank of each value, from 1.
fn ranks(values: Vec<f64>) -> Vec<f64> {
    let of = |x: &f64| {
        let below = values.iter().filter(|other| *other < x).count() as f64;
        let equal = values.iter().filter(|other| *other == x).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_agree_disagree_or_share_ranks() {
        let of = |right: [f64; 5]| spearman(&[1.0, 2.0, 3.0, 4.0, 5.0].into_iter().zip(right).collect::<Vec<_>>());
        assert_eq!(of([1.0, 4.0, 9.0, 16.0, 25.0]), Some(1.0));
        assert_eq!(of([5.0, 4.0, 3.0, 2.0, 1.0]), Some(-1.0));
        // 1 - 6 * sum of squared differences / (n (n^2 - 1)): 2 and 1, 5 and 4 are swapped.
        assert!((of([2.0, 1.0, 3.0, 5.0, 4.0]).unwrap() - (1.0 - 6.0 * 4.0 / 120.0)).abs() < 1e-12);
        // Ranks 1, 2.5, 2.5, 4, 5: by Pearson's formula over them.
        assert!((of([1.0, 2.0, 2.0, 3.0, 4.0]).unwrap() - 9.5 / (10.0_f64 * 9.5).sqrt()).abs() < 1e-12);
        assert_eq!(of([3.0; 5]), None);
        assert_eq!(spearman(&[(1.0, 1.0), (2.0, 2.0)]), None);
    }
}
