//! Drives the steps that create one object: [`Create`] alone, and [`Commit`] of a manifest. Works like the store, but
//! call by call.

use crate::bucket::{Call, CatalogObject, Manifest, Response};
use meridian_model::policy::owner::{
    Commit, CommitOutcome, CommitStep, Create, CreateOutcome, CreateStep, GetOutcome, KnownObject, Lookup, LookupStep,
    PutOutcome, Rules,
};
use std::sync::Arc;

/// The next action of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<T> {
    Call(Call),
    Done(T),
    /// It cannot go on: a required call got no response.
    Failed,
}

/// A create in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Making {
    create: Create,
    put: Call,
}

impl Making {
    pub fn new(rules: Rules, put: Call) -> Making {
        Making { create: Create::new(rules), put }
    }

    pub fn next(&mut self) -> Next<CreateOutcome> {
        loop {
            match self.create.step() {
                CreateStep::Put => return Next::Call(self.put.clone()),
                CreateStep::Get => {
                    return Next::Call(match &self.put {
                        Call::PutLog(object) => Call::GetLog(object.place),
                        Call::PutManifest(object) => Call::GetManifest(object.head.number),
                        other => panic!("{other:?} is no create of a chain"),
                    });
                }
                CreateStep::Settle => self.create.settled(true),
                CreateStep::Pause(_) => self.create.paused(),
                CreateStep::Done(created) => return Next::Done(created),
            }
        }
    }

    pub fn answer(&mut self, answer: Response) {
        let stands = |ours: Option<bool>| match ours {
            Some(true) => GetOutcome::Ours,
            Some(false) => GetOutcome::Theirs,
            None => GetOutcome::Absent,
        };
        match (answer, &self.put) {
            (Response::Created, _) => self.create.put(PutOutcome::Created),
            (Response::Exists, _) => self.create.put(PutOutcome::Exists),
            (Response::Full, _) => self.create.put(PutOutcome::Refused),
            (Response::Lost, _) if self.create.step() == CreateStep::Put => self.create.put(PutOutcome::Lost),
            (Response::Lost, _) => self.create.got(GetOutcome::Failed),
            (Response::Log(found), Call::PutLog(ours)) => self.create.got(stands(found.map(|found| found == *ours))),
            (Response::Manifest(found), Call::PutManifest(ours)) => {
                self.create.got(stands(found.map(|found| found == *ours)));
            }
            (answer, put) => panic!("{answer:?} to {put:?}"),
        }
    }
}

/// A lookup in progress, and the object that it read last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Looking {
    look: Lookup,
    read: Option<Arc<CatalogObject>>,
}

impl Looking {
    pub fn new(rules: Rules) -> Looking {
        Looking { look: Lookup::new(rules), read: None }
    }

    /// Returns [`Next::Failed`] if there is no manifest, or too many arrive.
    pub fn next(&mut self) -> Next<Arc<CatalogObject>> {
        match self.look.step() {
            LookupStep::List => Next::Call(Call::ListManifests),
            LookupStep::Exists(number) => Next::Call(Call::HasManifest(number)),
            LookupStep::Get(number) => Next::Call(Call::GetManifest(number)),
            LookupStep::Found => self.read.take().map_or(Next::Failed, Next::Done),
            LookupStep::Nothing | LookupStep::Busy => Next::Failed,
        }
    }

    pub fn answer(&mut self, answer: Response) {
        match answer {
            Response::Max(number) => self.look.listed(number),
            Response::Has(has) => self.look.exists(has),
            Response::Manifest(object) => {
                self.look.got(object.is_some());
                self.read = object.or_else(|| self.read.take());
            }
            other => panic!("{other:?} to a look"),
        }
    }
}

/// The state of the chain once an object was found to be the newest.
pub fn known_of(object: &CatalogObject, process: u32) -> KnownObject {
    KnownObject {
        number: object.head.number,
        kind: object.head.kind,
        version: object.manifest.version,
        ours: object.writer == process,
        old: object.head.old.clone(),
    }
}

/// A commit of the manifest in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Committing {
    rules: Rules,
    process: u32,
    commit: Commit,
    manifest: Manifest,
    look: Option<Looking>,
    making: Option<Making>,
    /// Number of the object to create.
    number: u64,
}

impl Committing {
    pub fn new(rules: Rules, process: u32, follows: u64, manifest: Manifest, known: Option<KnownObject>) -> Committing {
        let commit = Commit::new(rules, follows, manifest.version, false, known);
        Committing { rules, process, commit, manifest, look: None, making: None, number: 0 }
    }

    pub fn next(&mut self) -> Next<CommitOutcome> {
        loop {
            match self.commit.step() {
                CommitStep::Look => match self.look.get_or_insert_with(|| Looking::new(self.rules)).next() {
                    Next::Call(call) => return Next::Call(call),
                    Next::Failed => return Next::Failed,
                    Next::Done(object) => self.commit.looked(known_of(&object, self.process)),
                },
                CommitStep::Create(number) => {
                    self.number = number;
                    let making = self.making.get_or_insert_with(|| {
                        let (head, manifest) = (self.commit.head(), self.manifest.clone());
                        let object = CatalogObject { writer: self.process, head, manifest };
                        Making::new(self.rules, Call::PutManifest(Arc::new(object)))
                    });
                    match making.next() {
                        Next::Done(created) => self.commit.created(created),
                        Next::Call(call) => return Next::Call(call),
                        Next::Failed => return Next::Failed,
                    }
                }
                CommitStep::Exists(number) => return Next::Call(Call::HasManifest(number)),
                CommitStep::Delete(number) => return Next::Call(Call::DeleteManifest(number)),
                CommitStep::Done(committed) => return Next::Done(committed),
            }
        }
    }

    pub fn answer(&mut self, answer: Response) {
        match (self.commit.step(), answer) {
            (CommitStep::Look, answer) => {
                if let Some(look) = &mut self.look {
                    look.answer(answer);
                }
            }
            (CommitStep::Create(_), answer) => {
                if let Some(making) = &mut self.making {
                    making.answer(answer);
                }
            }
            (CommitStep::Exists(_), Response::Has(has)) => self.commit.exists(Some(has)),
            (CommitStep::Exists(_), _) => self.commit.exists(None),
            (CommitStep::Delete(_), answer) => self.commit.deleted(answer == Response::Gone),
            (step, answer) => panic!("{answer:?} to {step:?}"),
        }
    }

    /// Whether it can go on without the response to its call.
    pub fn bears_loss(&self) -> bool {
        self.commit.step() != CommitStep::Look
    }

    /// The manifest, its number, and the state of the chain after it.
    pub fn end(self) -> (Manifest, u64, Option<KnownObject>) {
        (self.manifest, self.number, self.commit.into_known())
    }
}
