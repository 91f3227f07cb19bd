//! The catalog's chain: manifests numbered without a gap, each created after the previous one.
//!
//! The number is not the manifest's version: two writers that follow the same manifest both create the next number,
//! and one finds it taken.
//!
//! Old manifests are deleted, so a number may be free again, and a stalled writer could create it again. Two rules
//! prevent that:
//! - The first manifest of each writer is never deleted, nor is the end of a collection. If another writer's manifest
//!   takes the number that a former writer would create next, it is always such a first one. So the former writer will
//!   always find it.
//! - A writer that has just created its first manifest checks whether a newer one exists. If so it started from an
//!   outdated one, and starts over. Its manifest stays in place, as a former writer's next one may have the same
//!   number. No reader takes it for the newest.

use super::create::CreateOutcome;
use super::numbers::{Search, stays};
use super::rules::{Breakage, Rules};

/// Max searches for the newest manifest while others commit and delete.
const TURNS: u32 = 16;
/// Max numbers of old manifests that are remembered.
const OLD_MAX: usize = 256;

/// The kind of an object of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No object yet.
    Nothing,
    /// The first manifest of its writer; never deleted.
    First,
    /// A later manifest of the same writer.
    Later,
    /// The collection was dropped.
    End,
}

/// The newest object known to a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownObject {
    /// Its number; 0 if there is none.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Version of its manifest; 0 if it has none.
    pub version: u64,
    /// Whether this writer created it.
    pub ours: bool,
    /// Numbers of manifests that may still exist and can be deleted.
    pub old: Vec<u64>,
}

impl KnownObject {
    /// The state of an empty chain.
    pub fn nothing() -> KnownObject {
        KnownObject { number: 0, kind: Kind::Nothing, version: 0, ours: false, old: Vec::new() }
    }

    /// Whether the next object of this writer is not its first.
    fn continues(&self) -> bool {
        self.ours && matches!(self.kind, Kind::First | Kind::Later)
    }
}

/// Finds and reads the newest object.
///
/// The object is read before the search that finds nothing above it. A read after the search could return another
/// object: newer ones may have been created meanwhile, and this one deleted. A writer that started from an older one
/// may then have created its number again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lookup {
    rules: Rules,
    turns: u32,
    stage: LookupStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LookupStage {
    List,
    /// Reads the object at which the search stands.
    Get(Search),
    /// Searches for an object above it. `held`: the object has been read.
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
    /// List the chain and report the max number to [`Lookup::listed`].
    List,
    /// Check whether a number exists; [`Lookup::exists`].
    Exists(u64),
    /// Read an object, which may be the newest; [`Lookup::got`].
    Get(u64),
    /// The object read last is the newest.
    Found,
    /// There is no object.
    Nothing,
    /// The chain grows too fast.
    Busy,
}

impl Lookup {
    /// A lookup that has not begun.
    pub fn new(rules: Rules) -> Lookup {
        Lookup { rules, turns: 0, stage: LookupStage::List }
    }

    /// The next step.
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

    /// Accepts the max number of a listing, 0 if empty. A stale listing costs a few more steps, and decides nothing.
    pub fn listed(&mut self, max: u64) {
        self.reach(Search::from(max, self.rules));
    }

    /// Accepts whether the object was found.
    pub fn got(&mut self, there: bool) {
        if let LookupStage::Get(search) = &self.stage {
            // Deleted since: newer ones exist, and the search leads to them.
            let search = search.clone();
            self.search(search, there);
        }
    }

    /// Accepts whether the number exists.
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

/// Creates the object after the newest one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commit {
    rules: Rules,
    /// Version of the preceding manifest.
    follows: u64,
    /// Version of its own manifest; 0 if it has none.
    version: u64,
    kind: Kind,
    known: Option<KnownObject>,
    old: Vec<u64>,
    stage: CommitStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CommitStage {
    Look,
    Create,
    /// Searches for a newer object than this first one.
    Check(Search),
    /// Old manifests to delete, the next one last.
    Tidy(Vec<u64>),
    TakeBack(u64),
    Done(CommitOutcome),
}

/// The next step of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitStep {
    /// Find the newest object; [`Commit::looked`] accepts it.
    Look,
    /// Create the object of [`Commit::head`]; [`Commit::created`].
    Create(u64),
    /// Check whether a number exists; [`Commit::exists`].
    Exists(u64),
    /// Delete the object of this number; [`Commit::deleted`].
    Delete(u64),
    /// The commit has ended; [`Commit::into_known`] returns the resulting state.
    Done(CommitOutcome),
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitOutcome {
    /// Its object is the newest.
    Stands,
    /// Another writer's object is the newest: this writer has to stop or start over.
    Stale,
    /// It had no effect, and never will.
    Refused,
    /// It may have taken effect, or still may.
    Unknown,
}

/// The metadata of an object besides its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Numbers of manifests that may still exist and can be deleted.
    pub old: Vec<u64>,
}

