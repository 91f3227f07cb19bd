//! The backlog of a step: whether its requests queued, and how many were served meanwhile.

use meridian_lab_results::record::{Micros, Outcome, Record};
use meridian_lab_results::stats::{Estimate, slope};
use serde::{Deserialize, Serialize};

/// Rise of the wait, in seconds per second, below which it does not count as growing.
const RISES: f64 = 0.01;
/// Min requests of a step to measure its backlog.
const REQUESTS: usize = 30;

/// The backlog of a step: requests sent and not yet answered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Whether it grew.
    pub grows: bool,
    /// Requests per second served while they queued; the requested rate if the backlog did not grow.
    pub served_per_s: Estimate,
}

impl Backlog {
    /// Measures the backlog from the requests of an open arrival, up to the first that was given up, because waits
    /// that end by patience rise no further. `None` if there are too few.
    pub(super) fn of(course: &[Record]) -> Option<Backlog> {
        let given_up = course.iter().filter(|r| matches!(r.outcome, Outcome::TimedOut | Outcome::NotSent));
        // Users who give up leave the queue, and the waits of the others stop rising.
        let until = given_up.map(|record| record.intended).min().unwrap_or(Micros::MAX);
        let due = course.iter().filter(|record| record.attempt == 0 && record.intended < until);
        let mut due: Vec<&Record> = due.collect();
        due.sort_by_key(|record| record.intended);
        // Refusals are fast whatever the backlog, and would flatten the rise.
        let answered = |record: &&Record| !matches!(record.outcome, Outcome::Refused | Outcome::Failed);
        let seconds = |us: Micros| us as f64 / 1e6;
        let point = |record: &Record| Some((seconds(record.intended), seconds(record.latency()?)));
        let points: Vec<(f64, f64)> = due.iter().copied().filter(|record| answered(record)).filter_map(point).collect();
        let span = seconds(due.last()?.intended - due.first()?.intended);
        if points.len() < REQUESTS || span <= 0.0 {
            return None;
        }
        // Intervals, not requests: n arrivals have n - 1 gaps between them.
        let rate = (due.len() - 1) as f64 / span;
        let rise = slope::fit_in_order(&points)?.slope;
        let served = |rise: f64| rate / (1.0 + rise.max(0.0));
        let served_per_s = Estimate { value: served(rise.value), low: served(rise.high), high: served(rise.low) };
        Some(Backlog { grows: rise.low > 0.0 && rise.value >= RISES, served_per_s })
    }
}
