//! The vocabulary of admission: classes, settings and outcomes.

use super::At;
use std::time::Duration;

/// Urgency of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A person waits for it.
    Interactive,
    /// A program waits for it.
    Batch,
    /// No client waits for it.
    Background,
}

impl Class {
    /// Every class, most urgent first.
    pub const ALL: [Class; 3] = [Class::Interactive, Class::Batch, Class::Background];

    /// Its name in metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Interactive => "interactive",
            Class::Batch => "batch",
            Class::Background => "background",
        }
    }

    /// The class of an urgency of the header `Priority` (RFC 9218: 0 to 7, where 7 is background work).
    ///
    /// Browsers send up to 5 for what a page shows, so these are all interactive.
    pub const fn of_urgency(urgency: u8) -> Class {
        match urgency {
            0..=5 => Class::Interactive,
            6 => Class::Batch,
            _ => Class::Background,
        }
    }

    /// Its share of a tenant's processor time beside the other classes.
    pub(super) const fn weight(self) -> u32 {
        match self {
            Class::Interactive => 16,
            Class::Batch => 4,
            Class::Background => 1,
        }
    }

    /// The class of a query of this class once it has used this much processor time.
    pub(super) fn after(self, used: Duration) -> Class {
        let mut class = self;
        while let Some((next, _)) = class.sinks().filter(|(_, at)| used >= *at) {
            class = next;
        }
        class
    }

    /// The class that a question sinks to, and the processor time at which it does.
    const fn sinks(self) -> Option<(Class, Duration)> {
        match self {
            Class::Interactive => Some((Class::Batch, Duration::from_millis(50))),
            Class::Batch => Some((Class::Background, Duration::from_millis(500))),
            Class::Background => None,
        }
    }
}

/// Limits of the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Min slots: the number of processors.
    pub slots: usize,
    /// Max slots, reached while queries wait for a disk rather than for a processor.
    pub slots_max: usize,
    /// Max running or paused queries of one tenant. Further ones wait, so that started queries finish.
    pub started_max: usize,
    /// Max queries of all tenants that run, are paused or are away: each keeps a thread. A tenant with as many
    /// queries away as there are threads left starts no more.
    pub threads_max: usize,
    /// Max waiting queries of all tenants.
    pub waiting_max: usize,
    /// Processor time after which a running query may be preempted.
    pub slice: Duration,
    /// Processor time that a formerly idle tenant may use before others have a right to theirs.
    pub credit: Duration,
    /// Max wait in an overloaded queue.
    pub target: Duration,
    /// Max wait in any other queue, by class. A queue that was non-empty for longer, or holds more work than that, is
    /// overloaded.
    pub patience: [Duration; 3],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            slots: 1,
            slots_max: 4,
            started_max: 16,
            threads_max: 256,
            waiting_max: 1024,
            slice: Duration::from_millis(2),
            credit: Duration::from_millis(50),
            target: Duration::from_millis(250),
            patience: [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)],
        }
    }
}

/// A query that requests a slot.
#[derive(Debug, Clone)]
pub struct SlotRequest<T> {
    /// The tenant charged for it.
    pub tenant: T,
    /// The tenant's weight, min 1.
    pub weight: u32,
    /// How urgent it is.
    pub class: Class,
    /// Whether it is a write ([`super::Admission::is_late`]).
    pub is_write: bool,
    /// When its client stops waiting for the response.
    pub deadline: At,
    /// Processor time used before, if the query is in progress and gave its slot back for a client that reads slowly.
    /// Such a query is never refused: it waits like one that was overtaken, in the class to which it had sunk.
    pub resumed: Option<Duration>,
}

impl<T> SlotRequest<T> {
    /// The same query with its tenant borrowed.
    pub fn as_ref(&self) -> SlotRequest<&T> {
        let SlotRequest { tenant, weight, class, is_write, deadline, resumed } = self;
        let (weight, class, is_write, deadline) = (*weight, *class, *is_write, *deadline);
        SlotRequest { tenant, weight, class, is_write, deadline, resumed: *resumed }
    }
}

/// A query's ticket, valid until [`super::Admission::leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub u32);

/// The outcome of a request for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It runs.
    Run(Ticket),
    /// It waits until [`super::Admission::next`] returns it.
    Wait(Ticket),
}

/// Why a query is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Too many queries wait.
    QueueFull,
    /// It waited too long.
    Waited,
    /// Its deadline passed, or will pass before it can run.
    Deadline,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Refusal; 3] = [Refusal::QueueFull, Refusal::Waited, Refusal::Deadline];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::QueueFull => "queue_full",
            Refusal::Waited => "waited",
            Refusal::Deadline => "deadline",
        }
    }
}

/// The outcome of a wait: the query that left the queue, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It runs.
    Run(Ticket),
    /// It is refused.
    Refuse(Ticket, Refusal),
}

/// The action of a query after a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It keeps running.
    Continue,
    /// It waits, paused, until its next [`WaitOutcome::Run`].
    Pause,
}

/// Queries of one class of one tenant at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassLoad {
    /// Queries that hold a slot.
    pub running: usize,
    /// Preempted queries.
    pub paused: usize,
    /// Queries that have not started.
    pub waiting: usize,
    /// Queries that wait for another process.
    pub away: usize,
    /// How long the oldest waiting query has waited.
    pub oldest: Option<Duration>,
}

/// Numbers at one moment, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Queries that hold a slot.
    pub running: usize,
    /// Preempted queries.
    pub paused: usize,
    /// Queries that have not started.
    pub waiting: usize,
    /// Queries that wait for another process, without a slot.
    pub away: usize,
    /// Slots.
    pub slots: usize,
}
