//! The threads of a store: one flushes, one merges. Over a bucket a third one retries collections that could not be
//! opened.

use super::Inner;
use crate::collection::Collection;
use crate::error::StoreError;
use crate::panics::contained_by_store;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the threads check for work without being woken.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Pause after a failed flush or merge.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
const AFTER_FAILURE_STEPS: u32 = 40;

/// One step of a thread. Returns true if there was something to do.
type Step = fn(&Inner) -> bool;
impl Inner {
    pub(super) fn start_threads(self: &Arc<Self>) -> Result<Vec<JoinHandle<()>>, StoreError> {
        // One thread for flushes and one for merges: a long merge never keeps a flush waiting.
        let lanes: [(&str, &'static str, Step); 3] = [
            ("meridian-flush", "pass of flushes", Inner::flush_step),
            ("meridian-merge", "pass of merges", Inner::merge_step),
            ("meridian-open", "pass of retries", Inner::open_step),
        ];
        let used = if self.common.storage.registry().is_some() { 3 } else { 2 };
        let start = |(name, what, step): (&str, &'static str, Step)| {
            let inner = self.clone();
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                let mut seen = 0;
                while !inner.closed.load(Ordering::Acquire) {
                    // Waits only when idle: while there is work, the next step follows at once, so a backlog shrinks at
                    // full speed.
                    if !inner.guard(what, || step(&inner)) {
                        inner.wake.wait(&mut seen, LOOK_EVERY);
                    }
                }
            })
        };
        lanes
            .into_iter()
            .take(used)
            .map(start)
            .collect::<Result<_, _>>()
            .map_err(StoreError::io("start threads for", &self.root))
    }

    /// Returns the collections that take background work.
    fn all(&self) -> Vec<Arc<Collection>> {
        let mut all = self.collections.all();
        all.retain(|collection| !collection.is_halted());
        all
    }

    fn flush_step(&self) -> bool {
        let mut collections = self.all();
        let memory = |c: &Arc<Collection>| c.shared.memory.load(Ordering::Acquire);
        // Largest first: one large flush frees more memory per file and sync than many small ones.
        collections.sort_by_key(|c| std::cmp::Reverse(memory(c)));
        // If all together exceed the limit, the largest is flushed first, even if it is small. None of them need exceed
        // a limit on its own.
        let all = &self.common.memory_all;
        let mut short = all.bytes() > self.common.options.memory_bytes / 2;
        let full = all.bytes() >= self.common.options.memory_bytes;
        let mut worked = false;
        for collection in collections {
            // Only one forced flush per pass: it may be enough, and the next pass measures again. One that does not run,
            // or fails, leaves its turn to the next collection. No forced flush if the large ones belong to another
            // store that shares the memory, until there is no room at all. That store may be unable to flush.
            let bytes = u64::try_from(memory(&collection)).unwrap_or(0);
            let force = short && (all.is_large(bytes) || full && bytes > 0);
            // Retention before the flush, so that expired events are not written to a segment first.
            worked |= self.attempt(&collection, "retention", || collection.maintain_retention());
            let flushed = self.attempt(&collection, "flush", || collection.maintain_flush(force));
            short &= !(force && flushed);
            // Under a name of its own: its pause after a panic must not hold up flushes.
            worked |= flushed;
            worked |= self.attempt(&collection, "merge in memory", || collection.maintain_runs());
        }
        worked
    }

    fn open_step(&self) -> bool {
        self.open_due() > 0
    }

    fn merge_step(&self) -> bool {
        let mut worked = false;
        for collection in self.all() {
            // Merges first: archives of their inputs would be wasted. Under names of their own: the pause of one after
            // a panic must not hold up the other.
            worked |= self.attempt(&collection, "merge", || collection.maintain_merges())
                || self.attempt(&collection, "repair or archive", || collection.maintain_archives());
        }
        // On its own: its pause after a panic must not hold up merges.
        self.guard("clean-up", || {
            self.trim_serving();
            false
        });
        worked
    }

    /// Runs work that belongs to no collection. After a panic, which is logged and counted, the work pauses.
    fn guard(&self, what: &'static str, work: impl FnOnce() -> bool) -> bool {
        let clock = &self.common.seams.clock;
        if !self.panics.may_run(what, clock.elapsed()) {
            return false;
        }
        contained_by_store(what, || Ok(work())).unwrap_or_else(|error| {
            let pause_s = self.panics.begin_pause(what, clock.elapsed()).as_secs();
            tracing::error!(%error, pause_s, "a {what} met a fault of the program and will be tried again");
            false
        })
    }

    pub(super) fn trim_serving(&self) {
        let collections = self.all();
        let views: Vec<_> = collections.iter().flat_map(|c| c.shared.state.load().views.to_vec()).collect();
        let (mut total, mut rows) = (0, Vec::new());
        for segment in views.iter().filter_map(|view| view.part.segment()) {
            let archived = segment.archive().is_some();
            // The index of an archived segment is served as well and always needed: the floor of the total.
            total += if archived { segment.index.bytes } else { 0 };
            let Some((bytes, used)) = segment.rows_held() else { continue };
            total += bytes;
            if archived && !segment.is_archive_damaged() {
                rows.push((used, bytes, segment));
            }
        }
        rows.sort_by_key(|(used, _, _)| *used);
        for (_, bytes, segment) in rows {
            if total <= self.common.options.serving_bytes {
                break;
            }
            // The archive serves these rows from now on; reads in progress keep the file through their own reference.
            segment.drop_rows();
            total -= bytes;
        }
        // Files doomed above are deleted outside the partitions' locks.
        collections.iter().for_each(|collection| collection.remove_obsolete());
        if self.common.read_only {
            return;
        }
        self.common.storage.tend();
        collections.iter().for_each(|collection| {
            collection.shared.horizon.pin(self.common.storage.pinned(&collection.shared.dir));
        });
    }

    fn attempt(&self, collection: &Collection, what: &'static str, job: impl Fn() -> Result<bool, StoreError>) -> bool {
        let clock = &self.common.seams.clock;
        if !collection.panics.may_run(what, clock.elapsed()) {
            return false;
        }
        let mut result = Ok(false);
        match self.common.background.get() {
            Some(background) => {
                background.run(collection.tenant(), &mut || result = collection.contained(what, &job));
            }
            None => result = collection.contained(what, &job),
        }
        match result {
            Ok(worked) => worked,
            Err(StoreError::Closed) => false,
            // What halted it has said so, and it is not tried again.
            Err(StoreError::Internal { .. }) if collection.is_halted() => false,
            Err(e @ StoreError::Internal { .. }) => {
                let pause = collection.panics.begin_pause(what, clock.elapsed());
                let pause_s = pause.as_secs();
                tracing::error!(collection = %collection.name(), error = %e, pause_s, "a {what} met a fault of the program and will be tried again");
                // Other collections and jobs go on meanwhile.
                false
            }
            Err(e) => {
                tracing::error!(collection = %collection.name(), error = %e, "a {what} failed and will be tried again");
                // Writers waiting for room must not turn this into a busy loop, so only the end cuts the pause short.
                for _ in 0..AFTER_FAILURE_STEPS {
                    if !self.closed.load(Ordering::Acquire) {
                        clock.sleep(AFTER_FAILURE / AFTER_FAILURE_STEPS);
                    }
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::seams::{Clock as _, ManualClock, MemoryDisk, PartitionStorage, Seams, SeededRandom, Storage};
    use crate::{Collection, DiskStorage, Options, Settings, Store, Write, store_panics};
    use meridian_model::builder::Value;
    use meridian_model::{BatchBuilder, Field, FieldType, Schema};
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    /// A storage whose deferred work panics the first times, and whose partitions of the collection `bad` do if it is
    /// harmful.
    #[derive(Debug)]
    struct FaultyStorage {
        of: DiskStorage,
        tended: AtomicU64,
        called: Sender<()>,
        is_harmful: bool,
    }

    impl Storage for FaultyStorage {
        fn partition(&self, dir: &Path, log_file_bytes: u64) -> PartitionStorage {
            assert!(!self.is_harmful || dir.iter().all(|part| part != "bad"), "on purpose");
            self.of.partition(dir, log_file_bytes)
        }

        fn tend(&self) {
            let _ = self.called.send(());
            assert!(self.tended.fetch_add(1, Ordering::Relaxed) > 2, "on purpose");
        }
    }

    #[test]
    fn a_thread_goes_on_after_a_panic_of_work_for_the_whole_store() {
        let (clock, (called, calls)) = (Arc::new(ManualClock::new(0)), channel());
        let random = Arc::new(SeededRandom::new(1));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), random };
        let storage = |disk| -> Arc<dyn Storage> {
            Arc::new(FaultyStorage { of: DiskStorage(disk), tended: AtomicU64::new(0), called, is_harmful: false })
        };
        let before = store_panics();
        let store = Store::open_over(Options::at("/data"), seams, storage).unwrap();
        // Three that panic, and one after them.
        for n in 0..4 {
            // The pause begins at some time after the call, so the clock goes on until it is over.
            let is_called = (0..600).any(|_| {
                clock.advance(2_000_000);
                calls.recv_timeout(Duration::from_millis(100)).is_ok()
            });
            assert!(is_called, "call {n}");
        }
        assert!(store_panics() >= before + 3);
        store.close().unwrap();
    }

    #[test]
    fn a_collection_whose_opening_panics_is_set_aside_and_others_are_served() {
        let (clock, random) = (Arc::new(ManualClock::new(0)), Arc::new(SeededRandom::new(1)));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock, random };
        let open = |is_harmful| {
            let (called, _) = channel();
            let storage = |disk| -> Arc<dyn Storage> {
                Arc::new(FaultyStorage { of: DiskStorage(disk), tended: AtomicU64::new(0), called, is_harmful })
            };
            let options = Options { background: false, ..Options::at("/data") };
            Store::open_over(options, seams.clone(), storage).unwrap()
        };
        let store = open(false);
        for name in ["bad", "good"] {
            store.create("t", name, Schema::default(), Settings::default()).unwrap();
        }
        store.close().unwrap();
        drop(store);
        let before = store_panics();
        let store = open(true);
        assert!(store.collection("t", "good").is_some() && store.collection("t", "bad").is_none());
        let damaged = store.why_damaged("t", "bad").unwrap().to_string();
        assert!(damaged.contains("a recovery ended by a fault of the program: on purpose; restart"), "{damaged}");
        assert!(store_panics() > before);
        store.close().unwrap();
        drop(store);
        // Nothing of it is lost.
        assert!(open(false).collection("t", "bad").is_some());
    }

    /// Opens a store in memory with collections of these names.
    fn store_with<const N: usize>(
        clock: &Arc<ManualClock>,
        memory_bytes: u64,
        names: [&str; N],
    ) -> (Store, [Arc<Collection>; N]) {
        let random = Arc::new(SeededRandom::new(1));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), random };
        let options = Options { background: false, memory_bytes, archive_rows_min: 1, ..Options::at("/data") };
        let store = Store::open(options, seams).unwrap();
        let n = Field { name: "n".into(), kind: FieldType::Int, required: true, title: None };
        let schema = Schema { fields: vec![n], ..Schema::default() };
        let made = names.map(|name| store.create("t", name, schema.clone(), Settings::default()).unwrap());
        (store, made)
    }

    fn write(c: &Collection, events: i64) {
        let mut builder = BatchBuilder::new(c.schema());
        for n in 0..events {
            builder.set(0, Value::Int(n)).unwrap();
            builder.end_event().unwrap();
        }
        c.write(Write::new(builder.finish().unwrap())).unwrap();
    }

    #[test]
    fn a_flush_in_its_pause_leaves_the_forced_one_to_another_collection() {
        let clock = Arc::new(ManualClock::new(0));
        let (_store, [large]) = store_with(&clock, 1 << 30, ["large"]);
        write(&large, 10_000);
        let limit = large.stats().memory_bytes + 1;
        let (store, [large, small]) = store_with(&clock, limit, ["large", "small"]);
        write(&large, 10_000);
        write(&small, 10);
        assert!(store.inner.common.memory_all.bytes() > limit);
        assert!(!store.inner.attempt(&large, "flush", || panic!("on purpose")));
        assert!(store.inner.flush_step());
        assert_eq!((large.stats().segments, small.stats().segments), (0, 1));
        clock.advance(2_000_000);
        assert!(store.inner.flush_step());
        assert_eq!(large.stats().segments, 1);
    }

    #[test]
    fn flushes_and_merges_in_memory_have_pauses_of_their_own() {
        let clock = Arc::new(ManualClock::new(0));
        let (store, [c]) = store_with(&clock, 1 << 30, ["c"]);
        let counts = || (c.stats().runs, c.stats().segments);
        write(&c, 10);
        write(&c, 10);
        assert_eq!(counts(), (2, 0));
        assert!(!store.inner.attempt(&c, "flush", || panic!("on purpose")));
        // Long enough without a write for the merge, and not for the flush.
        clock.advance(1_500_000);
        assert!(store.inner.flush_step());
        assert_eq!(counts(), (1, 0));
        write(&c, 10);
        assert!(!store.inner.attempt(&c, "merge in memory", || panic!("on purpose")));
        clock.advance(1_500_000);
        c.core.lock().flush_wanted = true;
        assert!(store.inner.flush_step());
        assert_eq!(counts(), (0, 1));
    }

    #[test]
    fn merges_and_archives_have_pauses_of_their_own() {
        let clock = Arc::new(ManualClock::new(0));
        let (store, [c]) = store_with(&clock, 1 << 30, ["c"]);
        for _ in 0..5 {
            write(&c, 10);
            c.flush().unwrap();
        }
        // Quiet enough for archives.
        clock.advance(10_000_000);
        assert!(!store.inner.attempt(&c, "repair or archive", || panic!("on purpose")));
        assert!(store.inner.merge_step() && !store.inner.merge_step());
        assert_eq!((c.stats().segments, c.stats().rest_bytes), (1, 0));
        clock.advance(2_000_000);
        assert!(!store.inner.attempt(&c, "merge", || panic!("on purpose")));
        assert!(store.inner.merge_step());
        assert!(c.stats().rest_bytes > 0);
    }

    #[test]
    fn a_job_that_panics_is_counted_and_tried_again_ever_more_rarely() {
        let clock = Arc::new(ManualClock::new(0));
        let random = Arc::new(SeededRandom::new(1));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), random };
        let store = Store::open(Options { background: false, ..Options::at("/data") }, seams).unwrap();
        let make = |name: &str| store.create("t", name, Schema::default(), Settings::default()).unwrap();
        let (bad, good) = (make("bad"), make("good"));
        let panics = Cell::new(0);
        let look = || {
            store.inner.attempt(&bad, "merge", || {
                panics.set(panics.get() + 1);
                panic!("on purpose")
            })
        };
        let begun = clock.elapsed();
        // As often as the threads look, for an hour: 2 s, 4 s and so on up to five minutes.
        for _ in 0..7_200 {
            assert!(!look());
            clock.advance(500_000);
        }
        assert!((15..=25).contains(&panics.get()), "{}", panics.get());
        assert_eq!(bad.stats().job_panics, panics.get());
        // It holds up neither another job of the collection nor other collections.
        assert!(store.inner.attempt(&bad, "flush", || Ok(true)) && store.inner.attempt(&good, "merge", || Ok(true)));
        assert_eq!((clock.elapsed() - begun, good.stats().job_panics), (3_600_000_000, 0));
        // After a quiet time its pauses are short again.
        clock.advance(3_600_000_000);
        let before = panics.get();
        look();
        clock.advance(2_000_000);
        look();
        assert_eq!(panics.get(), before + 2);
    }
}
