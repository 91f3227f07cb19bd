//! Repeated checks of a caller's credential while a response is still being sent.

use crate::state::AppState;
use meridian_admission::identity::Caller;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often a credential is checked again: streams end within a second of its revocation.
const INTERVAL: Duration = Duration::from_millis(500);

/// Why the streams of a void caller end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoidReason {
    /// The credential was revoked or has expired.
    Unauthorized,
    /// The tenant was removed; the credential, an operator's, is valid.
    Gone,
}

impl VoidReason {
    /// Returns the reason for a void caller.
    pub fn of(caller: &Caller, state: &AppState) -> VoidReason {
        match caller.ledger.is_closed() && !caller.has_ended(state.now()) {
            true => VoidReason::Gone,
            false => VoidReason::Unauthorized,
        }
    }

    /// Returns the reason in a word and in a sentence, as the client of a stream is told.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            VoidReason::Unauthorized => ("unauthorized", "access has ended: connect again with a valid credential"),
            VoidReason::Gone => ("gone", "the tenant was removed, with all that it had"),
        }
    }
}

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
