//! A run: the store, the model, and the checks after each step.

use super::damage::Damage;
use super::steps::{Action, Step};
use crate::model::{Change, Expected, Model};
use crate::world::{Event, START, World, batch, readable, schema};
use meridian_model::{IdRole, Seq};
use meridian_store::seams::{Clock, CrashStyle, FaultKind, MemoryDisk, Random, SeededRandom};
use meridian_store::{Collection, Store, Work, Write, WriteError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The failed step, and the reason.
    pub failure: Option<(usize, String)>,
    /// A description of each step.
    pub log: Vec<String>,
    /// A hash of every call to the disk and its outcome.
    pub trace: u64,
}

/// `Ok`, or what is wrong.
pub type Verdict<T = ()> = Result<T, String>;

macro_rules! demand {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}
pub(super) use demand;

pub struct Run {
    pub(super) world: World,
    pub(super) store: Option<Store>,
    pub(super) collection: Arc<Collection>,
    pub(super) model: Model,
    pub(super) role: IdRole,
    /// Random numbers of the current step.
    pub(super) dice: SeededRandom,
    next_n: i64,
    /// Snapshots to return to, and when they were last used.
    tokens: Vec<(Seq, i64)>,
    /// A write whose sync failed: a restart shows whether it is present.
    pub(super) unknown: Option<Change>,
    /// Whether calls to the disk may fail.
    pub(super) faulty: bool,
    /// Whether the store was opened while the disk failed, or has refused writes since a failed sync.
    pub(super) hurt: bool,
    pub(super) damage: Option<Damage>,
    /// Position up to which the disk records every write as acknowledged: damage to those is never silent.
    pub(super) marked: u64,
    jobs: [Option<Work>; 2],
    /// Whether a begun job ran while the disk failed, so that its install may report an error.
    jobs_failed: bool,
    pub(super) log: Vec<String>,
}

impl Run {
    /// Runs these steps, then heals, restarts and compares once more.
    pub fn all(seed: u64, steps: &[Step]) -> Outcome {
        let mut run = match Run::new(seed) {
            Ok(run) => run,
            Err(what) => return Outcome { failure: Some((0, what)), log: Vec::new(), trace: 0 },
        };
        let mut failure = None;
        for (at, step) in steps.iter().enumerate() {
            run.dice = SeededRandom::new(step.seed);
            let result = guard(|| run.step(step.action).and_then(|()| run.compare()));
            if let Err(what) = result {
                failure = Some((at, format!("{:?}: {what}", step.action)));
                break;
            }
        }
        if failure.is_none() {
            failure = guard(|| run.end()).err().map(|what| (steps.len(), format!("at the end: {what}")));
        }
        Outcome { failure, log: run.log, trace: run.world.disk.trace() }
    }

    fn new(seed: u64) -> Verdict<Run> {
        let random = SeededRandom::new(seed ^ 0x5eed);
        let mut world = World::new();
        world.disk = MemoryDisk::seeded(random.next_u64());
        let role = if random.next_u64().is_multiple_of(2) { IdRole::Given } else { IdRole::Made };
        world.options.log_file_bytes = 1 << (10 + random.next_u64() % 8);
        world.options.segment_rows_min = 1 << (random.next_u64() % 8);
        world.options.cache_bytes = 1 << (14 + random.next_u64() % 6);
        world.options.archive_rows_min = 1 << (random.next_u64() % 12);
        world.options.serving_bytes = [0, 50_000, 1 << 40][random.next_u64() as usize % 3];
        let (store, collection) = world.with_collection(role);
        Ok(Run {
            world,
            store: Some(store),
            collection,
            model: Model::new(role),
            role,
            dice: SeededRandom::new(0),
            next_n: 0,
            tokens: Vec::new(),
            unknown: None,
            faulty: false,
            hurt: false,
            damage: None,
            marked: 0,
            jobs: [None, None],
            jobs_failed: false,
            log: Vec::new(),
        })
    }

    pub(super) fn below(&self, n: u64) -> u64 {
        self.dice.next_u64() % n.max(1)
    }

    pub(super) fn say(&mut self, what: String) {
        self.log.push(what);
    }

