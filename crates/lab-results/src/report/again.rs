//! The measurement repeated after the load, which shows whether the target stayed degraded.

use super::digest::{Series, histogram, note};
use super::words::{FELT, count};
use crate::picture::{Unit, label};
use crate::record::{Outcome, Record};
use crate::stats::percentile::within_histogram;
use hdrhistogram::Histogram;

/// Requests of one population at one target after the load.
#[derive(Debug)]
pub(super) struct Again {
    count: u64,
    sound: u64,
    /// Latency of sound responses, from the intended time.
    latency: Histogram<u64>,
}

impl Default for Again {
    fn default() -> Self {
        Again { count: 0, sound: 0, latency: histogram() }
    }
}

impl Again {
    /// Adds one record.
    pub(super) fn add(&mut self, record: &Record) {
        self.count += 1;
        if record.outcome == Outcome::Sound {
            self.sound += 1;
            note(&mut self.latency, record.latency());
        }
    }

    /// Describes the results, compared with those before.
    pub(super) fn in_words(&self, before: &Series) -> String {
        if self.sound == 0 {
            return "Asked again after the load, it gave no sound answer.".to_owned();
        }
        let half = |latency: &Histogram<u64>| latency.value_at_quantile(0.5) as f64;
        let (now, then) = (half(&self.latency), half(&before.latency));
        let change = match (within_histogram(&self.latency, 0.5), within_histogram(&before.latency, 0.5)) {
            _ if before.latency.is_empty() => String::new(),
            // A difference that is imperceptible, or due to chance, counts as none.
            (Some(a), Some(b)) if a.low > b.high && now > then * (1.0 + FELT) => {
                format!(", {} before: it stayed slower", label(then, Unit::Micros))
            }
            (Some(a), Some(b)) if a.high < b.low && now < then * (1.0 - FELT) => {
                format!(", {} before: it is faster now", label(then, Unit::Micros))
            }
            (Some(_), Some(_)) => ", as before".to_owned(),
            _ => format!(", {} before, too few to distinguish", label(then, Unit::Micros)),
        };
        let sound = match self.sound == self.count {
            true => String::new(),
            false => format!(" {} of {} then had a sound answer.", count(self.sound), count(self.count)),
        };
        format!("Asked again after the load, half took at most {}{change}.{sound}", label(now, Unit::Micros))
    }
}
