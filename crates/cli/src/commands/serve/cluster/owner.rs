//! `--role owner`: a process that owns groups of a bucket's partitions, and serves gateways.
//!
//! A bucket has one group unless its first owner decided otherwise: then one process at a time has all collections, and
//! the others are standbys. With several groups, each process has its share (`candidates.rs`), and takes over those of
//! dead processes.

use super::super::seams::seams;
use super::candidates::Candidates;
use super::group;
use super::lease_holder::LeaseHolder;
use super::log::open_log;
use super::member::Member;
use super::memory::Pool;
use super::owner_port::{self, OwnerPort};
use super::process::Process;
use super::{blocking, dilate, name_of, open_bucket};
use crate::certificates::Certificates;
use crate::config::{Cluster, Config, Role};
use crate::failure::Failure;
use crate::output::say;
use crate::roles;
use meridian_remote::ServedGroups;
use meridian_store::bucket::{Condition, lease_of};
use meridian_store::seams::Seams;
use meridian_store::{Bucket, Candidate, SharedLog, SharedResources, StoreError, bucket};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Runs an owner until `stop`.
pub(in super::super) async fn owner(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let seams = seams()?;
    // The address first, so that a wrong one is reported before anything slow. The process keeps the port until its
    // end.
    let port = OwnerPort::open(&config.cluster.flight).await?;
    let address = port.address();
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
    let log = open_log(&config.cluster).await?;
    // Kept until the end of this process.
    let _candidate = stand_by(&config, &bucket, &log, &seams).await?;
    let (decided, clock, wanted) = (bucket.clone(), seams.clock.clone(), config.cluster.groups);
    let decide = move || bucket::decide_groups(decided.as_ref(), clock.as_ref(), wanted);
    let groups = blocking("reading the groups of the bucket", decide).await??;
    let (number, condition) = (seams.random.next_u64(), (Role::Owner, Condition::StandsBy));
    let member = Member::join(&config.cluster, condition, announced.clone(), number, &bucket, &seams).await?;
    let member = Arc::new(member);
    let stop = member.until(stop);
    let (told, stopping) = watch::channel(false);
    let told = Arc::new(told);
    let stopped = told.clone();
    tokio::spawn(async move {
        stop.await;
        stopped.send_replace(true);
    });
    let reached = if announced == address.to_string() { String::new() } else { format!(", reached by {announced}") };
    let over = if tls.is_some() { " over TLS" } else { "" };
    say(&format!(
        "Meridian {} is a candidate for the collections in {} (answers gateways on {address}{over}{reached})",
        env!("CARGO_PKG_VERSION"),
        config.cluster.bucket
    ));
    let served = Arc::new(ServedGroups::default());
    let process = Arc::new(Process {
        resources: SharedResources::of(&config.store),
        memory: Arc::new(Pool::new(config.server.query_bytes_total)),
        served: served.clone(),
        config,
        bucket,
        log,
        seams,
        stopping: stopping.clone(),
        member: member.clone(),
        number,
        standing: watch::Sender::default(),
        pace: dilate::pace(true)?,
    });
    let mut candidates = Candidates::new(process.clone(), groups);
    let mut tasks = JoinSet::new();
    for group in groups.all() {
        let cluster = &process.config.cluster;
        let (name, node) = (lease_of(group), (name_of(cluster, "owner"), number));
        let mut lease_holder =
            LeaseHolder::new(&name, node, cluster.lease, &process.bucket, &announced, &process.seams);
        let passes = candidates.keep(group, lease_holder.lease().clone());
        lease_holder.start();
        tasks.spawn(group::run(process.clone(), group, lease_holder, passes));
    }
    // Ends by itself only if the port is lost.
    let mut port = tokio::spawn(owner_port::keep((port, tls), served, stopping.clone()));
    let mut placing = tokio::spawn(candidates.run());
    let mut ended = Ok(());
    let mut port_ended = false;
    while !tasks.is_empty() {
        let one = tokio::select! {
            Some(one) = tasks.join_next() => one.map_err(gone),
            lost = &mut port, if !port_ended => {
                port_ended = true;
                lost.map_err(gone)
            }
        };
        // One failure ends all: the leases are given up at once, as another process may be able to open the
        // collections.
        if let Err(failure) = one.and_then(|one| one) {
            told.send_replace(true);
            ended = ended.and(Err(failure));
        }
    }
    told.send_replace(true);
    if !port_ended {
        ended = ended.and((&mut port).await.map_err(gone).and_then(|closed| closed));
    }
    let _ = (&mut placing).await;
    ended.and(member.leave().await)?;
    say("stopped; everything is in the bucket");
    Ok(())
}

/// Returns the failure for a panic in a part of this process.
fn gone(error: tokio::task::JoinError) -> Failure {
    Failure::Refused(format!("a part of this process failed: {error}"))
}

/// Checks that the collections use the log this process would write. Runs before a connection to another log is tried.
async fn check_kind(config: &Config, bucket: &Arc<dyn Bucket>) -> Result<(), Failure> {
    let (bucket, log) = (bucket.clone(), config.cluster.log.clone());
    let checked = blocking("checking the log", move || bucket::expect_log(bucket.as_ref(), &log)).await?;
    checked.map_err(of_option)
}

/// Finds problems at the start that would make a takeover fail much later.
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

/// Blames a setting whose option has the same name, such as `log`.
fn of_option(error: StoreError) -> Failure {
    match error {
        StoreError::Invalid(mistake) => Failure::Usage(format!("--{mistake}")),
        other => other.into(),
    }
}

/// Returns the address for the lease, by which gateways find an owner that listens at this address.
fn announced(cluster: &Cluster, listens: SocketAddr) -> Result<String, Failure> {
    reached_by(("--flight", &cluster.flight), ("--flight-advertise", &cluster.flight_advertise), listens)
}

/// Returns the address by which gateways find a process that listens at this address. Both options are given as the
/// user's name for it, and its value.
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

/// Returns true if a client can connect to it: a name or an address, and a port. Whether the name resolves shows when
/// it is used.
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
