//! Assignment of a cluster's saved searches: each slot of them runs on one gateway, the holder of the lease
//! `saved-{slot}`.
//!
//! A gateway is in one of three states for each slot. It waits while another holds the lease. It takes over until it
//! has opened the saved searches. It runs them until the lease is lost or passed on. Gateways divide the slots by
//! rendezvous hashing (`model::policy::placement`), so few slots move when a gateway comes or goes. The lease decides
//! who tries; the records make sure that a former holder changes nothing (decision 056).

use super::lease_holder::{LeaseHolder, changed};
use super::{GatewayMembership, blocking};
use crate::failure::Failure;
use crate::output::say;
use meridian_api::{AppState, Gateways, SLOTS, Slot, SlotRunner};
use meridian_model::policy::groups::Groups;
use meridian_model::policy::placement::{Handovers, LiveCandidate, places};
use meridian_store::seams::{Clock, Seams};
use meridian_store::{Lease, LeaseState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often the holder checks that it still holds the lease.
const LOOK: Duration = Duration::from_millis(100);
/// Pause before a retry after the saved searches could not be opened.
const RETRY: Duration = Duration::from_millis(500);

/// How long a slot is kept before it is passed on. A slot taken over from a dead gateway must not be passed back to it,
/// and that gateway stays listed for five seconds.
const KEPT: Duration = Duration::from_secs(6);

/// The candidacy of this gateway for the saved searches.
pub(in super::super) struct Assignment(Vec<Arc<Lease>>);

impl Assignment {
    /// Starts to compete for the leases, in tasks of this set.
    pub(in super::super) fn begin(
        joins: &GatewayMembership,
        state: &AppState,
        seams: &Seams,
        tasks: &mut JoinSet<()>,
    ) -> Assignment {
        let number = joins.gateways.number();
        let mut slots = Vec::new();
        for slot in Slot::all() {
            let (name, process) = (format!("saved-{}", slot.number()), (node(number), number));
            let mut lease_holder = LeaseHolder::new(&name, process, joins.lease, &joins.bucket, &joins.url, seams);
            lease_holder.start();
            let (pass, passes) = mpsc::channel(1);
            slots.push(SlotLease { slot, lease: lease_holder.lease().clone(), pass });
            tasks.spawn(run(slot, lease_holder, passes, state.clone(), joins.gateways.clone()));
        }
        let leases = slots.iter().map(|kept| kept.lease.clone()).collect();
        tasks.spawn(place(slots, joins.gateways.clone(), joins.lease, seams.clock.clone()));
        Assignment(leases)
    }

    /// Gives up the leases, so that the next gateways need not wait for them to expire. Must be called once the tasks
    /// have ended and the saved searches are stopped.
    pub(in super::super) async fn leave(self) {
        // A turn in progress continues.
        self.0.iter().for_each(|lease| lease.withdraw(true));
        let resign = move || self.0.iter().map(|lease| lease.resign()).collect::<Result<Vec<()>, _>>();
        match blocking("giving up the saved searches", resign).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the saved searches could not be given up: other gateways run them a little later")
            }
            Err(failure) => tracing::error!("{failure}"),
        }
    }
}

/// The lease of a slot, and the channel to its holder for the gateway to pass it to.
struct SlotLease {
    slot: Slot,
    lease: Arc<Lease>,
    pass: mpsc::Sender<u64>,
}

/// Returns the name of a gateway in leases.
fn node(number: u64) -> String {
    format!("{number:016x}")
}

/// Ranks this gateway for each slot, and starts to pass on slots that belong to another one, one at a time.
async fn place(slots: Vec<SlotLease>, gateways: Arc<Gateways>, ttl: Duration, clock: Arc<dyn Clock>) {
    let Some(groups) = Groups::new(SLOTS) else { return };
    let (own, mut handovers) = (gateways.number(), Handovers::default());
    let mut since: BTreeMap<u16, Instant> = BTreeMap::new();
    loop {
        let numbers = gateways.numbers().into_iter().chain([own]);
        let candidates: Vec<LiveCandidate> =
            numbers.map(|number| LiveCandidate { node: node(number), process: number }).collect();
        let places = places(groups, &candidates);
        let order = |slot: Slot| places.get(usize::from(slot.number()));
        for kept in &slots {
            let rank = order(kept.slot).and_then(|order| order.iter().position(|number| *number == own));
            kept.lease.ranks(rank.unwrap_or(0));
        }
        let held = slots.iter().filter(|kept| kept.lease.holds()).map(|kept| kept.slot.number());
        // All were assigned to this gateway by these rules, so none is kept against them.
        let held: Vec<(u16, bool)> = held.map(|slot| (slot, false)).collect();
        handovers.note(own, &held, &places);
        since.retain(|slot, _| held.iter().any(|(held, _)| held == slot));
        for (slot, _) in &held {
            since.entry(*slot).or_insert_with(Instant::now);
        }
        let held: Vec<u16> = since.iter().filter(|(_, since)| since.elapsed() >= KEPT).map(|(slot, _)| *slot).collect();
        let now = Duration::from_micros(u64::try_from(clock.elapsed()).unwrap_or(0));
        let due = handovers.due(own, &held, &places, ttl, now);
        if let Some(kept) = slots.iter().find(|kept| due == Some(kept.slot.number()))
            && let Some(first) = order(kept.slot).and_then(|order| order.first())
        {
            // A slot that is being opened or passed on gets this later.
            let _ = kept.pass.try_send(*first);
        }
        tokio::time::sleep(ttl / 3).await;
    }
}

