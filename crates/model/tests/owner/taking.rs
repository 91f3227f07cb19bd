//! Drives the steps of a takeover: the newest manifest, its files, the log, the first manifest, the leftovers.

use crate::bucket::{Call, CatalogObject, Content, Event, LogObject, Manifest, Response};
use crate::making::{Committing, Looking, Making, Next, known_of};
use meridian_model::policy::owner::{
    CommitOutcome, KnownObject, Link, LogGroup, LogPlace, ReadOutcome, Replay, ReplayStep, Rules, Takeover,
    TakeoverStep, Writer, first_of_next_epoch, is_leftover,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// A takeover in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taking {
    rules: Rules,
    process: u32,
    term: u64,
    takeover: Takeover,
    stage: Stage,
    opened: Opened,
    /// Leftover files. They wait for their grace period, whatever the outcome of the takeover.
    pub leftovers: Vec<u64>,
}

/// The state that the process has read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Opened {
    pub manifest: Manifest,
    pub known: Option<KnownObject>,
    /// Events of files and log.
    pub content: Vec<Event>,
    /// Events of the log alone.
    pub replayed: Vec<Event>,
    held: VecDeque<LogGroup>,
    whole: bool,
    /// Number of its committed first manifest.
    pub claimed: Option<u64>,
    pub writer: Option<Writer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stage {
    Between,
    Look(Looking),
    Files,
    Replay(Replay, Option<(Making, u32)>),
    Recheck(Looking),
    Claim(Box<Committing>),
    List,
}

/// The outcome of a takeover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakeoverOutcome {
    Serves(Box<Opened>),
    /// Something is missing.
    Harmed,
    /// Other processes keep taking over.
    Busy,
}

impl Opened {
    fn nothing() -> Opened {
        Opened {
            manifest: Manifest { version: 0, flushed: 0, log: LogPlace::FIRST, files: Vec::new() },
            known: None,
            content: Vec::new(),
            replayed: Vec::new(),
            held: VecDeque::new(),
            whole: true,
            claimed: None,
            writer: None,
        }
    }
}

impl Taking {
    pub fn new(rules: Rules, process: u32, term: u64) -> Taking {
        let takeover = Takeover::new(rules);
        Taking {
            rules,
            process,
            term,
            takeover,
            stage: Stage::Between,
            opened: Opened::nothing(),
            leftovers: Vec::new(),
        }
    }

    pub fn next(&mut self) -> Next<TakeoverOutcome> {
        loop {
            match &mut self.stage {
                Stage::Between => match self.takeover.step() {
                    TakeoverStep::Open => self.stage = Stage::Look(Looking::new(self.rules)),
                    TakeoverStep::Look => self.stage = Stage::Recheck(Looking::new(self.rules)),
                    TakeoverStep::Claim => self.claim(),
                    TakeoverStep::Sweep => self.stage = Stage::List,
                    TakeoverStep::Serve => return Next::Done(TakeoverOutcome::Serves(Box::new(self.opened.clone()))),
                    TakeoverStep::Show => return Next::Done(TakeoverOutcome::Harmed),
                    TakeoverStep::Busy => return Next::Done(TakeoverOutcome::Busy),
                },
                Stage::Look(look) => match look.next() {
                    Next::Call(call) => return Next::Call(call),
                    Next::Failed => return Next::Failed,
                    Next::Done(object) => self.found(&object),
                },
                Stage::Recheck(look) => match look.next() {
                    Next::Call(call) => return Next::Call(call),
                    Next::Failed => return Next::Failed,
                    Next::Done(object) => {
                        self.takeover.looked(object.manifest.version != self.opened.manifest.version);
                        self.stage = Stage::Between;
                    }
                },
                Stage::Files => return Next::Call(Call::GetFiles(self.opened.manifest.files.clone())),
                Stage::Replay(..) => {
                    if let Some(next) = self.next_of_replay() {
                        return next;
                    }
                }
                Stage::Claim(committing) => match committing.next() {
                    Next::Call(call) => return Next::Call(call),
                    Next::Failed | Next::Done(CommitOutcome::Refused | CommitOutcome::Unknown) => return Next::Failed,
                    Next::Done(committed) => self.claimed(committed),
                },
                Stage::List => return Next::Call(Call::ListFiles),
            }
        }
    }

