//! The server: exposes backends of this process, one for each group of partitions.

mod acts;
mod answers;
mod appends;
mod collected;
mod execution;
mod groups;
mod pace;
mod positions;
mod reply;
mod scans;
mod served;
mod service;
mod slots;
mod streams;

pub use groups::{MountedGroup, ServedGroups};
pub use pace::Pace;
pub use scans::{ScanExecutor, ScanLoad};
pub use served::{serve, serve_groups};
pub(crate) use service::Service;

use crate::tls::RoleTls;
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use appends::Appends;
use meridian_backend::{Backend, Collection, Part, Random, StoreError};
use meridian_observe::{self as observe, Kind, Parent, Span, Tracer, WorkContext};
use meridian_query::{CancelFlag, Control};
use positions::Positions;
use slots::FairSlots;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, watch};
use tokio::task;

/// Default max number of concurrent query steps, and of concurrent acts.
const RUNNING_MAX: usize = 64;
/// Max KiB of writes being received at a time.
const RECEIVED_KIB_MAX: usize = 512 << 10;

/// Makes the control of a call from its time left.
pub type Controls = Arc<dyn Fn(Duration, CancelFlag) -> Control + Send + Sync>;

/// Returns whether a process owns the data at this moment. Called for each call.
pub type OwnershipCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// How a backend is served.
#[derive(Clone)]
pub struct ServeOptions {
    /// Epoch of the lease under which this process owns the data. Callers reject responses of an older epoch.
    pub epoch: u64,
    /// Makes the control of each call: its clock, and the memory shared by queries.
    pub control: Controls,
    /// Source of this server's instance number, and of random events.
    pub random: Arc<dyn Random>,
    /// Max number of concurrent query steps, and of concurrent acts; others wait.
    pub running_max: usize,
    /// Tracer of the calls, as children of their callers' spans.
    pub tracer: Tracer,
    /// Whether this process owns the data now, by its own clock.
    pub owns: OwnershipCheck,
    /// Number of this process in the lease, or among scan servers. Calls for another process are refused. `None`: not
    /// checked.
    pub process: Option<u64>,
    /// TLS of a port that serves this backend alone: each caller must show a certificate. `None`: no TLS, and any
    /// caller.
    pub tls: Option<RoleTls>,
    /// Turns of queries, for a scan server. `None`: this process owns the data, and starts every query.
    pub scans: Option<Arc<ScanExecutor>>,
    /// Modelled time of row batches, for a study with dilated time.
    pub pace: Option<Arc<dyn Pace>>,
}

impl ServeOptions {
    /// Returns options with the default concurrency, for a process that always owns the data.
    pub fn new(epoch: u64, control: Controls, random: Arc<dyn Random>) -> ServeOptions {
        let owns = Arc::new(|| true);
        ServeOptions {
            epoch,
            control,
            random,
            running_max: RUNNING_MAX,
            tracer: Tracer::default(),
            owns,
            process: None,
            tls: None,
            scans: None,
            pace: None,
        }
    }

    /// Returns options for a scan server, which owns nothing. `process` is its number in its pin.
    pub fn of_scans(
        process: u64,
        scans: Arc<ScanExecutor>,
        control: Controls,
        random: Arc<dyn Random>,
    ) -> ServeOptions {
        ServeOptions { process: Some(process), scans: Some(scans), ..ServeOptions::new(0, control, random) }
    }
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ServeOptions");
        debug.field("epoch", &self.epoch).field("running_max", &self.running_max).finish_non_exhaustive()
    }
}

/// State shared by all calls.
struct Owner {
    backend: Arc<dyn Backend>,
    options: ServeOptions,
    /// Random number that distinguishes this server from every other, even of the same epoch.
    instance: u64,
    /// Slots of query steps, shared fairly among tenants.
    running: Arc<FairSlots>,
    /// Slots of acts. They must not wait for queries: gateways look up the collection at every request.
    acting: Arc<Semaphore>,
    received: Arc<Semaphore>,
    appends: Appends,
    positions: Arc<Positions>,
    closing: watch::Receiver<ShutdownStage>,
}

/// Stage of the shutdown of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShutdownStage {
    /// It is served.
    Open,
    /// Handed over to another process. No call begins; running responses continue.
    Passed,
    /// Running responses end.
    Cut,
}

