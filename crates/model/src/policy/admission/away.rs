//! Queries that wait for another process.

use super::terms::Class;
use super::{Admission, State, Tenant, Ticket, Verdict};
use std::hash::Hash;
use std::time::Duration;

impl<T: Clone + Eq + Hash> Admission<T> {
    /// Releases the slot of a running query that waits for another process, until [`Admission::wake`], and charges it
    /// `used`. Does nothing if the query is not running.
    pub fn rest(&mut self, ticket: Ticket, used: Duration) {
        self.charge(ticket, used);
        let Some(question) = self.questions.get_mut(ticket).filter(|question| question.state == State::Running) else {
            return;
        };
        question.state = State::Away;
        let tenant = &mut self.tenants[question.tenant];
        tenant.running -= 1;
        tenant.started -= 1;
        tenant.away += 1;
        self.running -= 1;
        self.away += 1;
    }

    /// Resumes a query whose awaited response has arrived. It is never refused: without a free slot it queues like a
    /// preempted one.
    pub fn wake(&mut self, ticket: Ticket) -> Verdict {
        let Some(question) = self.questions.get(ticket).filter(|question| question.state == State::Away) else {
            return Verdict::Continue;
        };
        let (number, class) = (question.tenant, question.class);
        self.activate(number, class);
        let free = self.is_free();
        self.tenants[number].away -= 1;
        self.away -= 1;
        if free {
            self.questions.set(ticket, State::Running);
            self.tenants[number].started += 1;
            self.begin(number, class);
            return Verdict::Continue;
        }
        self.questions.set(ticket, State::Paused);
        self.line_up(number, class, ticket);
        Verdict::Pause
    }

    /// Queues a started query for its next slot.
    pub(super) fn line_up(&mut self, number: usize, class: Class, ticket: Ticket) {
        let tenant = &mut self.tenants[number];
        tenant.lines[class as usize].paused.push_back(ticket);
        tenant.started += 1;
        self.paused += 1;
    }

    /// Whether a tenant may start another query. The more of its queries are away, the more threads must stay free
    /// for others.
    pub(super) fn may_start(&self, tenant: &Tenant<T>) -> bool {
        let left = self.settings.threads_max.saturating_sub(self.running + self.paused + self.away);
        tenant.started < self.settings.started_max && tenant.away < left
    }
}
