//! The trial's clock, and waits on it that are more precise than a timer wheel of milliseconds.

use meridian_lab_results::record::Micros;
use std::time::{Duration, Instant};

/// Microseconds since the start of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

/// Max delay of a timer. Within this of its deadline a waiter yields in a loop instead, so that responses are read
/// meanwhile and the send is on time. It costs processor time, and is required for 20,000 sends per second within a
/// millisecond.
const SPIN: Micros = 1_500;

impl Clock {
    /// Creates a clock at 0.
    pub fn start() -> Clock {
        Clock { zero: Instant::now() }
    }

    /// Returns the current time.
    pub fn now(&self) -> Micros {
        Micros::try_from(self.zero.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// Converts a time to the form of the runtime's timers.
    pub fn instant(&self, at: Micros) -> tokio::time::Instant {
        (self.zero + Duration::from_micros(u64::try_from(at).unwrap_or(0))).into()
    }

    /// Waits until a time; returns never before it, and hardly after.
    pub async fn until(&self, at: Micros) {
        loop {
            let left = at - self.now();
            if left <= 0 {
                return;
            }
            if left > SPIN {
                tokio::time::sleep_until(self.instant(at - SPIN)).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Converts seconds of a scenario to microseconds.
#[expect(clippy::cast_possible_truncation, reason = "the scenario's check keeps seconds under a year")]
pub fn micros(seconds: f64) -> Micros {
    (seconds * 1e6).round() as Micros
}
