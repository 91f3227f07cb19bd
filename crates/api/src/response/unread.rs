//! What a client has not received yet of a complete response: it can be evicted, which frees that memory.

use crate::protocol::connection_control::HangUp;
use crate::state::readers::{LEAVE_MAX, UnreadData};
use meridian_admission::ByteBudget;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::{Duration, Instant};

/// Assumed speed in bytes per second: how much of a slice has been written is unknown.
const TAKEN_PER_SECOND: u32 = 256 << 10;

/// Bytes of a response that its client has not received yet, as far as known.
pub(super) struct UnreadResponse {
    answers: ByteBudget,
    bytes: AtomicUsize,
    at: Mutex<Progress>,
    /// Called by an eviction.
    pub(super) hang_up: HangUp,
}

/// How far an unread response is.
enum Progress {
    /// Its client should have received all that was taken at this instant.
    Since(Instant),
    /// All of them are written or dropped.
    Written,
    /// Its client was evicted at this instant.
    Evicted(Instant),
}

impl UnreadResponse {
    /// Creates one of which nothing is read yet. Its eviction frees `bytes`.
    pub(super) fn new(answers: &ByteBudget, bytes: usize) -> UnreadResponse {
        let at = Mutex::new(Progress::Since(Instant::now()));
        UnreadResponse { answers: answers.clone(), bytes: AtomicUsize::new(bytes), at, hang_up: HangUp::default() }
    }

    /// Records that the connection has taken so many bytes.
    pub(super) fn took(&self, bytes: usize) {
        let mut at = self.at.lock();
        if !matches!(*at, Progress::Evicted(_)) {
            *at = Progress::Since(Instant::now() + Duration::from_secs(bytes as u64) / TAKEN_PER_SECOND);
        }
    }

    /// Records that the connection has written, or dropped, all that it has taken.
    pub(super) fn written(&self) {
        let mut at = self.at.lock();
        if matches!(*at, Progress::Since(_)) {
            *at = Progress::Written;
        }
    }

    /// Sets how many bytes an eviction frees.
    pub(super) fn frees(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

impl UnreadData for UnreadResponse {
    fn answers(&self) -> &ByteBudget {
        &self.answers
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn idle(&self) -> Option<Duration> {
        match *self.at.lock() {
            Progress::Since(since) => Some(Instant::now().saturating_duration_since(since)),
            Progress::Written | Progress::Evicted(_) => None,
        }
    }

    fn is_leaving(&self) -> bool {
        // Not longer: its memory counts as about to be freed, and others wait for it.
        matches!(*self.at.lock(), Progress::Evicted(at) if at.elapsed() < LEAVE_MAX)
    }

    fn evict(&self) -> bool {
        let mut at = self.at.lock();
        let evicts = matches!(*at, Progress::Since(_));
        if evicts {
            *at = Progress::Evicted(Instant::now());
            // Under the lock: the connection cannot be at its next response yet.
            self.hang_up.call();
        }
        evicts
    }
}
