//! The pending message of a stream, for which its client can be evicted.

use crate::state::readers::UnreadData;
use meridian_admission::ByteBudget;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

/// Assumed speed in bytes per second. A client counts as idle once it should have received the message at this speed,
/// since it is unknown how much of it has arrived.
const TAKEN_PER_SECOND: u32 = 256 << 10;

/// The message that waits for a client.
pub(super) struct PendingMessage {
    answers: ByteBudget,
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Default)]
struct State {
    bytes: usize,
    /// When its client becomes idle; `None` while no message waits.
    idle_from: Option<Instant>,
    evicted: bool,
}

impl PendingMessage {
    /// Creates one without a message.
    pub(super) fn new(answers: ByteBudget) -> PendingMessage {
        PendingMessage { answers, state: Mutex::default(), evicted: Notify::new() }
    }

    /// Records that a message holding `bytes` of the memory for responses waits from now on. A client is never evicted
    /// for a message that holds none.
    pub(super) fn hold(&self, bytes: usize) {
        let taken = Duration::from_secs(bytes as u64) / TAKEN_PER_SECOND;
        let idle_from = (bytes > 0).then(|| Instant::now() + taken);
        *self.state.lock() = State { bytes, idle_from, evicted: false };
    }

    /// Records that the client has received the message, or never will. A concurrent eviction is void, since the bytes
    /// are free.
    pub(super) fn release(&self) {
        *self.state.lock() = State::default();
    }

    /// Completes when the client is evicted for the message in hand.
    pub(super) async fn evicted(&self) {
        // `notify_one` stores a permit, so an earlier eviction is not missed. The permit may stem from a void eviction.
        while !self.state.lock().evicted {
            self.evicted.notified().await;
        }
    }
}

impl UnreadData for PendingMessage {
    fn answers(&self) -> &ByteBudget {
        &self.answers
    }

    fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    fn idle(&self) -> Option<Duration> {
        let state = self.state.lock();
        let idle_from = state.idle_from.filter(|_| !state.evicted)?;
        Some(Instant::now().saturating_duration_since(idle_from))
    }

    fn is_leaving(&self) -> bool {
        self.state.lock().evicted
    }

    fn evict(&self) -> bool {
        let mut state = self.state.lock();
        if state.idle_from.is_none() || state.evicted {
            return false;
        }
        state.evicted = true;
        drop(state);
        self.evicted.notify_one();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    fn hand() -> PendingMessage {
        PendingMessage::new(ByteBudget::new(1 << 30))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_idle_once_it_could_have_the_message() {
        let hand = hand();
        hand.hold(10 * TAKEN_PER_SECOND as usize);
        advance(Duration::from_secs(9)).await;
        assert_eq!(hand.idle(), Some(Duration::ZERO));
        advance(Duration::from_secs(3)).await;
        assert_eq!(hand.idle(), Some(Duration::from_secs(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_eviction_that_comes_with_the_end_of_a_message_is_not_that_of_the_next() {
        let (hand, soon) = (hand(), Duration::from_millis(1));
        hand.hold(100);
        assert!(hand.evict() && hand.is_leaving() && hand.idle().is_none());
        hand.release();
        hand.hold(200);
        assert!(!hand.is_leaving() && hand.idle().is_some());
        assert!(timeout(soon, hand.evicted()).await.is_err());
        assert!(hand.evict() && timeout(soon, hand.evicted()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_evicted_for_a_message_that_holds_nothing() {
        let hand = hand();
        hand.hold(0);
        advance(Duration::from_secs(60)).await;
        assert_eq!((hand.idle(), hand.evict(), hand.is_leaving()), (None, false, false));
    }
}
