//! The saved searches of a cluster, which one gateway runs: the one that holds the lease `saved`.
//!
//! States of a gateway: *waiting*, while another holds the lease. *Taking over*, until it has opened the
//! saved searches. *Running* them, until the lease is lost. The lease decides which gateway tries. That a
//! former holder changes nothing is decided by the records (decision 056).

use super::keeper::{Keeper, changed};
use super::{Joins, SAVED, blocking};
use crate::failure::Failure;
use crate::output::say;
use meridian_api::{AppState, Gateways, Runs};
use meridian_store::seams::Seams;
use meridian_store::{Lease, Standing};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often the holder looks whether it still holds the lease.
const LOOK: Duration = Duration::from_millis(100);
/// How long after a failure to open the saved searches the next try comes.
const RETRY: Duration = Duration::from_millis(500);

/// The candidacy of this gateway for the saved searches.
pub(in super::super) struct Assignment(Arc<Lease>);

impl Assignment {
    /// Begins to take turns, by a task of this set.
    pub(in super::super) fn begin(
        joins: &Joins,
        state: &AppState,
        seams: &Seams,
        tasks: &mut JoinSet<()>,
    ) -> Assignment {
        let node = format!("{:016x}", joins.gateways.number());
        let mut keeper =
            Keeper::new(SAVED, (node, seams.random.next_u64()), joins.lease, &joins.bucket, &joins.url, seams);
        keeper.start();
        let lease = keeper.lease().clone();
        tasks.spawn(run(keeper, state.clone(), joins.gateways.clone()));
        Assignment(lease)
    }

    /// Gives the lease up, so that the next gateway need not wait for its end. Call it once the tasks have ended, and the saved searches are
    /// stopped.
    pub(in super::super) async fn leave(self) {
        // A turn that has begun goes on.
        self.0.withdraw(true);
        match blocking("giving up the saved searches", move || self.0.resign()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the saved searches could not be given up: another gateway runs them a little later")
            }
            Err(failure) => tracing::error!("{failure}"),
        }
    }
}

async fn run(keeper: Keeper, state: AppState, gateways: Arc<Gateways>) {
    let mut standing = keeper.standing();
    loop {
        // The node's name is the gateway's number.
        let other = match &*standing.borrow_and_update() {
            Standing::Other(Some(term), _) => u64::from_str_radix(&term.node, 16).ok(),
            _ => None,
        };
        gateways.set_runs(other.map_or(Runs::Nobody, Runs::At));
        match keeper.epoch() {
            Some(epoch) => hold(&keeper, epoch, &state, &gateways).await,
            None => changed(&mut standing).await,
        }
    }
}

/// Runs the saved searches for as long as the lease is held in this epoch.
async fn hold(keeper: &Keeper, epoch: u64, state: &AppState, gateways: &Gateways) {
    gateways.set_runs(Runs::Nobody);
    let mut is_told = false;
    while keeper.holds(epoch) {
        let (taking, holds) = (state.clone(), keeper.holding(epoch));
        match blocking("opening saved searches", move || taking.take_saved(epoch, holds)).await {
            Ok(Ok(())) => break,
            Ok(Err(error)) => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%error, "the saved searches cannot be opened now: trying again");
                }
            }
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(RETRY).await;
    }
    if !keeper.holds(epoch) {
        return state.lose_saved();
    }
    gateways.set_runs(Runs::Here);
    say(&format!("runs the saved searches, epoch {epoch}"));
    while keeper.holds(epoch) {
        tokio::time::sleep(LOOK).await;
    }
    gateways.set_runs(Runs::Nobody);
    state.lose_saved();
    say("lost the saved searches: another gateway may run them now");
}

/// The URL by which other gateways reach this one, where the settings name none. One that listens on every address has that from which this
/// machine reaches others.
pub(super) fn own_url(listens: std::net::SocketAddr, secure: bool) -> Result<String, Failure> {
    let scheme = if secure { "https" } else { "http" };
    let mut address = listens;
    if listens.ip().is_unspecified() {
        // Nothing is sent: the system only chooses a route. The address is one for documentation (RFC 5737, RFC 3849).
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
