//! The roles of a cluster: owners, each of some groups of the partitions; gateways over the owners; and read-only scan
//! servers.
//!
//! They find each other only through the bucket. There, the lease of a group names the address of its owner, and the
//! pin of a scan server its own. Gateways look up both. Scan servers poll for what owners have flushed.
//!
//! For an owner, `owner.rs` runs the process, `group.rs` one of its groups, `lease_holder.rs` a lease, and
//! `owner_port.rs` its port. `candidates.rs` ranks it among the others, and `handover.rs` passes a group on. Each
//! process is on the roll (`member.rs`). Commands that work on a bucket temporarily act as owners or gateways
//! (`bucket_session.rs`).

mod assignment;
mod bucket_session;
mod candidates;
#[cfg_attr(not(all(feature = "lab", any(feature = "dilate", debug_assertions))), path = "dilate_absent.rs")]
mod dilate;
mod gateway;
mod group;
mod handover;
mod lease_holder;
mod log;
mod member;
mod memory;
mod owner;
mod owner_port;
mod process;
mod records;
mod scan;
mod servers;
mod tell;

pub(super) use assignment::Assignment;
pub(crate) use bucket_session::BucketSession;
pub(super) use gateway::gateway;
pub(crate) use log::open_log;
pub(super) use owner::owner;
pub(super) use scan::scan;
pub(super) use tell::tell;

use super::http::{ClientListeners, ClusterMembership};
use super::seams::seams;
use crate::calls::calls;
use crate::commands::cluster::connector::NetworkConnector;
use crate::config::{Cluster, Config, Role};
use crate::failure::Failure;
use member::Member;
use meridian_api::Gateways;
use meridian_backend::cluster::ClusterSurvey;
use meridian_model::policy::level::LEVEL;
use meridian_remote::RoleTls;
use meridian_store::Bucket;
use meridian_store::bucket::{Condition, Levels, NextLevel, Peers};
use meridian_store::seams::Seams;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Requirements of a gateway that is one of several.
pub(super) struct GatewayMembership {
    bucket: Arc<dyn Bucket>,
    /// Length of the leases of saved searches without renewal.
    lease: Duration,
    /// URL by which other gateways reach this one.
    url: String,
    gateways: Arc<Gateways>,
}

/// Result of starting a process that serves clients.
struct OpenRole {
    listeners: ClientListeners,
    seams: Seams,
    bucket: Arc<dyn Bucket>,
    member: Member,
    /// Whether an operator has drained it.
    drained: watch::Receiver<bool>,
    /// Carries out orders until dropped.
    obeying: JoinSet<()>,
}

impl OpenRole {
    /// Opens the listeners first, so that a wrong address is reported before anything slow.
    async fn open(config: &mut Config, role: Role) -> Result<OpenRole, Failure> {
        let listeners = ClientListeners::open(config).await?;
        let seams = seams()?;
        let bucket = open_bucket(&config.cluster, &seams).await?;
        let (address, process) = (listeners.address().to_string(), seams.random.next_u64());
        let member =
            Member::join(&config.cluster, (role, Condition::Serves), address, process, &bucket, &seams).await?;
        let (told, drained) = watch::channel(false);
        let mut obeying = JoinSet::new();
        obeying.spawn(member.obey(told));
        Ok(OpenRole { listeners, seams, bucket, member, drained, obeying })
    }
}

/// Opens the bucket shared by all processes of the cluster, if this program can read its contents.
async fn open_bucket(cluster: &Cluster, seams: &Seams) -> Result<Arc<dyn Bucket>, Failure> {
    let (address, s3, seams) = (cluster.bucket.clone(), cluster.s3.options(), seams.clone());
    let open = move || -> Result<Arc<dyn Bucket>, Failure> {
        let opened = meridian_bucket::open(&address, &s3, &calls()?, &seams.random)?;
        // No role may serve an incomplete restore.
        meridian_store::bucket::check_whole(opened.as_ref())?;
        let opened = if level() > LEVEL { NextLevel::over(opened) } else { opened };
        match levels(&opened, &seams).check()? {
            Ok(_) => Ok(opened),
            Err(why) => Err(Failure::Usage(why)),
        }
    };
    blocking("opening the bucket", open).await?.map_err(|failure| match failure {
        Failure::Usage(what) => Failure::Usage(format!("--bucket {}: {what}", cluster.bucket)),
        other => other,
    })
}

/// Returns the membership of a server that serves clients.
async fn membership(
    role: &'static str,
    cluster: &Cluster,
    bucket: &Arc<dyn Bucket>,
    (seams, tls): (&Seams, Option<RoleTls>),
) -> Result<ClusterMembership, Failure> {
    let node = name_of(cluster, role);
    let runtime = blocking("starting threads", calls).await??;
    let connector = Arc::new(NetworkConnector { nats: Some(cluster.nats.clone()), tls, runtime });
    let survey = ClusterSurvey::new(&cluster.bucket, bucket, seams, connector);
    Ok(ClusterMembership { role, node, peers: Arc::new(Peers::new(bucket.clone(), seams)), survey, joins: None })
}

/// Returns the level of a bucket, for this program.
fn levels(bucket: &Arc<dyn Bucket>, seams: &Seams) -> Levels {
    Levels::new(bucket.clone(), seams, level(), env!("CARGO_PKG_VERSION"))
}

/// Returns the level of this program. With debug assertions, an environment variable makes it claim the next level. It
/// then writes fields unknown to others, for tests of two versions side by side.
fn level() -> u32 {
    let next = cfg!(debug_assertions) && std::env::var_os("MERIDIAN_TEST_NEXT_LEVEL").is_some();
    LEVEL + u32::from(next)
}

/// Returns the name of this process in this role, for messages, reports and orders.
fn name_of(cluster: &Cluster, role: &str) -> String {
    match cluster.node.as_str() {
        "" => format!("{role}-{}", std::process::id()),
        name => name.to_owned(),
    }
}

/// Runs blocking work on a thread for it.
async fn blocking<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Failure::Refused(format!("{what} failed: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn a_call_to_the_bucket_needs_no_thread_of_those_that_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let runtime =
            Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).enable_all().build().unwrap();
        let cluster = Cluster { bucket: format!("file://{}", folder.path().display()), ..Cluster::default() };
        // The bucket is opened on the only blocking thread, and its check makes calls that wait for a response.
        let bucket = runtime.block_on(open_bucket(&cluster, &Seams::real())).unwrap();
        let read = move || bucket.list("probe/").map(|names| names.len());
        assert_eq!(runtime.block_on(blocking("reading", read)).unwrap().unwrap(), 0);
    }
}
