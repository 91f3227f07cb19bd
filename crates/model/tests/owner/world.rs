//! Processes over one bucket, the calls in flight, and the invariants whatever happens next.

mod check;

use crate::bucket::{Bucket, Call, CatalogObject, Content, Event, Manifest, Response};
use crate::process::{Process, Report, Work};
use meridian_model::policy::owner::{Breakage, Head, Kind, LogPlace, Rules, first_of_next_epoch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Remaining budget of a run. Without a bound the states would be infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub writes: u8,
    pub flushes: u8,
    pub merges: u8,
    pub takeovers: u8,
    pub reads: u8,
    /// Calls whose response is lost, late or a refusal.
    pub faults: u8,
    pub kills: u8,
    /// Moments at which listings freeze.
    pub freezes: u8,
}

/// The outcome of a call for its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    Done,
    /// It never arrives, and there is no response.
    LostBefore,
    /// It takes effect, and there is no response.
    LostAfter,
    /// There is no response, and it may arrive at any later time.
    Late,
    /// Refused for lack of space.
    Full,
}

/// One step of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    Begin(usize, Work),
    End(usize, End),
    /// A call arrives whose process has given up on it, or is gone.
    Arrive(usize),
    Kill(usize),
    /// Freezes listings at this moment, or (if frozen) returns them to the present.
    Freeze,
}

impl Move {
    /// The node that makes the step.
    pub fn node(self) -> Option<usize> {
        match self {
            Move::Begin(node, _) | Move::End(node, _) => Some(node),
            Move::Arrive(_) | Move::Kill(_) | Move::Freeze => None,
        }
    }
}

/// The known outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WriteOutcome {
    /// Sent, outcome unknown.
    Open,
    /// Acknowledged, or found present by a later owner.
    Stored,
    /// Refused, or found missing by a later owner.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    rules: Rules,
    pub budget: Budget,
    pub bucket: Bucket,
    /// The contents of frozen listings.
    shown: Option<Box<Bucket>>,
    pub late: Vec<Call>,
    pub nodes: Vec<Option<Process>>,
    /// Number of processes so far.
    processes: u32,
    /// Number of lease terms so far, if processes get epochs from it.
    terms: Option<u64>,
    outcomes: Vec<WriteOutcome>,
    /// The last manifest that followed the newest one.
    head: u64,
    /// The manifests of the chain: their creators and versions.
    creators: BTreeMap<u64, (u32, u64)>,
    /// The serving process and its epoch: the last fenced one of all that began to serve.
    serving: (u32, u64),
    /// The writer of the groups in each epoch.
    writers: BTreeMap<u64, u32>,
}

/// Max calls that arrive late.
const LATE_MAX: usize = 2;

impl World {
    /// A newly created partition, and nodes that know of it.
    pub fn new(rules: Rules, nodes: usize, budget: Budget, terms: bool) -> World {
        let head = Head { number: 1, kind: Kind::First, old: Vec::new() };
        let manifest =
            Manifest { version: first_of_next_epoch(0), flushed: 0, log: LogPlace::FIRST, files: Vec::new() };
        let mut bucket = Bucket::default();
        bucket.manifests.insert(1, Arc::new(CatalogObject { writer: 0, head, manifest }));
        World {
            rules,
            budget,
            bucket,
            shown: None,
            late: Vec::new(),
            nodes: vec![None; nodes],
            processes: 0,
            terms: terms.then_some(0),
            outcomes: Vec::new(),
            head: 1,
            creators: BTreeMap::from([(1, (0, first_of_next_epoch(0)))]),
            serving: (0, 0),
            writers: BTreeMap::new(),
        }
    }

    /// Whether listings are frozen at an earlier moment.
    pub fn is_frozen(&self) -> bool {
        self.shown.is_some()
    }

    /// The node whose process began last.
    pub fn newest_node(&self) -> usize {
        self.nodes.iter().rposition(Option::is_some).unwrap_or(0)
    }

    /// The process of a node; 0 for none.
    pub fn process_of(&self, node: usize) -> u32 {
        self.nodes[node].as_ref().map_or(0, |process| process.id)
    }

    /// Whether a node accepts writes.
    pub fn serves(&self, node: usize) -> bool {
        self.nodes[node].as_ref().is_some_and(Process::serves)
    }

    /// Whether a node waits for the response to a call.
    pub fn waits(&self, node: usize) -> bool {
        self.nodes[node].as_ref().is_some_and(|process| process.call.is_some())
    }

    /// Number of the next write.
    pub fn next_write(&self) -> u8 {
        self.outcomes.len() as u8
    }