    fn step(&mut self, action: Action) -> Verdict {
        match action {
            Action::Write => {
                let count = if self.below(60) == 0 { 300 + self.below(1500) } else { 1 + self.below(40) };
                let key = (self.below(4) == 0).then(|| format!("key-{}", self.next_n));
                let replace = self.below(3) == 0;
                self.write(count, key, replace)
            }
            Action::Put => self.write(1, None, true),
            Action::Resend => {
                let keys: Vec<(&String, i64)> = self.model.keys.iter().map(|(k, key)| (k, key.time)).collect();
                // Once the clock has shown a time past its day, a key may be forgotten even if the clock was set back.
                let usable = |k: &str| !self.model.keys[k].lapsed || self.is_forgotten(k);
                let keys: Vec<String> = keys.iter().map(|(k, _)| (*k).clone()).filter(|k| usable(k)).collect();
                let Some(key) = keys.get(self.below(keys.len() as u64) as usize).cloned() else { return Ok(()) };
                // The same events as often as others.
                let events = match self.below(2) {
                    0 => self.model.keys[&key].batch.clone(),
                    _ => {
                        let count = 1 + self.below(10);
                        self.events(count)
                    }
                };
                self.write_events(events, Some(key), true)
            }
            Action::DeleteIds => self.delete_ids(),
            Action::DeleteRows => self.delete_rows(),
            Action::Token => {
                let snapshot = self.collection.snapshot();
                self.tokens.push((snapshot.seq, self.world.clock.elapsed()));
                self.say(format!("token {}", snapshot.seq));
                Ok(())
            }
            Action::ComeBack => self.come_back(),
            Action::Flush if self.jobs[0].is_none() => {
                let result = self.collection.flush();
                self.maintained("flush", result.map(|()| true))
            }
            Action::Memory if self.jobs[0].is_none() => {
                let result = self.collection.maintain_memory(self.below(4) == 0);
                self.maintained("memory job", result)
            }
            Action::Segments if self.can_list() && self.below(3) == 0 => self.files(),
            Action::Segments if self.jobs[1].is_none() => {
                let result = self.collection.maintain_segments();
                self.maintained("segment job", result)
            }
            Action::Flush | Action::Memory | Action::Segments | Action::Install => self.install(),
            Action::Begin => {
                let lane = self.below(2) as usize;
                if self.jobs[lane].is_none() {
                    self.jobs[lane] = match lane {
                        0 => self.collection.begin_memory(self.below(2) == 0),
                        _ => self.collection.begin_segments(),
                    };
                    self.say(format!("a job of lane {lane} begins: {}", self.jobs[lane].is_some()));
                }
                Ok(())
            }
            Action::Run => {
                for job in self.jobs.iter_mut().flatten() {
                    self.collection.run(job);
                }
                self.jobs_failed |= self.faulty;
                self.say("jobs in hand run".to_owned());
                Ok(())
            }
            Action::AddField => self.add_field(),
            Action::Pass => {
                let seconds = [self.below(10), self.below(400), 86_400 + self.below(1000)][self.below(3) as usize];
                self.world.clock.advance(seconds as i64 * 1_000_000);
                self.model.tick(self.now());
                self.say(format!("{seconds} s pass"));
                Ok(())
            }
            Action::Jump => {
                let seconds = [3_600, 200_000, -3_600, -100_000][self.below(4) as usize];
                self.world.clock.set_by(seconds * 1_000_000);
                self.model.tick(self.now());
                self.say(format!("the clock is set by {seconds} s"));
                Ok(())
            }
            Action::Crash => self.crash(),
            Action::Close => self.close(),
            Action::Fault => {
                self.fault();
                Ok(())
            }
            Action::Full => {
                let used: u64 = self.world.disk.files().iter().map(|(_, len)| len).sum();
                let room = self.below(8000);
                self.world.disk.set_capacity(Some(used + room));
                self.faulty = true;
                self.say(format!("{room} bytes are left on the disk"));
                Ok(())
            }
            Action::ReadOnly => {
                self.world.disk.set_read_only(true);
                self.faulty = true;
                self.say("the disk is read-only".to_owned());
                Ok(())
            }
            Action::Heal => {
                self.heal();
                if self.hurt { self.crash() } else { Ok(()) }
            }
            Action::Flip => self.flip(),
            Action::Spoil => self.spoil(),
            Action::Vanish => self.vanish(),
            Action::Mend => self.mend(),
            Action::Check => self.check(),
        }
    }

    pub(super) fn now(&self) -> i64 {
        self.world.clock.now()
    }

    fn is_forgotten(&self, key: &str) -> bool {
        self.model.keys.get(key).is_none_or(|k| self.now() - k.time >= crate::model::KEY_MEMORY)
    }

