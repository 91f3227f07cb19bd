//! Disk, clock and randomness of a server.

use crate::failure::Failure;
use crate::units;
use meridian_store::seams::{Seams, SkewedClock};
use std::sync::Arc;
use std::time::Duration;

/// Skews the clock, for tests of clusters whose machines disagree: `AHEAD_MS,FASTER_PPM`, two numbers.
const CLOCK: &str = "MERIDIAN_TEST_CLOCK";

/// Retention of snapshots below the configurable minimum: a duration such as `8s`, for tests of page tokens. Only with
/// debug assertions.
const SNAPSHOT_MEMORY: &str = "MERIDIAN_TEST_SNAPSHOT_MEMORY";

/// Returns the retention of snapshots requested by a test, if any.
///
/// # Errors
/// The variable is malformed.
pub(super) fn snapshot_memory() -> Result<Option<Duration>, Failure> {
    let Some(text) = std::env::var_os(SNAPSHOT_MEMORY).filter(|_| cfg!(debug_assertions)) else { return Ok(None) };
    let text = text.to_string_lossy();
    let time = units::duration(&text).map_err(|e| Failure::Usage(format!("{SNAPSHOT_MEMORY} {text:?}: {e}")))?;
    tracing::warn!(?time, "{SNAPSHOT_MEMORY}: page tokens of this process end early, for a test");
    Ok(Some(time))
}

/// Returns the seams of the machine, with a skewed clock if a test asks for it.
///
/// # Errors
/// The variable is malformed.
pub(super) fn seams() -> Result<Seams, Failure> {
    let seams = Seams::real();
    let Ok(text) = std::env::var(CLOCK) else { return Ok(seams) };
    let numbers = text.split_once(',').and_then(|(ahead, faster)| {
        let ahead = ahead.parse::<i64>().ok()?.checked_mul(1_000)?;
        Some((ahead, faster.parse().ok()?))
    });
    let wrong = || Failure::Usage(format!("{CLOCK} {text:?}: expected AHEAD_MS,FASTER_PPM, such as -500,20000"));
    let (ahead, faster) = numbers.ok_or_else(wrong)?;
    let clock = SkewedClock::new(ahead, faster).map_err(|e| Failure::Usage(format!("{CLOCK}: {e}")))?;
    tracing::warn!(
        ahead_ms = ahead / 1_000,
        faster_ppm = faster,
        "{CLOCK}: this process has a wrong clock, for a test"
    );
    Ok(Seams { clock: Arc::new(clock), ..seams })
}
