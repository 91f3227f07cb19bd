//! The groups that a process serves. They come and go while it serves.

use super::positions::{PositionSubscriber, Positions};
use super::slots::FairSlots;
use super::{Appends, Owner, RECEIVED_KIB_MAX, ServeOptions, ShutdownStage};
use meridian_backend::Backend;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// How long running calls may take to end after a stop.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// Poll interval for their end.
const LOOK: Duration = Duration::from_millis(10);

/// The groups that a process serves, by number.
#[derive(Default)]
pub struct ServedGroups(watch::Sender<Groups>);

#[derive(Default)]
struct Groups {
    owners: BTreeMap<u16, Arc<Owner>>,
    /// Number of groups handed over that still have running responses.
    ending: usize,
}

impl fmt::Debug for ServedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.borrow().owners.keys()).finish()
    }
}

impl ServedGroups {
    /// Serves a group through a backend with its partitions, until the returned value is dropped.
    pub fn mount(self: &Arc<Self>, group: u16, backend: Arc<dyn Backend>, options: ServeOptions) -> MountedGroup {
        let (close, closing) = watch::channel(ShutdownStage::Open);
        let positions = Arc::new(Positions::default());
        backend.subscribe(Arc::new(PositionSubscriber(Arc::downgrade(&positions))));
        // After the registration, so that no write falls between the two.
        positions.begin(backend.held());
        let owner = Arc::new(Owner {
            backend,
            instance: options.random.next_u64(),
            running: FairSlots::new(options.running_max),
            acting: Arc::new(Semaphore::new(options.running_max)),
            received: Arc::new(Semaphore::new(RECEIVED_KIB_MAX)),
            appends: Appends::default(),
            positions,
            closing,
            options,
        });
        self.0.send_modify(|groups| drop(groups.owners.insert(group, owner.clone())));
        MountedGroup { served: self.clone(), group, owner, close }
    }

    /// Returns the owner of a group.
    pub(super) fn of(&self, group: u16) -> Option<Arc<Owner>> {
        self.0.borrow().owners.get(&group).cloned()
    }

    /// Waits until a group is served.
    pub async fn any(&self) {
        // Never fails: the sender is `self`.
        drop(self.0.subscribe().wait_for(|groups| !groups.owners.is_empty()).await);
    }

    /// Waits until no group is served and no response is running.
    pub async fn none(&self) {
        drop(self.0.subscribe().wait_for(|groups| groups.owners.is_empty() && groups.ending == 0).await);
    }
}

/// A group being served; dropping it ends that.
pub struct MountedGroup {
    served: Arc<ServedGroups>,
    group: u16,
    owner: Arc<Owner>,
    close: watch::Sender<ShutdownStage>,
}

impl fmt::Debug for MountedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mounted").field(&self.group).finish()
    }
}

impl MountedGroup {
    /// Takes no more calls for the group, ends its running responses, and lets other calls finish for a while.
    pub async fn unmount(self) {
        self.close(ShutdownStage::Cut);
        self.ended().await;
    }

    /// Takes no more calls for the group, which this process has handed over. Running responses continue until they
    /// end, at most 5 s, or until `back` resolves. Then this process owns the group again, and needs the memory they
    /// hold.
    pub async fn pass_on(self, back: impl Future<Output = ()>) {
        // Counted before the group goes, so that `none` does not resolve in between.
        self.served.0.send_modify(|groups| groups.ending += 1);
        let _ending = EndingGuard(self.served.clone());
        self.close(ShutdownStage::Passed);
        tokio::select! {
            () = self.ended() => {}
            () = back => {}
        }
        self.unmount().await;
    }

    /// Waits until no call is running, with a timeout.
    async fn ended(&self) {
        let begun = Instant::now();
        // Each call holds a reference. Endless streams end by themselves when they see the close.
        while Arc::strong_count(&self.owner) > 1 && begun.elapsed() < GRACE {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Takes no more calls for the group.
    pub(super) fn close(&self, closing: ShutdownStage) {
        // First: a call that has already found the group checks this before it begins.
        self.close.send_replace(closing);
        // By identity, as the group may have been mounted again meanwhile.
        self.served.0.send_modify(|groups| groups.owners.retain(|_, owner| !Arc::ptr_eq(owner, &self.owner)));
    }
}

impl Drop for MountedGroup {
    fn drop(&mut self) {
        self.close(ShutdownStage::Cut);
    }
}

/// Counts a group that was handed over, until its responses have ended.
struct EndingGuard(Arc<ServedGroups>);

impl Drop for EndingGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|groups| groups.ending -= 1);
    }
}
