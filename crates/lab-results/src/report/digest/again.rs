//! The measurement repeated after the load, which shows whether the target stayed degraded.

use super::series::{histogram, note};
use crate::record::{Outcome, Record};
use hdrhistogram::Histogram;

/// Requests of one population at one target after the load.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) count: u64,
    pub(crate) sound: u64,
    /// Latency of sound responses, from the intended time.
    pub(crate) latency: Histogram<u64>,
}

impl Default for Again {
    fn default() -> Self {
        Again { count: 0, sound: 0, latency: histogram() }
    }
}

impl Again {
    /// Adds one record.
    pub(crate) fn add(&mut self, record: &Record) {
        self.count += 1;
        if record.outcome == Outcome::Sound {
            self.sound += 1;
            note(&mut self.latency, record.latency());
        }
    }
}
