//! The order in which a process becomes the owner of a partition and starts to serve.
//!
//! The fence comes before the first manifest, so that the replayed log is complete. The first manifest comes before
//! anything is removed: until then the previous owner may commit a manifest that names apparent leftovers. Writes are
//! accepted last.

use super::catalog::CommitOutcome;
use super::rules::{Breakage, Rules};

/// A process that is becoming the owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Takeover {
    rules: Rules,
    turns: u32,
    step: TakeoverStep,
}

/// The next step of a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TakeoverStep {
    /// Read the newest manifest and what it names, and replay the log after it; [`Takeover::opened`].
    Open,
    /// Check whether a manifest newer than that one exists; [`Takeover::looked`].
    Look,
    /// Commit the first manifest; [`Takeover::claimed`]. Any other end of the commit ends the takeover.
    Claim,
    /// Remove leftovers; [`Takeover::swept`].
    Sweep,
    /// Serve, and accept writes.
    Serve,
    /// Serve read-only: something is missing.
    Show,
    /// Other processes keep taking over.
    Busy,
}

impl Takeover {
    /// A takeover that has not begun.
    pub fn new(rules: Rules) -> Takeover {
        Takeover { rules, turns: 0, step: TakeoverStep::Open }
    }

    /// The next step.
    pub fn step(&self) -> TakeoverStep {
        self.step
    }

    /// Accepts whether everything that manifest and log name exists.
    pub fn opened(&mut self, whole: bool) {
        self.step = match whole {
            // It may be missing because it was removed, in which case a newer manifest exists.
            false => TakeoverStep::Look,
            true if self.rules.breaks(Breakage::SweepBeforeClaim) => TakeoverStep::Sweep,
            true if self.rules.breaks(Breakage::NoClaim) => TakeoverStep::Sweep,
            true => TakeoverStep::Claim,
        };
    }

    /// Accepts whether a newer manifest exists.
    pub fn looked(&mut self, newer: bool) {
        if newer {
            self.again();
        } else {
            self.step = TakeoverStep::Show;
        }
    }

    /// Accepts the outcome of the first manifest: committed or stale.
    pub fn claimed(&mut self, committed: CommitOutcome) {
        match committed {
            CommitOutcome::Stands if self.rules.breaks(Breakage::SweepBeforeClaim) => self.step = TakeoverStep::Serve,
            CommitOutcome::Stands => self.step = TakeoverStep::Sweep,
            // The previous owner committed once more: what it flushed is in its manifest. It is fenced from the log,
            // so this ends.
            CommitOutcome::Stale => self.again(),
            CommitOutcome::Refused | CommitOutcome::Unknown => self.step = TakeoverStep::Busy,
        }
    }

    /// Accepts that the leftovers are removed, or will be.
    pub fn swept(&mut self) {
        self.step = match self.rules.breaks(Breakage::SweepBeforeClaim) {
            true => TakeoverStep::Claim,
            false => TakeoverStep::Serve,
        };
    }

    fn again(&mut self) {
        self.turns += 1;
        self.step = if self.turns < self.rules.takeover_turns { TakeoverStep::Open } else { TakeoverStep::Busy };
    }
}
