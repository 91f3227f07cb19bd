//! The rules behind a common interface: the server's scheduler, and the plain queue.

use super::{Queue, Rule, SharedServer};
use crate::simulate::events::Micros;
use meridian_model::policy::admission::{Admission, Entry, SlotRequest, Ticket, Verdict, WaitOutcome};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Number of a question.
pub(super) type Number = usize;

/// The decision on a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// It starts or continues.
    Run(Number),
    /// It is refused.
    Refuse(Number),
}

/// The rule and its state.
pub(super) enum RuleState {
    Fair { admission: Box<Admission<usize>>, tickets: HashMap<Ticket, Number>, of: HashMap<Number, Ticket> },
    Queue { settings: Queue, running: usize, waiting: VecDeque<(Number, Micros)> },
}

/// A question, as seen by a rule.
pub(super) struct Arrival {
    pub(super) number: Number,
    pub(super) account: usize,
    pub(super) weight: u32,
    pub(super) class: meridian_model::policy::admission::Class,
    pub(super) deadline: Micros,
}

impl RuleState {
    pub(super) fn of(server: &SharedServer) -> RuleState {
        match server.rule {
            Rule::Fair => RuleState::Fair {
                admission: Box::new(Admission::new(server.settings())),
                tickets: HashMap::new(),
                of: HashMap::new(),
            },
            Rule::Queue => RuleState::Queue { settings: server.queue, running: 0, waiting: VecDeque::new() },
        }
    }

    /// Admits a question. Decisions on it and on others follow from [`RuleState::next`], except for an immediate
    /// refusal.
    pub(super) fn enter(&mut self, now: Micros, arrived: &Arrival) -> Option<Decision> {
        match self {
            RuleState::Fair { admission, tickets, of } => {
                let ask = SlotRequest {
                    tenant: &arrived.account,
                    weight: arrived.weight,
                    class: arrived.class,
                    is_write: false,
                    deadline: Duration::from_micros(arrived.deadline),
                    resumed: None,
                };
                let (ticket, act) = match admission.enter(Duration::from_micros(now), ask) {
                    Ok(Entry::Run(ticket)) => (ticket, Some(Decision::Run(arrived.number))),
                    Ok(Entry::Wait(ticket)) => (ticket, None),
                    // No ticket was issued, so there is none to return later.
                    Err(_) => return Some(Decision::Refuse(arrived.number)),
                };
                tickets.insert(ticket, arrived.number);
                of.insert(arrived.number, ticket);
                act
            }
            RuleState::Queue { settings, running, waiting } => {
                if *running < settings.running_max as usize && waiting.is_empty() {
                    *running += 1;
                    return Some(Decision::Run(arrived.number));
                }
                if waiting.len() >= settings.waiting_max as usize {
                    return Some(Decision::Refuse(arrived.number));
                }
                waiting.push_back((arrived.number, now));
                None
            }
        }
    }

    /// Returns whether a query continues after a slice.
    pub(super) fn slice(&mut self, number: Number, used: Duration) -> bool {
        match self {
            RuleState::Fair { admission, of, .. } => {
                of.get(&number).is_none_or(|ticket| admission.slice(*ticket, used) == Verdict::Continue)
            }
            RuleState::Queue { .. } => true,
        }
    }

    /// Removes a question that is done, or whose client has left. `ran` states whether it had started.
    pub(super) fn leave(&mut self, number: Number, used: Duration, ran: bool) {
        match self {
            RuleState::Fair { admission, tickets, of } => {
                if let Some(ticket) = of.remove(&number) {
                    tickets.remove(&ticket);
                    admission.leave(ticket, used);
                }
            }
            RuleState::Queue { running, .. } if ran => *running -= 1,
            RuleState::Queue { waiting, .. } => waiting.retain(|(waits, _)| *waits != number),
        }
    }

    /// Returns the next query that starts, continues or is refused.
    pub(super) fn next(&mut self, now: Micros) -> Option<Decision> {
        match self {
            RuleState::Fair { admission, tickets, of } => {
                let at = Duration::from_micros(now);
                // Slots first: a question whose patience ends now still runs if a slot is free, as in the server.
                match admission.next(at).or_else(|| admission.expire(at))? {
                    WaitOutcome::Run(ticket) => tickets.get(&ticket).map(|number| Decision::Run(*number)),
                    WaitOutcome::Refuse(ticket, _) => tickets.remove(&ticket).map(|number| {
                        of.remove(&number);
                        admission.leave(ticket, Duration::ZERO);
                        Decision::Refuse(number)
                    }),
                }
            }
            RuleState::Queue { settings, running, waiting } => {
                let wait = crate::simulate::events::micros(settings.wait_s);
                // First in, first out: only the front can have waited longest, so no other is checked.
                if waiting.front().is_some_and(|(_, since)| now > since + wait) {
                    return waiting.pop_front().map(|(number, _)| Decision::Refuse(number));
                }
                if *running >= settings.running_max as usize {
                    return None;
                }
                let (number, _) = waiting.pop_front()?;
                *running += 1;
                Some(Decision::Run(number))
            }
        }
    }
}
