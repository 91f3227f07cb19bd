//! The failing disk: faults, crashes, and what a start on it must show.

use super::{Run, Verdict, demand};
use meridian_store::Store;
use meridian_store::seams::{CrashStyle, FaultKind, Random, SeededRandom};

impl Run {
    pub(super) fn fault(&mut self) {
        let kinds = [FaultKind::SyncFails, FaultKind::WriteFails, FaultKind::ReadFails, FaultKind::NameFails];
        let kind = kinds[self.below(4) as usize];
        let path = ["/data", "/log", "/segments", "MANIFEST", ".dead", ".keys"][self.below(6) as usize];
        let after = [0, self.below(4), self.below(20)][self.below(3) as usize];
        let times = [1, u64::MAX][self.below(2) as usize];
        self.world.disk.inject_times(kind, path, after, times);
        self.faulty = true;
        self.say(format!("{kind:?} at {path} after {after} calls, {times} times"));
    }

    pub(in crate::sim) fn heal(&mut self) {
        self.world.disk.heal();
        self.world.disk.set_capacity(None);
        self.world.disk.set_read_only(false);
        self.faulty = false;
        self.say("the disk is well".to_owned());
    }

    pub(super) fn crash(&mut self) -> Verdict {
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

    pub(super) fn close(&mut self) -> Verdict {
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
    pub(in crate::sim) fn open(&mut self) -> Verdict {
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
}
