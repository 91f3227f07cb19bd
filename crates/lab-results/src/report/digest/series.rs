//! Measured requests of one population at one target.

use super::{Scatter, Subsample};
use crate::record::{Micros, Outcome, Record};
use crate::stats::{Estimate, percentile};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Max distinct latency: a day.
const LATENCY_MAX_US: u64 = 86_400_000_000;

/// Max trials whose percentiles are kept separately.
const TRIALS_MAX: usize = 64;

/// Measured requests of one population at one target.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) count: u64,
    pub(crate) sound: u64,
    /// Latency of sound responses, from the intended time.
    pub(crate) latency: Histogram<u64>,
    /// The same from the real send.
    pub(crate) naive: Histogram<u64>,
    pub(crate) first_result: Histogram<u64>,
    pub(crate) last_result: Histogram<u64>,
    /// Time from the first result to the last, of requests with both.
    pub(crate) between: Histogram<u64>,
    /// Latency as above of each trial, as long as there are few.
    pub(crate) trials: BTreeMap<u16, Histogram<u64>>,
    /// Latency of sound responses over the intended time, of the first trial seen.
    pub(crate) over_time: Subsample<(f64, f64)>,
    first_trial: u16,
    /// First and last result over the intended time.
    pub(crate) firsts: Subsample<(f64, f64)>,
    pub(crate) lasts: Subsample<(f64, f64)>,
    /// Latency over requests in flight, and over results.
    pub(crate) by_concurrency: Scatter,
    pub(crate) by_results: Scatter,
}

pub(crate) fn histogram() -> Histogram<u64> {
    // The bounds are constants that the library accepts.
    #[expect(clippy::expect_used, reason = "constants")]
    Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("three digits up to a day are within its limits")
}

pub(crate) fn note(histogram: &mut Histogram<u64>, time: Option<Micros>) {
    if let Some(time) = time {
        histogram.saturating_record(time.clamp(1, LATENCY_MAX_US as Micros) as u64);
    }
}

impl Series {
    pub(super) fn new(first_trial: u16) -> Series {
        Series {
            trials: BTreeMap::new(),
            over_time: Subsample::default(),
            first_trial,
            count: 0,
            sound: 0,
            latency: histogram(),
            naive: histogram(),
            first_result: histogram(),
            last_result: histogram(),
            between: histogram(),
            firsts: Subsample::default(),
            lasts: Subsample::default(),
            by_concurrency: Scatter::default(),
            by_results: Scatter::default(),
        }
    }

    /// Returns a quantile of the latency of sound responses in microseconds: over repeats if there are several trials,
    /// else within the run.
    pub(crate) fn interval(&self, q: f64) -> Option<Estimate> {
        let figures: Vec<f64> = self.trials.values().map(|trial| trial.value_at_quantile(q) as f64).collect();
        match figures.len() {
            0 | 1 => percentile::within_histogram(&self.latency, q),
            _ => percentile::over_repeats(&figures),
        }
    }

    pub(super) fn add(&mut self, record: &Record) {
        self.count += 1;
        note(&mut self.first_result, record.to_first_result());
        note(&mut self.last_result, record.to_last_result());
        note(&mut self.between, record.last_result.zip(record.first_result).map(|(last, first)| last - first));
        let at = record.intended as f64;
        if let Some(first) = record.to_first_result() {
            self.firsts.add((at, first as f64));
        }
        if let Some(last) = record.to_last_result() {
            self.lasts.add((at, last as f64));
        }
        if record.outcome == Outcome::Sound {
            self.sound += 1;
            note(&mut self.latency, record.latency());
            note(&mut self.naive, record.naive_latency());
            if self.trials.len() < TRIALS_MAX || self.trials.contains_key(&record.trial) {
                note(self.trials.entry(record.trial).or_insert_with(histogram), record.latency());
            }
            if let Some(latency) = record.latency() {
                // Of one trial: drift and humps are derived from the order in time, which several trials would mix.
                if record.trial == self.first_trial {
                    self.over_time.add((at, latency as f64));
                }
                self.by_concurrency.add(f64::from(record.in_flight), latency as f64);
                self.by_results.add(record.results as f64, latency as f64);
            }
        }
    }
}
