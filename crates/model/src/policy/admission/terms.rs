//! The terms in which questions are admitted.

use super::At;
use std::time::Duration;

/// How urgent a question is.
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
    /// Browsers send up to 5 for what a page shows, so these all are interactive.
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

    /// The class of a question of this class once it has used so much processor time.
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

/// What the scheduler is bound by.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Min slots: the number of processors.
    pub slots: usize,
    /// Max slots, given while questions wait for a disk rather than for a processor.
    pub slots_max: usize,
    /// Questions of one tenant that run or are paused. More wait, so that started questions finish.
    pub started_max: usize,
    /// Questions of all tenants together that run, are paused or are away: each keeps a thread. A tenant begins none while as many
    /// of its own are away as there is room for more.
    pub threads_max: usize,
    /// Questions that wait, of all tenants together.
    pub waiting_max: usize,
    /// Processor time after which a running question may be overtaken.
    pub slice: Duration,
    /// Processor time that a tenant which was idle may use before others have a right to theirs.
    pub credit: Duration,
    /// Longest wait in a queue that is overloaded.
    pub target: Duration,
    /// Longest wait in any other queue, by class. A queue that was never empty for this long, or holds more work
    /// than that, is overloaded.
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

/// A question that wants a slot.
#[derive(Debug, Clone)]
pub struct Ask<T> {
    /// The tenant that it is charged to.
    pub tenant: T,
    /// The tenant's weight, min 1.
    pub weight: u32,
    /// How urgent it is.
    pub class: Class,
    /// Whether it is a write ([`super::Admission::is_late`]).
    pub is_write: bool,
    /// When its client stops waiting for the answer.
    pub deadline: At,
    /// What it had before, if it is in progress and gave its slot back for a client that reads slowly. Such a question is never refused: it
    /// waits like one that was overtaken.
    pub resumed: Option<Served>,
}

/// The service that a question in progress has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// When it was given its first slot; absent where it has had none.
    pub since: Option<At>,
    /// Processor time used: it continues in the class to which it had sunk.
    pub used: Duration,
}

impl<T> Ask<T> {
    /// The same with its tenant borrowed.
    pub fn as_ref(&self) -> Ask<&T> {
        let Ask { tenant, weight, class, is_write, deadline, resumed } = self;
        let (weight, class, is_write, deadline) = (*weight, *class, *is_write, *deadline);
        Ask { tenant, weight, class, is_write, deadline, resumed: *resumed }
    }
}

/// A question, valid until [`super::Admission::leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub u32);

/// What became of a question that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It runs.
    Run(Ticket),
    /// It waits: [`super::Admission::next`] says when it runs.
    Wait(Ticket),
}

/// Why a question is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Too many wait.
    QueueFull,
    /// It waited too long.
    Waited,
    /// Its deadline passed, or will pass before it can run.
    Deadline,
}

impl Refusal {
    /// All of them.
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

/// A question whose wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It runs.
    Run(Ticket),
    /// It is refused.
    Refuse(Ticket, Refusal),
}

/// What a question does after a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs on.
    Continue,
    /// It waits, paused, until its next [`Turn::Run`].
    Pause,
}

/// The questions of one class of one tenant at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassLoad {
    /// Questions that hold a slot.
    pub running: usize,
    /// Questions that were overtaken.
    pub paused: usize,
    /// Questions that have not begun.
    pub waiting: usize,
    /// Questions that wait for another process.
    pub away: usize,
    /// How long the first of them has waited.
    pub oldest: Option<Duration>,
}

/// Numbers of one moment, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Questions that hold a slot.
    pub running: usize,
    /// Questions that were overtaken.
    pub paused: usize,
    /// Questions that have not begun.
    pub waiting: usize,
    /// Questions that wait for another process, without a slot.
    pub away: usize,
    /// Slots.
    pub slots: usize,
}
