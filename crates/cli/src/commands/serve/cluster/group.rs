//! One group of the partitions, in a process that competes to own it.
//!
//! States: *waiting*, while another process holds the lease. *Owning*, once this one holds it and has opened the
//! partitions. *Waiting* again, when the lease or a partition was lost, or the group was passed on. After a loss, a
//! former owner drops its memory without flushing: the next owner has read everything that was acknowledged.

use super::handover::{HandoverRequest, Holder};
use super::lease_holder::LeaseHolder;
use super::process::Process;
use super::{blocking, records};
use crate::failure::Failure;
use crate::output::say;
use crate::units;
use meridian_backend::Embedded;
use meridian_model::policy::groups::Group;
use meridian_query::{CancelFlag, Control};
use meridian_remote::ServeOptions;
use meridian_store::{SharedLog, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often an owner checks that it still is the owner.
const LOOK: Duration = Duration::from_millis(100);
/// Pause before a retry after the collections could not be opened, while the lease holds.
const RETRY: Duration = Duration::from_secs(1);

/// Why owning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndReason {
    Stopped,
    /// Handed over to another process.
    Passed,
    Lost,
}

/// Owns a group whenever this process holds the lease, until the process stops. `requests`: requests to pass it on.
pub(super) async fn run(
    process: Arc<Process>,
    group: Group,
    lease_holder: LeaseHolder,
    mut requests: mpsc::Receiver<HandoverRequest>,
) -> Result<(), Failure> {
    let (mut log, mut stopping) = (process.log.clone(), process.stopping.clone());
    // With several groups, the status names the owners.
    let waits = |other: &str| {
        if group.is_all() {
            say(&format!("waiting: the owner is {other}"));
        }
    };
    let of = if group.is_all() { String::new() } else { format!(" group {}", group.number()) };
    loop {
        let epoch = tokio::select! {
            epoch = lease_holder.wait(waits) => epoch,
            _ = stopping.wait_for(|stop| *stop) => break,
            Some(request) = requests.recv() => {
                request.refuse();
                continue;
            }
        };
        let owned = own(&process, group, &lease_holder, &mut log, epoch, &mut requests).await;
        process.serves(group, false);
        if !matches!(owned, Ok(EndReason::Stopped)) {
            lease_holder.say(epoch, None);
        }
        match owned {
            Ok(EndReason::Stopped) => break,
            Ok(EndReason::Passed) if *stopping.borrow() => break,
            Ok(EndReason::Passed) => {}
            Ok(EndReason::Lost) => {
                say(&format!("lost{of}: another process may have taken over; what was acknowledged is in the bucket"));
            }
            // The lease is given up at once, since another process may be able to open them.
            Err(failure) => {
                lease_holder.end().await?;
                return Err(failure);
            }
        }
    }
    lease_holder.end().await
}

