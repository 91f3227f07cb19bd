//! The tasks of saved searches, from their start to their stop.

use super::clean_state::{self, CleanState, SearchState};
use super::follow;
use super::matcher::listen;
use super::poll;
use super::registry::SavedSearches;
use super::search::SavedSearch;
use meridian_admission::identity::DEFAULT_TENANT;
use meridian_backend::StoreError;
use meridian_federation::supervise;
use meridian_model::Invalid;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::{Duration, Instant};

/// Min time between two writes of the checkpoint. They take at most one twentieth of the time.
const EVERY: Duration = Duration::from_secs(1);
const SHARE: u32 = 20;

impl SavedSearches {
    /// Starts matching, polling and sending; does nothing if they run. Missed events are matched first.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn run(self: &Arc<SavedSearches>) -> std::io::Result<()> {
        if !self.settings.enabled {
            return Ok(());
        }
        let mut registry = self.registry.lock();
        // A gateway may be assigned them before it serves.
        if registry.running {
            return Ok(());
        }
        let (event_queue, weak) = (self.event_queue.clone(), Arc::downgrade(self));
        let matcher =
            std::thread::Builder::new().name("meridian-saved".to_owned()).spawn(move || listen(&event_queue, &weak))?;
        // Under the lock, so that a saved search created now is either in the loop below or starts its own sender.
        registry.running = true;
        registry.matcher = Some(matcher);
        // Copying holds a weak reference: it may wait for a blocking thread long after the server is gone.
        let (polling, keeping, copying) = (self.clone(), self.clone(), Arc::downgrade(self));
        tokio::task::spawn_blocking(move || copying.upgrade().inspect(|saved| saved.copy_records()));
        registry.tasks.push(tokio::spawn(supervise("poller", move || poll::run(polling.clone()))).abort_handle());
        registry.tasks.push(tokio::spawn(supervise("checkpoint", move || keep(keeping.clone()))).abort_handle());
        if self.records.is_shared() {
            let following = self.clone();
            registry
                .tasks
                .push(tokio::spawn(supervise("follower", move || follow::run(following.clone()))).abort_handle());
        }
        for entry in registry.all.values_mut().filter(|entry| entry.search.webhook_state.is_some()) {
            entry.sender = Some(self.sender(&entry.search));
        }
        Ok(())
    }

    /// Ends readers, because the server stops. Events that still arrive are matched and kept.
    pub fn close(&self) {
        let mut registry = self.registry.lock();
        registry.running = false;
        for task in registry.tasks.drain(..) {
            task.abort();
        }
        for entry in registry.all.values_mut() {
            if let Some(sender) = entry.sender.take() {
                sender.abort();
            }
            entry.search.outbox.close();
        }
    }

    /// Ends readers, and takes no more events, because the saved searches are assigned to another process. Writes
    /// nothing.
    pub(super) fn abandon(&self) {
        self.close();
        self.event_queue.stop();
    }

    /// Processes the remaining events and writes the clean state. Blocks.
    ///
    /// # Errors
    /// Errors of the disk; the next start is then like one after a crash.
    pub fn stop(&self) -> Result<(), StoreError> {
        self.close();
        // After the readers have ended: what the matcher still sends stays in the outboxes and is written below.
        self.event_queue.stop();
        let matcher = self.registry.lock().matcher.take();
        if let Some(matcher) = matcher {
            // A panic was logged where it happened.
            let _ = matcher.join();
        }
        let one = |search: &Arc<SavedSearch>| {
            let (first, packets) = search.outbox.kept();
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let one = SearchState {
                first,
                packets: packets.iter().map(|packet| packet.to_string()).collect(),
                origins: search.untaken().iter().cloned().collect(),
                results: load(&search.counts.results),
                result_packets: load(&search.counts.result_packets),
                webhook_state: search.webhook_state.as_ref().map(|webhook_state| webhook_state.lock().clone()),
            };
            (search.id.clone(), one)
        };
        let searches: BTreeMap<String, SearchState> =
            self.registry.lock().all.values().map(|entry| one(&entry.search)).collect();
        if searches.is_empty() {
            return Ok(());
        }
        let mut objects_of = self.fences.lock().list();
        let objects = objects_of.remove(DEFAULT_TENANT).unwrap_or_default();
        let kept = CleanState { searches, objects, objects_of };
        let bytes = serde_json::to_vec(&kept).map_err(|e| Invalid::new(e.to_string()))?;
        // Before the checkpoint, which declares it: after a crash in between, packets are sent twice rather than lost.
        self.records.put(clean_state::RECORD, &bytes)?;
        self.write_checkpoint(true)
    }

    /// Writes the checkpoint if it has changed; `last` as in [`super::progress::Progress::write`].
    pub(super) fn write_checkpoint(&self, last: bool) -> Result<(), StoreError> {
        self.progress.write(self.records.as_ref(), self.backend.as_ref(), last)
    }
}

/// Writes the checkpoint regularly, until dropped.
async fn keep(saved: Arc<SavedSearches>) {
    let (mut pause, mut failing) = (EVERY, false);
    loop {
        tokio::time::sleep(pause).await;
        let (writing, begun) = (saved.clone(), Instant::now());
        let written = tokio::task::spawn_blocking(move || writing.write_checkpoint(false)).await;
        // A slow disk, or a hundred thousand saved searches, must not keep this task writing all the time.
        pause = EVERY.max(begun.elapsed() * SHARE);
        let failed = written.ok().and_then(Result::err);
        if let Some(error) = failed.as_ref().filter(|_| !failing) {
            tracing::error!(%error, "the checkpoint of saved searches cannot be written: more events are reported twice after a crash");
        }
        failing = failed.is_some();
    }
}