    fn events(&mut self, count: u64) -> Vec<Event> {
        let mut taken = std::collections::BTreeSet::new();
        let mut events = Vec::new();
        for _ in 0..count {
            self.next_n += 1;
            // From a small set of ids, so that they repeat.
            let id = if self.below(3) == 0 { self.below(100) } else { 1000 + self.next_n as u64 };
            if taken.insert(id) {
                let n = self.next_n;
                events.push(Event { time: START + n, ..Event::new(format!("id-{id}"), n) });
                if n % 3 != 0 {
                    events.last_mut().iter_mut().for_each(|e| e.time = Event::new("", n).time);
                }
            }
        }
        events
    }

    fn write(&mut self, count: u64, key: Option<String>, replace: bool) -> Verdict {
        let events = self.events(count);
        self.write_events(events, key, replace)
    }

    fn write_events(&mut self, events: Vec<Event>, key: Option<String>, replace: bool) -> Verdict {
        let mut write = Write::new(batch(&self.collection.schema(), &events));
        write.key = key.clone();
        if replace {
            write = write.replacing();
        }
        let what = format!("write of {} (replace: {replace}, key: {key:?})", events.len());
        let change = Change::Write { events, key, replace, time: self.now() };
        let expected = self.model.expect(&change);
        let answer = self.collection.write(write);
        self.say(format!("{what}: {answer:?}"));
        match (answer, expected) {
            (Ok(got), Expected::Written { written, replaced, position }) => {
                let wanted = (written, replaced, 0, position, Seq::new(position, 0));
                let got = (got.written, got.replaced, got.duplicates, got.position, got.first);
                demand!(got == wanted, "{got:?} where {wanted:?} was expected");
                self.model.apply(&change);
                Ok(())
            }
            (Ok(got), Expected::Duplicate { duplicates, position }) => {
                let same = (got.written, got.duplicates, got.position) == (0, duplicates, position);
                demand!(same, "{got:?} where {duplicates} duplicates of {position} were expected");
                Ok(())
            }
            (Err(WriteError::KeyReused { position: got, .. }), Expected::KeyReused { position }) => {
                demand!(got == position, "the key is said to be of write {got} instead of {position}");
                Ok(())
            }
            (Err(WriteError::Conflict { ids, total }), Expected::Conflict(there)) => {
                let same = total == there.len() && ids == there[..there.len().min(100)];
                demand!(same, "{total} conflicts where {} were expected", there.len());
                Ok(())
            }
            (Err(error), Expected::Conflict(_) | Expected::Duplicate { .. } | Expected::KeyReused { .. }) => {
                self.refused(error, None)
            }
            (Err(error), Expected::Written { .. }) => self.refused(error, Some(change)),
            (got, expected) => Err(format!("{got:?} where {expected:?} was expected")),
        }
    }

    /// Checks that a refused change has a reason, and that the reported one is true.
    fn refused(&mut self, error: WriteError, change: Option<Change>) -> Verdict {
        let refuses = self.collection.stats().refuses;
        match error {
            WriteError::Busy(_) | WriteError::Full(_) if self.faulty => {}
            WriteError::Failed(_) if self.faulty && self.unknown.is_none() => {
                demand!(refuses.is_some(), "a write failed and the collection goes on");
                self.unknown = change;
                self.hurt = true;
            }
            WriteError::Refused(why) if self.hurt || self.damage.is_some() => {
                if let Some(refuses) = refuses {
                    demand!(why.contains(&refuses), "refused for {why:?} rather than {refuses:?}");
                }
            }
            WriteError::Refused(why) if self.faulty => {
                // An id could not be looked up, or a flush or merge has just made the collection refuse.
                demand!(refuses.is_some() || why.contains("/data"), "refused without a reason: {why}");
                self.hurt |= refuses.is_some();
            }
            other => return Err(format!("{other:?}, and nothing is wrong with the disk")),
        }
        Ok(())
    }

    fn delete_ids(&mut self) -> Verdict {
        let alive = self.model.alive();
        // One at a time while there is damage, so that the response shows which were found.
        let count = if self.damage.is_some() || self.hurt { 1 } else { self.below(30) };
        let mut ids = if count == 1 { Vec::new() } else { vec!["unknown".to_owned()] };
        for _ in 0..count {
            if !alive.is_empty() {
                ids.push(alive[self.below(alive.len() as u64) as usize].clone());
            }
        }
        let answer = self.collection.delete(&ids);
        self.deleted(Change::DeleteIds(ids), answer)
    }

