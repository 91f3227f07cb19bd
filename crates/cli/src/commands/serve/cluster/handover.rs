//! Planned handover: an owner gives the lease of a group to another process. The reason is an operator's order, the
//! placement, or a stop.
//!
//! While it still owns, it first flushes the partitions, so that the next owner has little log to replay. Then it names
//! the next owner in the lease. That one now checks the lease often, and gateways know that a refusal means a change.
//! Last, it gives up the lease. Writes in progress need not end first. A write whose group is in the log before the
//! next owner's fence is acknowledged. Any other was not stored, and its gateway resends it. None of this is needed for
//! safety: if it breaks off, the lease passes as after a crash.

use super::blocking;
use super::lease_holder::LeaseHolder;
use super::process::Process;
use crate::failure::Failure;
use crate::output::say;
use meridian_model::policy::groups::Group;
use meridian_store::Store;
use meridian_store::bucket::{Node, lease_of};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Asks the holder of a lease to pass it on.
pub(super) struct HandoverRequest {
    /// The epoch in which it holds the lease; `None`: any.
    pub(super) epoch: Option<u64>,
    /// The process that gets the lease; `None`: the best one.
    pub(super) to: Option<u64>,
    /// Receives the outcome.
    pub(super) done: oneshot::Sender<Result<String, String>>,
}

impl HandoverRequest {
    /// Refuses, on behalf of a process that does not hold the lease.
    pub(super) fn refuse(self) {
        // The sender may have gone.
        let _ = self.done.send(Err("it does not hold the lease".to_owned()));
    }
}

/// An owner of a group that has held its lease since this epoch.
pub(super) struct Holder<'a> {
    pub(super) process: &'a Process,
    pub(super) group: Group,
    pub(super) lease_holder: &'a LeaseHolder,
    pub(super) store: &'a Arc<Store>,
    pub(super) epoch: u64,
}

impl Holder<'_> {
    /// Passes the lease on as requested; returns true on success.
    pub(super) async fn obey(&self, request: HandoverRequest) -> bool {
        let passed = match request.epoch {
            Some(epoch) if epoch != self.epoch => {
                Err(format!("it holds the lease in epoch {}, and the order was for epoch {epoch}", self.epoch))
            }
            _ => self.pass_to(request.to).await,
        };
        let is_passed = passed.is_ok();
        let _ = request.done.send(passed);
        is_passed
    }

    /// Passes the lease on because this process stops. Returns true if the lease was handed over; false if there is no
    /// standby.
    pub(super) async fn leave(&self) -> bool {
        self.lease_holder.withdraw(true);
        match self.pass_to(None).await {
            Ok(_) => true,
            Err(why) => {
                tracing::info!("{} are closed, and not passed on: {why}", self.what());
                false
            }
        }
    }

    /// Passes the lease to the process with this number, or to the best one.
    async fn pass_to(&self, to: Option<u64>) -> Result<String, String> {
        let heir = |wanted| self.process.member.heir(self.group, wanted);
        let first = heir(to)?;
        self.flush().await.map_err(|failure| failure.to_string())?;
        // Selected again, because flushing takes time.
        let Node { node, process, .. } = heir(to.or(Some(first.process))).or_else(|_| heir(to))?;
        match self.lease_holder.pass_on(self.epoch, process).await {
            Ok(true) => {
                say(&format!("passed {} on to {node}", self.what()));
                Ok(format!("passed the lease {:?} on to {node}", lease_of(self.group)))
            }
            Ok(false) => Err("it lost the lease".to_owned()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Returns what the lease covers, for messages.
    fn what(&self) -> String {
        match self.group.is_all() {
            true => "the collections".to_owned(),
            false => format!("the partitions of group {}", self.group.number()),
        }
    }

    async fn flush(&self) -> Result<(), Failure> {
        let store = self.store.clone();
        blocking("flushing the collections", move || {
            for collection in store.collections() {
                // The next owner replays from the log whatever could not be flushed.
                if let Err(error) = collection.flush() {
                    tracing::warn!(%error, collection = collection.name(), "a collection could not be flushed");
                }
            }
        })
        .await
    }
}
