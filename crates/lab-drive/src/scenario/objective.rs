//! Objectives: what must hold.

use serde::{Deserialize, Serialize};

/// One number of the measured phase and its bound. A run whose objectives do not hold ends with exit code 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Which number.
    pub metric: Metric,
    /// Largest value that is good.
    pub at_most: Option<f64>,
    /// Smallest acceptable value.
    pub at_least: Option<f64>,
    /// Of this population alone.
    pub population: Option<String>,
    /// Of this request alone.
    pub request: Option<String>,
    /// Of this target alone.
    pub target: Option<String>,
}

/// A number that an objective bounds. Percentiles are of the wait from the intended time over all requests. A
/// request that did not end sound waited for ever: failures do not make a target fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Median wait for the whole answer.
    P50Ms,
    /// 95th percentile of it.
    P95Ms,
    /// 99th percentile of it.
    P99Ms,
    /// 95th percentile of the wait for the first result.
    FirstP95Ms,
    /// Share of requests that ended sound.
    SoundShare,
    /// Sound answers a second of a trial, the mean over trials.
    SoundRate,
}

impl Metric {
    /// As in the scenario file.
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
