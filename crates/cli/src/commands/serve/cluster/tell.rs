//! Status reports of a server with clients to the others of its cluster. A report states what the server is and does,
//! its demand on the tenants' quotas, and where gateways reach it.
//!
//! Quotas are divided by this demand, so it is reported about once a second while a tenant has quotas. A gateway always
//! reports that often, since the others pass requests on to it. Otherwise a server reports every 15 s that it is alive,
//! for people only, since a store may bill each call.

use super::{GatewayMembership, blocking};
use meridian_admission::Ledger;
use meridian_api::{AppState, Gateway};
use meridian_backend::cluster::{Caches, GatewayEndpoint, ServerLoad, ServerStatus};
use meridian_model::policy::part::{Division, Needs};
use meridian_store::StoreError;
use meridian_store::bucket::{Peers, SERVER_HELD};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a server reports its demand, and reads the others' reports.
const SAY: Duration = Duration::from_secs(1);
/// Without quotas, a server reports in one of this many turns.
const SPEAKS: u64 = SERVER_HELD.as_secs() / 4;
/// In one of this many turns, a server removes the reports of dead servers.
const REMOVES: u64 = 8 * SPEAKS;
/// Max tenants in a report. For the others no demand is reported, which leaves an equal share of their quotas.
const TENANTS_MAX: usize = 256;

