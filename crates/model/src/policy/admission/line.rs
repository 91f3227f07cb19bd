//! The questions of one class of one tenant.

use super::{At, Class, Refusal, Settings, Ticket};
use crate::policy::share::Share;
use std::collections::VecDeque;
use std::time::Duration;

/// What a queue's growth is measured by: the questions that arrived within this.
const LATELY: Duration = Duration::from_millis(50);
/// Age of a queue from which its growth counts. So a burst may go on arriving for twice [`LATELY`]: a page asks for its tiles within that.
const YOUNG: Duration = Duration::from_millis(150);

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
    /// Started queries without a slot, with the time of their first slots, in the order in which they resume. They
    /// all run before the first waiting one.
    pub(super) paused: VecDeque<(At, Ticket)>,
    /// Whether the query that started first resumes first. Only queries of the most urgent class differ little in
    /// size. In the other classes they take turns, since a long query would hold up short ones.
    in_order: bool,
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
    pub(super) fn new(class: Class) -> Line {
        let (paused, waiting) = (VecDeque::new(), VecDeque::new());
        let (share, in_order) = (Share::new(class.weight()), class == Class::Interactive);
        Line { share, paused, in_order, waiting, filled: At::ZERO, begun: 0, overloaded: false }
    }

    /// A question whose first slot was given at that time has none now.
    pub(super) fn pause(&mut self, since: At, ticket: Ticket) {
        let earlier = |(other, _): &(At, Ticket)| *other <= since;
        let place = if self.in_order { self.paused.partition_point(earlier) } else { self.paused.len() };
        self.paused.insert(place, (since, ticket));
    }

    /// Whether a query with an earlier first slot has none now. It goes first: if queries of equal size take turns,
    /// all finish as late as the last.
    pub(super) fn has_earlier(&self, since: At) -> bool {
        self.in_order && self.paused.front().is_some_and(|(other, _)| *other < since)
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

    /// Whether at least half of the waiting requests are writes, and another write would wait for longer than this.
    pub(super) fn is_late(&self, now: At, wait_max: Duration) -> bool {
        let Some(oldest) = self.waiting.front() else { return false };
        let is_late = now.saturating_sub(oldest.since) > wait_max || self.takes_longer(now, wait_max);
        is_late && 2 * self.waiting.iter().filter(|waiting| waiting.is_write).count() >= self.waiting.len()
    }

    /// Whether arrivals outpace service. The queue has been non-empty for longer than `patience`, or its queries would
    /// wait that long at the current pace. While the queue grows, half of `patience` suffices. A burst does not grow
    /// for long, and is worked off in order.
    fn is_overloaded(&mut self, now: At, patience: Duration) -> bool {
        self.overloaded = self.overloaded
            || now.saturating_sub(self.filled) > patience
            || self.takes_longer(now, patience)
            || self.takes_longer(now, patience / 2) && self.grows(now);
        self.overloaded
    }

    /// Whether the questions that wait would wait for longer than this, at the pace at which questions began since the line was empty.
    fn takes_longer(&self, now: At, wait_max: Duration) -> bool {
        let stood = now.saturating_sub(self.filled);
        stood.saturating_mul(count(self.waiting.len())) > wait_max.saturating_mul(self.next())
    }

    /// Whether more queries arrived recently than started in that time.
    fn grows(&self, now: At) -> bool {
        let stood = now.saturating_sub(self.filled);
        let earlier = self.waiting.partition_point(|waiting| waiting.since + LATELY <= now);
        stood > YOUNG && stood.saturating_mul(count(self.waiting.len() - earlier)) > LATELY.saturating_mul(self.next())
    }

    /// Questions that began since the line was empty, and one that is about to: without it the first moments of a burst would look like a
    /// standstill.
    fn next(&self) -> u32 {
        self.begun.saturating_add(1)
    }
}

fn count(questions: usize) -> u32 {
    u32::try_from(questions).unwrap_or(u32::MAX)
}
