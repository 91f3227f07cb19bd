//! Is B faster than A? The ratio of a quantile of two samples, by bootstrap (Efron 1979), with a plain verdict.

use super::{Estimate, percentile};
use crate::simulate::draw::Dice;
use serde::Serialize;

/// What a comparison says of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// The samples do not tell them apart.
    NoDifferenceSeen,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifferenceSeen => "no difference seen",
        }
    }
}

/// Two samples held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// B over A.
    pub ratio: Estimate,
    /// What that means.
    pub verdict: Verdict,
}

/// Bootstrap samples drawn of each side.
const SAMPLES: usize = 1_000;

/// Compares the quantile `q` of two samples of durations: [`paired`] with one pair.
pub fn durations(a: &[f64], b: &[f64], q: f64, seed: u64) -> Option<Comparison> {
    paired(&[[a, b]], q, seed)
}

/// Compares the quantile `q` of B's durations with A's, trial by trial. Values of one trial depend on their neighbours, so whole
/// blocks of neighbours are drawn (moving blocks of the cube root of the length; Künsch 1989): without blocks, two runs of one server
/// would look different too often. Trials of one pair ran side by side, so pairs are drawn as a whole, with whatever the machine did to
/// both, and what differs from pair to pair makes the interval wide. A question without a sound answer counts as an infinite duration,
/// never as a fast one. `None` where a side has fewer than 20 values, a quantile of zero, or where both quantiles are infinite.
pub fn paired(pairs: &[[&[f64]; 2]], q: f64, seed: u64) -> Option<Comparison> {
    let pairs: Vec<[&[f64]; 2]> =
        pairs.iter().filter(|pair| pair.iter().all(|side| !side.is_empty())).copied().collect();
    let [a, b] = [0, 1].map(|side| pairs.iter().flat_map(|pair| pair[side]).copied().collect::<Vec<f64>>());
    if a.len() < 20 || b.len() < 20 {
        return None;
    }
    let room = [a.len(), b.len()];
    let (at_a, at_b) = (quantile(a, q), quantile(b, q));
    if at_a <= 0.0 || at_b <= 0.0 || (at_a.is_infinite() && at_b.is_infinite()) {
        return None;
    }
    let mut dice = Dice::new(seed);
    let mut ratios = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let mut drawn = room.map(Vec::with_capacity);
        for _ in &pairs {
            let pair = pairs[dice.below(pairs.len())];
            for (drawn, values) in drawn.iter_mut().zip(pair) {
                resample(values, &mut dice, drawn);
            }
        }
        let [a, b] = drawn;
        let ratio = quantile(b, q) / quantile(a, q);
        // Infinite on both sides: no difference.
        ratios.push(if ratio.is_nan() { 1.0 } else { ratio });
    }
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (percentile::of_sorted(&ratios, 0.025)?, percentile::of_sorted(&ratios, 0.975)?);
    let verdict = match (low, high) {
        (_, high) if high < 1.0 => Verdict::Faster,
        (low, _) if low > 1.0 => Verdict::Slower,
        _ => Verdict::NoDifferenceSeen,
    };
    Some(Comparison { ratio: Estimate { value: at_b / at_a, low, high }, verdict })
}

/// The quantile as [`percentile::of_sorted`] has it, without sorting all.
pub(crate) fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
    *values.select_nth_unstable_by(rank - 1, f64::total_cmp).1
}