    fn delete_rows(&mut self) -> Verdict {
        let snapshot = match self.tokens.get(self.below(2 * self.tokens.len() as u64) as usize) {
            Some((seq, _)) => match self.collection.snapshot_at(*seq) {
                Ok(snapshot) => snapshot,
                Err(_) => return Ok(()),
            },
            None => self.collection.snapshot(),
        };
        if snapshot.parts.is_empty() {
            return Ok(());
        }
        let part = &snapshot.parts[self.below(snapshot.parts.len() as u64) as usize];
        let count = if self.damage.is_some() || self.hurt { 1 } else { self.below(20) };
        let rows: Vec<u32> = (0..count).map(|_| self.below(u64::from(part.rows())) as u32).collect();
        let mut seqs = Vec::new();
        for row in &rows {
            match part.seqs(*row..row + 1) {
                Ok(found) => seqs.extend(found),
                Err(e) => return self.read_error(&e.to_string()),
            }
        }
        let answer = self.collection.delete_rows(&[(part.clone(), rows)]);
        self.deleted(Change::DeleteSeqs(seqs), answer)
    }

    fn deleted(&mut self, change: Change, answer: Result<meridian_store::Deleted, WriteError>) -> Verdict {
        let Expected::Deleted { deleted, position } = self.model.expect(&change) else { return Ok(()) };
        self.say(format!("{change:?}: {answer:?}"));
        match answer {
            Ok(got) if (got.deleted, got.position) == (deleted, position) => {
                self.model.apply(&change);
                Ok(())
            }
            Ok(got) if got.deleted == 0 && deleted == 1 && got.position == position => {
                let missing = self.collection.snapshot().missing.clone();
                demand!(!missing.is_empty(), "an event was not found, and nothing is said to be missing");
                self.model.skip();
                Ok(())
            }
            Ok(got) => Err(format!("{got:?} where {deleted} at {position} were expected")),
            Err(error) => self.refused(error, Some(change)),
        }
    }

    /// Returns to an old snapshot, which must be available within five minutes of its last use.
    fn come_back(&mut self) -> Verdict {
        if self.tokens.is_empty() {
            return Ok(());
        }
        let at = self.below(self.tokens.len() as u64) as usize;
        let (seq, used) = self.tokens[at];
        if seq > Seq::end_of(self.model.position) {
            // Its last write was in a damaged record.
            self.tokens.remove(at);
            return Ok(());
        }
        if seq > Seq::end_of(self.collection.position()) && self.damage.is_some() {
            // Damage has removed the last writes, for now.
            return Ok(());
        }
        let elapsed = self.world.clock.elapsed();
        match self.collection.snapshot_at(seq) {
            Ok(snapshot) => {
                self.tokens[at].1 = elapsed;
                self.say(format!("back to {seq}"));
                self.compare_snapshot(&snapshot)
            }
            Err(_) => {
                self.tokens.remove(at);
                self.say(format!("{seq} is gone"));
                demand!(elapsed - used > 300_000_000, "snapshot {seq} is gone {} us after its use", elapsed - used);
                Ok(())
            }
        }
    }

    fn install(&mut self) -> Verdict {
        let (failed, faulty) = (std::mem::take(&mut self.jobs_failed), self.faulty);
        self.faulty |= failed;
        let result = self.install_all();
        self.faulty = faulty;
        result
    }

    fn install_all(&mut self) -> Verdict {
        for lane in 0..2 {
            if let Some(job) = self.jobs[lane].take() {
                let result = self.collection.install(job);
                self.maintained("a job in hand", result.map(|()| true))?;
            }
        }
        Ok(())
    }

    fn maintained(&mut self, what: &str, result: Result<bool, meridian_store::StoreError>) -> Verdict {
        self.say(format!("{what}: {result:?}"));
        if let Err(e) = result {
            self.read_error(&e.to_string())?;
            self.hurt |= self.collection.stats().refuses.is_some();
        }
        Ok(())
    }

    /// Checks that an error is justified: the disk fails or holds damage, and the error names a file.
    pub(super) fn read_error(&self, error: &str) -> Verdict {
        demand!(self.faulty || self.hurt || self.damage.is_some(), "{error:?}, and nothing is wrong with the disk");
        demand!(error.contains("/data"), "{error:?} names no file");
        Ok(())
    }

