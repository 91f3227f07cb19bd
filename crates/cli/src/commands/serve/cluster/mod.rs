//! The roles of a cluster: owners, each of some groups of the partitions, gateways over the owners, and servers that only read.
//!
//! They meet in the bucket alone. The lease of a group there names the address of its owner, and a scan server's pin its own: gateways look both
//! up. Scan servers look for what owners have flushed.
//!
//! Of an owner, `owner.rs` runs the process, `group.rs` one of its groups, `keeper.rs` the lease of that group, `door.rs` its port, and
//! `candidates.rs` ranks it among the others.

mod candidates;
mod door;
mod gateway;
mod group;
mod keeper;
mod log;
mod memory;
mod owner;
mod quotas;
mod records;
mod scan;
mod servers;

pub(super) use gateway::gateway;
pub(super) use owner::owner;
pub(super) use quotas::divide;
pub(super) use scan::scan;

use super::http::Doors;
use crate::calls::calls;
use crate::config::{Cluster, Config};
use crate::failure::Failure;
use meridian_store::Bucket;
use meridian_store::seams::Seams;
use std::sync::Arc;

/// What a process begins with that answers clients.
struct Opened {
    doors: Doors,
    seams: Seams,
    bucket: Arc<dyn Bucket>,
}

impl Opened {
    /// The doors first: a wrong address is reported before anything slow.
    async fn open(config: &mut Config) -> Result<Opened, Failure> {
        let doors = Doors::open(config).await?;
        let seams = Seams::real();
        let bucket = open_bucket(&config.cluster, &seams).await?;
        Ok(Opened { doors, seams, bucket })
    }
}

/// Opens the bucket that all processes of the cluster share.
async fn open_bucket(cluster: &Cluster, seams: &Seams) -> Result<Arc<dyn Bucket>, Failure> {
    let (address, s3, random) = (cluster.bucket.clone(), cluster.s3.options(), seams.random.clone());
    let open =
        move || -> Result<Arc<dyn Bucket>, Failure> { Ok(meridian_bucket::open(&address, &s3, &calls()?, &random)?) };
    blocking("opening the bucket", open).await?.map_err(|failure| match failure {
        Failure::Usage(what) => Failure::Usage(format!("--bucket {}: {what}", cluster.bucket)),
        other => other,
    })
}

/// Runs what may block on a thread for it.
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
        // The bucket is opened on the only thread for what blocks, and tested by calls that wait for an answer.
        let bucket = runtime.block_on(open_bucket(&cluster, &Seams::real())).unwrap();
        let read = move || bucket.list("probe/").map(|names| names.len());
        assert_eq!(runtime.block_on(blocking("reading", read)).unwrap().unwrap(), 0);
    }
}
