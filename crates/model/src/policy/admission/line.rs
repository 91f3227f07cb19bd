//! The queue of one class of one tenant.

use super::{At, Class, Refusal, Settings, Ticket};
use crate::policy::retry_times::RetryTimes;
use crate::policy::share::Share;
use std::collections::VecDeque;
use std::time::Duration;

/// Window over which the growth of a queue is measured.
const LATELY: Duration = Duration::from_millis(50);
/// Min age of a queue for its growth to count. A burst may thus arrive over twice [`LATELY`]: a page requests its
/// tiles within that time.
const YOUNG: Duration = Duration::from_millis(150);

/// Standard deviations by which arrivals must exceed starts before chance no longer explains it.
const CHANCE: u64 = 4;

/// A query that waits for its first slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedQuery {
    pub(super) ticket: Ticket,
    pub(super) since: At,
    pub(super) deadline: At,
    pub(super) is_write: bool,
}

/// How a queue is run. It rises until the queue is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    /// In order of arrival. A burst that the queue can clear does not end it.
    InOrder,
    /// Newest first: more arrive than start, though none waits for long yet.
    NewestFirst,
    /// Newest first, and queries that waited for longer than [`Settings::target`] are refused.
    Overloaded,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The class's share within its tenant.
    pub(super) share: Share,
    /// Started queries without a slot, in the order in which they resume: all before the first waiting one.
    pub(super) paused: VecDeque<Ticket>,
    /// Waiting queries, in order of arrival.
    pub(super) waiting: VecDeque<QueuedQuery>,
    /// When the queue last became non-empty.
    filled: At,
    /// Queries started since then.
    begun: u32,
    mode: Mode,
    /// Retry times of refused clients, by the pace at which queries start.
    pub(super) retries: RetryTimes,
}

impl Line {
    pub(super) fn new(class: Class) -> Line {
        let (paused, waiting) = (VecDeque::new(), VecDeque::new());
        let (share, retries) = (Share::new(class.weight()), RetryTimes::default());
        Line { share, paused, waiting, filled: At::ZERO, begun: 0, mode: Mode::InOrder, retries }
    }

    pub(super) fn push(&mut self, waiting: QueuedQuery) {
        if self.waiting.is_empty() {
            (self.filled, self.begun, self.mode) = (waiting.since, 0, Mode::InOrder);
            self.retries.note_calm();
        }
        self.waiting.push_back(waiting);
    }

    /// Takes the next query, by the queue's mode. Expired queries are taken first, with their refusal.
    pub(super) fn pop(
        &mut self,
        now: At,
        patience: Duration,
        settings: &Settings,
    ) -> Option<(QueuedQuery, Option<Refusal>)> {
        if let Some((waiting, refusal)) = self.pop_expired(now, patience, settings) {
            return Some((waiting, Some(refusal)));
        }
        let waiting = match self.mode(now, patience) {
            Mode::InOrder => self.waiting.pop_front(),
            Mode::NewestFirst | Mode::Overloaded => self.waiting.pop_back(),
        }?;
        let refusal = (waiting.deadline <= now).then_some(Refusal::Deadline);
        // Only started queries measure the pace of the queue.
        if refusal.is_none() {
            self.begun = self.begun.saturating_add(1);
            self.retries.note_step(now);
        }
        Some((waiting, refusal))
    }

    /// Takes the oldest query if it has expired.
    pub(super) fn pop_expired(
        &mut self,
        now: At,
        patience: Duration,
        settings: &Settings,
    ) -> Option<(QueuedQuery, Refusal)> {
        let oldest = *self.waiting.front()?;
        let wait_max = if self.mode(now, patience) == Mode::Overloaded { settings.target } else { patience };
        let refusal = match oldest {
            oldest if oldest.deadline <= now => Refusal::Deadline,
            oldest if now.saturating_sub(oldest.since) > wait_max => Refusal::Waited,
            _ => return None,
        };
        self.waiting.pop_front().map(|waiting| (waiting, refusal))
    }

    /// Whether at least half of the waiting requests are writes, and another write would wait longer than `wait_max`.
    pub(super) fn is_late(&self, now: At, wait_max: Duration) -> bool {
        let Some(oldest) = self.waiting.front() else { return false };
        let is_late = now.saturating_sub(oldest.since) > wait_max || self.takes_longer(now, wait_max);
        is_late && 2 * self.waiting.iter().filter(|waiting| waiting.is_write).count() >= self.waiting.len()
    }

    /// The mode from now on. The queue is overloaded if it has been non-empty for longer than `patience`, or its queries
    /// would wait that long at the current pace. While it grows, half of `patience` suffices. A burst does not grow for
    /// long, and is worked off in order.
    fn mode(&mut self, now: At, patience: Duration) -> Mode {
        let measured = if now.saturating_sub(self.filled) > patience
            || self.takes_longer(now, patience)
            || self.takes_longer(now, patience / 2) && self.grows(now)
        {
            Mode::Overloaded
        } else if self.exceeds_chance() && self.grows(now) {
            Mode::NewestFirst
        } else {
            Mode::InOrder
        };
        self.mode = self.mode.max(measured);
        self.mode
    }

    /// Whether more queries arrived since the queue filled than started, by more than chance explains. Both counts are
    /// taken as Poisson, so the variance of their difference is their sum. Many short queries show a flood long before
    /// they wait for long. A few long ones do not, and wait in order.
    fn exceeds_chance(&self) -> bool {
        let waiting = u64::from(count(self.waiting.len()));
        waiting.saturating_mul(waiting) > CHANCE.pow(2) * (2 * u64::from(self.begun) + waiting)
    }

    /// Whether the waiting queries would wait longer than `wait_max`, at the pace at which queries started since the
    /// queue filled.
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

    /// Queries started since the queue filled, plus the one about to start: without it the first moments of a burst
    /// would look like a standstill.
    fn next(&self) -> u32 {
        self.begun.saturating_add(1)
    }
}

fn count(questions: usize) -> u32 {
    u32::try_from(questions).unwrap_or(u32::MAX)
}
