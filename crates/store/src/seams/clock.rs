//! Time.
#![allow(clippy::disallowed_methods, reason = "the seam itself")]

use meridian_model::Invalid;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MILLION: i64 = 1_000_000;

/// A source of time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns microseconds since 1970 in UTC; may jump when the machine's clock is set.
    fn now(&self) -> i64;
    /// Returns microseconds since some start; never goes back.
    fn elapsed(&self) -> i64;
    /// Sleeps for this time, or a little longer.
    fn sleep(&self, time: Duration);
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock whose [`Clock::elapsed`] starts now.
    pub fn new() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
    }

    fn elapsed(&self) -> i64 {
        self.start.elapsed().as_micros() as i64
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// The machine's clocks made wrong, to test processes whose machines disagree.
#[derive(Debug)]
pub struct SkewedClock {
    clock: SystemClock,
    ahead: i64,
    faster_ppm: i64,
}

impl SkewedClock {
    /// Creates a clock whose time of day is `ahead` microseconds ahead, and whose monotonic time runs faster by
    /// `faster_ppm` parts per million. Both may be negative.
    ///
    /// # Errors
    /// A rate at which time would stop or go back.
    pub fn new(ahead: i64, faster_ppm: i64) -> Result<Self, Invalid> {
        match (-MILLION / 2..=MILLION).contains(&faster_ppm) {
            true => Ok(SkewedClock { clock: SystemClock::new(), ahead, faster_ppm }),
            false => Err(Invalid::new(format!("{faster_ppm} parts in a million: expected -500000 to 1000000"))),
        }
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> i64 {
        self.clock.now().saturating_add(self.ahead)
    }

    fn elapsed(&self) -> i64 {
        let elapsed = i128::from(self.clock.elapsed());
        i64::try_from(elapsed + elapsed * i128::from(self.faster_ppm) / i128::from(MILLION)).unwrap_or(i64::MAX)
    }

    fn sleep(&self, time: Duration) {
        self.clock.sleep(time.mul_f64(MILLION as f64 / (MILLION + self.faster_ppm) as f64));
    }
}

/// A clock that moves only when told to: a sleep advances it and returns at once.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    elapsed: AtomicI64,
}

impl ManualClock {
    /// Creates a clock set to `now`, in microseconds since 1970.
    pub fn new(now: i64) -> Self {
        ManualClock { now: AtomicI64::new(now), elapsed: AtomicI64::new(0) }
    }

    /// Advances time by this many microseconds.
    pub fn advance(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::SeqCst);
        self.elapsed.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sets the wall clock forward or back by this many microseconds; the elapsed time stays.
    pub fn set_by(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> i64 {
        self.elapsed.load(Ordering::SeqCst)
    }

    fn sleep(&self, time: Duration) {
        self.advance(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
    }
}