/// Owns the partitions of a group until the process stops, the group is passed on, or they are lost.
async fn own(
    process: &Process,
    group: Group,
    lease_holder: &LeaseHolder,
    log: &mut SharedLog,
    epoch: u64,
    requests: &mut mpsc::Receiver<HandoverRequest>,
) -> Result<EndReason, Failure> {
    let Process { config, bucket, seams, .. } = process;
    let mut stopping = process.stopping.clone();
    let Some(store) = open(process, group, lease_holder, epoch, log).await? else { return Ok(EndReason::Lost) };
    // A loss is accepted once, and not for what is found missing at a later takeover.
    log.opened();
    // Before gateways can reach this process, since they read the records as soon as they do.
    if group.number() == 0 && !records::move_in(config, lease_holder, epoch, bucket, &store, seams).await? {
        return Ok(EndReason::Lost);
    }
    // Opening takes time: a process that lost the lease meanwhile must not serve, even if it has the lease again.
    if !lease_holder.holds(epoch) {
        return Ok(EndReason::Lost);
    }
    // Weak: a renewal in progress must not keep the data folder locked.
    let asked = Arc::downgrade(&store);
    lease_holder.say(epoch, Some(Arc::new(move || asked.upgrade()?.complete())));
    for problem in store.problems() {
        tracing::error!("{problem}");
    }
    let (clock, memory) = (seams.clock.clone(), process.memory.clone());
    let control = Arc::new(move |left: Duration, cancel: CancelFlag| {
        Control::new(clock.clone(), left, cancel).sharing(memory.clone())
    });
    let options = ServeOptions {
        owns: lease_holder.holding(epoch),
        process: Some(process.number),
        ..ServeOptions::new(epoch, control, seams.random.clone())
    };
    let options = match &process.pace {
        // In a study: with the places of a scan server.
        Some(pace) => ServeOptions { pace: Some(pace.clone()), running_max: config.cluster.scan.places, ..options },
        None => options,
    };
    let mounted = process.served.mount(group.number(), Embedded::new(store.clone()), options);
    say(&owns(group, &store, epoch));
    process.serves(group, true);
    let holder = Holder { process, group, lease_holder, store: &store, epoch };
    let ended = loop {
        let lost = async {
            while lease_holder.holds(epoch) && !store.is_outdated() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let request = tokio::select! {
            () = async { drop(stopping.wait_for(|stop| *stop).await) } => None,
            Some(request) = requests.recv() => Some(request),
            () = lost => break EndReason::Lost,
        };
        let passed = match request {
            Some(request) => holder.obey(request).await,
            None if holder.leave().await => true,
            None => break EndReason::Stopped,
        };
        if passed {
            break EndReason::Passed;
        }
    };
    if ended == EndReason::Passed {
        // Running responses continue for a while, unless this process gets the group back first.
        process.serves(group, false);
        let back = async {
            lease_holder.wait(|_| ()).await;
        };
        mounted.pass_on(back).await;
    } else {
        mounted.unmount().await;
    }
    if ended != EndReason::Stopped || !lease_holder.holds(epoch) || store.is_outdated() {
        // Not flushed again: the next owner has replayed the rest, and its log is fenced against this one. Not just
        // dropped: a long read would keep the folder locked, and this process may be the next owner.
        blocking("leaving the collections", move || store.abandon()).await?;
        return Ok(match ended {
            EndReason::Passed => ended,
            _ if *stopping.borrow() => EndReason::Stopped,
            _ => EndReason::Lost,
        });
    }
    // Flushed while the lease still holds, so that the next owner replays no log.
    let closed = blocking("closing the collections", move || {
        // An error shows up again when the collection is closed.
        store.collections().iter().for_each(|collection| drop(collection.flush()));
        // Published to readers as final: the lease is given up with it.
        let last = store.complete();
        store.close().map(|()| last)
    });
    let last = closed.await??;
    lease_holder.say(epoch, Some(Arc::new(move || last.clone())));
    Ok(ended)
}

/// Returns the message of a new owner.
fn owns(group: Group, store: &Store, epoch: u64) -> String {
    let collections = store.collections();
    let events = units::count_text(collections.iter().map(|collection| collection.stats().events).sum());
    match group.is_all() {
        true => {
            let count = collections.iter().filter(|collection| collection.partition() == 0).count();
            format!("owns {count} collections, {events} events; epoch {epoch}")
        }
        false => {
            let (number, of, count) = (group.number(), group.groups().count(), collections.len());
            format!("owns group {number} of {of}: {count} partitions, {events} events; epoch {epoch}")
        }
    }
}

/// Opens the partitions as their owner; `None` if the lease ended first.
async fn open(
    process: &Process,
    group: Group,
    lease_holder: &LeaseHolder,
    epoch: u64,
    log: &SharedLog,
) -> Result<Option<Arc<Store>>, Failure> {
    let Process { config, bucket, seams, resources, .. } = process;
    while lease_holder.holds(epoch) {
        let (mut options, for_open, bucket, log) = (config.store.clone(), seams.clone(), bucket.clone(), log.clone());
        options.staleness_max = Some(config.cluster.staleness_max);
        options.query_max = config.server.timeout_max;
        // In memory only: merges read each segment once, so caching it on disk is pointless. All groups share this
        // cache.
        options.extent_memory = config.cluster.cache.memory;
        let resources = resources.clone();
        let opening = move || Store::open_group(options, for_open, bucket, log, group, &resources);
        match blocking("opening the collections", opening).await? {
            Ok(store) => return Ok(Some(Arc::new(store))),
            // The bucket may respond again while the lease holds.
            Err(error @ (StoreError::Io { .. } | StoreError::Busy(_))) => {
                tracing::warn!(%error, "the collections cannot be opened now: trying again");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
