//! The lock of a partition, and that of its manifests. A panic under one may leave a change half made, and then nothing
//! changes the partition any more.
//!
//! A manifest is made from the one before, so there is one at a time. Its commit takes calls to the disk or the bucket,
//! for which writers must not wait: so it has a lock of its own, which is taken before that of the partition.

use super::Partition;
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// A partition and its locks.
#[derive(Debug)]
pub(crate) struct PartitionLock {
    partition: Mutex<Partition>,
    /// Held while a manifest is made, committed and installed.
    commits: Mutex<()>,
}

impl PartitionLock {
    pub(crate) fn new(partition: Partition) -> PartitionLock {
        PartitionLock { partition: Mutex::new(partition), commits: Mutex::new(()) }
    }

    /// Locks the partition. If this thread panics before the guard is dropped, the partition is
    /// [halted](Partition::halt).
    pub(crate) fn lock(&self) -> PartitionGuard<'_> {
        PartitionGuard { partition: self.partition.lock(), panicked_before: std::thread::panicking(), _commits: None }
    }

    /// Locks the partition for a change that commits a manifest under the lock: no other one is being committed.
    pub(crate) fn lock_to_commit(&self) -> PartitionGuard<'_> {
        let commits = self.commits.lock();
        let mut guard = self.lock();
        guard._commits = Some(commits);
        guard
    }

    /// Keeps other manifests out, without the lock of the partition. If this thread panics before the guard is dropped,
    /// the partition is [halted](Partition::halt): what was committed may not be installed.
    pub(crate) fn lock_commits(&self) -> CommitsGuard<'_> {
        CommitsGuard { lock: self, panicked_before: std::thread::panicking(), _commits: self.commits.lock() }
    }
}

/// A locked partition.
pub(crate) struct PartitionGuard<'a> {
    partition: MutexGuard<'a, Partition>,
    /// Whether the thread panicked already when it took the lock: then it did so elsewhere.
    panicked_before: bool,
    _commits: Option<MutexGuard<'a, ()>>,
}

impl Deref for PartitionGuard<'_> {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl DerefMut for PartitionGuard<'_> {
    fn deref_mut(&mut self) -> &mut Partition {
        &mut self.partition
    }
}

impl Drop for PartitionGuard<'_> {
    fn drop(&mut self) {
        if !self.panicked_before && std::thread::panicking() {
            self.partition.halt();
        }
    }
}

/// Keeps other manifests out.
pub(crate) struct CommitsGuard<'a> {
    lock: &'a PartitionLock,
    panicked_before: bool,
    _commits: MutexGuard<'a, ()>,
}

