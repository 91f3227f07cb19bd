//! The log's chain: reading it to its end, ending the part of the writer before, and which old objects go.
//!
//! After the object `(epoch, number)` comes `(epoch, number + 1)`, or, where that object is a fence, `(the fence's epoch, number + 1)`. A writer sends
//! one object at a time, and always the next one of its own epoch. So a process that creates a fence under that very name has ended the
//! writer's part for good: its next create finds another object. Fences are never deleted, so no former writer ever finds its next name free.
//!
//! A manifest names the place from which the log continues. Objects before it are deleted once the manifest stands. A process
//! that starts from an older manifest may meet the deleted names and put a fence where no process looks any more. Its own commit
//! is then refused, as there is a newer manifest. It starts again from that one.

use super::create::Created;
use super::rules::{Breakage, Rules};
use crate::policy::lease::next_epoch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Max fences that other objects may come before: each means that another process made progress.
const TURNS: u32 = 32;

/// A place in a log of objects: the writer's epoch, and the number of the object since the log began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LogPlace {
    /// The writer's.
    pub epoch: u64,
    /// Since the log began, over all epochs.
    pub number: u64,
}

impl LogPlace {
    /// Where a log begins.
    pub const FIRST: LogPlace = LogPlace { epoch: 0, number: 1 };

    /// The place after it, of the same writer.
    #[must_use]
    pub fn next(self) -> LogPlace {
        LogPlace { number: self.number + 1, ..self }
    }
}

/// The object at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// Nothing.
    Absent,
    /// An object that does not read.
    Damaged,
    /// A group of writes, or a fence.
    Object {
        /// Checksum of the object before, as this one has it.
        before: u32,
        /// Its own checksum.
        sum: u32,
        /// Of a fence: the epoch that begins after it.
        fence: Option<u64>,
    },
}

/// The meaning of an object, or of its absence, for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is the next of the chain.
    Next,
    /// It stands in the place of the next one, and does not follow the previous one: acknowledged writes may be missing.
    Unlinked,
    /// The next one does not read.
    Damaged,
    /// The object at this place is missing, as later ones are there.
    Missing(LogPlace),
    /// Nothing: the caller goes on.
    Nothing,
}

/// Becoming the writer: reads the chain, ends it with a fence, and removes what a manifest covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Replay {
    rules: Rules,
    /// Number of the place that the manifest names: objects below it are covered.
    from: u64,
    /// The epoch that the lease has given; 0: none.
    term: u64,
    /// The next place of the chain.
    at: LogPlace,
    /// The object that the one there should follow; `None` at the beginning and after damage.
    follows: Option<u32>,
    /// Checksum of the last object read, or of the fence.
    sum: u32,
    turns: u32,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stage {
    Walk,
    /// Nothing stands at `at`: a listing hints at what comes after.
    Gap,
    /// Places that a listing shows after `at`, the first one last.
    After(Vec<LogPlace>),
    /// A group stands at this later place: was the gap filled between the two looks?
    Again(LogPlace),
    Fence,
    /// The fence stands: what may be removed?
    Old,
    Remove(Vec<LogPlace>),
    Done,
    Busy,
}

/// The next step of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayStep {
    /// Read the object at a place; [`Replay::read`] takes it.
    Read(LogPlace),
    /// List all places; [`Replay::listed`].
    List,
    /// Create a fence; [`Replay::fenced`]. A create that neither stands nor lost to another object ends the replay.
    Fence {
        /// Where.
        at: LogPlace,
        /// Checksum of the object before.
        before: u32,
        /// The epoch that begins.
        epoch: u64,
    },
    /// Delete the object at a place; [`Replay::deleted`].
    Delete(LogPlace),
    /// The caller is the writer.
    Done {
        /// Where its first object goes.
        next: LogPlace,
        /// Checksum of the object before.
        before: u32,
    },
    /// Others append without end.
    Busy,
}

impl Replay {
    /// A replay from the place that the manifest names, by the holder of a term (0: of none).
    pub fn new(rules: Rules, from: LogPlace, term: u64) -> Replay {
        let (at, from) = (from, from.number);
        Replay { rules, from, term, at, follows: None, sum: 0, turns: 0, stage: Stage::Walk }
    }

    /// Its next step.
    pub fn step(&self) -> ReplayStep {
        match &self.stage {
            Stage::Walk | Stage::Again(_) => ReplayStep::Read(self.at),
            Stage::Gap | Stage::Old => ReplayStep::List,
            Stage::After(places) => places.last().map_or(self.fence(), |place| ReplayStep::Read(*place)),
            Stage::Fence => self.fence(),
            Stage::Remove(places) => places.last().map_or(self.done(), |place| ReplayStep::Delete(*place)),
            Stage::Done => self.done(),
            Stage::Busy => ReplayStep::Busy,
        }
    }

