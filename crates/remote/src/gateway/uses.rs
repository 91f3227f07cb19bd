//! Snapshots shown by scan servers, reported to the owner of their partition.
//!
//! A page token of an eventual read names a snapshot that the owner never showed. After each page it must be kept for
//! as long as one of the owner's, even if the scan server and this gateway die. So each use is reported to the owner,
//! and counts there as its own.
//!
//! No request waits for that. Until the report arrives, the scan server's pin holds the snapshot. While the data
//! changes owners, the next one holds everything ([`meridian_model::policy::horizon`]).

use super::calls::one;
use super::link::Link;
use crate::wire::call::{ActionCall, SnapshotUse};
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use meridian_model::Seq;
use meridian_model::policy::horizon::Uses;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How long uses are collected into one report. Shorter than the extra second for which the owner keeps a snapshot.
const COLLECT: Duration = Duration::from_millis(500);
/// Max partitions with an unreported use.
const WAITING_MAX: usize = 1 << 16;
/// Max partitions in one report.
const TOLD_MAX: usize = 1_024;

/// Uses not yet reported to an owner.
#[derive(Debug)]
pub(super) struct SnapshotUses {
    waiting: Mutex<Uses<CollectionRef>>,
    noted: Notify,
}

/// A snapshot of a partition that is being shown.
#[derive(Debug)]
pub(super) struct SnapshotGuard {
    pub(super) uses: Arc<SnapshotUses>,
    pub(super) place: CollectionRef,
    pub(super) seq: Seq,
}

impl SnapshotGuard {
    /// Records that it is shown now.
    pub(super) fn note(&self) {
        self.uses.note(self.place.clone(), self.seq.0);
    }
}

impl SnapshotUses {
    /// Starts empty.
    pub(super) fn new() -> Arc<SnapshotUses> {
        Arc::new(SnapshotUses { waiting: Mutex::new(Uses::new(WAITING_MAX)), noted: Notify::new() })
    }

    fn note(&self, place: CollectionRef, seq: u64) {
        if !self.waiting.lock().note(place, seq) {
            tracing::warn!("snapshots of more than {WAITING_MAX} partitions are in use: the owner is not told of all");
        }
        self.noted.notify_one();
    }

    /// Reports uses to the owner, until dropped.
    pub(super) async fn tell(self: Arc<Self>, link: Arc<Link>) {
        loop {
            self.noted.notified().await;
            // Uses of the meantime join the same report: a busy gateway sends about two a second, and not one for each
            // page.
            tokio::time::sleep(COLLECT).await;
            loop {
                let told = self.waiting.lock().take(TOLD_MAX);
                if told.is_empty() {
                    break;
                }
                let uses = told.iter().map(|(place, seq)| SnapshotUse { place: place.clone(), seq: *seq }).collect();
                let done = link.act(ActionCall::Used { uses }).await.and_then(|bodies| one::<()>(&bodies));
                if !self.settle(told, done) {
                    break;
                }
            }
        }
    }

    /// Handles the outcome of a report. Returns false if it has to be made again.
    fn settle(&self, told: Vec<(CollectionRef, u64)>, done: Result<(), Fault>) -> bool {
        match done {
            Ok(()) => true,
            // An owner of the previous version does not know the call, so there is nothing to retry. The log has this at
            // most once a second, as all messages.
            Err(fault @ Fault::Internal(_)) => {
                let partitions = told.len();
                tracing::warn!(
                    partitions,
                    ?fault,
                    "an owner does not keep what scan servers showed: page tokens of eventual reads may end early"
                );
                true
            }
            Err(_) => {
                // Reported again to the next owner, or to this one.
                told.into_iter().for_each(|(place, seq)| self.note(place, seq));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_owner_does_not_know_is_not_told_again_and_what_did_not_arrive_is() {
        let uses = SnapshotUses::new();
        let told = || vec![(CollectionRef::of("t", "ships", 1), 7)];
        assert!(uses.settle(told(), Ok(())));
        assert!(uses.settle(told(), Err(Fault::internal("an unknown call"))));
        assert!(uses.waiting.lock().take(9).is_empty());
        assert!(!uses.settle(told(), Err(Fault::Unavailable("it is gone".to_owned()))));
        assert_eq!(uses.waiting.lock().take(9), told());
    }
}
