//! What a stream has in hand for its client, as far as the client can be evicted for it.

use crate::stream::Unread;
use meridian_admission::ByteBudget;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

/// The message that waits for a client.
pub(super) struct Hand {
    answers: ByteBudget,
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Default)]
struct State {
    bytes: usize,
    /// When the message was handed over; `None` while none waits.
    since: Option<Instant>,
    evicted: bool,
}

impl Hand {
    /// Nothing in hand yet.
    pub(super) fn new(answers: ByteBudget) -> Hand {
        Hand { answers, state: Mutex::default(), evicted: Notify::new() }
    }

    /// A message of this many bytes waits from now on.
    pub(super) fn hold(&self, bytes: usize) {
        let mut state = self.state.lock();
        (state.bytes, state.since) = (bytes, Some(Instant::now()));
    }

    /// The client has taken it, or never will.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        (state.bytes, state.since) = (0, None);
    }

    /// Completes when the client was evicted.
    pub(super) async fn evicted(&self) {
        // `notify_one` keeps a permit, so an eviction before this is not missed.
        self.evicted.notified().await;
    }
}

impl Unread for Hand {
    fn answers(&self) -> &ByteBudget {
        &self.answers
    }

    fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    fn idle(&self) -> Option<Duration> {
        let state = self.state.lock();
        state.since.filter(|_| !state.evicted).map(|since| since.elapsed())
    }

    fn is_leaving(&self) -> bool {
        self.state.lock().evicted
    }

    fn evict(&self) -> bool {
        let mut state = self.state.lock();
        if state.since.is_none() || state.evicted {
            return false;
        }
        state.evicted = true;
        drop(state);
        self.evicted.notify_one();
        true
    }
}
