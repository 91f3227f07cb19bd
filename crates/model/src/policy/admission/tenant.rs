//! The scheduler's state of a tenant.

use super::line::Line;
use super::terms::Class;
use crate::policy::share::Share;

/// A tenant with queries, or with a debt from earlier ones.
#[derive(Debug, Clone)]
pub(super) struct Tenant<T> {
    pub(super) name: T,
    pub(super) share: Share,
    pub(super) lines: [Line; 3],
    /// Virtual time among its classes.
    pub(super) virtual_time: u64,
    /// Queries that run or are paused.
    pub(super) started: usize,
    pub(super) running: usize,
    pub(super) waiting: usize,
    /// Queries that wait for another process, without a slot.
    pub(super) away: usize,
}

impl<T> Tenant<T> {
    pub(super) fn new(name: T, weight: u32) -> Tenant<T> {
        Tenant {
            name,
            share: Share::new(weight),
            lines: Class::ALL.map(Line::new),
            virtual_time: 0,
            started: 0,
            running: 0,
            waiting: 0,
            away: 0,
        }
    }

    /// Whether it needs no slot now.
    pub(super) fn is_idle(&self) -> bool {
        self.started == 0 && self.waiting == 0
    }

    /// Whether no query refers to it.
    pub(super) fn is_unused(&self) -> bool {
        self.is_idle() && self.away == 0
    }

    /// The class with the most right to a slot among those with a runnable query.
    pub(super) fn best_class(&self, may_start: bool) -> Option<Class> {
        let ready = |class: &Class| {
            let line = &self.lines[*class as usize];
            !line.paused.is_empty() || (may_start && !line.waiting.is_empty())
        };
        // Ties go to the more urgent class: `min_by_key` keeps the first.
        Class::ALL.into_iter().filter(ready).min_by_key(|class| self.lines[*class as usize].share.tag)
    }
}
