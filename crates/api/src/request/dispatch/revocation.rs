//! Repeated checks of a caller's credential while a response is still being sent.

use crate::state::AppState;
use meridian_admission::identity::Caller;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often a credential is checked again: streams end within a second of its revocation.
const INTERVAL: Duration = Duration::from_millis(500);
/// What the client of a stream is told when its caller has become void.
pub const ACCESS_ENDED: &str = "access has ended: connect again with a valid credential";

/// Completes when the caller becomes void; never for one that cannot.
pub async fn void(caller: Caller, state: AppState) {
    if !state.may_become_void(&caller) {
        return std::future::pending().await;
    }
    let mut ticks = ticks();
    while !state.is_void(&caller) {
        ticks.tick().await;
    }
}

/// Returns the ticks at which to check a credential again.
pub fn ticks() -> Interval {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
