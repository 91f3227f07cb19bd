//! Snapshots that scan servers showed, told to the owner of their partition.
//!
//! A page token of an eventual read names a snapshot that the owner never showed. It must stay for as long after each page as one of the owner's,
//! whatever becomes of the scan server and of this gateway. So each use is told to the owner, and counts there as a use of its own.
//!
//! No request waits for that. Until the owner is told, the pin of the scan server holds the snapshot. While the data changes owners, the next one
//! holds everything ([`meridian_model::policy::horizon`]).

use super::calls::one;
use super::link::Link;
use crate::wire::call::{Do, SnapshotUse};
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use meridian_model::Seq;
use meridian_model::policy::horizon::Uses;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How long uses are collected before they are told together. Shorter than the second by which the owner keeps a snapshot longer.
const COLLECT: Duration = Duration::from_millis(500);
/// Most partitions of which something waits to be told.
const WAITING_MAX: usize = 1 << 16;
/// Most partitions of one call.
const TOLD_MAX: usize = 1_024;

/// The uses that an owner was not told of yet.
#[derive(Debug)]
pub(super) struct SnapshotUses {
    waiting: Mutex<Uses<CollectionRef>>,
    noted: Notify,
}

/// A snapshot of a partition that is shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) uses: Arc<SnapshotUses>,
    pub(super) place: CollectionRef,
    pub(super) seq: Seq,
}

impl Shown {
    /// Notes that it is shown now.
    pub(super) fn note(&self) {
        self.uses.note(self.place.clone(), self.seq.0);
    }
}

impl SnapshotUses {
    /// None yet.
    pub(super) fn new() -> Arc<SnapshotUses> {
        Arc::new(SnapshotUses { waiting: Mutex::new(Uses::new(WAITING_MAX)), noted: Notify::new() })
    }

    fn note(&self, place: CollectionRef, seq: u64) {
        if !self.waiting.lock().note(place, seq) {
            tracing::warn!("snapshots of more than {WAITING_MAX} partitions are in use: the owner is not told of all");
        }
        self.noted.notify_one();
    }

    /// Tells the owner, for as long as it runs.
    pub(super) async fn tell(self: Arc<Self>, link: Arc<Link>) {
        loop {
            self.noted.notified().await;
            tokio::time::sleep(COLLECT).await;
            loop {
                let told = self.waiting.lock().take(TOLD_MAX);
                if told.is_empty() {
                    break;
                }
                let uses = told.iter().map(|(place, seq)| SnapshotUse { place: place.clone(), seq: *seq }).collect();
                let done = link.act(Do::Used { uses }).await.and_then(|bodies| one::<()>(&bodies));
                match done {
                    Ok(()) => {}
                    // An owner of the version before does not know the call, and there is nothing to repeat.
                    Err(fault @ Fault::Internal(_)) => {
                        tracing::debug!(?fault, "the owner was not told which snapshots are in use");
                    }
                    Err(_) => {
                        // The next owner is told, or this one again.
                        told.into_iter().for_each(|(place, seq)| self.note(place, seq));
                        break;
                    }
                }
            }
        }
    }
}
