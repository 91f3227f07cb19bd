//! An owner that gives the lease of a group to another process on purpose. An operator says so, another one should have it, or it stops.
//!
//! While it still owns, it first flushes the partitions, so that the next owner has little log to replay. Then it names the next owner in the
//! lease. So that one checks the lease often, and gateways know that a refusal means a change. Last, it gives up the lease. Writes under way
//! need not end before. A write whose group is in the log before the next owner's fence is acknowledged. Any other was not stored, and its
//! gateway sends it again. Nothing here is needed for safety: where it breaks off, the lease passes as after a crash.

use super::blocking;
use super::group::Process;
use super::lease_holder::LeaseHolder;
use crate::failure::Failure;
use crate::output::say;
use meridian_model::policy::groups::Group;
use meridian_store::Store;
use meridian_store::bucket::{Node, lease_of};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Asks the holder of a lease to pass it on.
pub(super) struct Pass {
    /// The epoch in which it holds it; `None`: whichever it is.
    pub(super) epoch: Option<u64>,
    /// The process that gets it; `None`: the best.
    pub(super) to: Option<u64>,
    /// Hears what was done, or why it was not.
    pub(super) done: oneshot::Sender<Result<String, String>>,
}

impl Pass {
    /// Answers for a process that does not hold the lease.
    pub(super) fn refuse(self) {
        // Who asked may have gone.
        let _ = self.done.send(Err("it does not hold the lease".to_owned()));
    }
}

/// An owner of a group that holds its lease since this epoch.
pub(super) struct Holder<'a> {
    pub(super) process: &'a Process,
    pub(super) group: Group,
    pub(super) lease_holder: &'a LeaseHolder,
    pub(super) store: &'a Arc<Store>,
    pub(super) epoch: u64,
}

impl Holder<'_> {
    /// Passes the lease on, as it was asked to. Gives whether it did.
    pub(super) async fn obey(&self, pass: Pass) -> bool {
        let passed = match pass.epoch {
            Some(epoch) if epoch != self.epoch => {
                Err(format!("it holds the lease in epoch {}, and the order was for epoch {epoch}", self.epoch))
            }
            _ => self.pass_to(pass.to).await,
        };
        let is_passed = passed.is_ok();
        let _ = pass.done.send(passed);
        is_passed
    }

    /// Passes the lease on as this process stops. Gives whether it was: where no other owner stands by, it is not.
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

    /// Passes the lease to the process of this number, or to the best.
    async fn pass_to(&self, to: Option<u64>) -> Result<String, String> {
        let heir = |wanted| self.process.member.heir(self.group, wanted);
        let first = heir(to)?;
        self.flush().await.map_err(|failure| failure.to_string())?;
        // Flushing takes time.
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

    /// The purpose of the lease, in messages.
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
                // What cannot be flushed the next owner reads from the log.
                if let Err(error) = collection.flush() {
                    tracing::warn!(%error, collection = collection.name(), "a collection could not be flushed");
                }
            }
        })
        .await
    }
}
