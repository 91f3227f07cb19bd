//! Upkeep of a collection: retention, flushes, merges and shutdown.

use super::Collection;
use crate::error::StoreError;
use crate::expiry::{self, EXPIRY_EVERY_US, Expiry, ExpiryOutcome};
use crate::ingest::partition::{CommittedWrite, Partition, Request};
use crate::ingest::stage::Change;
use crate::maintenance::install::install;
use crate::maintenance::job::{Job, Output};
use crate::options::Settings;
use crate::panics::contained;
use crate::part::removal::delete;
use crate::seams::wait;
use meridian_model::Invalid;
use meridian_observe as observe;
use parking_lot::Mutex;
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// A flush or merge in progress: chosen, executed, then installed. [`Collection::maintain`] does all three in one call.
pub struct Work {
    job: Job,
    output: Option<Result<Output, StoreError>>,
}

impl Work {
    pub(crate) fn of(job: Job) -> Work {
        Work { job, output: None }
    }
}

impl Collection {
    /// Removes the events that are past the collection's retention; `None` if there are none.
    pub fn expire(&self) -> Result<Option<ExpiryOutcome>, StoreError> {
        let state = self.state();
        if state.refuses.is_some() {
            return Ok(None);
        }
        let Some(before) = expiry::line(&state.settings, &state.history, self.shared.seams.clock.now()) else {
            return Ok(None);
        };
        let mut found = HashMap::new();
        for view in state.history.iter() {
            // Rows are found here, outside the partition's lock, as this may read from disk. The commit checks them
            // against later deaths.
            found.insert(view.part.number, expiry::expired_rows(&state.context, &view.part, &view.dead, before)?);
        }
        if found.values().all(RoaringBitmap::is_empty) {
            return Ok(None);
        }
        // Expiry goes through the queue as writes do: it has a position, and the log replays it.
        let request = Request { change: Change::Expire(Expiry { before, found }), key: None };
        let deadline = wait::deadline(self.shared.options.write_wait);
        match self.commit(request, 1024, deadline) {
            Ok(CommittedWrite::Stored(outcome)) => {
                self.shared.counters.add_expired(outcome.killed);
                Ok(Some(ExpiryOutcome { before, expired: outcome.killed, position: outcome.position }))
            }
            Ok(CommittedWrite::Duplicate(_)) => Ok(None),
            Err(_) if self.stop.load(Ordering::Acquire) => Err(StoreError::Closed),
            Err(e) => Err(Invalid::new(format!("events past the retention stay for now: {e}")).into()),
        }
    }

    /// Returns how many more events would expire at the next check with these settings than with the current ones.
    /// Reads the parts that straddle the cutoff. Events written meanwhile are not counted.
    pub fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError> {
        let (state, now) = (self.state(), self.shared.seams.clock.now());
        let line = |settings: &Settings| expiry::line(settings, &state.history, now);
        let (before, after) = (line(&state.settings), line(settings));
        let Some(after) = after.filter(|after| before.is_none_or(|before| before < *after)) else { return Ok(0) };
        let mut count = 0;
        for view in state.history.iter() {
            let gone = |line| expiry::expired_rows(&state.context, &view.part, &view.dead, line).map(|rows| rows.len());
            count += gone(after)? - before.map_or(Ok(0), gone)?;
        }
        Ok(count)
    }

    /// Runs [`Collection::expire`] if a check is due; returns whether something was removed.
    pub fn maintain_retention(&self) -> Result<bool, StoreError> {
        let settings = &self.state().settings;
        let now = self.shared.seams.clock.elapsed();
        if (settings.retention.is_none() && settings.retention_bytes.is_none())
            || now < self.expiry_due.load(Ordering::Acquire)
        {
            return Ok(false);
        }
        // Set before the work: a failing expiry is retried at the next interval, not in a loop.
        self.expiry_due.store(now + EXPIRY_EVERY_US, Ordering::Release);
        Ok(self.expire()?.is_some())
    }

    /// Moves all memory trees into segments, and waits until that is done.
    pub fn flush(&self) -> Result<(), StoreError> {
        // Two concurrent flushes would each take a part of the memory trees; this one must take all.
        let _lane = self.memory_lane.lock();
        let job = {
            let mut core = self.core.lock();
            core.flush_wanted = true;
            core.next_memory_job(true)
        };
        match job {
            Some(job) => self.work(Work::of(job)),
            None => Ok(()),
        }
    }

