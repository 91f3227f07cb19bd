//! Figures of a real run: a results folder as a trial for calibrating a scenario.

use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::folder;
use meridian_lab_results::record::{Outcome, Phase, Record};
use meridian_lab_results::stats::percentile;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Value;

/// The data of a results folder: how requests arrived, as changes of a pipeline's scenario, and its figures
/// by the names of [`Scenario::figures`](super::Scenario::figures).
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredFolder {
    /// `arrival.…` for the same number of requests at their mean spacing.
    pub set: BTreeMap<String, Value>,
    /// Median, 95th percentile and mean of the wait for a whole response.
    pub figures: BTreeMap<String, f64>,
    /// Chance deviation of the mean, as a standard deviation of its logarithm, from the means of ten consecutive
    /// batches.
    pub chance: Option<f64>,
}

/// Reads the measured phase of the first trial of a results folder. A void run is refused: its figures prove nothing
/// about the target.
pub fn read(dir: &Path) -> Result<MeasuredFolder> {
    let folder = folder::open(dir)?;
    let shown = dir.display();
    if !folder.run.void.is_empty() {
        return Err(LabError::results(format!("{shown}: the run is void: {}", folder.run.void.join("; "))));
    }
    let (mut due, mut waits) = (Vec::new(), Vec::new());
    for batch in folder.records()? {
        for record in batch?.iter().filter(|r| r.phase == Phase::Measured && r.trial == 0 && r.attempt == 0) {
            // The due time, not the send time: a lab that lags must not make the target look less loaded.
            due.push(record.intended);
            waits.push(wait_s(record));
        }
    }
    seen(due, waits).map_err(|why| LabError::results(format!("{shown}: {why}")))
}

/// Returns the seconds to the end of a sound response; infinite otherwise.
fn wait_s(record: &Record) -> f64 {
    let sound = record.latency().filter(|_| record.outcome == Outcome::Sound);
    sound.map_or(f64::INFINITY, |us| us as f64 / 1e6)
}

fn seen(mut due: Vec<i64>, mut waits: Vec<f64>) -> std::result::Result<MeasuredFolder, String> {
    let chance = chance(&due, &waits);
    due.sort_unstable();
    waits.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (due.first(), due.last()) else {
        return Err("nothing was measured".to_owned());
    };
    if due.len() < 20 || last <= first {
        return Err(format!("{} requests were measured: expected at least 20, one after another", due.len()));
    }
    let spacing = (last - first) as f64 / 1e6 / (due.len() - 1) as f64;
    let count = i64::try_from(due.len()).unwrap_or(i64::MAX);
    let set = [
        ("arrival.kind", Value::String("single".to_owned())),
        ("arrival.count", Value::Integer(count)),
        ("arrival.interval_s", Value::Float(spacing)),
        ("arrival.submit_s", Value::Float(0.0)),
    ];
    let named = NAMES.into_iter().zip(of_waits(&waits));
    let figures: BTreeMap<String, f64> = named.filter_map(|(name, s)| Some((name.to_owned(), s?))).collect();
    if figures.is_empty() {
        return Err("fewer than half of the requests had a sound answer: there is nothing to fit to".to_owned());
    }
    Ok(MeasuredFolder { set: set.map(|(key, value)| (key.to_owned(), value)).into(), figures, chance })
}

/// Number of batches whose means are treated as independent.
const BATCHES: usize = 10;

/// Estimates it from the means of consecutive batches; `None` if some requests waited for ever.
fn chance(due: &[i64], waits: &[f64]) -> Option<f64> {
    let mut both: Vec<(i64, f64)> = due.iter().copied().zip(waits.iter().copied()).collect();
    both.sort_by_key(|(due, _)| *due);
    let mean = |batch: &[(i64, f64)]| batch.iter().map(|(_, wait)| wait).sum::<f64>() / batch.len() as f64;
    let logs: Vec<f64> = both.chunks(both.len().div_ceil(BATCHES).max(1)).map(|batch| mean(batch).ln()).collect();
    let n = logs.len() as f64;
    let middle = logs.iter().sum::<f64>() / n;
    let sd = (logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    Some(sd).filter(|sd| sd.is_finite())
}

/// Names of [`of_waits`].
pub(super) const NAMES: [&str; 3] = ["p50_s", "p95_s", "mean_s"];

/// Returns median, 95th percentile and mean of sorted waits; `None` for infinite or zero ones.
pub(super) fn of_waits(sorted: &[f64]) -> [Option<f64>; 3] {
    let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
    let at = |q| percentile::of_sorted(sorted, q).unwrap_or(f64::INFINITY);
    [at(0.5), at(0.95), mean].map(|s| Some(s).filter(|s| s.is_finite() && *s > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_and_waits_are_read_and_nobody_is_made_fast_by_failing() {
        let due: Vec<i64> = (0..100).map(|n| n * 10_000).collect();
        let waits = |lost: usize| -> Vec<f64> {
            (0..100).map(|n| if n < lost { f64::INFINITY } else { 0.001 * n as f64 }).collect()
        };
        let whole = seen(due.clone(), waits(0)).unwrap();
        assert_eq!(whole.set["arrival.count"], Value::Integer(100));
        assert!((whole.set["arrival.interval_s"].as_float().unwrap() - 0.01).abs() < 1e-12);
        assert!((whole.figures["p95_s"] - 0.094).abs() < 1e-9 && (whole.figures["mean_s"] - 0.0495).abs() < 1e-9);
        let some = seen(due.clone(), waits(10)).unwrap();
        assert!(some.figures.keys().eq(["p50_s"]), "{some:?}");
        assert!(seen(due[..10].to_vec(), waits(0)[..10].to_vec()).unwrap_err().contains("at least 20"));
        assert!(seen(due, waits(80)).unwrap_err().contains("fewer than half"));
    }
}
