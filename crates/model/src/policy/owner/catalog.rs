//! The catalog's chain: manifests numbered without a gap, each created after the previous one.
//!
//! The number is not the manifest's version: of two writers that follow one manifest both create the next number, and one finds it taken.
//!
//! Old manifests are deleted, so a number may be free again, and a stalled writer could create it again. Two rules prevent that:
//! - The first manifest of each writer is never deleted, nor is the end of a collection. Another writer's manifest in the place of the next
//!   one of a former writer is always such a first one. So the former writer finds it for ever.
//! - A writer that has just created its first manifest looks whether a newer one exists. If so it started from an older one, and starts again.
//!   Its manifest stays where it is, as a former writer's next one may be the same number. No reader takes it for the newest.

use super::create::Created;
use super::numbers::{Search, stays};
use super::rules::{Breakage, Rules};

/// Max searches for the newest manifest, while others commit and delete.
const TURNS: u32 = 16;
/// Max numbers of old manifests that are remembered.
const OLD_MAX: usize = 256;

/// The kind of an object of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// There is no object yet.
    Nothing,
    /// The first manifest of its writer: it stays for ever.
    First,
    /// A later one of the same writer.
    Later,
    /// The collection was dropped.
    End,
}

/// The newest object as far as a process knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Known {
    /// Its number; 0: there is none.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Version of its manifest; 0: it has none.
    pub version: u64,
    /// This writer has created it.
    pub ours: bool,
    /// Numbers of manifests that may be there still and need not stay for ever.
    pub old: Vec<u64>,
}

impl Known {
    /// There is no object yet.
    pub fn nothing() -> Known {
        Known { number: 0, kind: Kind::Nothing, version: 0, ours: false, old: Vec::new() }
    }

    /// Whether what its writer creates next is not its first object.
    fn continues(&self) -> bool {
        self.ours && matches!(self.kind, Kind::First | Kind::Later)
    }
}

/// Finding the newest object, and reading it.
///
/// It is read before the search that finds nothing above it. Read after that, it could be another one. Newer
/// ones may have come meanwhile, and its number may have been deleted. A writer that started from an older
/// one may then have created it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lookup {
    rules: Rules,
    turns: u32,
    stage: LookupStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LookupStage {
    List,
    /// The object that the search stands at is read.
    Get(Search),
    /// Is there one above it? `held`: it was read.
    Search {
        search: Search,
        held: bool,
    },
    Found,
    Nothing,
    Busy,
}

/// The next step of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LookupStep {
    /// The max number that a listing shows; [`Lookup::listed`] takes it.
    List,
    /// Whether a number exists; [`Lookup::exists`].
    Exists(u64),
    /// Read an object, which may be the newest; [`Lookup::got`].
    Get(u64),
    /// The object that was read last is the newest.
    Found,
    /// There is no object.
    Nothing,
    /// The chain grows too fast.
    Busy,
}

impl Lookup {
    /// A look that has not begun.
    pub fn new(rules: Rules) -> Lookup {
        Lookup { rules, turns: 0, stage: LookupStage::List }
    }

    /// Its next step.
    pub fn step(&self) -> LookupStep {
        match &self.stage {
            LookupStage::List => LookupStep::List,
            LookupStage::Get(search) => LookupStep::Get(search.at()),
            LookupStage::Search { search, .. } => search.asks().map_or(LookupStep::Found, LookupStep::Exists),
            LookupStage::Found => LookupStep::Found,
            LookupStage::Nothing => LookupStep::Nothing,
            LookupStage::Busy => LookupStep::Busy,
        }
    }

    /// Takes the max number of a listing, 0 of an empty one. A listing that is behind costs a few more steps, and decides nothing.
    pub fn listed(&mut self, max: u64) {
        self.reach(Search::from(max, self.rules));
    }

