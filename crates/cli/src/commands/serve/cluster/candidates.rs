//! A process among the candidates for the groups of a bucket: it tells the others that it is there, ranks itself for each group, and passes on
//! those that another one should have. The rules are `model::policy::placement`.
//!
//! Of a bucket with one group nothing is told, and nothing is passed on: who has it keeps it.

use super::{blocking, node_of};
use crate::config::Cluster;
use meridian_model::policy::groups::{Group, Groups};
use meridian_model::policy::placement::{Handovers, Placed, places};
use meridian_store::bucket::Peers;
use meridian_store::seams::{Clock, Seams};
use meridian_store::{Bucket, Lease};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What a candidate tells the others.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    node: String,
    process: u64,
}

/// This process among the others.
pub(super) struct Candidates {
    peers: Arc<Peers>,
    clock: Arc<dyn Clock>,
    me: Placed,
    groups: Groups,
    ttl: Duration,
    places: Vec<Vec<u64>>,
    handovers: Handovers,
    /// The lease of each group, and where its holder hears that it is to be passed on.
    leases: Vec<(Group, Arc<Lease>, watch::Sender<u64>)>,
}

impl Candidates {
    /// Tells the others that this process is there, and hears them. What cannot be heard now is heard later.
    pub(super) async fn enter(
        cluster: &Cluster,
        bucket: &Arc<dyn Bucket>,
        groups: Groups,
        seams: &Seams,
    ) -> Candidates {
        let node = node_of("owner", cluster);
        let ttl = cluster.lease;
        // One that misses a turn is not gone yet.
        let peers = Arc::new(Peers::candidates(bucket.clone(), seams, ttl * 3 / 2));
        let mut candidates = Candidates {
            peers,
            clock: seams.clock.clone(),
            me: Placed { node, process: seams.random.next_u64() },
            groups,
            ttl,
            places: Vec::new(),
            handovers: Handovers::default(),
            leases: Vec::new(),
        };
        candidates.place(Vec::new());
        candidates.hear().await;
        candidates
    }

    /// The name of this process.
    pub(super) fn node(&self) -> &str {
        &self.me.node
    }

    /// How many candidates are to come before this one for a group.
    fn rank(&self, group: Group) -> usize {
        let order = self.places.get(usize::from(group.number()));
        order.and_then(|order| order.iter().position(|process| *process == self.me.process)).unwrap_or(0)
    }

    /// Ranks the candidate for a group by its lease from now on. Its holder passes the group on whenever what is returned changes.
    pub(super) fn keep(&mut self, group: Group, lease: Arc<Lease>) -> watch::Receiver<u64> {
        lease.ranks(self.rank(group));
        let (pass, passes) = watch::channel(0);
        self.leases.push((group, lease, pass));
        passes
    }

    /// Keeps ranks current and passes groups on, until `stopping`.
    pub(super) async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        if self.groups == Groups::ONE {
            return;
        }
        loop {
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => break,
                () = tokio::time::sleep(self.ttl / 3) => {}
            }
            if self.hear().await {
                self.pass_on();
            }
        }
        let peers = self.peers.clone();
        // The others count this process no more: one of them is the first for each of its groups.
        let _ = blocking("leaving the candidates", move || peers.leave()).await;
    }

    /// Tells and hears; whether the others were heard.
    async fn hear(&mut self) -> bool {
        if self.groups == Groups::ONE {
            return true;
        }
        let said = Said { node: self.me.node.clone(), process: self.me.process };
        // Of a number and a name: it can be written.
        let (peers, said) = (self.peers.clone(), serde_json::to_vec(&said).unwrap_or_default());
        match blocking("hearing other owners", move || peers.tell(&said)).await {
            Ok(Ok(others)) => {
                let others = others.iter().filter_map(|said| serde_json::from_slice::<Said>(said).ok());
                self.place(others.map(|Said { node, process }| Placed { node, process }).collect());
                true
            }
            // The ranks stay as they are.
            Ok(Err(error)) => {
                tracing::warn!(%error, "other owners were not heard: trying again");
                false
            }
            Err(failure) => {
                tracing::error!("{failure}");
                false
            }
        }
    }

    fn place(&mut self, mut others: Vec<Placed>) {
        others.push(self.me.clone());
        self.places = places(self.groups, &others);
        self.leases.iter().for_each(|(group, lease, _)| lease.ranks(self.rank(*group)));
    }

    /// Passes the next group on, if one is due.
    fn pass_on(&mut self) {
        let held = |(group, lease, _): &(Group, Arc<Lease>, watch::Sender<u64>)| lease.holds().then(|| group.number());
        let held: Vec<u16> = self.leases.iter().filter_map(held).collect();
        let now = Duration::from_micros(u64::try_from(self.clock.elapsed()).unwrap_or(0));
        let Some(due) = self.handovers.due(self.me.process, &held, &self.places, self.ttl, now) else { return };
        if let Some((_, _, pass)) = self.leases.iter().find(|(group, ..)| group.number() == due) {
            pass.send_modify(|times| *times += 1);
        }
    }
}
