//! A writer of the log: which object it creates next, what a failed create means, and where a later replay begins.

use super::create::CreateOutcome;
use super::log::LogPlace;
use super::rules::{Breakage, Rules};
use std::collections::VecDeque;

/// A process with a committed fence. It sends one object at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writer {
    rules: Rules,
    /// Place of the next object. It stays put once nothing more may be appended: a manifest may still have to name
    /// it.
    next: LogPlace,
    /// Checksum of the previous object.
    before: u32,
    open: bool,
    /// Whether another process has taken over: what is left in the log is that one's to release.
    fenced: bool,
    /// Groups not covered by a manifest of this process, oldest first.
    held: VecDeque<LogGroup>,
}

/// A group in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogGroup {
    /// Its place.
    pub place: LogPlace,
    /// Position of its last record.
    pub last_position: u64,
    /// When its first record was accepted, in microseconds since 1970: informs readers, no step depends on it.
    pub time: i64,
    /// Its size.
    pub bytes: u64,
}

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AppendOutcome {
    /// The group is in the log: it can be acknowledged.
    Stored,
    /// None of it is in the log, nor will be: the writer goes on.
    Refused,
    /// Another process has taken over, and none of it is in the log: the writer stops.
    Fenced,
    /// Unknown until the next replay: the writer stops.
    Unknown,
}

impl Writer {
    /// The writer after a replay, with the groups that the replay found.
    pub fn new(rules: Rules, next: LogPlace, before: u32, held: VecDeque<LogGroup>) -> Writer {
        Writer { rules, next, before, open: true, fenced: false, held }
    }

    /// Place of the next object; `None` if the writer has stopped, and the log has to be replayed first.
    pub fn next(&self) -> Option<LogPlace> {
        self.open.then_some(self.next)
    }

    /// Checksum of the object before the next one.
    pub fn before(&self) -> u32 {
        self.before
    }

    /// Accepts the outcome of creating a group with checksum `sum`.
    pub fn appended(&mut self, created: CreateOutcome, group: LogGroup, sum: u32) -> AppendOutcome {
        match created {
            CreateOutcome::Ours => {
                self.held.push_back(group);
                (self.before, self.next) = (sum, group.place.next());
                AppendOutcome::Stored
            }
            // The place stays: every further append would find the same object there. So do the groups: a flush that
            // began earlier may yet be committed, in a manifest that has to name the first group after it.
            CreateOutcome::Theirs => {
                self.fenced = true;
                if self.rules.breaks(Breakage::ForgetsHeld) {
                    self.held.clear();
                }
                AppendOutcome::Fenced
            }
            CreateOutcome::Refused => AppendOutcome::Refused,
            CreateOutcome::Unknown => {
                self.open = false;
                AppendOutcome::Unknown
            }
        }
    }

    /// The place where a replay after `flushed` begins: a manifest that covers writes up to there names it.
    pub fn place(&self, flushed: u64) -> LogPlace {
        let first = self.held.iter().find(|held| held.last_position > flushed);
        // The outcome is unknown: the group may exist at the next place, and a replay from there finds it.
        let next = if self.open || !self.rules.breaks(Breakage::LosesPlace) { self.next } else { LogPlace::FIRST };
        first.map_or(next, |held| held.place)
    }

    /// When the oldest write after `flushed` was accepted, as far as groups are known. It need not be in the first
    /// group: clocks get adjusted, and an earlier process had another clock.
    pub fn oldest(&self, flushed: u64) -> Option<i64> {
        self.held.iter().filter(|held| held.last_position > flushed).map(|held| held.time).min()
    }

    /// The group to delete next, once a manifest of this process covers writes up to `flushed`; report its deletion
    /// to [`Writer::released`].
    pub fn releases(&self, flushed: u64) -> Option<LogPlace> {
        self.held.front().filter(|held| !self.fenced && held.last_position <= flushed).map(|held| held.place)
    }

    /// Accepts the deletion of the group.
    pub fn released(&mut self) {
        self.held.pop_front();
    }

    /// Bytes of groups that a replay would read.
    pub fn held_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.bytes).sum()
    }
}
