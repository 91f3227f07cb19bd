//! Counts of a run.

use serde_json::{Value, json};
use std::time::Duration;

/// Counts of one connection during the measured time.
#[derive(Default)]
pub struct Tally {
    /// Microseconds of each response.
    pub latencies_us: Vec<u32>,
    /// Bytes of responses.
    pub bytes: u64,
    /// Number of error responses and broken connections.
    pub errors: u64,
    /// Text of the first error.
    pub first_error: Option<String>,
}

impl Tally {
    /// Adds the counts of another connection.
    pub fn add(&mut self, other: Tally) {
        self.latencies_us.extend(other.latencies_us);
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    /// Counts an error.
    pub fn fail(&mut self, error: impl std::fmt::Display) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }

    /// Returns the figures that every run reports; latencies in milliseconds.
    pub fn report(mut self, elapsed: Duration) -> Value {
        self.latencies_us.sort_unstable();
        let last = self.latencies_us.len().saturating_sub(1);
        let at = |q: f64| {
            let place = ((self.latencies_us.len() as f64 * q) as usize).min(last);
            self.latencies_us.get(place).map(|&us| f64::from(us) / 1000.0)
        };
        let answers = self.latencies_us.len() as f64;
        json!({
            "answers": self.latencies_us.len(),
            "seconds": elapsed.as_secs_f64(),
            "per_second": answers / elapsed.as_secs_f64(),
            "errors": self.errors,
            "first_error": self.first_error,
            "bytes_mean": self.bytes as f64 / answers.max(1.0),
            "p50_ms": at(0.5), "p90_ms": at(0.9), "p95_ms": at(0.95), "p99_ms": at(0.99), "max_ms": at(1.0),
        })
    }
}

/// Returns the processor seconds that this process has used so far, user and system.
pub fn cpu_seconds() -> f64 {
    // Linux counts in hundredths of a second, whatever the kernel's own tick is.
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}
