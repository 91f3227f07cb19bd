//! The questions of one class of one tenant.

use super::{At, Refusal, Settings, Ticket};
use crate::policy::share::Share;
use std::collections::VecDeque;
use std::time::Duration;

/// A question that waits for its first slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) since: At,
    pub(super) deadline: At,
    pub(super) is_write: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The class's right within its tenant.
    pub(super) share: Share,
    /// Questions that were overtaken, in the order in which they run again: all before the first that waits.
    pub(super) paused: VecDeque<Ticket>,
    /// Questions that wait, in order of arrival.
    pub(super) waiting: VecDeque<Waiting>,
    /// When it was last empty.
    filled: At,
    /// Questions that began since.
    begun: u32,
    /// Whether it is overloaded, until it is empty: not a burst, which it would clear.
    overloaded: bool,
}

impl Line {
    pub(super) fn new(weight: u32) -> Line {
        let (paused, waiting) = (VecDeque::new(), VecDeque::new());
        Line { share: Share::new(weight), paused, waiting, filled: At::ZERO, begun: 0, overloaded: false }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        if self.waiting.is_empty() {
            (self.filled, self.begun, self.overloaded) = (waiting.since, 0, false);
        }
        self.waiting.push_back(waiting);
    }

    /// Takes the next question: the oldest, or while the line is overloaded the newest. With a refusal where its time
    /// has passed; those are taken first.
    pub(super) fn pop(
        &mut self,
        now: At,
        patience: Duration,
        settings: &Settings,
    ) -> Option<(Waiting, Option<Refusal>)> {
        if let Some((waiting, refusal)) = self.pop_expired(now, patience, settings) {
            return Some((waiting, Some(refusal)));
        }
        let waiting =
            if self.is_overloaded(now, patience) { self.waiting.pop_back() } else { self.waiting.pop_front() }?;
        let refusal = (waiting.deadline <= now).then_some(Refusal::Deadline);
        // Only what begins says how fast work is done.
        self.begun = self.begun.saturating_add(u32::from(refusal.is_none()));
        Some((waiting, refusal))
    }

    /// Takes the oldest question if its time has passed.
    pub(super) fn pop_expired(
        &mut self,
        now: At,
        patience: Duration,
        settings: &Settings,
    ) -> Option<(Waiting, Refusal)> {
        let oldest = *self.waiting.front()?;
        let wait_max = if self.is_overloaded(now, patience) { settings.target } else { patience };
        let refusal = match oldest {
            oldest if oldest.deadline <= now => Refusal::Deadline,
            oldest if now.saturating_sub(oldest.since) > wait_max => Refusal::Waited,
            _ => return None,
        };
        self.waiting.pop_front().map(|waiting| (waiting, refusal))
    }

    /// Whether at least half of the waiting requests are writes, and another write would wait for longer than this: the oldest has, or at the pace at
    /// which questions began since the line was empty, as many as wait would take as long.
    pub(super) fn is_late(&self, now: At, wait_max: Duration) -> bool {
        let Some(oldest) = self.waiting.front() else { return false };
        let stood = now.saturating_sub(self.filled);
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let is_late = now.saturating_sub(oldest.since) > wait_max
            || stood.saturating_mul(waiting) > wait_max.saturating_mul(self.begun.saturating_add(1));
        is_late && 2 * self.waiting.iter().filter(|waiting| waiting.is_write).count() >= self.waiting.len()
    }

    /// Whether more arrives than is worked off. First rule: it has not been empty for as long as a question waits at
    /// most. Second rule: at the pace at which questions began since, the waiting ones would wait for longer than that.
    ///
    /// The second rule sees a flood early: the first alone would let every question of its first second wait for that second.
    fn is_overloaded(&mut self, now: At, patience: Duration) -> bool {
        let stood = now.saturating_sub(self.filled);
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        // One more is about to begin. Without it the first moments of a burst would look like a standstill.
        let begun = self.begun.saturating_add(1);
        self.overloaded |= stood > patience || stood.saturating_mul(waiting) > patience.saturating_mul(begun);
        self.overloaded
    }
}