    fn can_list(&self) -> bool {
        self.jobs.iter().all(Option::is_none) && !self.hurt && self.damage.is_none()
    }

    /// Lists the files, reads them, and releases Arrow rows beyond the budget.
    fn files(&mut self) -> Verdict {
        let files = self.collection.files(Instant::now() + Duration::from_secs(60), &|| false);
        if let Ok(files) = &files
            && !self.faulty
        {
            let found = crate::files::content(&self.world, &files.paths);
            let expected = self.model.content(Seq::end_of(self.model.position));
            let expected: Vec<_> = expected.into_iter().map(|(id, _, n)| (id, n)).collect();
            demand!(found == expected, "the files hold {} events of {}", found.len(), expected.len());
        }
        self.store.iter().for_each(Store::trim_serving);
        self.maintained("files", files.map(|files| !files.paths.is_empty()))
    }

    fn add_field(&mut self) -> Verdict {
        let name = format!("more{}", self.collection.schema().fields.len());
        let field = meridian_model::Field { name, kind: meridian_model::FieldType::Text, required: false, title: None };
        let result = self.collection.add_fields(vec![field]).map(|_| ());
        self.say(format!("a field more: {result:?}"));
        if let Err(e) = result {
            demand!(self.faulty || self.hurt || self.damage.is_some(), "{e}, and nothing is wrong with the disk");
            self.hurt |= self.collection.stats().refuses.is_some();
        }
        Ok(())
    }

    fn fault(&mut self) {
        let kinds = [FaultKind::SyncFails, FaultKind::WriteFails, FaultKind::ReadFails, FaultKind::NameFails];
        let kind = kinds[self.below(4) as usize];
        let path = ["/data", "/log", "/segments", "MANIFEST", ".dead", ".keys"][self.below(6) as usize];
        let after = [0, self.below(4), self.below(20)][self.below(3) as usize];
        let times = [1, u64::MAX][self.below(2) as usize];
        self.world.disk.inject_times(kind, path, after, times);
        self.faulty = true;
        self.say(format!("{kind:?} at {path} after {after} calls, {times} times"));
    }

    pub(super) fn heal(&mut self) {
        self.world.disk.heal();
        self.world.disk.set_capacity(None);
        self.world.disk.set_read_only(false);
        self.faulty = false;
        self.say("the disk is well".to_owned());
    }

    fn crash(&mut self) -> Verdict {
        let random = SeededRandom::new(self.dice.next_u64());
        let style = match self.below(3) {
            0 => CrashStyle::Lose,
            1 => CrashStyle::Tear(&random),
            _ => CrashStyle::Scatter(&random),
        };
        self.jobs = [None, None];
        self.world.disk.crash(style);
        self.store = None;
        self.say("crash".to_owned());
        self.heal();
        if random.next_u64().is_multiple_of(4) && self.damage.is_none() {
            crate::files::lose_caches(&self.world, &random);
        }
        if self.below(4) == 0 && self.damage.is_none() {
            self.open_while_the_disk_fails()?;
        }
        self.open()
    }

    fn close(&mut self) -> Verdict {
        // Begun jobs end with the store.
        self.jobs = [None, None];
        if let Some(store) = self.store.take() {
            let result = store.close();
            self.say(format!("close: {result:?}"));
            if let Err(e) = result {
                self.read_error(&e.to_string())?;
            }
        }
        self.heal();
        self.open()
    }

    /// Starts the store while the disk fails: it may fail or show less, but must not corrupt anything.
    fn open_while_the_disk_fails(&mut self) -> Verdict {
        self.fault();
        self.faulty = true;
        match Store::open(self.world.options.clone(), self.world.seams()) {
            Err(e) => {
                self.say(format!("the store does not open: {e}"));
                self.read_error(&e.to_string())?;
            }
            Ok(store) => {
                let problems = store.problems();
                self.say(format!("the store opens: {problems:?}"));
                match store.collection("t", "c") {
                    None => demand!(!problems.is_empty(), "the collection is gone without a word"),
                    Some(collection) => {
                        let kept = std::mem::replace(&mut self.collection, collection);
                        self.settle_unknown();
                        self.compare_snapshot(&self.collection.snapshot())?;
                        drop(kept);
                    }
                }
            }
        }
        self.heal();
        self.world.disk.crash(CrashStyle::Lose);
        Ok(())
    }

