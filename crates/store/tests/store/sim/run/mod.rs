//! A run: the store, the model, and the checks after each step.

mod compare;
mod disk;
mod upkeep;
mod writes;

use super::damage::Damage;
use super::steps::{Action, Step};
use crate::model::{Change, Model};
use crate::world::{Event, World, batch, schema};
use meridian_model::{IdRole, Seq};
use meridian_store::seams::{Clock, MemoryDisk, Random, SeededRandom};
use meridian_store::{Collection, Store, Work, Write};
use std::sync::Arc;

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
