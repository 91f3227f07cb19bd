//! An owner that gives its lease to another process on purpose: because an operator says so, or because it stops.
//!
//! In this order, while it still owns: the collections are flushed, so that the next owner has little log to replay; the next owner is named in
//! the lease, so that it looks often, and gateways know that a refusal means a change; then the lease is given up. Writes under way need not end
//! before: one whose group is in the log before the next owner's fence is acknowledged, and any other was not stored, so that its gateway sends
//! it again. Nothing here is needed for safety: where it breaks off, the lease passes as after a crash.

use super::keeper::Keeper;
use super::member::Member;
use super::{OWNER, blocking};
use crate::failure::Failure;
use crate::output::say;
use meridian_store::Store;
use meridian_store::bucket::{Condition, Node, What};
use std::sync::Arc;

/// An owner that holds the lease since this epoch.
pub(super) struct Holder<'a> {
    pub(super) keeper: &'a Keeper,
    pub(super) member: &'a Member,
    pub(super) store: &'a Arc<Store>,
    pub(super) epoch: u64,
}

impl Holder<'_> {
    /// Carries out an order. Gives whether the lease was passed on.
    pub(super) async fn obey(&self, order: u64, what: What) -> bool {
        let passed = match what {
            What::Handover { lease, .. } if lease != OWNER => Err(format!("it holds no lease {lease:?}")),
            What::Handover { epoch, .. } if epoch != self.epoch => {
                Err(format!("it holds the lease in epoch {}, and the order was for epoch {epoch}", self.epoch))
            }
            What::Handover { to, .. } => self.pass_to(to).await,
            What::Drain => {
                // It stays the owner where no other is there.
                self.keeper.withdraw(true);
                let passed = self.pass_to(None).await;
                self.keeper.withdraw(passed.is_ok());
                passed
            }
            What::Undo => {
                self.member.done(order, Ok("it was not drained, and owns the collections".to_owned()));
                return false;
            }
        };
        let is_passed = passed.is_ok();
        self.member.done(order, passed);
        is_passed
    }

    /// Passes the lease on as this process stops. Gives whether it was: where no other owner stands by, it is not.
    pub(super) async fn leave(&self) -> bool {
        self.keeper.withdraw(true);
        match self.pass_to(None).await {
            Ok(_) => true,
            Err(why) => {
                tracing::info!("the collections are closed, and not passed on: {why}");
                false
            }
        }
    }

    /// Passes the lease to the process of this number, or to the best.
    async fn pass_to(&self, to: Option<u64>) -> Result<String, String> {
        let heir = self.member.heir(to)?;
        self.flush().await.map_err(|failure| failure.to_string())?;
        // Flushing takes time.
        let Node { node, process, .. } =
            self.member.heir(to.or(Some(heir.process))).or_else(|_| self.member.heir(to))?;
        match self.keeper.pass_on(self.epoch, process).await {
            Ok(true) => {
                say(&format!("passed the collections on to {node}"));
                Ok(format!("passed the lease {OWNER:?} on to {node}"))
            }
            Ok(false) => Err("it lost the lease".to_owned()),
            Err(failure) => Err(failure.to_string()),
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

/// Carries out an order of an owner that stands by.
pub(super) fn obey_standing_by(keeper: &Keeper, member: &Member, order: u64, what: What) {
    let (drained, text) = match what {
        What::Handover { .. } => {
            return member.done(order, Err("it does not hold the lease".to_owned()));
        }
        What::Drain => (true, "drained: it takes no lease until it starts again"),
        What::Undo => (false, "it stands by again"),
    };
    keeper.withdraw(drained);
    member.is(if drained { Condition::Drained } else { Condition::StandsBy }, &[]);
    member.done(order, Ok(text.to_owned()));
}