    /// Takes whether the object was there.
    pub fn got(&mut self, there: bool) {
        if let LookupStage::Get(search) = &self.stage {
            // Deleted since: newer ones were made, and the search leads to them.
            let search = search.clone();
            self.search(search, there);
        }
    }

    /// Takes whether the number exists.
    pub fn exists(&mut self, exists: bool) {
        if let LookupStage::Search { search, held } = &self.stage {
            let (mut search, held) = (search.clone(), *held);
            search.told(exists);
            if exists {
                self.reach(search);
            } else {
                self.search(search, held);
            }
        }
    }

    fn reach(&mut self, search: Search) {
        if search.at() == 0 || (self.rules.breaks(Breakage::ReadsLast) && search.asks().is_some()) {
            self.search(search, false);
        } else {
            self.stage = LookupStage::Get(search);
        }
    }

    fn search(&mut self, search: Search, held: bool) {
        let last = self.rules.breaks(Breakage::ReadsLast);
        self.stage = match (search.asks(), held) {
            (Some(_), true) if last => LookupStage::Found,
            (Some(_), _) => LookupStage::Search { search, held },
            (None, true) => LookupStage::Found,
            (None, false) if search.at() == 0 => LookupStage::Nothing,
            (None, false) if last && !matches!(self.stage, LookupStage::Get(_)) => LookupStage::Get(search),
            (None, false) => {
                self.turns += 1;
                if self.turns < TURNS { LookupStage::List } else { LookupStage::Busy }
            }
        };
    }
}

/// The create of the object after the newest one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commit {
    rules: Rules,
    /// Version of the manifest that it follows.
    follows: u64,
    /// Version of its own; 0: it has none.
    version: u64,
    kind: Kind,
    known: Option<Known>,
    old: Vec<u64>,
    stage: CommitStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CommitStage {
    Look,
    Create,
    /// Is there a newer one than this first one?
    Check(Search),
    /// Old manifests that go, the next one last.
    Tidy(Vec<u64>),
    TakeBack(u64),
    Done(Committed),
}

/// The next step of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitStep {
    /// The newest object; [`Commit::looked`] takes it.
    Look,
    /// Create the object of [`Commit::head`]; [`Commit::created`].
    Create(u64),
    /// Whether a number exists; [`Commit::exists`].
    Exists(u64),
    /// Delete the object of this number; [`Commit::deleted`].
    Delete(u64),
    /// It has come to an end. [`Commit::into_known`] is what is known from then on.
    Done(Committed),
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Committed {
    /// It is the newest.
    Stands,
    /// Another writer's is: this one has to stop, or to start again.
    Stale,
    /// Nothing took effect, nor will.
    Refused,
    /// It may have taken effect, or may yet.
    Unknown,
}

/// The fields of an object besides its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Numbers of manifests that may be there still and need not stay for ever.
    pub old: Vec<u64>,
}

impl Commit {
    /// A commit of a manifest of this version (or of the end, with version 0) after that of version `follows` (0: it is the first).
    /// `known`: what the process knows of the chain.
    pub fn new(rules: Rules, follows: u64, version: u64, end: bool, known: Option<Known>) -> Commit {
        let kind = if end { Kind::End } else { Kind::Later };
        let mut commit =
            Commit { rules, follows, version, kind, known: None, old: Vec::new(), stage: CommitStage::Look };
        // What is known of another commit, or nothing: the bucket decides.
        if let Some(known) = known.filter(|known| known.version == follows) {
            commit.looked(known);
        }
        commit
    }

    /// Its next step.
    pub fn step(&self) -> CommitStep {
        match &self.stage {
            CommitStage::Look => CommitStep::Look,
            CommitStage::Create => CommitStep::Create(self.number()),
            CommitStage::Check(search) => search.asks().map_or(CommitStep::Done(Committed::Stands), CommitStep::Exists),
            CommitStage::Tidy(old) => {
                old.last().map_or(CommitStep::Done(Committed::Stands), |at| CommitStep::Delete(*at))
            }
            CommitStage::TakeBack(number) => CommitStep::Delete(*number),
            CommitStage::Done(committed) => CommitStep::Done(*committed),
        }
    }

