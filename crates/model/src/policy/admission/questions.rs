//! The queries of a scheduler by their tickets.

use super::{Class, Ticket};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Paused,
    Waiting,
    Away,
    Refused,
}

#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Number of the query's tenant.
    pub(super) tenant: usize,
    pub(super) class: Class,
    pub(super) state: State,
    /// Processor time charged so far.
    pub(super) used: Duration,
}

/// Queries in reusable entries, so that a ticket is found without a search.
#[derive(Debug, Clone, Default)]
pub(super) struct Questions {
    slots: Vec<Option<Question>>,
    free: Vec<u32>,
}

impl Questions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Question> {
        self.slots.iter().flatten()
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Question> {
        self.slots.get(ticket.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Question> {
        self.slots.get_mut(ticket.0 as usize)?.as_mut()
    }

    pub(super) fn set(&mut self, ticket: Ticket, state: State) {
        if let Some(question) = self.get_mut(ticket) {
            question.state = state;
        }
    }

    /// Adds a query.
    pub(super) fn add(&mut self, question: Question) -> Ticket {
        match self.free.pop() {
            Some(free) => {
                self.slots[free as usize] = Some(question);
                Ticket(free)
            }
            None => {
                self.slots.push(Some(question));
                Ticket((self.slots.len() - 1) as u32)
            }
        }
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Question> {
        let question = self.slots.get_mut(ticket.0 as usize)?.take()?;
        self.free.push(ticket.0);
        Some(question)
    }
}
