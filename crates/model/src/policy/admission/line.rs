//! The questions of one class of one tenant.

use super::share::Share;
use super::{At, Refusal, Settings, Ticket};
use std::collections::VecDeque;
use std::time::Duration;

/// A question that waits for its first slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) since: At,
    pub(super) deadline: At,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The class's right within its tenant.
    pub(super) share: Share,
    /// Questions that were overtaken, in the order in which they run again: all before the first that waits.
    pub(super) paused: VecDeque<Ticket>,
    /// Questions that wait, in order of arrival.
    pub(super) waiting: VecDeque<Waiting>,
    /// When it was last empty; distinguishes a burst, which it will clear, from an overload.
    filled: At,
}

impl Line {
    pub(super) fn new(weight: u32) -> Line {
        Line { share: Share::new(weight), paused: VecDeque::new(), waiting: VecDeque::new(), filled: At::ZERO }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        if self.waiting.is_empty() {
            self.filled = waiting.since;
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
        Some((waiting, refusal))
    }

    /// Takes the oldest question if its time has passed.
    pub(super) fn pop_expired(
        &mut self,
        now: At,
        patience: Duration,
        settings: &Settings,
    ) -> Option<(Waiting, Refusal)> {
        let oldest = self.waiting.front()?;
        let wait_max = if self.is_overloaded(now, patience) { settings.target } else { patience };
        let refusal = match oldest {
            oldest if oldest.deadline <= now => Refusal::Deadline,
            oldest if now.saturating_sub(oldest.since) > wait_max => Refusal::Waited,
            _ => return None,
        };
        self.waiting.pop_front().map(|waiting| (waiting, refusal))
    }

    /// Whether it has not been empty for as long as a question waits at most: more arrives than is worked off.
    fn is_overloaded(&self, now: At, patience: Duration) -> bool {
        now.saturating_sub(self.filled) > patience
    }
}
