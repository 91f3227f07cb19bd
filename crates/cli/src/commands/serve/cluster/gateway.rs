//! `--role gateway`: the whole HTTP API, over the collections of the owners.

use super::super::http::{self, ClientListeners, Source};
use super::assignment::own_url;
use super::{GatewayMembership, OpenRole, blocking, dilate, membership, servers};
use crate::certificates::Certificates;
use crate::config::{Config, Role};
use crate::failure::Failure;
use crate::output::say;
use crate::roles;
use meridian_api::{Gateways, advertised};
use meridian_model::policy::groups::Groups;
use meridian_remote::{GroupsBackend, OwnerLocation, RemoteOptions};
use meridian_store::bucket::{groups_of, terms_of};
use meridian_store::seams::{Seams, read_named};
use meridian_store::{Bucket, ControlPlane, Term, Terms};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Interval at which the lease is read for the owner's address.
const LOOK: Duration = Duration::from_millis(100);
/// Pause between attempts to reach the owner at the start.
const RETRY: Duration = Duration::from_millis(100);
/// How long the start waits silently for the owner: until a renewal of its lease has been seen.
const TELL: Duration = Duration::from_secs(2);
/// A lease not renewed for this multiple of its length has no owner.
const LAPSES: u32 = 2;

/// Runs a gateway until `stop`.
pub(in super::super) async fn gateway(
    mut config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let certificates = roles::open(&config.cluster.tls, None)?;
    let OpenRole { listeners, seams, bucket, member, drained, obeying } =
        OpenRole::open(&mut config, Role::Gateway).await?;
    let stop = member.until(stop);
    let records = ControlPlane::new(bucket.clone(), &seams, config.store.audit_bytes);
    dilate::widen(&mut config)?;
    let tls = certificates.as_ref().map(Certificates::tls);
    let mut membership = membership("gateway", &config.cluster, &bucket, (&seams, tls)).await?;
    membership.joins = Some(join(&mut config, &listeners, &bucket, &seams)?);
    let (scans_told, scans) = servers::options(&config.cluster.scan).await?;
    let security = roles::security(&config.cluster.tls, certificates.as_ref());
    // Its tasks end with this function.
    let mut following = JoinSet::new();
    following.spawn(servers::find(bucket.clone(), seams.clone(), scans_told));
    roles::follow(certificates, &mut following)?;
    let options = RemoteOptions { security, scans: Some(scans), ..RemoteOptions::new(seams.random.clone()) };
    let mut stop = Box::pin(stop);
    let groups = tokio::select! {
        groups = decided(&bucket) => groups?,
        () = &mut stop => {
            member.leave().await?;
            say("stopped before there was an owner");
            return Ok(());
        }
    };
    let owners = follow_all(&bucket, groups, &mut following);
    let backend = GroupsBackend::connect(owners.clone(), records, options)
        .map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
    tokio::select! {
        reached = reach(&backend) => reached?,
        () = &mut stop => {
            member.leave().await?;
            say("stopped before there was an owner");
            return Ok(());
        }
    }
    let at =
        |owner: &watch::Receiver<Option<OwnerLocation>>| owner.borrow().as_ref().map(|owner| owner.address.clone());
    let at: BTreeSet<String> = owners.iter().filter_map(at).collect();
    let (whose, at) = (if at.len() > 1 { "owners" } else { "owner" }, at.into_iter().collect::<Vec<_>>().join(", "));
    let place = format!("collections of the {whose} at {at}, bucket {}", config.cluster.bucket);
    let (bucket, membership) = (Some(config.cluster.bucket.clone()), Some(membership));
    let source = Source { backend, place, folder: None, bucket, membership, drained };
    let served = http::serve(listeners, config, source, &seams, stop).await;
    drop(obeying);
    member.leave().await?;
    served?;
    say("stopped");
    Ok(())
}

/// Prepares this gateway to be one of several.
fn join(
    config: &mut Config,
    listeners: &ClientListeners,
    bucket: &Arc<dyn Bucket>,
    seams: &Seams,
) -> Result<GatewayMembership, Failure> {
    let url = match config.cluster.advertise.trim_end_matches('/') {
        "" => own_url(listeners.address(), listeners.is_secure())?,
        url => url.to_owned(),
    };
    let wrong = |name: &str, why: String| Failure::Usage(format!("--config: {name}: {why}"));
    config.server.hosts.push(advertised(&url).map_err(|why| wrong("cluster.advertise", why))?);
    let authorities = match config.cluster.advertise_ca.as_str() {
        "" => None,
        file => Some(read_named(Path::new(file)).map_err(|e| wrong("cluster.advertise_ca", format!("{file}: {e}")))?),
    };
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|e| Failure::Refused(format!("no random numbers: {e}")))?;
    let key = format!("{:032x}", u128::from_le_bytes(key));
    let gateways = Gateways::new(seams.random.next_u64(), key, authorities.as_deref());
    let gateways = Arc::new(gateways.map_err(|why| wrong("cluster.advertise_ca", why))?);
    config.server.gateways = Some(gateways.clone());
    // They run only while they are assigned to this gateway.
    config.server.saved.enabled = false;
    Ok(GatewayMembership { bucket: bucket.clone(), lease: config.cluster.lease, url, gateways })
}