async fn run(
    slot: Slot,
    lease_holder: LeaseHolder,
    mut passes: mpsc::Receiver<u64>,
    state: AppState,
    gateways: Arc<Gateways>,
) {
    let mut standing = lease_holder.standing();
    loop {
        // The node's name is the gateway's number.
        let other = match &*standing.borrow_and_update() {
            LeaseState::Other(Some(term), _) => u64::from_str_radix(&term.node, 16).ok(),
            _ => None,
        };
        gateways.set_runner(slot, other.map_or(SlotRunner::Nobody, SlotRunner::At));
        match lease_holder.epoch() {
            Some(epoch) => hold(slot, (&lease_holder, epoch), &mut passes, &state, &gateways).await,
            None => changed(&mut standing).await,
        }
    }
}

/// Runs the saved searches of a slot while the lease is held in this epoch, or until it is passed on.
async fn hold(
    slot: Slot,
    (lease_holder, epoch): (&LeaseHolder, u64),
    passes: &mut mpsc::Receiver<u64>,
    state: &AppState,
    gateways: &Gateways,
) {
    gateways.set_runner(slot, SlotRunner::Nobody);
    let (mut is_told, number) = (false, slot.number());
    while lease_holder.holds(epoch) {
        let (taking, holds) = (state.clone(), lease_holder.holding(epoch));
        match blocking("opening saved searches", move || taking.take_saved(slot, epoch, holds)).await {
            Ok(Ok(())) => break,
            Ok(Err(error)) => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%error, slot = number, "saved searches cannot be opened now: trying again");
                }
            }
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(RETRY).await;
    }
    if !lease_holder.holds(epoch) {
        return state.saved.lose(slot);
    }
    gateways.set_runner(slot, SlotRunner::Here);
    say(&format!("runs the saved searches of slot {number}, epoch {epoch}"));
    while lease_holder.holds(epoch) {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            Some(heir) = passes.recv() => return pass_on(slot, (lease_holder, epoch), heir, state, gateways).await,
        }
    }
    gateways.set_runner(slot, SlotRunner::Nobody);
    state.saved.lose(slot);
    say(&format!("lost the saved searches of slot {number}: another gateway may run them now"));
}

/// Passes a slot to another gateway, which continues its packets and numbers. If this one keeps the lease after all, it
/// opens them again.
async fn pass_on(
    slot: Slot,
    (lease_holder, epoch): (&LeaseHolder, u64),
    heir: u64,
    state: &AppState,
    gateways: &Gateways,
) {
    gateways.set_runner(slot, SlotRunner::Nobody);
    let stopping = state.clone();
    match blocking("ending saved searches", move || stopping.saved.pass_on(slot)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "saved searches were not ended cleanly: the next gateway goes on as after a crash")
        }
        Err(failure) => tracing::error!("{failure}"),
    }
    match lease_holder.pass_on(epoch, heir).await {
        Ok(true) => say(&format!("passed the saved searches of slot {} on to {}", slot.number(), node(heir))),
        Ok(false) => {
            say(&format!("lost the saved searches of slot {}: another gateway may run them now", slot.number()))
        }
        Err(failure) => tracing::warn!("saved searches are not passed on now: {failure}"),
    }
}

/// Returns the URL by which other gateways reach this one, if the settings have none. A gateway that listens on all
/// addresses uses the one from which this machine reaches others.
pub(super) fn own_url(listens: std::net::SocketAddr, secure: bool) -> Result<String, Failure> {
    let scheme = if secure { "https" } else { "http" };
    let mut address = listens;
    if listens.ip().is_unspecified() {
        // Nothing is sent: the system only chooses a route. The target is a documentation address (RFC 5737, RFC 3849).
        let (any, far) = if listens.is_ipv4() { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
        let routed =
            std::net::UdpSocket::bind(any).and_then(|socket| socket.connect(far).and_then(|()| socket.local_addr()));
        let routed = routed.map_err(|e| {
            Failure::Usage(format!(
                "--listen {listens}: it is not known by which address other gateways reach this one ({e}): expected cluster.advertise"
            ))
        })?;
        address.set_ip(routed.ip());
    }
    Ok(format!("{scheme}://{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_reached_where_it_listens() {
        let url = |listens: &str, secure| own_url(listens.parse().unwrap(), secure).unwrap();
        assert_eq!(url("127.0.0.1:7117", false), "http://127.0.0.1:7117");
        assert_eq!(url("[::1]:7117", true), "https://[::1]:7117");
    }
}