impl Owner {
    /// Returns the span of a call, recorded where the call comes from, and the context of its work.
    fn span(&self, trace: Option<&str>, name: &'static str) -> (WorkContext, Span) {
        let Some(parent) = trace.and_then(|text| Parent::parse(text.as_bytes(), None)) else {
            return (WorkContext::default(), Span::none());
        };
        let (trace, span) = self.options.tracer.begin(|| Some(parent), name, Kind::Server);
        (WorkContext { trace, ..WorkContext::default() }, span)
    }

    /// Returns the collection or partition of a place, unless another one has its name by now.
    fn collection(&self, place: &CollectionRef) -> Result<Arc<dyn Collection>, Fault> {
        match place.partition {
            None => self.whole(place),
            Some(number) => Ok(self.part(place, number)?),
        }
    }

    /// Returns a partition of the collection of a place.
    fn part(&self, place: &CollectionRef, number: u16) -> Result<Arc<dyn Part>, Fault> {
        match self.newest_part(&place.tenant, &place.name, number, Some(place.made))? {
            Some(part) => Ok(part),
            None => {
                // First whether the collection is still the same and still here: if not, the next owner has to be
                // asked.
                self.whole(place)?;
                Err(Fault::internal(format!("the collection {:?} has no partition {number}", place.name)))
            }
        }
    }

    /// Returns a partition of a collection; if `made` is given, of the one made then. An unknown one may have been
    /// created since by the owner of the first partition.
    fn newest_part(
        &self,
        tenant: &str,
        name: &str,
        number: u16,
        made: Option<i64>,
    ) -> Result<Option<Arc<dyn Part>>, Fault> {
        let look = || -> Result<Option<Arc<dyn Part>>, StoreError> {
            let found = self.backend.collection(tenant, name)?;
            let found = found.filter(|found| made.is_none_or(|made| found.created() == made));
            found.map_or(Ok(None), |found| found.part(number.into()))
        };
        match look()? {
            None if number > 0 => {
                let adopt = || self.backend.adopt(tenant, name);
                // Calls the bucket, so the other tasks of this worker move to another thread meanwhile.
                match Handle::try_current() {
                    Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => task::block_in_place(adopt),
                    _ => adopt(),
                }?;
                Ok(look()?)
            }
            found => Ok(found),
        }
    }

    fn whole(&self, place: &CollectionRef) -> Result<Arc<dyn Collection>, Fault> {
        let found = self.backend.existing(&place.tenant, &place.name)?;
        match found.filter(|collection| collection.created() == place.made) {
            Some(collection) => Ok(collection),
            None => self.still().and(Err(Fault::Closed)),
        }
    }

    /// Checks that this process still owns the data, so that something just found missing really is. A store that
    /// closes releases its collections, and a former owner lacks those created since. In both cases the next owner has
    /// to be asked.
    fn still(&self) -> Result<(), Fault> {
        match *self.closing.borrow() == ShutdownStage::Open && (self.options.owns)() {
            true => Ok(()),
            false => Err(Fault::Unavailable("the server that was asked no longer owns the data: try again".to_owned())),
        }
    }

    /// Runs a step of a tenant's query when it is the tenant's turn.
    async fn step<T: Send + 'static>(
        &self,
        tenant: &str,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let slot = tokio::time::timeout(control.time_left(), self.running.take(tenant)).await;
        run(slot.map_err(|_| Fault::Deadline)??, work).await
    }

    /// Runs an act once a slot is free.
    async fn act<T: Send + 'static>(
        &self,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let slot = tokio::time::timeout(control.time_left(), self.acting.clone().acquire_owned()).await;
        run(slot.map_err(|_| Fault::Deadline)?.map_err(|_| Fault::Closed)?, work).await
    }
}

/// Runs work on a thread that may block, and holds its slot meanwhile. A caller that goes away does not end the work;
/// its control does.
async fn run<T: Send + 'static>(
    slot: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let current = observe::current();
    let done = tokio::task::spawn_blocking(move || {
        let done = current.run(work);
        drop(slot);
        done
    });
    done.await.map_err(|e| Fault::internal(format!("the owner failed: {e}")))
}