/// Waits until an owner has decided the number of groups of the bucket.
async fn decided(bucket: &Arc<dyn Bucket>) -> Result<Groups, Failure> {
    let (begun, mut told) = (Instant::now(), false);
    loop {
        let read = bucket.clone();
        match blocking("looking for owners", move || groups_of(read.as_ref())).await? {
            Ok(Some(groups)) => return Ok(groups),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the groups of the bucket could not be read: trying again"),
        }
        if begun.elapsed() >= TELL && !std::mem::replace(&mut told, true) {
            say("waiting for an owner: the bucket has had none yet");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Waits until each group has an owner that responds: the first one moves records into the bucket, and saved searches
/// ask what they have missed.
async fn reach(backend: &Arc<GroupsBackend>) -> Result<(), Failure> {
    let (begun, mut told) = (Instant::now(), String::new());
    loop {
        let asked = backend.clone();
        let Err(why) = blocking("asking the owner", move || asked.reach()).await? else { return Ok(()) };
        let why = why.to_string();
        if begun.elapsed() >= TELL && told != why {
            say(&format!("waiting for an owner: {why}"));
            told = why;
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Follows the owner of each group, in group order, in tasks of this set.
pub(super) fn follow_all(
    bucket: &Arc<dyn Bucket>,
    groups: Groups,
    following: &mut JoinSet<()>,
) -> Vec<watch::Receiver<Option<OwnerLocation>>> {
    let one = |terms| {
        let (told, owner) = watch::channel(None);
        following.spawn(follow(terms, told));
        owner
    };
    terms_of(bucket, groups).into_iter().map(one).collect()
}

/// Keeps the address of a group's owner current. If the bucket does not respond nothing changes, as the owner may still
/// be running.
async fn follow(terms: Terms, told: watch::Sender<Option<OwnerLocation>>) {
    let (terms, mut seen) = (Arc::new(terms), LeaseObservation::default());
    loop {
        let (looked, known, began) = (terms.clone(), seen.known, Instant::now());
        match blocking("looking for the owner", move || looked.newest_from(known)).await {
            Ok(Ok(newest)) => {
                let owner = seen.owner(began, newest);
                told.send_if_modified(|known| {
                    let changed = *known != owner;
                    *known = owner;
                    changed
                });
            }
            Ok(Err(error)) => tracing::warn!(%error, "the owner's lease could not be read: trying again"),
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Observations of a lease.
#[derive(Debug, Default)]
struct LeaseObservation {
    /// Number of the newest term.
    known: u64,
    looked: bool,
    /// Start of the check that saw the last renewal.
    renewed: Option<Instant>,
}

impl LeaseObservation {
    /// Returns the owner, given the newest term found by a check that began at this time.
    ///
    /// A term counts once it was seen to follow another one, and while others follow it. In a copy of a bucket none
    /// follows, and the process named by its newest term owns the original. The time since the check began proves
    /// nothing: this process may have been paused meanwhile, while the owner renewed its lease. The next check shows
    /// that.
    fn owner(&mut self, began: Instant, newest: Option<(u64, Term)>) -> Option<OwnerLocation> {
        let number = newest.as_ref().map_or(0, |(number, _)| *number);
        if std::mem::replace(&mut self.known, number) != number && self.looked {
            self.renewed = Some(began);
        }
        self.looked = true;
        let lives =
            |ttl: Duration| self.renewed.is_some_and(|renewed| began.saturating_duration_since(renewed) < ttl * LAPSES);
        // A term given up for an heir counts, since the heir takes over at any moment.
        let counts = |term: &Term| (!term.resigned || term.heir.is_some()) && lives(term.ttl());
        newest.map(|(_, term)| term).filter(counts).map(|term| OwnerLocation {
            address: term.address,
            process: Some(term.process),
            leaves: term.heir.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::bucket::MemoryBucket;

    const TTL: Duration = Duration::from_secs(1);

    #[test]
    fn a_gateway_that_was_paused_looks_at_the_lease_before_it_counts_the_owner_out() {
        let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        let lease = meridian_store::Lease::new(&bucket, "owner", "n1".to_owned(), "host:1", TTL, &Seams::real());
        lease.turn().unwrap();
        let terms = terms_of(&bucket, Groups::ONE).remove(0);
        let renewal = |number: u64| {
            let (_, term) = terms.newest_from(0).unwrap().unwrap();
            Some((number, term))
        };
        let (mut seen, begin) = (LeaseObservation::default(), Instant::now());
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let address = |owner: Option<OwnerLocation>| owner.map(|owner| owner.address);
        assert_eq!(seen.owner(at(0), renewal(1)), None, "it may be a copy of a bucket");
        assert_eq!(address(seen.owner(at(1), renewal(2))).as_deref(), Some("host:1"));
        // A check that began before the pause ends after it, with the old state.
        assert_eq!(address(seen.owner(at(2), renewal(2))).as_deref(), Some("host:1"));
        // The next one begins after it, and finds the renewals.
        assert_eq!(address(seen.owner(at(60), renewal(30))).as_deref(), Some("host:1"));
        assert_eq!(address(seen.owner(at(61), renewal(30))).as_deref(), Some("host:1"));
        assert_eq!(seen.owner(at(62), renewal(30)), None, "nothing was renewed for twice the lease");
    }
}
