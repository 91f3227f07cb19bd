//! What the servers of a cluster that answer clients tell each other, about once a second: what they need of the quotas of tenants, which are
//! divided between them, and where gateways reach each other.

use super::{Joins, blocking};
use meridian_admission::Ledger;
use meridian_admission::identity::Registry;
use meridian_api::Gateway;
use meridian_model::policy::part::{Division, Needs};
use meridian_store::StoreError;
use meridian_store::bucket::Peers;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a server says what it needs, and hears the others.
const SAY: Duration = Duration::from_secs(1);
/// Most tenants that a server names. It has no need of the quotas of the others then, which leaves it the equal part of them.
const TENANTS_MAX: usize = 256;

/// What a server says.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Said {
    /// What it needs, by tenant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    needs: BTreeMap<String, Needs>,
    /// Where it is, if it is a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gateway: Option<Announced>,
}

/// Where other gateways reach one.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Announced {
    number: u64,
    url: String,
    key: String,
}

/// Tells and hears the others for as long as it runs.
pub(in super::super) async fn divide(peers: Arc<Peers>, registry: Arc<Registry>, joins: Option<Joins>) {
    let joins = Arc::new(joins);
    loop {
        let (peers, registry, joins) = (peers.clone(), registry.clone(), joins.clone());
        match blocking("dividing quotas", move || turn(&peers, &registry.ledgers(), joins.as_ref().as_ref())).await {
            Ok(Ok(())) => {}
            // The parts stay as they are.
            Ok(Err(error)) => tracing::warn!(%error, "what other servers need of quotas is not known: trying again"),
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(SAY).await;
    }
}

/// Says what this server needs, and takes its parts. Without quotas only gateways say something.
fn turn(peers: &Peers, ledgers: &[Arc<Ledger>], joins: Option<&Joins>) -> Result<(), StoreError> {
    let limited: Vec<&Arc<Ledger>> = ledgers.iter().filter(|ledger| ledger.is_limited()).collect();
    if limited.is_empty() && joins.is_none() {
        peers.leave();
        return Ok(());
    }
    let needs = limited.iter().map(|ledger| (ledger.tenant().to_string(), ledger.needs()));
    let announced = |joins: &Joins| Announced {
        number: joins.gateways.number(),
        url: joins.url.clone(),
        key: joins.gateways.key().to_owned(),
    };
    let mine = Said {
        needs: needs.filter(|(_, needs)| !needs.is_empty()).take(TENANTS_MAX).collect(),
        gateway: joins.map(announced),
    };
    // Of numbers and names: it can be written.
    let others = peers.tell(&serde_json::to_vec(&mine).unwrap_or_default())?;
    let others: Vec<Said> = others.iter().map(|said| serde_json::from_slice(said).unwrap_or_default()).collect();
    if let Some(joins) = joins {
        let there = others.iter().filter_map(|said| said.gateway.clone());
        let there = there.map(|other| (other.number, Gateway { url: other.url.into(), key: other.key.into() }));
        joins.gateways.set_others(there.collect());
    }
    let nothing = Needs::default();
    for ledger in limited {
        let of = |said: &'_ Said| -> Needs { said.needs.get(&**ledger.tenant()).unwrap_or(&nothing).clone() };
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
            turn(&self.0, &self.1, None).unwrap();
        }

        /// Its parts of the quotas of the tenants.
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
        // No quotas, no objects.
        two.1.iter().for_each(|ledger| ledger.set(1, &Quotas::default()));
        two.turn(0);
        assert!(memory.objects().is_empty());
    }
}
