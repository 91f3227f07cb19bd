//! The results folder of a run, written by drivers and by the simulator, and read by all analysis.
//!
//! | file | content |
//! |---|---|
//! | `run.json` | format version, time and contents of the run, names for the indices of the records, reasons if void |
//! | `scenario.toml` | the resolved scenario, which can be run again unchanged |
//! | `requests.parquet` | one row per request, [`crate::record::Record`] |
//! | `samples.parquet` | readings of the samplers, on the same clock |
//! | `summary.json` | counts, rates and percentiles by phase, target, population and request |
//!
//! The folder is written next to its place under the name `DIR.partial` and renamed when complete. So a folder with
//! the final name is complete. [`Writer`] makes one, [`open`] reads one.

mod columns;
mod read;
mod summary;
mod write;

pub use read::{Results, open, read_text, versioned};
pub use summary::{Group, Quantiles, Summary};
pub use write::Writer;

use serde::{Deserialize, Serialize};

/// Version of the folder format. A reader refuses newer ones.
pub const FORMAT_VERSION: u32 = 1;

/// Contents of `run.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// Version of the folder format; set by the writer.
    pub format_version: u32,
    /// Version of the program.
    pub program: String,
    /// The scenario's name.
    pub name: String,
    /// Source of the records: `run` or `simulate`.
    pub source: String,
    /// When the run began (RFC 3339).
    pub started: String,
    /// When the run ended.
    pub ended: String,
    /// Why the run ended early, if it did.
    #[serde(default)]
    pub cut_short: Option<String>,
    /// Names for `target` in the records.
    pub targets: Vec<String>,
    /// Names for `population`.
    pub populations: Vec<String>,
    /// Names for `request`.
    pub requests: Vec<String>,
    /// The trials in the order in which they ran; a record's `trial` is the index.
    pub trials: Vec<Trial>,
    /// Reasons why the figures prove nothing about the target; empty if they are valid.
    pub void: Vec<String>,
    /// The lab's measurements of itself.
    #[serde(default)]
    pub lab: RunMetrics,
}

/// One trial of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Index of the target whose turn it was, if targets take turns.
    pub target: u16,
    /// When its clock was 0 (RFC 3339).
    pub started: String,
    /// Range of the measured phase on its clock, in microseconds; the end is that of the last measured arrival's
    /// window.
    pub measured_us: [i64; 2],
}

/// The lab's measurements of itself and of the machine during the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunMetrics {
    /// Number of arrivals due.
    pub arrivals: u64,
    /// Share of arrivals submitted more than a millisecond late.
    pub late_over_1ms_share: f64,
    /// 99th percentile of lateness, milliseconds.
    pub late_p99_ms: f64,
    /// Max lateness, milliseconds.
    pub late_max_ms: f64,
    /// Processor time of the whole process, as cores.
    pub cpu: f64,
    /// Processor time of the thread that sends and receives, as a share of a core. A thread that waits for a precise
    /// time spins, so a high share alone is no limit for open arrivals.
    pub driver_cpu: f64,
    /// Share of time in which this thread was ready to run and did not.
    pub driver_starved: f64,
    /// Processor time of the targets' processes on this machine and all their descendants, as cores, if known.
    #[serde(default)]
    pub target_cpu: Option<f64>,
    /// Share of the machine stolen by its host.
    pub steal: f64,
    /// Share of the machine used by neither the lab nor a target, if all targets on it are known.
    pub other_load: Option<f64>,
    /// Descriptors open at the end of the load; `samples.parquet` has them over time.
    pub descriptors: u64,
    /// Max descriptors of the process.
    pub descriptors_allowed: u64,
    /// Number of times that the driver waited for the disk.
    pub recorder_stalls: u64,
    /// Processor time of the whole process per request, microseconds.
    pub cpu_us_per_request: f64,
}

/// One reading of a sampler.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The trial.
    pub trial: u16,
    /// Time on the trial's clock.
    pub at: crate::record::Micros,
    /// The source: `lab`, `machine`, `target` (`target NAME` if there are several), or a sampler's name.
    pub source: String,
    /// Name of the metric.
    pub metric: String,
    /// The value, in the metric's unit.
    pub value: f64,
}

#[cfg(test)]
mod tests;
