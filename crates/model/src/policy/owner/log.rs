//! The log's chain: reads it to its end, fences the previous writer, and selects old objects to delete.
//!
//! After the object `(epoch, number)` comes `(epoch, number + 1)`, or, where that object is a fence, `(the fence's
//! epoch, number + 1)`. A writer sends one object at a time, and always the next one of its own epoch. So a process
//! that creates a fence under that name has ended the writer's part permanently: the writer's next create finds
//! another object. Fences are never deleted, so no former writer ever finds its next name free.
//!
//! A manifest names the place from which the log continues. Objects before it are deleted once the manifest is
//! committed. A process that starts from an older manifest may find these names free and put a fence where no process
//! reads any more. Its own commit then fails, as there is a newer manifest, and it starts over from that one.

use super::create::CreateOutcome;
use super::rules::{Breakage, Rules};
use crate::policy::lease::next_epoch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Max number of times that another object may take the fence's place: each time another process made progress.
const TURNS: u32 = 32;

/// A place in a log of objects: the writer's epoch, and the object's number since the log began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LogPlace {
    /// Epoch of the writer.
    pub epoch: u64,
    /// Number since the log began, over all epochs.
    pub number: u64,
}

impl LogPlace {
    /// The beginning of a log.
    pub const FIRST: LogPlace = LogPlace { epoch: 0, number: 1 };

    /// The next place, of the same writer.
    #[must_use]
    pub fn next(self) -> LogPlace {
        LogPlace { number: self.number + 1, ..self }
    }
}

/// The object at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// No object.
    Absent,
    /// An unreadable object.
    Damaged,
    /// A group of writes, or a fence.
    Object {
        /// Checksum of the previous object, as recorded in this one.
        before: u32,
        /// Its own checksum.
        sum: u32,
        /// For a fence, the epoch that begins after it.
        fence: Option<u64>,
    },
}

/// The result of a read, for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The next object of the chain.
    Next,
    /// An object in the next place that does not follow the previous one: acknowledged writes may be missing.
    Unlinked,
    /// The next object is unreadable.
    Damaged,
    /// The object at this place is missing, since later ones exist.
    Missing(LogPlace),
    /// Nothing to replay: the caller goes on.
    Nothing,
}

/// Becomes the writer: reads the chain, ends it with a fence, and removes what a manifest covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Replay {
    rules: Rules,
    /// Number of the place in the manifest: objects below it are covered.
    from: u64,
    /// Epoch granted by the lease; 0 for none.
    term: u64,
    /// The next place of the chain.
    at: LogPlace,
    /// Checksum that the next object should refer to; `None` at the beginning and after damage.
    follows: Option<u32>,
    /// Checksum of the last object read, or of the fence.
    sum: u32,
    turns: u32,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stage {
    Walk,
    /// Nothing exists at `at`: a listing hints at later objects.
    Gap,
    /// Listed places after `at`, the first one last.
    After(Vec<LogPlace>),
    /// A group exists at this later place: reads `at` again, in case the gap was filled between the two reads.
    Again(LogPlace),
    Fence,
    /// The fence exists: lists the objects that may be removed.
    Old,
    Remove(Vec<LogPlace>),
    Done,
    Busy,
}

/// The next step of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayStep {
    /// Read the object at a place; [`Replay::read`] accepts it.
    Read(LogPlace),
    /// List all places; [`Replay::listed`].
    List,
    /// Create a fence; [`Replay::fenced`]. A create that neither succeeds nor loses to another object ends the
    /// replay.
    Fence {
        /// Place of the fence.
        at: LogPlace,
        /// Checksum of the previous object.
        before: u32,
        /// Epoch that begins after it.
        epoch: u64,
    },
    /// Delete the object at a place; [`Replay::deleted`].
    Delete(LogPlace),
    /// The caller is the writer.
    Done {
        /// Place of its first object.
        next: LogPlace,
        /// Checksum of the previous object.
        before: u32,
    },
    /// Others keep appending.
    Busy,
}

impl Replay {
    /// A replay from the place in the manifest, by the holder of a term (0 for none).
    pub fn new(rules: Rules, from: LogPlace, term: u64) -> Replay {
        let (at, from) = (from, from.number);
        Replay { rules, from, term, at, follows: None, sum: 0, turns: 0, stage: Stage::Walk }
    }

    /// The next step.
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

    /// Accepts the object at the requested place, and returns its meaning.
    pub fn read(&mut self, link: Link) -> ReadOutcome {
        match std::mem::replace(&mut self.stage, Stage::Walk) {
            Stage::Again(later) if link == Link::Absent => {
                let gap = self.at;
                (self.at, self.follows) = (later, None);
                ReadOutcome::Missing(gap)
            }
            Stage::After(mut places) => {
                let place = places.pop();
                // Fences after a gap are leftovers of processes that started from an older manifest.
                match (link, place) {
                    (Link::Object { fence: None, .. }, Some(place)) if self.continues_without_fence(place) => {
                        self.at = place
                    }
                    (Link::Object { fence: None, .. }, Some(place)) => self.stage = Stage::Again(place),
                    _ => self.after(places),
                }
                ReadOutcome::Nothing
            }
            _ => self.walk(link),
        }
    }

    fn walk(&mut self, link: Link) -> ReadOutcome {
        match link {
            Link::Absent => {
                self.stage = Stage::Gap;
                ReadOutcome::Nothing
            }
            Link::Damaged => {
                (self.at, self.follows) = (self.at.next(), None);
                ReadOutcome::Damaged
            }
            Link::Object { before, sum, fence } => {
                let linked = self.follows.is_none_or(|follows| follows == before);
                (self.follows, self.sum) = (Some(sum), sum);
                self.at = fence.map_or(self.at.next(), |epoch| LogPlace { epoch, number: self.at.number + 1 });
                if linked { ReadOutcome::Next } else { ReadOutcome::Unlinked }
            }
        }
    }

    /// Accepts the listed places. A listing is only a hint: it may be stale, and show deleted objects.
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

    /// Accepts the outcome of the fence, and its checksum.
    pub fn fenced(&mut self, created: CreateOutcome, sum: u32) {
        self.stage = match created {
            CreateOutcome::Ours => {
                self.sum = sum;
                Stage::Old
            }
            // The writer went on, or another candidate came first: its object is read like the rest.
            CreateOutcome::Theirs if self.turns < TURNS => {
                self.turns += 1;
                Stage::Walk
            }
            _ => Stage::Busy,
        };
    }

    /// Accepts the deletion of the object.
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
        // Without a fence its part begins at the very number that the previous writer may send next.
        let fences = u64::from(!self.rules.breaks(Breakage::LeaseAlone));
        ReplayStep::Done { next: LogPlace { epoch: self.epoch(), number: self.at.number + fences }, before: self.sum }
    }

    /// For a log without fences: whether another writer's part begins at this place.
    fn continues_without_fence(&self, place: LogPlace) -> bool {
        self.rules.breaks(Breakage::LeaseAlone) && place.number == self.at.number
    }
}

/// Listed objects that can be deleted once everything below a number is covered. The last of each epoch stays: it is
/// its fence, or the last one in a stale listing.
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