impl Drop for CommitsGuard<'_> {
    fn drop(&mut self) {
        if !self.panicked_before && std::thread::panicking() {
            self.lock.lock().halt();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::seams::{
        ManualClock, MemoryDisk, Object, ObjectWriter, Objects, PartitionStorage, Seams, SeededRandom, Storage,
    };
    use crate::{Collection, DiskStorage, Options, Settings, Store, StoreError, Write, WriteError};
    use meridian_model::builder::Value;
    use meridian_model::{BatchBuilder, Field, FieldType, Schema, TimeRole};
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Objects that panic while the trap is set, when a merge has committed its manifest and looks for notes about its
    /// inputs.
    #[derive(Debug)]
    struct TrappedObjects {
        of: Arc<dyn Objects>,
        trap: Arc<AtomicBool>,
    }

    impl Objects for TrappedObjects {
        fn put(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
            self.of.put(name)
        }

        fn replace(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
            self.of.replace(name)
        }

        fn open(&self, name: &str) -> io::Result<Arc<dyn Object>> {
            self.of.open(name)
        }

        fn list(&self) -> io::Result<Vec<String>> {
            self.of.list()
        }

        fn delete(&self, name: &str) -> io::Result<()> {
            self.of.delete(name)
        }

        fn sync(&self) -> io::Result<()> {
            self.of.sync()
        }

        fn path(&self, name: &str) -> PathBuf {
            assert!(!self.trap.load(Ordering::SeqCst) || !name.ends_with(".parquet"), "into the trap");
            self.of.path(name)
        }
    }

    #[derive(Debug)]
    struct TrappedStorage {
        of: DiskStorage,
        trap: Arc<AtomicBool>,
    }

    impl Storage for TrappedStorage {
        fn partition(&self, dir: &Path, log_file_bytes: u64) -> PartitionStorage {
            let storage = self.of.partition(dir, log_file_bytes);
            let objects = Arc::new(TrappedObjects { of: storage.objects, trap: self.trap.clone() });
            PartitionStorage { log: storage.log, catalog: storage.catalog, objects }
        }
    }

    /// Writes a hundred events over the same days.
    fn write(c: &Collection) -> Result<(), WriteError> {
        let mut builder = BatchBuilder::new(c.schema());
        for day in 0..100 {
            builder.set(0, Value::Time(day * 86_400_000_000)).unwrap();
            builder.end_event().unwrap();
        }
        c.write(Write::new(builder.finish().unwrap())).map(drop)
    }

    #[test]
    fn a_panic_within_a_change_halts_its_collection_and_loses_nothing() {
        let trap = Arc::new(AtomicBool::new(false));
        let seams = Seams {
            disk: Arc::new(MemoryDisk::new()),
            clock: Arc::new(ManualClock::new(0)),
            random: Arc::new(SeededRandom::new(1)),
        };
        let open = || {
            let trap = trap.clone();
            let options = Options { background: false, segment_rows_min: 16, ..Options::at("/data") };
            let storage = |disk| -> Arc<dyn Storage> { Arc::new(TrappedStorage { of: DiskStorage(disk), trap }) };
            Store::open_over(options, seams.clone(), storage).unwrap()
        };
        let at = Field { name: "at".into(), kind: FieldType::Time, required: true, title: None };
        let schema = Schema { fields: vec![at], time: TimeRole::Instant(0), ..Schema::default() };
        let store = open();
        let c = store.create("t", "c", schema, Settings::default()).unwrap();
        for _ in 0..5 {
            write(&c).unwrap();
            c.flush().unwrap();
        }
        write(&c).unwrap();
        let (mut flush, mut merge) = (c.begin_memory(true).unwrap(), c.begin_segments().unwrap());
        c.run(&mut flush);
        c.run(&mut merge);
        trap.store(true, Ordering::SeqCst);
        assert!(store.memory().1 > 0);
        assert!(catch_unwind(AssertUnwindSafe(|| c.install(merge))).is_err());
        trap.store(false, Ordering::SeqCst);
        // Its manifest names the outcome, and what is here the inputs, whose files are about to go: neither another
        // merge nor the flush that was at work may build on that.
        assert!(matches!(c.install(flush), Err(StoreError::Closed)));
        assert!(c.begin_segments().is_none() && c.begin_memory(true).is_none());
        let why = c.stats().refuses.unwrap();
        assert!(why.contains("restart the server"), "{why}");
        assert!(matches!(write(&c), Err(WriteError::Refused(refused)) if refused == why));
        // Readers keep what they had. Its memory trees, which nothing flushes, take no room from other collections.
        assert_eq!((c.stats().events, store.memory().1), (600, 0));
        store.close().unwrap();
        drop((c, store));
        let store = open();
        let c = store.collection("t", "c").unwrap();
        assert_eq!((c.stats().events, c.stats().refuses), (600, None));
        assert_eq!(store.check(), []);
        write(&c).unwrap();
        c.flush().unwrap();
        assert_eq!(c.stats().events, 700);
    }

    #[test]
    fn a_panic_elsewhere_halts_nothing() {
        struct LooksOnDrop<'a>(&'a Collection);
        impl Drop for LooksOnDrop<'_> {
            fn drop(&mut self) {
                self.0.core.lock().publish();
            }
        }
        let (clock, random) = (Arc::new(ManualClock::new(0)), Arc::new(SeededRandom::new(1)));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock, random };
        let store = Store::open(Options { background: false, ..Options::at("/data") }, seams).unwrap();
        let c = store.create("t", "c", Schema::default(), Settings::default()).unwrap();
        let panics = || {
            let _looks = LooksOnDrop(&c);
            panic!("on purpose");
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(c.stats().refuses, None);
    }
}
