//! Samplers: values read from the target under load.

use serde::{Deserialize, Serialize};

/// One source of samples over time. The lab's own process and the machine are always sampled. So are the processes of
/// each target on loopback: those that listen on its ports, if found, and all their children.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Sampler {
    /// A process of this machine: processor share (1 is one core), resident set in bytes, open descriptors.
    Process {
        /// Its name in reports.
        name: String,
        /// Its process id.
        pid: u32,
    },
    /// Metrics of a server, in the Prometheus text form.
    Prometheus {
        /// Its name in reports.
        name: String,
        /// URL of the metrics.
        url: String,
        /// Metrics by name, with labels if they matter; series of one name are summed.
        metrics: Vec<String>,
        /// Seconds between two readings.
        #[serde(default = "second")]
        every_s: f64,
    },
}

fn second() -> f64 {
    1.0
}
