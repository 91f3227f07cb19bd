//! `--role owner`: one process at a time has the collections of a bucket, and answers gateways.
//!
//! States: waiting, while another process holds the lease; owning, once this one holds it and has opened the collections;
//! waiting again, when the lease or a collection was lost, or the lease was passed on (`handover.rs`). What a former owner holds in memory is
//! dropped, not flushed: the next owner has read everything that was acknowledged.

use super::super::seams::seams;
use super::handover::{Holder, obey_standing_by};
use super::keeper::Keeper;
use super::log::open_log;
use super::member::Member;
use super::memory::Pool;
use super::{OWNER, blocking, name_of, open_bucket, records};
use crate::certificates::Certificates;
use crate::config::{Cluster, Config, Role};
use crate::failure::Failure;
use crate::output::say;
use crate::roles;
use crate::units;
use meridian_backend::Embedded;
use meridian_query::{CancelFlag, Control};
use meridian_remote::{RoleTls, ServeOptions};
use meridian_store::bucket::Condition;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, Candidate, SharedLog, Store, StoreError, bucket};
use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often an owner looks whether it still is the owner.
const LOOK: Duration = Duration::from_millis(100);
/// How long after a failure to open the collections the next try comes, while the lease holds.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// How long calls are refused in words after the lease was passed on: until gateways have seen the next owner's.
const LINGER: Duration = Duration::from_millis(500);

/// Why owning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Stopped,
    Lost,
    /// The lease is another process's, by the will of this one.
    Passed,
}

/// Runs an owner until `stop`.
pub(in super::super) async fn owner(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let seams = seams()?;
    // The address first, so that a wrong one is reported before anything slow; the port stays this process's until its end.
    let listen = |address: String| async move {
        let listener = TcpListener::bind(&address).await;
        listener.map_err(|e| Failure::Usage(format!("--flight {address}: cannot listen there: {e}")))
    };
    let mut listener = Some(listen(config.cluster.flight.clone()).await?);
    let local = listener.as_ref().map(TcpListener::local_addr).transpose();
    let address = local.ok().flatten().ok_or_else(|| Failure::Refused("no local address".to_owned()))?;
    let announced = announced(&config.cluster, address)?;
    config.cluster.tls.expect_protected("--flight", address)?;
    let host = announced.rsplit_once(':').map(|(host, _)| host);
    let certificates = roles::open(&config.cluster.tls, host)?;
    let tls = certificates.as_ref().map(Certificates::tls);
    // Its task ends with this function, which drops the set.
    let mut following = JoinSet::new();
    roles::follow(certificates, &mut following)?;
    let bucket = open_bucket(&config.cluster, &seams).await?;
    check_kind(&config, &bucket).await?;
    let mut log = open_log(&config.cluster).await?;
    // Until the end of this process.
    let _candidate = stand_by(&config, &bucket, &log, &seams).await?;
    let node = name_of(&config.cluster, "owner");
    let mut keeper = Keeper::new(OWNER, node, config.cluster.lease, &bucket, &announced, &seams);
    let condition = (Role::Owner, Condition::StandsBy);
    let member = Member::join(&config.cluster, condition, announced.clone(), keeper.process(), &bucket, &seams).await?;
    let stop = member.until(stop);
    let (told, mut stopping) = watch::channel(false);
    tokio::spawn(async move {
        stop.await;
        told.send_replace(true);
    });
    keeper.start();
    let reached = if announced == address.to_string() { String::new() } else { format!(", reached by {announced}") };
    let over = if tls.is_some() { " over TLS" } else { "" };
    say(&format!(
        "Meridian {} is a candidate for the collections in {} (answers gateways on {address}{over}{reached})",
        env!("CARGO_PKG_VERSION"),
        config.cluster.bucket
    ));
    loop {
        if listener.is_none() {
            // Where it is not to be had now, it is tried again at the takeover.
            listener = listen(address.to_string()).await.ok();
        }
        let epoch = tokio::select! {
            epoch = keeper.wait(|other| say(&format!("waiting: the owner is {other}"))) => epoch,
            never = turn_away(listener.as_ref()) => match never {},
            _ = stopping.wait_for(|stop| *stop) => break,
            (order, what) = member.ordered() => {
                obey_standing_by(&keeper, &member, order, what);
                continue;
            }
        };
        let taken = match listener.take() {
            Some(listener) => listener,
            None => match listen(address.to_string()).await {
                Ok(listener) => listener,
                Err(failure) => {
                    keeper.resign().await?;
                    return Err(failure);
                }
            },
        };
        let (processes, data, door) = ((&keeper, &member), (&bucket, &mut log), (taken, tls.clone()));
        let owned = own(&config, processes, data, epoch, door, &seams, stopping.clone()).await;
        if !matches!(owned, Ok(Ended::Stopped)) {
            keeper.say(epoch, None);
        }
        let condition = if keeper.has_withdrawn() { Condition::Drained } else { Condition::StandsBy };
        member.is(condition, &[]);
        match owned {
            Ok(Ended::Stopped) => break,
            Ok(Ended::Passed) if *stopping.borrow() => break,
            Ok(Ended::Passed) => {}
            Ok(Ended::Lost) => say("lost: another process may have taken over; what was acknowledged is in the bucket"),
            // The lease goes back at once: another process may be able to open them.
            Err(failure) => {
                keeper.resign().await?;
                return Err(failure);
            }
        }
    }
    keeper.resign().await?;
    member.leave().await?;
    say("stopped; everything is in the bucket");
    Ok(())
}

