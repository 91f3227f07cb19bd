//! A process: a candidate, an owner, or a reader. It does one thing at a time, and each call to the bucket is a
//! separate step.

use crate::bucket::{Call, Content, Event, LogObject, Manifest, Response};
use crate::making::{Committing, Looking, Making, Next};
use crate::taking::{Opened, TakeoverOutcome, Taking};
use meridian_model::policy::owner::{
    AppendOutcome, Breakage, CommitOutcome, CreateOutcome, KnownObject, LogGroup, Rules, Writer, first_of_next_epoch,
};
use std::sync::Arc;

/// Work that an idle process can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Take over the partition.
    Takeover,
    /// Append the two events of a write.
    Write(u8),
    /// Upload unflushed events.
    Flush,
    /// Upload two files as one.
    Merge,
    /// Commit what was uploaded.
    Commit,
    /// Delete the groups covered by the last flush.
    Release,
    /// Delete a file that is no longer needed. The grace period decides when, so it may happen at any time.
    Remove,
    /// Read everything, as a scan server does.
    Read,
}

/// Events that the world checks against the writes of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    Stored(u8),
    Refused(u8),
    Unknown(u8),
    /// It serves, with these events, and writes in this epoch.
    Serves(Vec<Event>, u64),
    /// A commit succeeded, under this number.
    Committed(u64),
    /// Something named by the newest manifest or the log is missing.
    Harmed,
    /// A reader found the newest manifest twice, but not everything it names.
    Torn(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    /// Unique, however often a node starts.
    pub id: u32,
    rules: Rules,
    /// Epoch granted by the lease; 0 for none.
    term: u64,
    pub owner: Option<Owner>,
    /// Files to delete.
    doomed: Vec<u64>,
    task: Task,
    /// The call that it waits for.
    pub call: Option<Call>,
}

/// The state of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    manifest: Manifest,
    known: Option<KnownObject>,
    writer: Writer,
    position: u64,
    /// Events not in any file of its manifest.
    memory: Vec<Event>,
    next_file: u64,
    /// A file awaiting its commit.
    job: Option<Job>,
    /// Position covered by the last flush, until its groups are deleted.
    release: Option<u64>,
    /// Whether it accepts no writes and begins no flush any more. It finishes what it has begun.
    pub outdated: bool,
}

/// A flush, or a merge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Job {
    file: u64,
    /// Position up to which a flush goes.
    flushed: Option<u64>,
    inputs: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Task {
    Nothing,
    Takeover(Box<Taking>),
    Append {
        making: Making,
        group: Arc<LogObject>,
        rest: Option<Vec<Event>>,
    },
    Upload(Job, Arc<[Event]>),
    Commit(Box<Committing>, Job),
    Release(u64),
    Remove(u64),
    /// A lookup, its result, and the number of a manifest with a missing object.
    Read(Looking, Option<(u64, Vec<u64>)>, u64),
}

impl Process {
    pub fn new(id: u32, rules: Rules, term: u64) -> Process {
        Process { id, rules, term, owner: None, doomed: Vec::new(), task: Task::Nothing, call: None }
    }

    /// Whether it is busy.
    pub fn is_busy(&self) -> bool {
        self.task != Task::Nothing
    }