/// Reports for as long as it runs.
pub(in super::super) async fn tell(
    peers: Arc<Peers>,
    state: AppState,
    who: ServerStatus,
    joins: Option<GatewayMembership>,
) {
    let joins = Arc::new(joins);
    for number in 0.. {
        let (peers, state, who, joins) = (peers.clone(), state.clone(), who.clone(), joins.clone());
        let turn = move || {
            let who = || ServerStatus { load: Some(load(&state)), ..who };
            turn(&peers, &state.registry.ledgers(), (number, joins.as_ref().as_ref()), who)
        };
        match blocking("speaking to other servers", turn).await {
            Ok(Ok(())) => {}
            // The shares stay as they are.
            Ok(Err(error)) => tracing::warn!(%error, "what other servers need of quotas is not known: trying again"),
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(SAY).await;
    }
}

/// Returns the load of this server.
fn load(state: &AppState) -> ServerLoad {
    let counts = state.gate.counts();
    // A gateway reads no segments, and would have to ask the owner for its collections.
    let caches = state.backend.follows().then(|| {
        let mut sum = Caches::default();
        for collection in state.all_collections().unwrap_or_default() {
            let stats = collection.stats();
            sum.hits += stats.cache_hits;
            sum.misses += stats.cache_misses;
            sum.bytes_fetched += stats.bytes_read;
        }
        sum
    });
    ServerLoad {
        slots: counts.slots as u64,
        running: counts.running as u64,
        waiting: counts.waiting as u64,
        refused: state.gate.refused(),
        connections: state.metrics.connections_open.load(Ordering::Relaxed) as u64,
        caches,
        scan_reads: state.backend.scan_reads(),
    }
}

/// Runs turn `number`. With quotas it reports this server's demand, and takes its shares. A gateway learns the
/// addresses of the others.
fn turn(
    peers: &Peers,
    ledgers: &[Arc<Ledger>],
    (number, joins): (u64, Option<&GatewayMembership>),
    who: impl FnOnce() -> ServerStatus,
) -> Result<(), StoreError> {
    let limited: Vec<&Arc<Ledger>> = ledgers.iter().filter(|ledger| ledger.is_limited()).collect();
    if limited.is_empty() && joins.is_none() {
        return match number {
            n if n % REMOVES == SPEAKS => peers.tell(&who().write()).map(drop),
            n if n % SPEAKS == 0 => peers.say(&who().write()).map(drop),
            _ => Ok(()),
        };
    }
    let needs = limited.iter().map(|ledger| (ledger.tenant().to_string(), ledger.needs()));
    let needs = needs.filter(|(_, needs)| !needs.is_empty()).take(TENANTS_MAX).collect();
    let reached = |joins: &GatewayMembership| GatewayEndpoint {
        number: joins.gateways.number(),
        url: joins.url.clone(),
        key: joins.gateways.key().to_owned(),
    };
    let mine = ServerStatus { needs, gateway: joins.map(reached), ..who() };
    let others: Vec<ServerStatus> = peers.tell(&mine.write())?.iter().map(|said| ServerStatus::read(said)).collect();
    if let Some(joins) = joins {
        let there = others.iter().filter_map(|said| said.gateway.clone());
        let there = there.map(|other| (other.number, Gateway { url: other.url.into(), key: other.key.into() }));
        joins.gateways.set_others(there.collect());
    }
    let nothing = Needs::default();
    for ledger in limited {
        let of = |said: &'_ ServerStatus| -> Needs { said.needs.get(&**ledger.tenant()).unwrap_or(&nothing).clone() };
        let theirs: Vec<Needs> = others.iter().map(of).collect();
        ledger.divide(Division::among(&of(&mine), theirs.iter().map(Some)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::policy::quota::{Quota, Quotas};
    use meridian_store::bucket::{Bucket, MemoryBucket};
    use meridian_store::seams::Seams;

    const LIMIT: u64 = 800;

    struct Server(Peers, Vec<Arc<Ledger>>);

    impl Server {
        fn new(bucket: &Arc<dyn Bucket>) -> Server {
            let ledgers = ["busy", "idle", "free"].map(|tenant| Arc::new(Ledger::new(tenant)));
            let mut quotas = Quotas::default();
            quotas.set(Quota::EventsPerSecond, Some(LIMIT)).unwrap();
            ledgers[..2].iter().for_each(|ledger| ledger.set(1, &quotas));
            Server(Peers::new(bucket.clone(), &Seams::real()), ledgers.to_vec())
        }

        fn turn(&self, used: u64) {
            self.1[0].charge(Quota::EventsPerSecond, used);
            turn(&self.0, &self.1, (1, None), ServerStatus::default).unwrap();
        }

        /// Its shares of the tenants' quotas.
        fn parts(&self) -> [Option<u64>; 3] {
            [0, 1, 2].map(|at: usize| self.1[at].limit(Quota::EventsPerSecond))
        }
    }

    #[test]
    fn two_servers_share_a_quota_by_need_and_one_has_all_of_it() {
        let memory = MemoryBucket::new();
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let (one, two) = (Server::new(&bucket), Server::new(&bucket));
        one.turn(100);
        assert_eq!(one.parts(), [Some(LIMIT), Some(LIMIT), None], "it is alone");
        two.turn(0);
        assert_eq!(two.parts(), [Some(100), Some(400), None]);
        one.turn(300);
        assert_eq!(one.parts(), [Some(700), Some(400), None]);
        two.turn(100);
        assert_eq!(two.parts(), [Some(250), Some(400), None]);
        one.0.leave();
        two.turn(10);
        assert_eq!(two.parts(), [Some(LIMIT), Some(LIMIT), None], "it is alone again");
    }

    #[test]
    fn without_quotas_a_server_says_that_it_is_there_now_and_then() {
        let memory = MemoryBucket::new();
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let (one, two) = (Server::new(&bucket), Server::new(&bucket));
        two.turn(0);
        for server in [&one, &two] {
            server.1.iter().for_each(|ledger| ledger.set(1, &Quotas::default()));
        }
        let mut spoke = Vec::new();
        for number in 0..2 * REMOVES {
            let said = || {
                spoke.push(number);
                ServerStatus { role: Some("gateway".to_owned()), ..ServerStatus::default() }
            };
            turn(&one.0, &one.1, (number, None), said).unwrap();
        }
        assert!(spoke.iter().copied().eq((0..2 * REMOVES).step_by(SPEAKS as usize)), "{spoke:?}");
        assert_eq!(memory.objects().len(), 2, "each has one object");
    }
}
