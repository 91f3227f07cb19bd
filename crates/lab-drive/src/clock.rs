//! The trial's clock, and waiting for a moment on it more precisely than a timer wheel of milliseconds does.

use meridian_lab_results::record::Micros;
use std::time::{Duration, Instant};

/// Microseconds since the start of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

/// A timer may come this much late. Nearer than this to its moment a waiter yields in a loop instead. So
/// answers are read meanwhile, and the send is on time. It costs processor time and is what 20,000 sends a
/// second within a millisecond need.
const SPIN: Micros = 1_500;

impl Clock {
    /// A clock at 0.
    pub fn start() -> Clock {
        Clock { zero: Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> Micros {
        Micros::try_from(self.zero.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// The moment as the runtime's timers want it.
    pub fn instant(&self, at: Micros) -> tokio::time::Instant {
        (self.zero + Duration::from_micros(u64::try_from(at).unwrap_or(0))).into()
    }

    /// Comes back at a moment: never before, and hardly after.
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

/// Seconds of a scenario as microseconds.
#[expect(clippy::cast_possible_truncation, reason = "the scenario's check keeps seconds under a year")]
pub fn micros(seconds: f64) -> Micros {
    (seconds * 1e6).round() as Micros
}