    /// Whether it accepts writes.
    pub fn serves(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| !owner.outdated)
    }

    /// Whether it can begin this work now.
    pub fn can(&self, work: Work) -> bool {
        if self.is_busy() {
            return false;
        }
        match (work, &self.owner) {
            (Work::Read, owner) => owner.is_none(),
            (Work::Takeover, owner) => owner.as_ref().is_none_or(|owner| owner.outdated),
            (Work::Remove, _) => !self.doomed.is_empty(),
            (_, None) => false,
            (Work::Write(_), Some(owner)) => !owner.outdated,
            (Work::Flush, Some(owner)) => !owner.outdated && owner.job.is_none() && !owner.memory.is_empty(),
            (Work::Merge, Some(owner)) => !owner.outdated && owner.job.is_none() && owner.manifest.files.len() > 1,
            (Work::Commit, Some(owner)) => owner.job.is_some(),
            (Work::Release, Some(owner)) => owner.release.is_some(),
        }
    }

    /// Begins a work that it can do.
    pub fn begin(&mut self, work: Work, read: impl FnOnce(&[u64]) -> Vec<Event>, told: &mut Vec<Report>) {
        let (rules, id) = (self.rules, self.id);
        self.task = match (work, &mut self.owner) {
            (Work::Takeover, owner) => {
                // The memory of a former owner is dropped.
                *owner = None;
                Task::Takeover(Box::new(Taking::new(rules, id, self.term)))
            }
            (Work::Read, _) => Task::Read(Looking::new(rules), None, 0),
            (Work::Write(write), Some(owner)) => owner.append(id, rules, write),
            (Work::Flush, Some(owner)) => {
                let flushed = Some(owner.position);
                Task::Upload(Job { file: owner.number(), flushed, inputs: Vec::new() }, owner.memory.clone().into())
            }
            (Work::Merge, Some(owner)) => {
                let inputs = owner.manifest.files[..2].to_vec();
                let events = read(&inputs).into();
                Task::Upload(Job { file: owner.number(), flushed: None, inputs }, events)
            }
            (Work::Commit, Some(owner)) => owner.commit(id, rules),
            (Work::Release, Some(owner)) => owner.release.take().map_or(Task::Nothing, Task::Release),
            (Work::Remove, _) => Task::Remove(self.doomed.remove(0)),
            (_, None) => Task::Nothing,
        };
        self.run(told);
    }

    /// Accepts the response to its call.
    pub fn answer(&mut self, answer: Response, told: &mut Vec<Report>) {
        self.call = None;
        let lost = answer == Response::Lost;
        match &mut self.task {
            Task::Takeover(taking) => {
                if !taking.answer(answer) {
                    self.give_up();
                }
            }
            Task::Append { making, .. } => making.answer(answer),
            Task::Commit(committing, _) => match lost && !committing.bears_loss() {
                // Nothing of the commit was sent: it is retried.
                true => self.put_back(),
                false => committing.answer(answer),
            },
            Task::Upload(..) => self.uploaded(answer == Response::Created),
            Task::Release(_) => match &mut self.owner {
                Some(owner) if !lost => owner.writer.released(),
                // The next flush also covers the remaining groups.
                _ => self.task = Task::Nothing,
            },
            Task::Remove(_) => self.task = Task::Nothing,
            Task::Read(..) if lost => self.task = Task::Nothing,
            Task::Read(..) => self.read_on(answer, told),
            Task::Nothing => panic!("{answer:?} to nothing"),
        }
        self.run(told);
    }

    /// Goes on to the next call, or to the end of the task.
    fn run(&mut self, told: &mut Vec<Report>) {
        loop {
            let next = match &mut self.task {
                Task::Nothing => return,
                Task::Takeover(taking) => match taking.next() {
                    Next::Call(call) => call,
                    Next::Failed => return self.give_up(),
                    Next::Done(taken) => return self.taken(taken, told),
                },
                Task::Append { making, .. } => match making.next() {
                    Next::Call(call) => call,
                    Next::Failed => return self.task = Task::Nothing,
                    Next::Done(created) => {
                        self.appended(created, told);
                        continue;
                    }
                },
                Task::Upload(job, events) => Call::PutFile(job.file, events.clone()),
                Task::Commit(committing, _) => match committing.next() {
                    Next::Call(call) => call,
                    Next::Failed => return self.task = Task::Nothing,
                    Next::Done(committed) => return self.committed(committed, told),
                },
                Task::Release(flushed) => match self.owner.as_ref().and_then(|owner| owner.writer.releases(*flushed)) {
                    Some(place) => Call::DeleteLog(place),
                    None => return self.task = Task::Nothing,
                },
                Task::Remove(file) => Call::DeleteFile(*file),
                Task::Read(_, Some((_, files)), _) => Call::GetFiles(files.clone()),
                Task::Read(look, found, _) => match look.next() {
                    Next::Call(call) => call,
                    Next::Failed => return self.task = Task::Nothing,
                    Next::Done(object) => {
                        *found = Some((object.head.number, object.manifest.files.clone()));
                        continue;
                    }
                },
            };
            self.call = Some(next);
            return;
        }
    }

    /// Ends a takeover.
    fn give_up(&mut self) {
        if let Task::Takeover(taking) = std::mem::replace(&mut self.task, Task::Nothing) {
            self.doomed.extend(taking.leftovers);
        }
    }

    fn taken(&mut self, taken: TakeoverOutcome, told: &mut Vec<Report>) {
        self.give_up();
        match taken {
            TakeoverOutcome::Busy => {}
            TakeoverOutcome::Harmed => told.push(Report::Harmed),
            TakeoverOutcome::Serves(opened) => {
                let Opened { manifest, known, content, replayed, claimed, writer, .. } = *opened;
                let Some(writer) = writer else { return };
                if let Some(number) = claimed {
                    told.push(Report::Committed(number));
                }
                let epoch = writer.next().map_or(0, |place| place.epoch);
                let next_file = claimed.map_or(first_of_next_epoch(manifest.version), |_| manifest.version) + 1;
                self.owner = Some(Owner {
                    position: replayed.last().map_or(manifest.flushed, |event| event.position),
                    manifest,
                    known,
                    writer,
                    memory: replayed,
                    next_file,
                    job: None,
                    release: None,
                    outdated: false,
                });
                told.push(Report::Serves(content, epoch));
            }
        }
    }

    fn appended(&mut self, created: CreateOutcome, told: &mut Vec<Report>) {
        let Task::Append { group, rest, .. } = std::mem::replace(&mut self.task, Task::Nothing) else { return };
        let (Some(owner), Content::Group(events)) = (&mut self.owner, &group.content) else { return };
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let held = LogGroup { place: group.place, last_position: last.position, time: 0, bytes: 1 };
        match owner.writer.appended(created, held, group.sum()) {
            AppendOutcome::Stored => {
                owner.memory.extend(events);
                owner.position = last.position;
                match rest {
                    Some(rest) => self.task = owner.group(self.id, self.rules, rest, None),
                    None => told.push(Report::Stored(first.write)),
                }
            }
            AppendOutcome::Refused => told.push(Report::Refused(first.write)),
            AppendOutcome::Fenced => {
                owner.outdated = true;
                told.push(Report::Refused(first.write));
            }
            AppendOutcome::Unknown => {
                owner.outdated = true;
                told.push(Report::Unknown(first.write));
            }
        }
    }

    fn uploaded(&mut self, there: bool) {
        let Task::Upload(job, _) = std::mem::replace(&mut self.task, Task::Nothing) else { return };
        // A name that may have been taken is never reused.
        if let Some(owner) = self.owner.as_mut().filter(|_| there) {
            owner.job = Some(job);
        }
    }

    fn put_back(&mut self) {
        if let Task::Commit(_, job) = std::mem::replace(&mut self.task, Task::Nothing)
            && let Some(owner) = &mut self.owner
        {
            owner.job = Some(job);
        }
    }

    fn committed(&mut self, committed: CommitOutcome, told: &mut Vec<Report>) {
        let Task::Commit(committing, job) = std::mem::replace(&mut self.task, Task::Nothing) else { return };
        let Some(owner) = &mut self.owner else { return };
        let (manifest, number, known) = committing.end();
        owner.known = known;
        match committed {
            CommitOutcome::Stands => {
                owner.manifest = manifest;
                self.doomed.extend(job.inputs);
                if let Some(flushed) = job.flushed {
                    owner.memory.retain(|event| event.position > flushed);
                    owner.release = Some(flushed);
                }
                told.push(Report::Committed(number));
            }
            CommitOutcome::Refused => self.doomed.push(job.file),
            CommitOutcome::Stale => {
                self.doomed.push(job.file);
                owner.outdated = true;
            }
            // Either manifest may be the newest: the files of both stay.
            CommitOutcome::Unknown => owner.outdated = true,
        }
    }

    fn read_on(&mut self, answer: Response, told: &mut Vec<Report>) {
        let Task::Read(look, found, missed) = &mut self.task else { return };
        match (answer, found.take()) {
            (Response::Files(Some(_)), _) => self.task = Task::Nothing,
            (Response::Files(None), Some((number, _))) => {
                // A missing file means that there is a newer manifest by now.
                if *missed == number {
                    told.push(Report::Torn(number));
                }
                self.task = Task::Read(Looking::new(self.rules), None, number);
            }
            (answer, _) => look.answer(answer),
        }
    }
}