    /// The fields of the object to be created besides its manifest.
    pub fn head(&self) -> Head {
        Head { number: self.number(), kind: self.kind, old: self.old.clone() }
    }

    /// The known state of the chain from here on; `None`: the bucket has to be asked.
    pub fn into_known(self) -> Option<Known> {
        self.known
    }

    /// Takes the newest object.
    pub fn looked(&mut self, known: Known) {
        self.stage =
            if known.version == self.follows { CommitStage::Create } else { CommitStage::Done(Committed::Stale) };
        if self.kind == Kind::Later && !known.continues() {
            self.kind = Kind::First;
        }
        self.old.clone_from(&known.old);
        if known.kind == Kind::Later || (known.kind == Kind::First && self.rules.breaks(Breakage::NoBoundary)) {
            self.old.push(known.number);
        }
        self.known = Some(known);
    }

    /// Takes what came of the create.
    pub fn created(&mut self, created: Created) {
        let number = self.number();
        let continues = self.known.as_ref().is_some_and(Known::continues);
        self.stage = match created {
            Created::Ours if continues || self.rules.breaks(Breakage::NoCheck) => return self.stands(),
            Created::Ours => return self.check(Search::from(number, self.rules)),
            Created::Theirs => CommitStage::Done(Committed::Stale),
            Created::Refused => CommitStage::Done(Committed::Refused),
            Created::Unknown => CommitStage::Done(Committed::Unknown),
        };
        if created != Created::Refused {
            self.known = None;
        }
    }

    /// Takes whether a number above its own exists; `None`: that cannot be found out now.
    pub fn exists(&mut self, exists: Option<bool>) {
        let CommitStage::Check(search) = &self.stage else { return };
        match exists {
            Some(false) => {
                let mut search = search.clone();
                search.told(false);
                self.check(search);
            }
            Some(true) => {
                let number = self.number();
                self.known = None;
                self.stage = match self.rules.breaks(Breakage::TakesBack) {
                    true => CommitStage::TakeBack(number),
                    false => CommitStage::Done(Committed::Stale),
                };
            }
            None => {
                self.known = None;
                self.stage = CommitStage::Done(Committed::Unknown);
            }
        }
    }

    /// Says whether the object is gone. One that cannot be deleted now is tried again after the next commit.
    pub fn deleted(&mut self, gone: bool) {
        match &mut self.stage {
            CommitStage::Tidy(going) => {
                let number = going.pop();
                let last = going.is_empty();
                if gone && let (Some(known), Some(number)) = (&mut self.known, number) {
                    known.old.retain(|old| *old != number);
                }
                if last {
                    self.stage = CommitStage::Done(Committed::Stands);
                }
            }
            CommitStage::TakeBack(_) => self.stage = CommitStage::Done(Committed::Stale),
            _ => {}
        }
    }

    fn number(&self) -> u64 {
        // After the last number there is none: its name is taken.
        self.known.as_ref().map_or(0, |known| known.number).saturating_add(1)
    }

    fn check(&mut self, search: Search) {
        match search.asks() {
            Some(_) => self.stage = CommitStage::Check(search),
            // It followed the newest one, and is the newest now.
            None => self.stands(),
        }
    }

    fn stands(&mut self) {
        let number = self.number();
        let mut old = std::mem::take(&mut self.old);
        let mut going: Vec<u64> = old.iter().copied().filter(|at| !stays(self.rules, *at, number)).collect();
        going.reverse();
        // While nothing can be deleted the oldest are forgotten: they take room, and no more than that.
        old.drain(..old.len().saturating_sub(OLD_MAX));
        self.known = Some(Known { number, kind: self.kind, version: self.version, ours: true, old });
        self.stage = if going.is_empty() { CommitStage::Done(Committed::Stands) } else { CommitStage::Tidy(going) };
    }
}
