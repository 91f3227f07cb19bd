//! In which order a process becomes the owner of a partition, and when it serves.
//!
//! The fence comes before the first manifest, so that the log that was replayed is all there is. The first manifest comes before anything is
//! removed, as until then the owner before may commit a manifest that names what looks left over. Writes are taken last.

use super::catalog::Committed;
use super::rules::{Breakage, Rules};

/// A process on its way to become the owner.
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
    /// Look whether a newer manifest than that one is there by now; [`Takeover::looked`].
    Look,
    /// Commit the first manifest; [`Takeover::claimed`]. Any other end of the commit ends the takeover.
    Claim,
    /// Remove leftovers; [`Takeover::swept`].
    Sweep,
    /// Serve, and take writes.
    Serve,
    /// Serve what is there, and take no writes: something is missing.
    Show,
    /// Other processes take over again and again.
    Busy,
}

impl Takeover {
    /// A takeover that has not begun.
    pub fn new(rules: Rules) -> Takeover {
        Takeover { rules, turns: 0, step: TakeoverStep::Open }
    }

    /// Its next step.
    pub fn step(&self) -> TakeoverStep {
        self.step
    }

    /// Takes whether all that manifest and log name is there.
    pub fn opened(&mut self, whole: bool) {
        self.step = match whole {
            // It may be missing because it was removed, and then a newer manifest is there.
            false => TakeoverStep::Look,
            true if self.rules.breaks(Breakage::SweepBeforeClaim) => TakeoverStep::Sweep,
            true if self.rules.breaks(Breakage::NoClaim) => TakeoverStep::Sweep,
            true => TakeoverStep::Claim,
        };
    }

    /// Takes whether a newer manifest is there.
    pub fn looked(&mut self, newer: bool) {
        if newer {
            self.again();
        } else {
            self.step = TakeoverStep::Show;
        }
    }

    /// Takes what came of the first manifest: it stands, or is stale.
    pub fn claimed(&mut self, committed: Committed) {
        match committed {
            Committed::Stands if self.rules.breaks(Breakage::SweepBeforeClaim) => self.step = TakeoverStep::Serve,
            Committed::Stands => self.step = TakeoverStep::Sweep,
            // The owner before committed once more: what it flushed is in its manifest. It is fenced from the log, so the turns end.
            Committed::Stale => self.again(),
            Committed::Refused | Committed::Unknown => self.step = TakeoverStep::Busy,
        }
    }

    /// Says that what was left over is removed, or will be.
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