    /// The next call of the replay, if it needs one before anything else.
    fn next_of_replay(&mut self) -> Option<Next<TakeoverOutcome>> {
        let Stage::Replay(replay, fence) = &mut self.stage else { return None };
        if let Some((making, sum)) = fence {
            match making.next() {
                Next::Call(call) => return Some(Next::Call(call)),
                Next::Failed => return Some(Next::Failed),
                Next::Done(created) => {
                    use meridian_model::policy::owner::CreateOutcome::{Refused, Unknown};
                    if matches!(created, Refused | Unknown) {
                        return Some(Next::Failed);
                    }
                    replay.fenced(created, *sum);
                    *fence = None;
                }
            }
        }
        match replay.step() {
            ReplayStep::Read(place) => Some(Next::Call(Call::GetLog(place))),
            ReplayStep::List => Some(Next::Call(Call::ListLog)),
            ReplayStep::Delete(place) => Some(Next::Call(Call::DeleteLog(place))),
            ReplayStep::Fence { at, before, epoch } => {
                let object = LogObject { writer: self.process, place: at, before, content: Content::Fence(epoch) };
                let sum = object.sum();
                *fence = Some((Making::new(self.rules, Call::PutLog(Arc::new(object))), sum));
                None
            }
            ReplayStep::Done { next, before } => {
                let held = std::mem::take(&mut self.opened.held);
                self.opened.writer = Some(Writer::new(self.rules, next, before, held));
                self.takeover.opened(self.opened.whole);
                self.stage = Stage::Between;
                None
            }
            ReplayStep::Busy => Some(Next::Failed),
        }
    }

    /// Accepts the response to the call of [`Taking::next`]; returns false if the takeover fails without it.
    pub fn answer(&mut self, answer: Response) -> bool {
        if answer == Response::Lost && !self.bears_loss() {
            return false;
        }
        match &mut self.stage {
            Stage::Look(look) | Stage::Recheck(look) => look.answer(answer),
            Stage::Files => {
                let Response::Files(events) = answer else { panic!("{answer:?} to a read of files") };
                self.opened.whole = events.is_some();
                self.opened.content = events.unwrap_or_default();
                self.stage = Stage::Replay(Replay::new(self.rules, self.opened.manifest.log, self.term), None);
            }
            Stage::Replay(_, Some((making, _))) => making.answer(answer),
            Stage::Replay(replay, None) => match answer {
                Response::Places(places) => replay.listed(places),
                Response::Gone => replay.deleted(),
                Response::Log(object) => {
                    let reading = replay.read(object.as_ref().map_or(Link::Absent, |object| object.link()));
                    self.read(reading, object.as_deref());
                }
                other => panic!("{other:?} to a replay"),
            },
            Stage::Claim(committing) => committing.answer(answer),
            Stage::List => {
                let Response::Names(files) = answer else { panic!("{answer:?} to a listing") };
                self.sweep(&files);
            }
            Stage::Between => panic!("{answer:?} to nothing"),
        }
        true
    }

    fn bears_loss(&self) -> bool {
        match &self.stage {
            Stage::Replay(_, making) => making.is_some(),
            Stage::Claim(committing) => committing.bears_loss(),
            _ => false,
        }
    }

    fn found(&mut self, object: &CatalogObject) {
        let known = Some(known_of(object, self.process));
        self.opened = Opened { manifest: object.manifest.clone(), known, ..Opened::nothing() };
        self.stage = Stage::Files;
    }

    fn read(&mut self, reading: ReadOutcome, object: Option<&LogObject>) {
        match reading {
            ReadOutcome::Next => {}
            ReadOutcome::Unlinked => self.opened.whole = false,
            ReadOutcome::Damaged | ReadOutcome::Missing(_) => {
                self.opened.whole = false;
                return;
            }
            ReadOutcome::Nothing => return,
        }
        if let Some(LogObject { place, content: Content::Group(events), .. }) = object {
            let last_position = events.last().map_or(0, |event| event.position);
            self.opened.held.push_back(LogGroup { place: *place, last_position, time: 0, bytes: 1 });
            let fresh = events.iter().filter(|event| event.position > self.opened.manifest.flushed);
            self.opened.replayed.extend(fresh.copied());
            let Opened { content, manifest, .. } = &mut self.opened;
            content.extend(events.iter().filter(|event| event.position > manifest.flushed));
        }
    }

    fn claim(&mut self) {
        let follows = self.opened.manifest.version;
        let manifest = Manifest { version: first_of_next_epoch(follows), ..self.opened.manifest.clone() };
        // The store reads the bucket again here; without a term the known state is kept, so that both paths are
        // covered.
        let known = self.opened.known.take().filter(|_| self.term == 0);
        self.stage = Stage::Claim(Box::new(Committing::new(self.rules, self.process, follows, manifest, known)));
    }

    fn claimed(&mut self, committed: CommitOutcome) {
        let Stage::Claim(committing) = std::mem::replace(&mut self.stage, Stage::Between) else { return };
        let (manifest, number, known) = committing.end();
        if committed == CommitOutcome::Stands {
            self.opened.manifest = manifest;
            self.opened.claimed = Some(number);
        }
        self.opened.known = known;
        self.takeover.claimed(committed);
    }

    fn sweep(&mut self, files: &[u64]) {
        let manifest = &self.opened.manifest;
        // Without a manifest of its own it uses the epoch that it would claim.
        let epoch = self.opened.claimed.map_or(first_of_next_epoch(manifest.version), |_| manifest.version);
        let unnamed = files.iter().copied().filter(|file| !manifest.files.contains(file));
        self.leftovers.extend(unnamed.filter(|file| is_leftover(self.rules, *file, epoch)));
        self.takeover.swept();
        self.stage = Stage::Between;
    }
}
