//! Objectives: conditions on a run's results.

use serde::{Deserialize, Serialize};

/// One number of the measured phase and its bound. A run that misses an objective ends with exit code 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// The number.
    pub metric: Metric,
    /// Max acceptable value.
    pub at_most: Option<f64>,
    /// Min acceptable value.
    pub at_least: Option<f64>,
    /// Only for this population.
    pub population: Option<String>,
    /// Only for this request.
    pub request: Option<String>,
    /// Only for this target.
    pub target: Option<String>,
}

/// A number that an objective bounds. Percentiles are of the wait from the intended time over all requests. A request
/// without a sound response counts as an infinite wait: failures do not make a target fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Median wait for the whole response.
    P50Ms,
    /// 95th percentile of it.
    P95Ms,
    /// 99th percentile of it.
    P99Ms,
    /// 95th percentile of the wait for the first result.
    FirstP95Ms,
    /// Share of requests with a sound response.
    SoundShare,
    /// Sound responses per second of a trial; the mean over trials.
    SoundRate,
}

impl Metric {
    /// Returns its name in the scenario file.
    pub fn name(self) -> &'static str {
        match self {
            Metric::P50Ms => "p50_ms",
            Metric::P95Ms => "p95_ms",
            Metric::P99Ms => "p99_ms",
            Metric::FirstP95Ms => "first_p95_ms",
            Metric::SoundShare => "sound_share",
            Metric::SoundRate => "sound_rate",
        }
    }
}
