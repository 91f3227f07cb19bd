//! `--role owner`: one process at a time has the collections of a bucket, and answers gateways.
//!
//! States: waiting, while another process holds the lease; owning, once this one holds it and has opened the collections;
//! waiting again, when the lease or a collection was lost. What a former owner holds in memory is dropped, not flushed: the next
//! owner has read everything that was acknowledged.

use super::keeper::Keeper;
use super::log::open_log;
use super::memory::Pool;
use super::{blocking, open_bucket, records};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::say;
use crate::units;
use meridian_backend::Embedded;
use meridian_query::{CancelFlag, Control};
use meridian_remote::ServeOptions;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, SharedLog, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How often an owner looks whether it still is the owner.
const LOOK: Duration = Duration::from_millis(100);
/// How long after a failure to open the collections the next try comes, while the lease holds.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Why owning ended.
enum Ended {
    Stopped,
    Lost,
}

/// Runs an owner until `stop`.
pub(in super::super) async fn owner(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let seams = Seams::real();
    // The address first, so that a wrong one is reported before anything slow; the port stays this process's until its end.
    let listen = |address: String| async move {
        let listener = TcpListener::bind(&address).await;
        listener.map_err(|e| Failure::Usage(format!("--flight {address}: cannot listen there: {e}")))
    };
    let mut listener = Some(listen(config.cluster.flight.clone()).await?);
    let local = listener.as_ref().map(TcpListener::local_addr).transpose();
    let address = local.ok().flatten().ok_or_else(|| Failure::Refused("no local address".to_owned()))?;
    if address.ip().is_unspecified() {
        return Err(Failure::Usage(format!(
            "--flight {}: gateways find the owner by this address: expected one that they can reach",
            config.cluster.flight
        )));
    }
    let bucket = open_bucket(&config.cluster, &seams).await?;
    let mut log = open_log(&config.cluster).await?;
    let (told, mut stopping) = watch::channel(false);
    tokio::spawn(async move {
        stop.await;
        told.send_replace(true);
    });
    let mut keeper = Keeper::start(&config.cluster, &bucket, &address.to_string(), &seams);
    say(&format!(
        "Meridian {} is a candidate for the collections in {} (answers gateways on {address})",
        env!("CARGO_PKG_VERSION"),
        config.cluster.bucket
    ));
    loop {
        let waited = tokio::select! {
            epoch = keeper.wait(|other| say(&format!("waiting: the owner is {other}"))) => Some(epoch),
            _ = stopping.wait_for(|stop| *stop) => None,
        };
        let Some(epoch) = waited else { break };
        let taken = match listener.take() {
            Some(listener) => listener,
            None => listen(address.to_string()).await?,
        };
        let owned = own(&config, &keeper, (&bucket, &mut log), epoch, taken, &seams, stopping.clone()).await;
        if !matches!(owned, Ok(Ended::Stopped)) {
            keeper.say(epoch, None);
        }
        match owned {
            Ok(Ended::Stopped) => break,
            Ok(Ended::Lost) => say("lost: another process may have taken over; what was acknowledged is in the bucket"),
            // The lease goes back at once: another process may be able to open them.
            Err(failure) => {
                keeper.resign().await?;
                return Err(failure);
            }
        }
    }
    keeper.resign().await?;
    say("stopped; everything is in the bucket");
    Ok(())
}

/// Has the collections until `stopping`, or until they are lost.
async fn own(
    config: &Config,
    keeper: &Keeper,
    (bucket, log): (&Arc<dyn Bucket>, &mut SharedLog),
    epoch: u64,
    listener: TcpListener,
    seams: &Seams,
    mut stopping: watch::Receiver<bool>,
) -> Result<Ended, Failure> {
    let Some(store) = open(config, keeper, epoch, (bucket, &*log), seams).await? else { return Ok(Ended::Lost) };
    // A loss is given up once, and not what is found missing when this process takes over again.
    log.opened();
    // Before gateways can reach this process: they read the records once they do.
    if !records::move_in(config, keeper, epoch, bucket, &store, seams).await? {
        return Ok(Ended::Lost);
    }
    // Opening takes time: who lost the lease meanwhile must answer nothing, even with the lease back.
    if !keeper.holds(epoch) {
        return Ok(Ended::Lost);
    }
    // Weak: a renewal under way must not keep the data folder locked.
    let asked = Arc::downgrade(&store);
    keeper.say(epoch, Some(Arc::new(move || asked.upgrade()?.complete())));
    for problem in store.problems() {
        tracing::error!("{problem}");
    }
    let (clock, memory) = (seams.clock.clone(), Arc::new(Pool::new(config.server.query_bytes_total)));
    let control = Arc::new(move |left: Duration, cancel: CancelFlag| {
        Control::new(clock.clone(), left, cancel).sharing(memory.clone())
    });
    let options = ServeOptions::new(epoch, control, seams.random.clone());
    let collections = store.collections();
    let events = collections.iter().map(|collection| collection.stats().events).sum();
    let count = collections.iter().filter(|collection| collection.partition() == 0).count();
    say(&format!("owns {count} collections, {} events; epoch {epoch}", units::count_text(events)));
    drop(collections);
    let until = async {
        let lost = async {
            while keeper.holds(epoch) && !store.is_outdated() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => {}
            () = lost => {}
        }
    };
    let served = meridian_remote::serve(Embedded::new(store.clone()), listener, options, until).await;
    let stopped = *stopping.borrow() && keeper.holds(epoch) && !store.is_outdated();
    if stopped {
        // Flushed while the lease still holds, so that the next owner replays no log.
        let closed = blocking("closing the collections", move || {
            for collection in store.collections() {
                // An error shows again when the collection is closed.
                let _ = collection.flush();
            }
            // What is true from here on, for readers: the lease is given up with it.
            let last = store.complete();
            store.close().map(|()| last)
        });
        let last = closed.await??;
        keeper.say(epoch, Some(Arc::new(move || last.clone())));
    }
    served.map_err(|e| Failure::Refused(format!("answering gateways failed: {e}")))?;
    Ok(if *stopping.borrow() { Ended::Stopped } else { Ended::Lost })
}

/// Opens the collections as their owner; `None` where the lease ended before.
async fn open(
    config: &Config,
    keeper: &Keeper,
    epoch: u64,
    (bucket, log): (&Arc<dyn Bucket>, &SharedLog),
    seams: &Seams,
) -> Result<Option<Arc<Store>>, Failure> {
    while keeper.holds(epoch) {
        let (mut options, for_open, bucket, log) = (config.store.clone(), seams.clone(), bucket.clone(), log.clone());
        options.staleness_max = Some(config.cluster.staleness_max);
        options.query_max = config.server.timeout_max;
        let opening = move || Store::open_shared_over(options, for_open, bucket, log);
        match blocking("opening the collections", opening).await? {
            Ok(store) => return Ok(Some(Arc::new(store))),
            // The bucket may answer again while the lease holds.
            Err(error @ (StoreError::Io { .. } | StoreError::Busy(_))) => {
                tracing::warn!(%error, "the collections cannot be opened now: trying again");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
