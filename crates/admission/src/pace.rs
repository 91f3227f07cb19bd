//! Rate limit on the administrative acts of a tenant: a token bucket (the generic cell rate algorithm, ITU-T I.371).

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Acts per minute, and max burst.
pub const A_MINUTE: u32 = 300;
const MINUTE: Duration = Duration::from_secs(60);

/// When the bucket recovers from the acts so far.
#[derive(Debug, Default)]
pub struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// Takes one act from the bucket.
    ///
    /// # Errors
    /// The time until there is room for it.
    pub fn take(&self) -> Result<(), Duration> {
        let now = Instant::now();
        let mut paid_off = self.0.lock();
        let next = paid_off.map_or(now, |at| at.max(now)) + MINUTE / A_MINUTE;
        match next.duration_since(now).checked_sub(MINUTE) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                *paid_off = Some(next);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_admitted_and_then_as_many_as_the_pace_has() {
        let pace = Pace::default();
        assert_eq!((0..1_000).filter(|_| pace.take().is_ok()).count(), A_MINUTE as usize);
        let wait = pace.take().unwrap_err();
        tokio::time::advance(wait).await;
        assert!(pace.take().is_ok() && pace.take().is_err());
        tokio::time::advance(MINUTE * 5).await;
        assert_eq!((0..1_000).filter(|_| pace.take().is_ok()).count(), A_MINUTE as usize);
    }
}
