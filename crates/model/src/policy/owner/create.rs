//! A create and what came of it, found out instead of guessed.
//!
//! The answer to a create may be lost, late, or "exists" for the caller's own object. So what stands under the name is read back and compared.
//! A create whose answer was lost is sent again as it was: whichever of the two arrives first, the object is the same. This needs bytes that no
//! other writer, and no other attempt of this one, would write.

use super::rules::{Breakage, Rules};
use std::time::Duration;

/// Pause before the second try; it doubles from then on.
const PAUSE: Duration = Duration::from_millis(100);

/// A create on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Create {
    rules: Rules,
    /// How often it was sent in vain.
    tries: u32,
    /// One attempt may be on its way: a later one that is surely refused proves nothing about it.
    doubt: bool,
    step: CreateStep,
}

/// The next step of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateStep {
    /// Send the object; [`Create::put`] takes the answer.
    Put,
    /// Read what stands under the name; [`Create::got`].
    Get,
    /// Make durable what was read; [`Create::settled`].
    Settle,
    /// Wait before the next try; [`Create::paused`].
    Pause(Duration),
    /// It has come to an end.
    Done(Created),
}

/// The outcome of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Created {
    /// The caller's object stands under the name, durably.
    Ours,
    /// Another object does.
    Theirs,
    /// The object is not there, nor will be.
    Refused,
    /// It may be there, or may yet appear.
    Unknown,
}

/// How a bucket answers a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PutOutcome {
    /// The object is there, durably.
    Created,
    /// The name is taken, perhaps by this very object.
    Exists,
    /// It had no effect, nor will have: no room, no rights.
    Refused,
    /// There was no answer: it may have been done in full.
    Lost,
    /// The bucket says that it failed: an object that can be read may still not be durable.
    Failed,
}

/// The object under the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GetOutcome {
    /// The caller's object.
    Ours,
    /// Another.
    Theirs,
    /// None.
    Absent,
    /// That could not be read.
    Failed,
}

impl Create {
    /// A create that has not been sent yet.
    pub fn new(rules: Rules) -> Create {
        Create { rules, tries: 0, doubt: false, step: CreateStep::Put }
    }

    /// Its next step.
    pub fn step(&self) -> CreateStep {
        self.step
    }

    /// Takes the answer to the create.
    pub fn put(&mut self, answer: PutOutcome) {
        self.step = match answer {
            PutOutcome::Created => CreateStep::Done(Created::Ours),
            PutOutcome::Exists => CreateStep::Get,
            PutOutcome::Refused if !self.doubt => CreateStep::Done(Created::Refused),
            PutOutcome::Refused | PutOutcome::Failed => CreateStep::Done(Created::Unknown),
            PutOutcome::Lost if self.rules.breaks(Breakage::LostIsFailed) => CreateStep::Done(Created::Refused),
            PutOutcome::Lost => {
                self.doubt = true;
                CreateStep::Get
            }
        };
    }

    /// Takes what stands under the name.
    pub fn got(&mut self, answer: GetOutcome) {
        self.step = match answer {
            GetOutcome::Ours => CreateStep::Settle,
            GetOutcome::Theirs => CreateStep::Done(Created::Theirs),
            // Not there yet, or deleted since: sent again, it is the same object.
            GetOutcome::Absent => self.again(),
            GetOutcome::Failed => {
                self.doubt = true;
                self.again()
            }
        };
    }

    /// Says whether what was read is durable now.
    pub fn settled(&mut self, durable: bool) {
        self.step = CreateStep::Done(if durable { Created::Ours } else { Created::Unknown });
    }

    /// Says that the pause is over.
    pub fn paused(&mut self) {
        self.step = CreateStep::Put;
    }

    fn again(&mut self) -> CreateStep {
        self.tries += 1;
        if self.tries >= self.rules.create_tries {
            return CreateStep::Done(Created::Unknown);
        }
        CreateStep::Pause(PAUSE * (1 << (self.tries - 1)))
    }
}
