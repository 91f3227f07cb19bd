//! The clients with a streamed response, and which of them is evicted when the memory for responses is full.
//!
//! All bytes of responses that clients have not taken yet come out of one budget. When it is used up, the client that
//! has taken nothing for longest is evicted, so that clients that do not read cost the others nothing. A client that
//! has only just connected may yet read, so a query waits [`EVICT_AFTER`] before it judges.

use super::pipe::Pipe;
use crate::state::AppState;
use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::time::{Duration, Instant};

/// A client that took something more recently than this is not evicted.
const EVICT_AFTER: Duration = Duration::from_secs(1);
/// How often a query that waits for memory tries again.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The clients whose responses are being streamed.
#[derive(Default)]
pub struct Readers {
    all: Mutex<HashMap<u64, Arc<Pipe>>>,
    next: AtomicU64,
    parked: AtomicUsize,
    slow: AtomicU64,
    evicted: AtomicU64,
}

/// The registration of one streamed response, removed when dropped.
pub(super) struct Registration {
    state: AppState,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.state.readers.all.lock().remove(&self.number);
    }
}

/// Counts a query that is parked until its client has taken some of the response.
pub(super) struct Parked(AppState);

impl Parked {
    pub(super) fn enter(state: &AppState) -> Parked {
        state.readers.parked.fetch_add(1, Ordering::Relaxed);
        Parked(state.clone())
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.readers.parked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Readers {
    pub(super) fn register(state: &AppState, pipe: &Arc<Pipe>) -> Registration {
        let number = state.readers.next.fetch_add(1, Ordering::Relaxed);
        state.readers.all.lock().insert(number, pipe.clone());
        Registration { state: state.clone(), number }
    }

    /// Queries parked because their clients read slowly.
    pub fn parked(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }

    /// Clients disconnected because they read too slowly, since the start.
    pub fn slow(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }

    /// Clients evicted to free memory for the responses of others, since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Counts a client that was disconnected because it read too slowly.
    pub fn count_slow(&self) {
        self.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// Evicts the client that has taken nothing for longest; `false` if all of them read. A client of another tenant is
    /// evicted only if that tenant holds more than it is guaranteed.
    fn evict_idlest(&self, answers: &ByteBudget) -> bool {
        // Cloned out of the registry's lock, which is never held together with the lock of a pipe.
        let pipes: Vec<Arc<Pipe>> = self.all.lock().values().cloned().collect();
        let owes = |pipe: &Pipe| pipe.answers().is_of_same_tenant(answers) || pipe.answers().exceeds_guarantee();
        let idle = pipes.iter().filter(|pipe| owes(pipe)).filter_map(|pipe| Some((pipe.idle()?, pipe)));
        let Some((idle, pipe)) = idle.max_by_key(|(idle, _)| *idle).filter(|(idle, _)| *idle >= EVICT_AFTER) else {
            return false;
        };
        let bytes = pipe.bytes();
        if pipe.cut() {
            self.evicted.fetch_add(1, Ordering::Relaxed);
            let idle_ms = idle.as_millis() as u64;
            tracing::info!(
                idle_ms,
                bytes,
                "a client that does not read was evicted: others need the memory for responses"
            );
        }
        true
    }
}

/// A share of the memory for responses, for which idle clients are evicted; `None` if clients that read reserve all of
/// it.
///
/// It blocks for at most [`EVICT_AFTER`]: by then, a client that has taken nothing since the wait began can be
/// evicted.
pub(super) fn reserve(state: &AppState, answers: &ByteBudget, bytes: usize) -> Option<ByteShare> {
    let mut until = None;
    loop {
        if let Some(share) = answers.try_take_some(bytes) {
            return Some(share);
        }
        if state.readers.evict_idlest(answers) {
            continue;
        }
        let now = Instant::now();
        let left = until.get_or_insert(now + EVICT_AFTER).saturating_duration_since(now);
        if left.is_zero() {
            return None;
        }
        // Polled: this thread cannot await the notification of the budget.
        state.clock.sleep(left.min(RETRY_INTERVAL));
    }
}
