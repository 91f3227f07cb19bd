//! The outcome of a trial: sums over the measured scans.

use serde::Serialize;

/// The result of `lab simulate` for a scan tier: durations over the measured scans of all clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanOutcome {
    /// Mean duration of a scan.
    pub mean_ms: f64,
    /// Its standard deviation.
    pub sd_ms: f64,
    /// Min duration.
    pub min_ms: f64,
    /// Max duration.
    pub max_ms: f64,
    /// Busy responses that a probe of the workload's `probe_scans` scans would have seen.
    pub busy_events: u64,
    /// Share of the measured scans that were sent to a second server; absent without hedging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedged: Option<f64>,
    /// Cache hit share of the data read by batches, from the first scan on; absent without a data cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hits: Option<f64>,
}

/// Measured scans so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) scans: u64,
    busy: u64,
    pub(super) hedged: u64,
    /// Data read by batches, in tablets, and its cached part.
    pub(super) read: f64,
    pub(super) had: f64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Tally {
    pub(super) fn add(&mut self, ms: f64, busy: u32) {
        self.scans += 1;
        self.busy += u64::from(busy);
        self.sum += ms;
        self.squares += ms * ms;
        self.min = if self.scans == 1 { ms } else { self.min.min(ms) };
        self.max = self.max.max(ms);
    }

    pub(super) fn answer(&self, probe_scans: f64) -> ScanOutcome {
        let n = self.scans.max(1) as f64;
        let mean = self.sum / n;
        // A clock of microseconds has no further digits.
        let micros = |ms: f64| (ms * 1e3).round() / 1e3;
        ScanOutcome {
            mean_ms: micros(mean),
            sd_ms: micros((self.squares / n - mean * mean).max(0.0).sqrt()),
            min_ms: micros(self.min),
            max_ms: micros(self.max),
            busy_events: (self.busy as f64 / n * probe_scans).round() as u64,
            hedged: None,
            cache_hits: None,
        }
    }
}
