//! Compares a quantile of two servers: the ratio of B to A, from repeats, with a plain verdict.
//!
//! Requests of one trial share the machine's state, so a thousand of them reveal no more about the variation of trials
//! than one does. An interval from within a trial calls two runs of one server different as often as not. The repeated
//! unit is the trial (or the run), and each gives one number: the logarithm of its quantile. Student's t test compares
//! those numbers: in pairs if trials took turns, else as two groups (Welch 1947).

use super::{Estimate, student_at};
use serde::Serialize;

/// The result of a comparison of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// The samples do not distinguish them.
    NoDifferenceSeen,
}

impl Verdict {
    /// Returns the verdict as text.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifferenceSeen => "no difference seen",
        }
    }
}

/// A comparison of two servers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// B over A.
    pub ratio: Estimate,
    /// Verdict on that ratio.
    pub verdict: Verdict,
}

/// Why two servers can be called neither different nor alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoVerdict {
    /// There are fewer repeats than [`REPEATS`].
    Repeats,
    /// Some repeats have no sound response at the quantile, and others have one.
    Never,
    /// Neither side has a sound response there.
    Neither,
}

/// Min repeats of each side for a decision.
pub const REPEATS: usize = 3;
/// Assumed difference between runs of the same server, as a standard deviation of the logarithm, if there is only one
/// run. It is at least this, and at least the difference of its trials.
pub const RUN_SD: f64 = 0.05;

/// The quantiles of one side, one per repeat.
#[derive(Debug, Clone, Copy)]
pub struct Repeats<'a> {
    /// Durations, infinite without a sound response.
    pub quantiles: &'a [f64],
    /// Whether all are of one run, so that they do not show how much runs differ.
    pub one_run: bool,
}

/// Compares pairs of A and B that ran consecutively. `alpha` is the share of pairs of the same server that may be
/// called different.
pub fn pairs(pairs: &[[f64; 2]], alpha: f64) -> Result<Comparison, NoVerdict> {
    if pairs.len() < REPEATS {
        return Err(NoVerdict::Repeats);
    }
    if let Some(never) = never(pairs.iter().map(|pair| pair[0]), pairs.iter().map(|pair| pair[1])) {
        return never;
    }
    // Logarithms: a ratio and its inverse then weigh the same, and the tail of slow trials does not dominate the
    // mean.
    let logs: Vec<f64> = pairs.iter().map(|[a, b]| (b / a).ln()).collect();
    let (mean, variance) = moments(&logs);
    let reach = student_at((logs.len() - 1) as f64, alpha) * (variance / logs.len() as f64).sqrt();
    Ok(verdict_of(mean, reach))
}

/// Compares two groups of repeats that did not take turns.
pub fn groups(a: Repeats<'_>, b: Repeats<'_>, alpha: f64) -> Result<Comparison, NoVerdict> {
    if a.quantiles.len() < REPEATS || b.quantiles.len() < REPEATS {
        return Err(NoVerdict::Repeats);
    }
    if let Some(never) = never(a.quantiles.iter().copied(), b.quantiles.iter().copied()) {
        return never;
    }
    let sides = [a, b].map(|side| {
        let logs: Vec<f64> = side.quantiles.iter().map(|ms| ms.ln()).collect();
        let (mean, variance) = moments(&logs);
        let n = logs.len() as f64;
        // Trials of one run share that run's conditions, so their spread alone would understate how much two runs of
        // the same server differ.
        let between = if side.one_run { variance.max(RUN_SD * RUN_SD) } else { 0.0 };
        (mean, variance / n + between, n - 1.0)
    });
    let [(of_a, var_a, free_a), (of_b, var_b, free_b)] = sides;
    let both = var_a + var_b;
    // Welch and Satterthwaite: the degrees of freedom of the sum.
    let degrees =
        if both > 0.0 { both * both / (var_a * var_a / free_a + var_b * var_b / free_b) } else { free_a.min(free_b) };
    Ok(verdict_of(of_b - of_a, student_at(degrees, alpha) * both.sqrt()))
}

/// Converts the mean of logarithms and its error to a ratio with its verdict.
fn verdict_of(mean: f64, reach: f64) -> Comparison {
    let ratio = Estimate { value: mean.exp(), low: (mean - reach).exp(), high: (mean + reach).exp() };
    let verdict = match ratio {
        Estimate { high, .. } if high < 1.0 => Verdict::Faster,
        Estimate { low, .. } if low > 1.0 => Verdict::Slower,
        _ => Verdict::NoDifferenceSeen,
    };
    Comparison { ratio, verdict }
}

