//! The state shared by all groups of a process.

use super::member::Member;
use super::memory::Pool;
use crate::config::Config;
use meridian_model::policy::groups::Group;
use meridian_remote::{Pace, ServedGroups};
use meridian_store::bucket::{Condition, lease_of};
use meridian_store::seams::Seams;
use meridian_store::{Bucket, SharedLog, SharedResources};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// State shared by all groups of a process.
pub(super) struct Process {
    pub(super) config: Config,
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) log: SharedLog,
    pub(super) seams: Seams,
    pub(super) resources: SharedResources,
    pub(super) memory: Arc<Pool>,
    pub(super) served: Arc<ServedGroups>,
    /// True once the process stops.
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) member: Arc<Member>,
    /// Its process number in all leases.
    pub(super) number: u64,
    pub(super) standing: watch::Sender<RollStatus>,
    /// Modelled time of row batches, in a study.
    pub(super) pace: Option<Arc<dyn Pace>>,
}

/// Status that a process reports on the roll.
#[derive(Debug, Default)]
pub(super) struct RollStatus {
    /// Names of its leases, for the groups it serves.
    leases: BTreeSet<String>,
    is_drained: bool,
}

impl Process {
    /// Records whether it is drained.
    pub(super) fn drains(&self, is_drained: bool) {
        self.says(|standing| standing.is_drained = is_drained);
    }

    /// Records whether it serves a group.
    pub(super) fn serves(&self, group: Group, is_served: bool) {
        let lease = lease_of(group);
        self.says(|standing| {
            let _ = if is_served { standing.leases.insert(lease) } else { standing.leases.remove(&lease) };
        });
    }

    fn says(&self, change: impl FnOnce(&mut RollStatus)) {
        self.standing.send_modify(|standing| {
            change(standing);
            let condition = match (standing.is_drained, standing.leases.is_empty()) {
                (true, _) => Condition::Drained,
                (false, true) => Condition::StandsBy,
                (false, false) => Condition::Serves,
            };
            // Under the lock, so that the last change is also reported last.
            self.member.is(condition, standing.leases.iter().cloned().collect());
        });
    }
}
