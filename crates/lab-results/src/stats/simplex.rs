//! The simplex method (Nelder and Mead 1965): minimises a function of few numbers, without derivatives.

/// Returns the lowest point found within this many evaluations, with the usual coefficients (reflection 1, expansion
/// 2, contraction and shrinkage 1/2). `size` is the first step along each number; the search ends when the simplex is
/// a thousandth wide.
pub fn minimize(start: &[f64], size: f64, evaluations: usize, loss: &mut impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let n = start.len();
    let mut left = evaluations;
    let mut value = |point: &[f64], left: &mut usize| {
        *left = left.saturating_sub(1);
        loss(point)
    };
    let mut corners: Vec<(f64, Vec<f64>)> = vec![(value(start, &mut left), start.to_vec())];
    for i in 0..n {
        let mut point = start.to_vec();
        point[i] += size;
        corners.push((value(&point, &mut left), point));
    }
    while left > 0 {
        corners.sort_by(|a, b| a.0.total_cmp(&b.0));
        let spread = (0..n).map(|i| (corners[n].1[i] - corners[0].1[i]).abs()).fold(0.0, f64::max);
        // The numbers are logarithms: a thousandth is a tenth of a percent of their values.
        if spread < 1e-3 {
            break;
        }
        let centre: Vec<f64> =
            (0..n).map(|i| corners[..n].iter().map(|corner| corner.1[i]).sum::<f64>() / n as f64).collect();
        let worst = corners[n].clone();
        let along = |t: f64| -> Vec<f64> { (0..n).map(|i| centre[i] + t * (worst.1[i] - centre[i])).collect() };
        let mut tried = (0.0, along(-1.0));
        tried.0 = value(&tried.1, &mut left);
        if tried.0 < corners[0].0 {
            let further = along(-2.0);
            let loss = value(&further, &mut left);
            corners[n] = if loss < tried.0 { (loss, further) } else { tried };
        } else if tried.0 < corners[n - 1].0 {
            corners[n] = tried;
        } else {
            // On the side of the better of the two, the reflected point or the worst corner.
            let nearer = along(if tried.0 < worst.0 { -0.5 } else { 0.5 });
            let loss = value(&nearer, &mut left);
            if loss < tried.0.min(worst.0) {
                corners[n] = (loss, nearer);
            } else {
                let best = corners[0].1.clone();
                // No point on the line is better: all corners move towards the best, which follows a bent valley.
                for corner in &mut corners[1..] {
                    for (x, b) in corner.1.iter_mut().zip(&best) {
                        *x = (*x + b) / 2.0;
                    }
                    corner.0 = value(&corner.1, &mut left);
                }
            }
        }
    }
    corners.sort_by(|a, b| a.0.total_cmp(&b.0));
    corners.swap_remove(0).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplex_finds_the_bottom_of_a_curved_valley() {
        let mut rosenbrock = |p: &[f64]| (1.0 - p[0]).powi(2) + 100.0 * (p[1] - p[0] * p[0]).powi(2);
        let best = minimize(&[-1.2, 1.0], 0.5, 2_000, &mut rosenbrock);
        assert!((best[0] - 1.0).abs() < 0.02 && (best[1] - 1.0).abs() < 0.04, "{best:?}");
    }
}