/// Returns the verdict if some repeats never had a response at the quantile. If all of one side had none and all of
/// the other had one, that is a difference. By chance it would occur in at most one of 32 comparisons of three
/// repeats.
fn never(
    a: impl Iterator<Item = f64> + Clone,
    b: impl Iterator<Item = f64> + Clone,
) -> Option<Result<Comparison, NoVerdict>> {
    let (good_a, bad_a) = (a.clone().all(f64::is_finite), !a.clone().any(f64::is_finite));
    let (good_b, bad_b) = (b.clone().all(f64::is_finite), !b.clone().any(f64::is_finite));
    let ever = f64::INFINITY;
    match (good_a, bad_a, good_b, bad_b) {
        (true, _, true, _) => None,
        (_, true, _, true) => Some(Err(NoVerdict::Neither)),
        (true, _, _, true) => {
            let ratio = Estimate { value: ever, low: ever, high: ever };
            Some(Ok(Comparison { ratio, verdict: Verdict::Slower }))
        }
        (_, true, true, _) => {
            let ratio = Estimate { value: 0.0, low: 0.0, high: 0.0 };
            Some(Ok(Comparison { ratio, verdict: Verdict::Faster }))
        }
        _ => Some(Err(NoVerdict::Never)),
    }
}

/// Returns mean and variance of a sample.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// Returns the same quantile as [`of_sorted`](super::percentile::of_sorted), without sorting all.
pub fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
    *values.select_nth_unstable_by(rank - 1, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRng;

    const ALPHA: f64 = 0.05;

    fn side(quantiles: &[f64], one_run: bool) -> Repeats<'_> {
        Repeats { quantiles, one_run }
    }

    fn normal(rng: &mut SeededRng) -> f64 {
        (0..12).map(|_| rng.fraction()).sum::<f64>() - 6.0
    }

    #[test]
    fn too_few_repeats_decide_nothing_however_far_apart_they_are() {
        assert_eq!(pairs(&[[1.0, 100.0], [1.0, 101.0]], ALPHA), Err(NoVerdict::Repeats));
        assert_eq!(groups(side(&[1.0, 1.0, 1.0], false), side(&[100.0], false), ALPHA), Err(NoVerdict::Repeats));
        let three = pairs(&[[1.0, 99.0], [1.0, 100.0], [1.0, 101.0]], ALPHA).unwrap();
        assert_eq!(three.verdict, Verdict::Slower);
        assert!((three.ratio.value - 100.0).abs() < 0.1, "{three:?}");
    }

    #[test]
    fn one_run_of_each_side_is_not_told_apart_by_what_runs_differ_by_themselves() {
        let (a, near, far) = ([10.0, 10.1, 9.9, 10.0], [10.8, 10.9, 10.7, 10.8], [20.0, 20.2, 19.8, 20.0]);
        let compared = |b: &[f64], one_run: bool| groups(side(&a, one_run), side(b, one_run), ALPHA).unwrap().verdict;
        assert_eq!(compared(&near, false), Verdict::Slower);
        assert_eq!(compared(&near, true), Verdict::NoDifferenceSeen);
        assert_eq!(compared(&far, true), Verdict::Slower);
    }

    #[test]
    fn who_is_never_answered_is_slower_and_what_is_mixed_is_not_decided() {
        let ever = f64::INFINITY;
        let good = [[1.0, ever]; 3];
        assert_eq!(pairs(&good, ALPHA).unwrap().verdict, Verdict::Slower);
        assert_eq!(pairs(&[[ever, 1.0]; 3], ALPHA).unwrap().verdict, Verdict::Faster);
        assert_eq!(pairs(&[[ever, ever]; 3], ALPHA), Err(NoVerdict::Neither));
        assert_eq!(pairs(&[[1.0, 1.0], [1.0, ever], [1.0, ever]], ALPHA), Err(NoVerdict::Never));
    }

    #[test]
    fn the_same_is_called_different_as_often_as_alpha_says_and_a_tenth_is_seen() {
        let mut rng = SeededRng::new(3);
        let (mut claimed, mut seen) = ([0; 2], [0; 2]);
        for _ in 0..1_000 {
            // Rounds that drift together by far more than the sides differ; and repeats without turns.
            let rounds: Vec<[f64; 2]> = (0..6)
                .map(|_| {
                    let level = (0.5 * normal(&mut rng)).exp();
                    [0, 1].map(|_| 10.0 * level * (0.03 * normal(&mut rng)).exp())
                })
                .collect();
            let tenth: Vec<[f64; 2]> = rounds.iter().map(|[a, b]| [*a, b * 1.1]).collect();
            let verdict = |of: &[[f64; 2]]| pairs(of, ALPHA).unwrap().verdict;
            claimed[0] += u32::from(verdict(&rounds) != Verdict::NoDifferenceSeen);
            seen[0] += u32::from(verdict(&tenth) == Verdict::Slower);
            let [a, b] = [5, 7].map(|n| (0..n).map(|_| 10.0 * (0.03 * normal(&mut rng)).exp()).collect::<Vec<f64>>());
            let more: Vec<f64> = b.iter().map(|ms| ms * 1.1).collect();
            let verdict = |b: &[f64]| groups(side(&a, false), side(b, false), ALPHA).unwrap().verdict;
            claimed[1] += u32::from(verdict(&b) != Verdict::NoDifferenceSeen);
            seen[1] += u32::from(verdict(&more) == Verdict::Slower);
        }
        assert!(claimed.iter().all(|n| (30..=70).contains(n)), "{claimed:?}");
        assert!(seen.iter().all(|n| *n >= 900), "{seen:?}");
    }
}