    /// Settles a write whose sync failed: a start shows all or nothing of it.
    fn settle_unknown(&mut self) {
        if self.collection.position() == self.model.position + 1
            && self.collection.snapshot().missing.is_empty()
            && let Some(change) = self.unknown.take()
        {
            self.model.apply(&change);
        }
    }

    /// Opens the store on a disk without faults, except for damage.
    pub(super) fn open(&mut self) -> Verdict {
        self.jobs = [None, None];
        self.store = None;
        self.hurt = false;
        let store = match Store::open(self.world.options.clone(), self.world.seams()) {
            Ok(store) => store,
            Err(e) => return self.closed(&e.to_string()),
        };
        let problems = store.problems();
        let Some(collection) = store.collection("t", "c") else {
            return self.closed(&format!("{problems:?}"));
        };
        self.collection = collection;
        self.store = Some(store);
        if self.damage.is_none() {
            demand!(problems.is_empty(), "{problems:?}, and nothing is wrong with the disk");
            self.settle_unknown();
            self.unknown = None;
            // A start syncs the last group and marks it.
            self.marked = self.collection.position();
        } else {
            self.damaged(&problems)?;
            if self.collection.snapshot().missing.is_empty() {
                self.settle_unknown();
                self.unknown = None;
            }
        }
        Ok(())
    }

    /// Compares the store with the model.
    fn compare(&mut self) -> Verdict {
        let snapshot = self.collection.snapshot();
        let seq = Seq::end_of(self.model.position);
        let well = !self.faulty && !self.hurt && self.damage.is_none();
        if well || snapshot.missing.is_empty() {
            demand!(snapshot.seq == seq, "the newest snapshot is {} instead of {seq}", snapshot.seq);
        }
        self.compare_snapshot(&snapshot)?;
        let refuses = self.collection.stats().refuses;
        demand!(!well || refuses.is_none(), "writes are refused, and nothing is wrong: {refuses:?}");
        demand!(snapshot.parts.iter().filter(|p| p.in_memory()).count() <= 50, "too many memory trees");
        if well {
            let expected = self.model.content(seq);
            let events = self.collection.stats().events;
            demand!(events == expected.len() as u64, "{events} events are counted of {}", expected.len());
            if let Some((id, seq, _)) = expected.get(self.below(expected.len() as u64) as usize) {
                let found = snapshot.find(id).map_err(|e| e.to_string())?;
                let found = found.and_then(|(part, row)| part.seqs(row..row + 1).ok());
                demand!(found.as_deref() == Some(&[*seq]), "{id} is not found: {found:?}");
            }
            let unknown = snapshot.find("unknown").map_err(|e| e.to_string())?;
            demand!(unknown.is_none(), "an unknown id is found");
        }
        Ok(())
    }

    /// Checks that a snapshot shows the model's content, or reports what it cannot read or what is missing.
    pub(super) fn compare_snapshot(&self, snapshot: &meridian_store::Snapshot) -> Verdict {
        let (found, errors) = readable(snapshot);
        let expected = self.model.content(snapshot.seq);
        if found == expected && errors.is_empty() {
            return Ok(());
        }
        let first = found.iter().find(|e| !self.model.knows(e));
        demand!(first.is_none(), "{first:?} was never written");
        for error in &errors {
            self.read_error(&error.to_string())?;
        }
        let said = !errors.is_empty() || (!snapshot.missing.is_empty() && (self.faulty || self.damage.is_some()));
        let lost = expected.iter().find(|e| !found.contains(e));
        let risen = found.iter().find(|e| !expected.contains(e));
        demand!(
            said,
            "{} events instead of {} without a word; missing {lost:?}, too many {risen:?}",
            found.len(),
            expected.len()
        );
        Ok(())
    }

    /// Checks that everything is present once all faults and damage are undone.
    fn end(&mut self) -> Verdict {
        self.heal();
        self.mend()?;
        self.open()?;
        self.compare()?;
        let problems = self.store.as_ref().map(Store::check).unwrap_or_default();
        demand!(problems.is_empty(), "check finds {problems:?}");
        let written = Write::new(batch(&Arc::new(schema(self.role)), &[Event::new("last", 1)])).replacing();
        self.collection.write(written).map_err(|e| format!("no write is taken in the end: {e}"))?;
        Ok(())
    }
}

/// Turns a panic of the store (or of a check) into a failure.
fn guard(run: impl FnOnce() -> Verdict) -> Verdict {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!(
            "panicked: {}",
            text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
        ))
    })
}