impl Owner {
    /// The next number of a file, or of a manifest.
    fn number(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file - 1
    }

    fn append(&self, id: u32, rules: Rules, write: u8) -> Task {
        let event = |half: u8| Event { position: self.position + 1 + u64::from(half), write, half };
        match rules.breaks(Breakage::UncutGroups) {
            true => self.group(id, rules, vec![event(0)], Some(vec![event(1)])),
            false => self.group(id, rules, vec![event(0), event(1)], None),
        }
    }

    fn group(&self, id: u32, rules: Rules, events: Vec<Event>, rest: Option<Vec<Event>>) -> Task {
        let Some(place) = self.writer.next() else { return Task::Nothing };
        let (before, content) = (self.writer.before(), Content::Group(events));
        let group = Arc::new(LogObject { writer: id, place, before, content });
        Task::Append { making: Making::new(rules, Call::PutLog(group.clone())), group, rest }
    }

    fn commit(&mut self, id: u32, rules: Rules) -> Task {
        let Some(job) = self.job.take() else { return Task::Nothing };
        let mut files = self.manifest.files.clone();
        files.retain(|file| !job.inputs.contains(file));
        files.push(job.file);
        let manifest = Manifest {
            version: self.number(),
            flushed: job.flushed.unwrap_or(self.manifest.flushed),
            // Only a flush advances in the log.
            log: job.flushed.map_or(self.manifest.log, |flushed| self.writer.place(flushed)),
            files,
        };
        let follows = self.manifest.version;
        Task::Commit(Box::new(Committing::new(rules, id, follows, manifest, self.known.take())), job)
    }
}