    /// Runs the most urgent flush or merge of memory trees. Returns whether there was one. For simulators and tests.
    pub fn maintain_memory(&self, flush: bool) -> Result<bool, StoreError> {
        self.maintain_in(&self.memory_lane, |core| core.next_memory_job(flush))
    }

    /// Runs a flush, if one is due or `flush` asks for it. Returns whether there was one.
    pub(crate) fn maintain_flush(&self, flush: bool) -> Result<bool, StoreError> {
        self.maintain_in(&self.memory_lane, |core| core.next_flush(flush))
    }

    /// Runs the most urgent merge of memory trees. Returns whether there was one.
    pub(crate) fn maintain_runs(&self) -> Result<bool, StoreError> {
        self.maintain_in(&self.memory_lane, Partition::next_run_merge)
    }

    /// Runs the most urgent merge, repair or archive of segments. Returns whether there was one. For simulators and
    /// tests.
    pub fn maintain_segments(&self) -> Result<bool, StoreError> {
        self.maintain_in(&self.segment_lane, Partition::next_segment_job)
    }

    /// Runs the most urgent merge of segments. Returns whether there was one.
    pub(crate) fn maintain_merges(&self) -> Result<bool, StoreError> {
        self.maintain_in(&self.segment_lane, Partition::next_segment_merge)
    }

    /// Runs the most urgent repair or archive of a segment. Returns whether there was one.
    pub(crate) fn maintain_archives(&self) -> Result<bool, StoreError> {
        self.maintain_in(&self.segment_lane, Partition::next_repair_or_archive)
    }

    /// Runs what is chosen in a lane. Returns whether there was something.
    fn maintain_in(
        &self,
        lane: &Mutex<()>,
        choose: impl FnOnce(&mut Partition) -> Option<Job>,
    ) -> Result<bool, StoreError> {
        // Does not wait: the thread serves all collections, and a held lane means that the work is being done.
        let Some(_lane) = lane.try_lock() else { return Ok(false) };
        self.remove_obsolete();
        let job = choose(&mut self.core.lock());
        job.map_or(Ok(false), |job| self.work(Work::of(job)).map(|()| true))
    }

    /// Chooses the most urgent flush or merge of memory trees without running it; [`Collection::run`] and
    /// [`Collection::install`] do that. So a simulator can interleave writes, as threads would.
    pub fn begin_memory(&self, flush: bool) -> Option<Work> {
        self.remove_obsolete();
        self.core.lock().next_memory_job(flush).map(Work::of)
    }

    /// Chooses the most urgent merge of segments without running it.
    pub fn begin_segments(&self) -> Option<Work> {
        self.remove_obsolete();
        self.core.lock().next_segment_job().map(Work::of)
    }

    /// Runs background work, and turns a panic into an error, which is counted: its thread serves all collections. A
    /// panic under the partition's lock has halted the collection.
    pub(crate) fn contained<T>(
        &self,
        what: &'static str,
        run: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        contained(what, run, || self.shared.counters.add_job_panics(1))
    }

    /// Returns whether a panic has interrupted a change: the collection takes no background work either.
    pub(crate) fn is_halted(&self) -> bool {
        self.shared.halted.load(Ordering::Acquire)
    }

    /// Executes the job. Readers and writers continue meanwhile.
    pub fn run(&self, work: &mut Work) {
        // Numbers first: no file of this process may have a name that another process has chosen.
        let mut span = observe::span(work.job.work.name());
        span.set("meridian.tenant", self.shared.tenant.clone());
        span.set("events", work.job.inputs.iter().map(|entry| u64::from(entry.part.rows)).sum::<u64>());
        let numbered = if work.job.writes_files() { self.claim_numbers() } else { Ok(()) };
        // It works on copies that nothing shares, and writes files that nothing names yet, so a panic costs its own work
        // alone. Its parts are frozen until the outcome is installed, also that of a panic.
        let job = || self.contained(work.job.work.name(), || work.job.run(&self.shared, &self.stop));
        let output = numbered.and_then(|()| span.run(job));
        if output.is_err() {
            span.fail();
        }
        work.output = Some(output);
    }

