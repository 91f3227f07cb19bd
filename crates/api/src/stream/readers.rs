//! Whose answers are on their way, and which of them gives way when the memory for answers is full.
//!
//! All bytes of answers that clients have not taken yet come out of one budget. Where it is used up, the client that
//! has taken nothing for longest is let go, so that clients that do not read cost the others nothing. Those that have
//! just come cannot be told from those that read: a question waits until they can.

use super::pipe::Pipe;
use crate::state::AppState;
use meridian_admission::ByteShare;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A client that took something as lately as this does not give way.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(1);
/// Time between two looks of a question that waits for memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The streamed answers that are on their way.
#[derive(Default)]
pub struct Readers {
    all: Mutex<HashMap<u64, Arc<Pipe>>>,
    next: AtomicU64,
    resting: AtomicUsize,
    slow: AtomicU64,
    gave_way: AtomicU64,
}

/// A place among the answers on their way; left when dropped.
pub(super) struct Ticket {
    state: AppState,
    number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.state.readers.all.lock().remove(&self.number);
    }
}

/// Counts a question that rests until its client has taken what there is.
pub(super) struct Resting(AppState);

impl Resting {
    pub(super) fn enter(state: &AppState) -> Resting {
        state.readers.resting.fetch_add(1, Ordering::Relaxed);
        Resting(state.clone())
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        self.0.readers.resting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Readers {
    pub(super) fn enter(state: &AppState, pipe: &Arc<Pipe>) -> Ticket {
        let number = state.readers.next.fetch_add(1, Ordering::Relaxed);
        state.readers.all.lock().insert(number, pipe.clone());
        Ticket { state: state.clone(), number }
    }

    /// Questions that rest because their clients read slowly.
    pub fn resting(&self) -> usize {
        self.resting.load(Ordering::Relaxed)
    }

    /// Clients let go because they read too slowly, since the start.
    pub fn slow(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }

    /// Clients let go to make room for the answers of others, since the start.
    pub fn gave_way(&self) -> u64 {
        self.gave_way.load(Ordering::Relaxed)
    }

    pub(super) fn count_slow(&self) {
        self.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of the client that has taken nothing for longest; `false` if all of them read.
    fn give_way(&self) -> bool {
        let pipes: Vec<Arc<Pipe>> = self.all.lock().values().cloned().collect();
        let idle = pipes.iter().filter_map(|pipe| Some((pipe.idle()?, pipe)));
        let Some((idle, pipe)) = idle.max_by_key(|(idle, _)| *idle).filter(|(idle, _)| *idle >= GIVE_WAY_AFTER) else {
            return false;
        };
        let bytes = pipe.bytes();
        if pipe.cut() {
            self.gave_way.fetch_add(1, Ordering::Relaxed);
            let idle_ms = idle.as_millis() as u64;
            tracing::info!(
                idle_ms,
                bytes,
                "a client that does not read was let go: others need the memory for answers"
            );
        }
        true
    }
}

/// A share of the memory for answers, for which idle clients give way; `None` if all of it is held by clients who read.
///
/// It blocks for [`GIVE_WAY_AFTER`] at most: after so long, a client that has taken nothing since the wait began gives way.
pub(super) fn hold(state: &AppState, bytes: usize) -> Option<ByteShare> {
    let mut until = None;
    loop {
        if let Some(held) = state.answers.try_take_some(bytes) {
            return Some(held);
        }
        if state.readers.give_way() {
            continue;
        }
        let now = Instant::now();
        let left = until.get_or_insert(now + GIVE_WAY_AFTER).saturating_duration_since(now);
        if left.is_zero() {
            return None;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}