/// Adds as many values as there are, drawn in blocks.
fn resample(values: &[f64], dice: &mut Dice, out: &mut Vec<f64>) {
    let block = (values.len() as f64).cbrt().ceil() as usize;
    let end = out.len() + values.len();
    while out.len() < end {
        let start = dice.below(values.len() - block + 1);
        out.extend_from_slice(&values[start..start + block]);
    }
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(n: usize, mean: f64, dice: &mut Dice) -> Vec<f64> {
        (0..n).map(|_| -mean * (1.0 - dice.fraction()).ln()).collect()
    }

    #[test]
    fn a_real_difference_is_seen_and_an_absent_one_is_rarely_claimed() {
        let mut dice = Dice::new(3);
        let (mut claimed, mut seen) = (0, 0);
        for seed in 0..40 {
            let a = exponential(300, 10.0, &mut dice);
            let same = exponential(300, 10.0, &mut dice);
            let slower = exponential(300, 15.0, &mut dice);
            claimed += u32::from(durations(&a, &same, 0.5, seed).unwrap().verdict != Verdict::NoDifferenceSeen);
            seen += u32::from(durations(&a, &slower, 0.5, seed).unwrap().verdict == Verdict::Slower);
        }
        // Two of 40 are expected by the level of the interval.
        assert!(claimed <= 6, "{claimed}");
        assert!(seen >= 34, "{seen}");
        let a = exponential(300, 10.0, &mut dice);
        let faster: Vec<f64> = a.iter().map(|x| x / 2.0).collect();
        assert_eq!(durations(&a, &faster, 0.5, 1).unwrap().verdict, Verdict::Faster);
        assert_eq!(durations(&a, &a[..19], 0.5, 1), None);
        // One in ten without a sound answer: the median hardly moves, the p95 is for ever.
        let unsound: Vec<f64> = (0..300).map(|i| if i % 10 == 0 { f64::INFINITY } else { faster[i] }).collect();
        assert_eq!(durations(&a, &unsound, 0.5, 1).unwrap().verdict, Verdict::Faster);
        assert_eq!(durations(&a, &unsound, 0.95, 1).unwrap().verdict, Verdict::Slower);
        assert_eq!(durations(&unsound, &unsound, 0.95, 1), None);
    }

    /// Six rounds of A and B that are the same, but for what the machine does from trial to trial.
    #[test]
    fn what_differs_from_trial_to_trial_is_not_taken_for_a_difference() {
        let mut dice = Dice::new(8);
        let trial = |level: f64, dice: &mut Dice| -> Vec<f64> {
            (0..400).map(|_| level * (0.9 + 0.2 * dice.fraction())).collect()
        };
        let level = |dice: &mut Dice| (0.4 * (dice.fraction() - 0.5)).exp();
        let (mut pooled, mut apart, mut alike) = (0, 0, 0);
        for seed in 0..20 {
            let rounds: Vec<[Vec<f64>; 2]> =
                (0..6).map(|_| [level(&mut dice), level(&mut dice)].map(|level| trial(level, &mut dice))).collect();
            let pairs: Vec<[&[f64]; 2]> = rounds.iter().map(|[a, b]| [a.as_slice(), b.as_slice()]).collect();
            let [a, b] = [0, 1].map(|side| pairs.iter().flat_map(|pair| pair[side]).copied().collect::<Vec<f64>>());
            pooled += u32::from(durations(&a, &b, 0.5, seed).unwrap().verdict != Verdict::NoDifferenceSeen);
            apart += u32::from(paired(&pairs, 0.5, seed).unwrap().verdict != Verdict::NoDifferenceSeen);
            // What falls on both of a pair hides no difference of a tenth.
            let rounds: Vec<[Vec<f64>; 2]> = (0..6)
                .map(|_| {
                    let level = level(&mut dice);
                    [level, level * 1.1].map(|level| trial(level, &mut dice))
                })
                .collect();
            let pairs: Vec<[&[f64]; 2]> = rounds.iter().map(|[a, b]| [a.as_slice(), b.as_slice()]).collect();
            alike += u32::from(paired(&pairs, 0.5, seed).unwrap().verdict == Verdict::Slower);
        }
        assert!(pooled >= 8 && apart <= 8, "{pooled} {apart}");
        assert!(alike >= 15, "{alike}");
        let alone: [&[f64]; 2] = [&[1.0; 40], &[]];
        assert_eq!(paired(&[alone], 0.5, 1), None);
    }
}