    /// The possible next moves.
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        // Nodes without a process are interchangeable.
        let empty = self.nodes.iter().position(Option::is_none).map_or(self.nodes.len(), |empty| empty + 1);
        for node in 0..empty.min(self.nodes.len()) {
            self.moves_of(node, &mut moves);
        }
        moves.extend((0..self.late.len()).map(Move::Arrive));
        if self.shown.is_some() || self.budget.freezes > 0 {
            moves.push(Move::Freeze);
        }
        moves
    }

    /// The possible moves and failures of a node.
    pub fn moves_of(&self, node: usize, moves: &mut Vec<Move>) {
        let Some(process) = &self.nodes[node] else {
            if self.budget.takeovers > 0 {
                moves.push(Move::Begin(node, Work::Takeover));
            }
            return;
        };
        if self.budget.kills > 0 {
            moves.push(Move::Kill(node));
        }
        let Some(call) = &process.call else {
            let works = [
                (Work::Takeover, self.budget.takeovers),
                (Work::Write(self.outcomes.len() as u8), self.budget.writes),
                (Work::Flush, self.budget.flushes),
                (Work::Merge, self.budget.merges),
                (Work::Commit, 1),
                (Work::Release, 1),
                (Work::Remove, 1),
                (Work::Read, self.budget.reads),
            ];
            let begins = works.into_iter().filter(|(work, left)| *left > 0 && self.may_begin(process, *work));
            moves.extend(begins.map(|(work, _)| Move::Begin(node, work)));
            return;
        };
        moves.push(Move::End(node, End::Done));
        if self.budget.faults == 0 {
            return;
        }
        moves.push(Move::End(node, End::LostBefore));
        if call.changes() {
            moves.push(Move::End(node, End::LostAfter));
            if self.late.len() < LATE_MAX {
                moves.push(Move::End(node, End::Late));
            }
        }
        if call.is_put() {
            moves.push(Move::End(node, End::Full));
        }
    }

    fn may_begin(&self, process: &Process, work: Work) -> bool {
        // If only the lease fences, a process that lost it begins no write. One in progress goes on, as it may have
        // been paused in the middle.
        let holds = !self.rules.breaks(Breakage::LeaseAlone) || self.newest_process() == process.id;
        process.can(work) && (holds || !matches!(work, Work::Write(_)))
    }

    /// The process that took the lease last.
    fn newest_process(&self) -> u32 {
        self.processes
    }

    /// Makes a move; returns an error if an invariant is violated.
    pub fn make(&mut self, chosen: Move) -> Result<(), String> {
        self.apply(chosen)?;
        // The node of a process does not matter: a fixed order yields fewer states.
        self.nodes.sort_by_key(|node| node.as_ref().map_or(u32::MAX, |process| process.id));
        Ok(())
    }

    fn apply(&mut self, chosen: Move) -> Result<(), String> {
        match chosen {
            Move::Begin(node, work) => self.begin(node, work),
            Move::End(node, end) => self.end(node, end),
            Move::Arrive(at) => {
                let call = self.late.remove(at);
                self.execute(&call).map(drop)
            }
            Move::Kill(node) => {
                self.budget.kills -= 1;
                let call = self.nodes[node].take().and_then(|process| process.call);
                if let Some(call) = call.filter(Call::changes).filter(|_| self.late.len() < LATE_MAX) {
                    self.late.push(call);
                }
                Ok(())
            }
            Move::Freeze => {
                if self.shown.take().is_none() {
                    self.budget.freezes -= 1;
                    self.shown = Some(Box::new(self.bucket.clone()));
                }
                Ok(())
            }
        }
    }

    fn begin(&mut self, node: usize, work: Work) -> Result<(), String> {
        match work {
            Work::Takeover => {
                self.budget.takeovers -= 1;
                self.processes += 1;
                let term = self.terms.map_or(0, |terms| terms + 1);
                self.terms = self.terms.map(|terms| terms + 1);
                self.nodes[node] = Some(Process::new(self.processes, self.rules, term));
            }
            Work::Write(_) => {
                self.budget.writes -= 1;
                self.outcomes.push(WriteOutcome::Open);
            }
            Work::Flush => self.budget.flushes -= 1,
            Work::Merge => self.budget.merges -= 1,
            Work::Read => self.budget.reads -= 1,
            Work::Commit | Work::Release | Work::Remove => {}
        }
        let (bucket, mut told) = (&self.bucket, Vec::new());
        if let Some(process) = &mut self.nodes[node] {
            process.begin(work, |files| bucket.read_files(files).unwrap_or_default(), &mut told);
        }
        self.hear(node, told)
    }

    fn end(&mut self, node: usize, end: End) -> Result<(), String> {
        let Some(call) = self.nodes[node].as_ref().and_then(|process| process.call.clone()) else { return Ok(()) };
        let answer = match end {
            End::Done => self.execute(&call)?,
            End::LostBefore => Response::Lost,
            End::LostAfter => self.execute(&call).map(|_| Response::Lost)?,
            End::Full => Response::Full,
            End::Late => {
                self.late.push(call);
                Response::Lost
            }
        };
        self.budget.faults -= u8::from(end != End::Done);
        let mut told = Vec::new();
        if let Some(process) = &mut self.nodes[node] {
            process.answer(answer, &mut told);
        }
        self.hear(node, told)
    }

    /// Applies a call, and checks the invariants.
    fn execute(&mut self, call: &Call) -> Result<Response, String> {
        let answer = self.bucket.execute(call, self.shown.as_deref(), self.rules);
        match (call, &answer) {
            (Call::PutLog(object), Response::Created) => {
                let Content::Group(events) = &object.content else { return self.check_bucket().map(|()| answer) };
                let writer = *self.writers.entry(object.place.epoch).or_insert(object.writer);
                if writer != object.writer {
                    return Err(format!(
                        "processes {writer} and {} write in epoch {}",
                        object.writer, object.place.epoch
                    ));
                }
                // A resent create may arrive after its object was read, flushed and deleted by another: no process
                // reads there any more.
                let (serving, _) = self.serving;
                if object.writer != serving && !self.is_flushed(events) {
                    return Err(format!("process {serving} serves, and a group of {} takes effect", object.writer));
                }
            }
            (Call::PutManifest(object), Response::Created) => {
                let (number, made) = (object.head.number, (object.writer, object.manifest.version));
                if number == self.head + 1 {
                    let follows = self.creators.get(&self.head).map(|(writer, _)| *writer);
                    if object.head.kind != Kind::First && follows != Some(object.writer) {
                        return Err(format!("manifest {number} of {} says that it is not its first", object.writer));
                    }
                    self.head = number;
                    self.creators.insert(number, made);
                } else if object.head.kind == Kind::Later && self.creators.get(&number) != Some(&made) {
                    // A first manifest is detected by the check after it, and an identical one changes nothing.
                    return Err(format!("process {} creates manifest {number} anew, of {}", object.writer, self.head));
                }
            }
            _ => {}
        }
        if call.changes() {
            self.check_bucket()?;
        }
        Ok(answer)
    }

    /// Whether the newest manifest covers these events.
    fn is_flushed(&self, events: &[Event]) -> bool {
        let flushed = self.bucket.manifests.get(&self.head).map_or(0, |newest| newest.manifest.flushed);
        events.iter().all(|event| event.position <= flushed)
    }

    fn hear(&mut self, node: usize, told: Vec<Report>) -> Result<(), String> {
        let id = self.process_of(node);
        let news = !told.is_empty();
        for told in told {
            match told {
                Report::Stored(write) => self.settle(write, WriteOutcome::Stored)?,
                Report::Refused(write) => self.settle(write, WriteOutcome::Absent)?,
                Report::Unknown(_) => {}
                Report::Committed(number) if self.creators.get(&number).is_none_or(|(writer, _)| *writer != id) => {
                    return Err(format!("process {id} takes its manifest {number} for one of the chain"));
                }
                Report::Committed(_) => {}
                // It was superseded in flight, and finds out with its first write.
                Report::Serves(_, epoch) if epoch < self.serving.1 => {}
                Report::Serves(content, epoch) => {
                    self.serving = (id, epoch);
                    self.check_content(&content, true)?;
                    // Whatever it found, or did not find, is final.
                    for write in 0..self.outcomes.len() {
                        let there = content.iter().any(|event| usize::from(event.write) == write);
                        self.settle(write as u8, if there { WriteOutcome::Stored } else { WriteOutcome::Absent })?;
                    }
                }
                Report::Harmed => return Err(format!("process {id} finds that something is missing")),
                Report::Torn(number) => {
                    return Err(format!("process {id} reads manifest {number}, which names what is not there"));
                }
            }
        }
        if news { self.check_bucket() } else { Ok(()) }
    }

    fn settle(&mut self, write: u8, outcome: WriteOutcome) -> Result<(), String> {
        let known = &mut self.outcomes[usize::from(write)];
        if *known != WriteOutcome::Open && *known != outcome {
            return Err(format!("write {write} was {known:?}, and is {outcome:?} now"));
        }
        *known = outcome;
        Ok(())
    }
}