/// Closes each connection at once while this process stands by: who asks for it learns that it is there, and is not left waiting.
async fn turn_away(listener: Option<&TcpListener>) -> Infallible {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        if let Err(error) = listener.accept().await {
            tracing::debug!(%error, "a connection was not taken");
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Checks that the collections have the log that this process would write. Before a connection to another one is tried.
async fn check_kind(config: &Config, bucket: &Arc<dyn Bucket>) -> Result<(), Failure> {
    let (bucket, log) = (bucket.clone(), config.cluster.log.clone());
    let checked = blocking("checking the log", move || bucket::expect_log(bucket.as_ref(), &log)).await?;
    checked.map_err(of_option)
}

/// Finds at the start what a takeover would be refused for, much later.
async fn stand_by(
    config: &Config,
    bucket: &Arc<dyn Bucket>,
    log: &SharedLog,
    seams: &Seams,
) -> Result<Candidate, Failure> {
    let (bucket, log, seams, options) = (bucket.clone(), log.clone(), seams.clone(), config.store.clone());
    let checked = move || {
        bucket::expect_streams(&bucket, &seams, &log).map_err(of_option)?;
        Candidate::enter(&options, &seams).map_err(|error| match of_option(error) {
            Failure::Refused(what) => Failure::Refused(format!("--data {}: {what}", options.data.display())),
            other => other,
        })
    };
    blocking("checking the data folder", checked).await?
}

/// A mistake in a setting whose option has its name, such as `log`.
fn of_option(error: StoreError) -> Failure {
    match error {
        StoreError::Invalid(mistake) => Failure::Usage(format!("--{mistake}")),
        other => other.into(),
    }
}

/// The address in the lease, by which gateways find an owner that listens at this one.
fn announced(cluster: &Cluster, listens: SocketAddr) -> Result<String, Failure> {
    reached_by(("--flight", &cluster.flight), ("--flight-advertise", &cluster.flight_advertise), listens)
}

/// The address by which gateways find a process that listens at one. Of both options: how a user names it, and its value.
pub(super) fn reached_by(
    (listen, given): (&str, &str),
    (advertise, address): (&str, &str),
    listens: SocketAddr,
) -> Result<String, Failure> {
    match address {
        "" if listens.ip().is_unspecified() => Err(Failure::Usage(format!(
            "{listen} {given}: gateways find this process by that address: expected one that they can reach, or {advertise}",
        ))),
        "" => Ok(listens.to_string()),
        address if is_host_and_port(address) => Ok(address.to_owned()),
        address => Err(Failure::Usage(format!(
            "{advertise} {address}: expected a host and a port that gateways can reach, such as owner-1.example.org:7118"
        ))),
    }
}

/// Whether a client can connect to it: a name or an address, and a port. Whether the name is known shows when it is used.
fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed.map(str::parse::<Ipv6Addr>) {
        Some(address) => address.is_ok_and(|address| !address.is_unspecified()),
        None => {
            let is_named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
            !host.is_empty() && host.bytes().all(is_named) && host != Ipv4Addr::UNSPECIFIED.to_string()
        }
    };
    is_port && is_host
}

/// Has the collections until `stopping`, or until they are lost.
async fn own(
    config: &Config,
    (keeper, member): (&Keeper, &Member),
    (bucket, log): (&Arc<dyn Bucket>, &mut SharedLog),
    epoch: u64,
    (listener, tls): (TcpListener, Option<RoleTls>),
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
    let options = ServeOptions {
        owns: keeper.holding(epoch),
        process: Some(keeper.process()),
        tls,
        linger: LINGER,
        ..ServeOptions::new(epoch, control, seams.random.clone())
    };
    let collections = store.collections();
    let events = collections.iter().map(|collection| collection.stats().events).sum();
    let count = collections.iter().filter(|collection| collection.partition() == 0).count();
    say(&format!("owns {count} collections, {} events; epoch {epoch}", units::count_text(events)));
    drop(collections);
    member.is(Condition::Serves, &[OWNER]);
    let (holder, mut passed) = (Holder { keeper, member, store: &store, epoch }, false);
    let until = async {
        let lost = async {
            while keeper.holds(epoch) && !store.is_outdated() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let mut lost = std::pin::pin!(lost);
        while !passed {
            let order = tokio::select! {
                () = async { drop(stopping.wait_for(|stop| *stop).await) } => None,
                order = member.ordered() => Some(order),
                () = &mut lost => return,
            };
            let Some((order, what)) = order else {
                passed = holder.leave().await;
                return;
            };
            passed = holder.obey(order, what).await;
        }
    };
    let served = meridian_remote::serve(Embedded::new(store.clone()), listener, options, until).await;
    if passed {
        // Not flushed once more: the next owner has replayed what came since, and its log is fenced against this one.
        blocking("closing the collections", move || drop(store)).await?;
        served.map_err(|e| Failure::Refused(format!("answering gateways failed: {e}")))?;
        return Ok(Ended::Passed);
    }
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
        // In memory alone: merges read each segment once, and would only pass it through the disk.
        options.extent_memory = config.cluster.cache.memory;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_found_where_it_says() {
        let of = |listens: &str, advertise: &str| {
            let cluster = Cluster { flight_advertise: advertise.to_owned(), ..Cluster::default() };
            announced(&cluster, listens.parse().unwrap()).map_err(|failure| format!("{failure:?}"))
        };
        assert_eq!(of("127.0.0.1:7118", "").unwrap(), "127.0.0.1:7118");
        assert!(of("0.0.0.0:7118", "").unwrap_err().contains("--flight-advertise"));
        for good in ["owner-1:7118", "owner_1.example.org:1", "10.0.0.7:7118", "[2001:db8::7]:65535"] {
            assert_eq!(of("0.0.0.0:7118", good).unwrap(), good);
        }
        for wrong in [
            "owner",
            ":7118",
            "owner:0",
            "owner:+1",
            "owner:65536",
            "http://owner:1",
            "0.0.0.0:1",
            "[::]:1",
            "::1:7118",
            "a b:1",
        ] {
            assert!(of("127.0.0.1:7118", wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