    /// Takes what stands at the place that it asked for, and says what that means.
    pub fn read(&mut self, link: Link) -> Reading {
        match std::mem::replace(&mut self.stage, Stage::Walk) {
            Stage::Again(later) if link == Link::Absent => {
                let gap = self.at;
                (self.at, self.follows) = (later, None);
                Reading::Missing(gap)
            }
            Stage::After(mut places) => {
                let place = places.pop();
                // Fences after a gap are what processes left that started from an older manifest.
                match (link, place) {
                    (Link::Object { fence: None, .. }, Some(place)) if self.continues_without_fence(place) => {
                        self.at = place
                    }
                    (Link::Object { fence: None, .. }, Some(place)) => self.stage = Stage::Again(place),
                    _ => self.after(places),
                }
                Reading::Nothing
            }
            _ => self.walk(link),
        }
    }

    fn walk(&mut self, link: Link) -> Reading {
        match link {
            Link::Absent => {
                self.stage = Stage::Gap;
                Reading::Nothing
            }
            Link::Damaged => {
                (self.at, self.follows) = (self.at.next(), None);
                Reading::Damaged
            }
            Link::Object { before, sum, fence } => {
                let linked = self.follows.is_none_or(|follows| follows == before);
                (self.follows, self.sum) = (Some(sum), sum);
                self.at = fence.map_or(self.at.next(), |epoch| LogPlace { epoch, number: self.at.number + 1 });
                if linked { Reading::Next } else { Reading::Unlinked }
            }
        }
    }

    /// Takes all places that a listing shows. It may be behind, and show what was deleted: it is a hint.
    pub fn listed(&mut self, mut places: Vec<LogPlace>) {
        if self.stage == Stage::Old {
            let old = obsolete(self.rules, places, self.from);
            self.stage = if old.is_empty() { Stage::Done } else { Stage::Remove(old) };
            return;
        }
        let at = self.at;
        places.retain(|place| place.number >= at.number && place.epoch >= at.epoch && *place != at);
        places.sort_by_key(|place| std::cmp::Reverse((place.number, place.epoch)));
        self.after(places);
    }

    fn after(&mut self, places: Vec<LogPlace>) {
        self.stage = match places.is_empty() {
            false => Stage::After(places),
            true if self.rules.breaks(Breakage::LeaseAlone) => Stage::Old,
            true => Stage::Fence,
        };
    }

    /// Takes what came of the fence, and its checksum.
    pub fn fenced(&mut self, created: Created, sum: u32) {
        self.stage = match created {
            Created::Ours => {
                self.sum = sum;
                Stage::Old
            }
            // The writer went on, or another candidate came first: it is read like the rest.
            Created::Theirs if self.turns < TURNS => {
                self.turns += 1;
                Stage::Walk
            }
            _ => Stage::Busy,
        };
    }

    /// Says that the object is gone.
    pub fn deleted(&mut self) {
        if let Stage::Remove(places) = &mut self.stage {
            places.pop();
        }
    }

    fn epoch(&self) -> u64 {
        self.term.max(next_epoch(0, 0, self.at.epoch))
    }

    fn fence(&self) -> ReplayStep {
        ReplayStep::Fence { at: self.at, before: self.sum, epoch: self.epoch() }
    }

    fn done(&self) -> ReplayStep {
        // Without a fence its part begins at the very number that the writer before may send next.
        let fences = u64::from(!self.rules.breaks(Breakage::LeaseAlone));
        ReplayStep::Done { next: LogPlace { epoch: self.epoch(), number: self.at.number + fences }, before: self.sum }
    }

    /// Of a log without fences: whether the part of another writer begins at this place.
    fn continues_without_fence(&self, place: LogPlace) -> bool {
        self.rules.breaks(Breakage::LeaseAlone) && place.number == self.at.number
    }
}

/// Objects of a listing that can go once everything below a number is covered. The last of each epoch is its fence, or what a listing that
/// is behind shows as the last, and stays.
pub fn obsolete(rules: Rules, mut places: Vec<LogPlace>, below: u64) -> Vec<LogPlace> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for place in &places {
        let number = last.entry(place.epoch).or_default();
        *number = place.number.max(*number);
    }
    let stays = |place: &LogPlace| last.get(&place.epoch) == Some(&place.number) && !rules.breaks(Breakage::FencesGo);
    places.retain(|place| place.number < below && !stays(place));
    places
}