    /// Claims an epoch of file numbers, once.
    fn claim_numbers(&self) -> Result<(), StoreError> {
        // Looked at first: the first claim commits a manifest, and would wait for another one.
        if self.core.lock().claimed && !self.is_halted() {
            return Ok(());
        }
        self.core.lock_to_commit().claim_or_stop()
    }

    /// Deletes what no manifest names any more, once no snapshot of this process needs it.
    pub(crate) fn remove_obsolete(&self) {
        let names = self.core.lock().take_removable();
        names.iter().for_each(|name| delete(self.shared.objects.as_ref(), name));
    }

    /// Installs the outcome; on an error nothing changes.
    pub fn install(&self, mut work: Work) -> Result<(), StoreError> {
        if work.output.is_none() {
            self.run(&mut work);
        }
        let output = work.output.take().unwrap_or(Err(StoreError::Closed));
        let result = install(&self.core, work.job, output);
        // The job has released its inputs: delete what only it pinned.
        self.remove_obsolete();
        self.wake.wake();
        // Under the lock of writers that wait for room: a writer between its check and its wait would miss the
        // notification.
        let _lock = self.room_lock.lock();
        self.room.notify_all();
        result
    }

    /// Removes events past the retention, flushes and merges until nothing is left to do.
    pub fn maintain(&self) -> Result<(), StoreError> {
        while self.maintain_retention()? || self.maintain_memory(false)? || self.maintain_segments()? {}
        Ok(())
    }

    pub(crate) fn work(&self, mut work: Work) -> Result<(), StoreError> {
        self.run(&mut work);
        self.install(work)
    }

    /// Stops accepting work; running jobs end early.
    pub(crate) fn close(&self, flush: bool) -> Result<(), StoreError> {
        let settle = flush && self.is_durable() && self.state().refuses.is_none();
        let flushed = if settle { self.flush() } else { Ok(()) };
        // Only now, so that the flush above is not stopped.
        self.stop.store(true, Ordering::Release);
        // Running jobs are done once their lanes and the core can be locked.
        drop(self.memory_lane.lock());
        drop(self.segment_lane.lock());
        // Released, or the total would count a dropped collection forever.
        self.shared.release_memory();
        self.remove_obsolete();
        // Events that were not flushed are in the log. Its seal records that none is missing.
        let sealed = if settle { self.core.lock().log.as_mut().map_or(Ok(()), |log| log.seal()) } else { Ok(()) };
        flushed.and(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::{Clock, ManualClock, MemoryDisk, Seams, SeededRandom};
    use crate::{Options, Settings, Store, Write};
    use meridian_model::{BatchBuilder, Schema};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    /// A clock that panics while the trap is set.
    #[derive(Debug)]
    struct Trap {
        clock: ManualClock,
        is_set: AtomicBool,
    }

    impl Clock for Trap {
        fn now(&self) -> i64 {
            self.clock.now()
        }

        fn elapsed(&self) -> i64 {
            assert!(!self.is_set.load(Ordering::SeqCst), "into the trap");
            self.clock.elapsed()
        }

        fn sleep(&self, time: Duration) {
            self.clock.sleep(time);
        }
    }

    #[test]
    fn a_job_that_panics_is_an_error_and_holds_no_part() {
        let trap = Arc::new(Trap { clock: ManualClock::new(0), is_set: AtomicBool::new(false) });
        let random = Arc::new(SeededRandom::new(1));
        let seams = Seams { disk: Arc::new(MemoryDisk::new()), clock: trap.clone(), random };
        let store = Store::open(Options { background: false, ..Options::at("/data") }, seams).unwrap();
        let c = store.create("t", "c", Schema::default(), Settings::default()).unwrap();
        let mut builder = BatchBuilder::new(c.schema());
        builder.end_event().unwrap();
        c.write(Write::new(builder.finish().unwrap())).unwrap();
        let mut work = c.begin_memory(true).unwrap();
        trap.is_set.store(true, Ordering::SeqCst);
        c.run(&mut work);
        trap.is_set.store(false, Ordering::SeqCst);
        let error = c.install(work).unwrap_err();
        assert!(error.to_string().contains("into the trap"), "{error}");
        assert_eq!(c.stats().job_panics, 1);
        assert!(c.core.lock().frozen.is_empty());
        c.flush().unwrap();
        assert_eq!((c.core.lock().segments.len(), c.stats().events), (1, 1));
    }
}
