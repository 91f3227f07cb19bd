//! A create whose outcome is determined instead of guessed.
//!
//! The response to a create may be lost, late, or "exists" for the caller's own object. So the object under the name
//! is read back and compared. A create without a response is resent unchanged: whichever of the two arrives first,
//! the object is the same. This needs bytes that no other writer, and no other attempt of this one, would write.

use super::rules::{Breakage, Rules};
use std::time::Duration;

/// Pause before the second attempt; it doubles from then on.
const PAUSE: Duration = Duration::from_millis(100);

/// A create in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Create {
    rules: Rules,
    /// Number of failed attempts.
    tries: u32,
    /// Whether an earlier attempt may still be in flight: a later attempt that is certainly refused proves nothing
    /// about it.
    doubt: bool,
    step: CreateStep,
}

/// The next step of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateStep {
    /// Send the object; [`Create::put`] accepts the response.
    Put,
    /// Read the object under the name; [`Create::got`].
    Get,
    /// Make the object that was read durable; [`Create::settled`].
    Settle,
    /// Wait before the next attempt; [`Create::paused`].
    Pause(Duration),
    /// The create has ended.
    Done(CreateOutcome),
}

/// The outcome of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateOutcome {
    /// The caller's object exists under the name, durably.
    Ours,
    /// Another object exists under the name.
    Theirs,
    /// The object does not exist, and never will.
    Refused,
    /// The object may exist, or may yet appear.
    Unknown,
}

/// A bucket's response to a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PutOutcome {
    /// The object was created durably.
    Created,
    /// The name is taken, perhaps by this very object.
    Exists,
    /// It had no effect, and never will: no space, no permission.
    Refused,
    /// There was no response: the create may have been fully applied.
    Lost,
    /// The bucket reported a failure: even a readable object may not be durable.
    Failed,
}

/// The object found under the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GetOutcome {
    /// The caller's object.
    Ours,
    /// Another object.
    Theirs,
    /// No object.
    Absent,
    /// The read failed.
    Failed,
}

impl Create {
    /// A create that has not been sent yet.
    pub fn new(rules: Rules) -> Create {
        Create { rules, tries: 0, doubt: false, step: CreateStep::Put }
    }

    /// The next step.
    pub fn step(&self) -> CreateStep {
        self.step
    }

    /// Accepts the response to the create.
    pub fn put(&mut self, answer: PutOutcome) {
        self.step = match answer {
            PutOutcome::Created => CreateStep::Done(CreateOutcome::Ours),
            // An earlier attempt of this create may have made the object: only its bytes tell.
            PutOutcome::Exists => CreateStep::Get,
            // No other attempt is in flight, so the object cannot appear later.
            PutOutcome::Refused if !self.doubt => CreateStep::Done(CreateOutcome::Refused),
            // With another attempt in flight, the refusal of this one says nothing of that one. After a failure, even
            // an object that can be read may not be durable.
            PutOutcome::Refused | PutOutcome::Failed => CreateStep::Done(CreateOutcome::Unknown),
            // Broken on purpose: a test verifies that the explorer detects it.
            PutOutcome::Lost if self.rules.breaks(Breakage::LostIsFailed) => CreateStep::Done(CreateOutcome::Refused),
            // The object may be there already, or appear at any time from now on.
            PutOutcome::Lost => {
                self.doubt = true;
                CreateStep::Get
            }
        };
    }

    /// Accepts the object found under the name.
    pub fn got(&mut self, answer: GetOutcome) {
        self.step = match answer {
            // Readable is not yet durable: the attempt that made it has not reported success.
            GetOutcome::Ours => CreateStep::Settle,
            // A create replaces nothing, so an attempt still in flight finds the name taken.
            GetOutcome::Theirs => CreateStep::Done(CreateOutcome::Theirs),
            // Not there yet, or deleted since: the resent object is the same.
            GetOutcome::Absent => self.again(),
            // The object may be there. So a later refusal does not prove that it is not.
            GetOutcome::Failed => {
                self.doubt = true;
                self.again()
            }
        };
    }

    /// Accepts whether the object that was read is durable.
    pub fn settled(&mut self, durable: bool) {
        // Not durable, it can still be read, and may be gone after a crash: neither outcome is certain.
        self.step = CreateStep::Done(if durable { CreateOutcome::Ours } else { CreateOutcome::Unknown });
    }

    /// Accepts the end of the pause.
    pub fn paused(&mut self) {
        self.step = CreateStep::Put;
    }

    fn again(&mut self) -> CreateStep {
        self.tries += 1;
        if self.tries >= self.rules.create_tries {
            // Not `Refused`: an attempt may still arrive.
            return CreateStep::Done(CreateOutcome::Unknown);
        }
        CreateStep::Pause(PAUSE * (1 << (self.tries - 1)))
    }
}