impl Commit {
    /// A commit of the manifest `version` (0 for the end of the collection) after the manifest `follows` (0 for
    /// none). `known` is the process's last known state of the chain.
    pub fn new(rules: Rules, follows: u64, version: u64, end: bool, known: Option<KnownObject>) -> Commit {
        let kind = if end { Kind::End } else { Kind::Later };
        let mut commit =
            Commit { rules, follows, version, kind, known: None, old: Vec::new(), stage: CommitStage::Look };
        // Without a matching state, the bucket decides.
        if let Some(known) = known.filter(|known| known.version == follows) {
            commit.looked(known);
        }
        commit
    }

    /// The next step.
    pub fn step(&self) -> CommitStep {
        match &self.stage {
            CommitStage::Look => CommitStep::Look,
            CommitStage::Create => CommitStep::Create(self.number()),
            CommitStage::Check(search) => {
                search.asks().map_or(CommitStep::Done(CommitOutcome::Stands), CommitStep::Exists)
            }
            CommitStage::Tidy(old) => {
                old.last().map_or(CommitStep::Done(CommitOutcome::Stands), |at| CommitStep::Delete(*at))
            }
            CommitStage::TakeBack(number) => CommitStep::Delete(*number),
            CommitStage::Done(committed) => CommitStep::Done(*committed),
        }
    }

    /// The metadata of the object to create, besides its manifest.
    pub fn head(&self) -> Head {
        Head { number: self.number(), kind: self.kind, old: self.old.clone() }
    }

    /// The state of the chain after the commit; `None` if the bucket has to be read.
    pub fn into_known(self) -> Option<KnownObject> {
        self.known
    }

    /// Accepts the newest object.
    pub fn looked(&mut self, known: KnownObject) {
        self.stage =
            if known.version == self.follows { CommitStage::Create } else { CommitStage::Done(CommitOutcome::Stale) };
        if self.kind == Kind::Later && !known.continues() {
            self.kind = Kind::First;
        }
        self.old.clone_from(&known.old);
        if known.kind == Kind::Later || (known.kind == Kind::First && self.rules.breaks(Breakage::NoBoundary)) {
            self.old.push(known.number);
        }
        self.known = Some(known);
    }

    /// Accepts the outcome of the create.
    pub fn created(&mut self, created: CreateOutcome) {
        let number = self.number();
        let continues = self.known.as_ref().is_some_and(KnownObject::continues);
        self.stage = match created {
            CreateOutcome::Ours if continues || self.rules.breaks(Breakage::NoCheck) => return self.stands(),
            CreateOutcome::Ours => return self.check(Search::from(number, self.rules)),
            CreateOutcome::Theirs => CommitStage::Done(CommitOutcome::Stale),
            CreateOutcome::Refused => CommitStage::Done(CommitOutcome::Refused),
            CreateOutcome::Unknown => CommitStage::Done(CommitOutcome::Unknown),
        };
        if created != CreateOutcome::Refused {
            self.known = None;
        }
    }

    /// Accepts whether a number above its own exists; `None` if that cannot be determined now.
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
                    false => CommitStage::Done(CommitOutcome::Stale),
                };
            }
            None => {
                self.known = None;
                self.stage = CommitStage::Done(CommitOutcome::Unknown);
            }
        }
    }

    /// Accepts whether the object is gone. A failed delete is retried after the next commit.
    pub fn deleted(&mut self, gone: bool) {
        match &mut self.stage {
            CommitStage::Tidy(going) => {
                let number = going.pop();
                let last = going.is_empty();
                if gone && let (Some(known), Some(number)) = (&mut self.known, number) {
                    known.old.retain(|old| *old != number);
                }
                if last {
                    self.stage = CommitStage::Done(CommitOutcome::Stands);
                }
            }
            CommitStage::TakeBack(_) => self.stage = CommitStage::Done(CommitOutcome::Stale),
            _ => {}
        }
    }

    fn number(&self) -> u64 {
        // There is no number after the last one: it counts as taken.
        self.known.as_ref().map_or(0, |known| known.number).saturating_add(1)
    }

    fn check(&mut self, search: Search) {
        match search.asks() {
            Some(_) => self.stage = CommitStage::Check(search),
            // It followed the newest one, and is now the newest.
            None => self.stands(),
        }
    }

    fn stands(&mut self) {
        let number = self.number();
        let mut old = std::mem::take(&mut self.old);
        let mut going: Vec<u64> = old.iter().copied().filter(|at| !stays(self.rules, *at, number)).collect();
        going.reverse();
        // While deletes fail, the oldest numbers are forgotten: their objects merely take space.
        old.drain(..old.len().saturating_sub(OLD_MAX));
        self.known = Some(KnownObject { number, kind: self.kind, version: self.version, ours: true, old });
        self.stage = if going.is_empty() { CommitStage::Done(CommitOutcome::Stands) } else { CommitStage::Tidy(going) };
    }
}
