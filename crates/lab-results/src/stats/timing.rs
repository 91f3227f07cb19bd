//! The times of a request, as its user feels them.

use crate::record::{Micros, Outcome, Phase, Record};

/// The outcome of one request for its user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestTiming {
    /// The request's number.
    pub n: u32,
    /// The attempt.
    pub attempt: u8,
    /// Due time.
    pub intended: Micros,
    /// Time to the first result, or to the end of a sound response without one; `None` if neither arrived.
    pub wait: Option<Micros>,
    /// Arrival time of that.
    pub answered: Option<Micros>,
}

impl RequestTiming {
    /// Converts a measured request; `None` for a refused or unsent one, because it did not wait.
    pub fn of(record: &Record) -> Option<RequestTiming> {
        let waited = record.phase == Phase::Measured && !matches!(record.outcome, Outcome::Refused | Outcome::NotSent);
        let Record { n, attempt, intended, .. } = *record;
        let wait = record.to_something();
        waited.then(|| RequestTiming { n, attempt, intended, wait, answered: wait.map(|wait| record.wanted() + wait) })
    }

    /// Returns its due time in seconds.
    pub(super) fn due_s(&self) -> f64 {
        self.intended as f64 / 1e6
    }

    /// Returns number and seconds of the wait.
    pub(super) fn point(&self) -> Option<(f64, f64)> {
        Some((f64::from(self.n), self.wait? as f64 / 1e6))
    }
}
