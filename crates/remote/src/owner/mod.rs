//! The server: answers for backends of this process, one for each group of partitions.

mod acts;
mod answers;
mod appends;
mod collected;
mod pace;
mod positions;
mod scans;
mod seat;
mod served;
mod service;
mod slots;
mod streams;

pub use pace::Pace;
pub use scans::{ScanExecutor, ScanLoad};
pub use served::{Mounted, Served, serve, serve_groups};
pub(crate) use service::Service;

use crate::tls::RoleTls;
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use appends::Appends;
use meridian_backend::{Backend, Collection, Part, Random, StoreError};
use meridian_observe::{self as observe, Current, Kind, Parent, Span, Tracer};
use meridian_query::{CancelFlag, Control};
use positions::Positions;
use slots::FairSlots;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, watch};
use tokio::task;

/// Steps of questions that run at a time, and acts, by default.
const RUNNING_MAX: usize = 64;
/// KiB of writes that are being received at a time.
const RECEIVED_KIB_MAX: usize = 512 << 10;

/// Makes the control of a call from the time that is left for it.
pub type Controls = Arc<dyn Fn(Duration, CancelFlag) -> Control + Send + Sync>;

/// Says whether a process owns the data at this moment. Asked at each call.
pub type Owns = Arc<dyn Fn() -> bool + Send + Sync>;

/// How a backend is served.
#[derive(Clone)]
pub struct ServeOptions {
    /// The epoch of the lease under which this process owns the data; callers refuse answers of an older one.
    pub epoch: u64,
    /// The control of each call: its clock, and the memory that queries share.
    pub control: Controls,
    /// For the number of this server, and for random events.
    pub random: Arc<dyn Random>,
    /// How many steps of questions run at a time, and how many acts; others wait for one to end.
    pub running_max: usize,
    /// Records what calls do here, as parts of their callers' traces.
    pub tracer: Tracer,
    /// Whether this process owns the data now, by its own clock.
    pub owns: Owns,
    /// The number of this process in the lease, or among scan servers: calls for another one are refused. `None`: it is not checked.
    pub process: Option<u64>,
    /// Asks each caller of a port that this backend alone is served at for a certificate; `None`: all may call, and without TLS.
    pub tls: Option<RoleTls>,
    /// The turns of questions, of a scan server. `None`: this process owns the data, and starts whatever it is asked.
    pub scans: Option<Arc<ScanExecutor>>,
    /// How long batches of rows take, of a study with dilated time.
    pub pace: Option<Arc<dyn Pace>>,
}

impl ServeOptions {
    /// Options with the default number of steps at a time, of a process that owns the data for ever.
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

    /// Options of a scan server, which owns nothing: `process` is its number in its pin.
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

/// What all calls share.
struct Owner {
    backend: Arc<dyn Backend>,
    options: ServeOptions,
    /// A random number that tells this server from every other, of the same epoch too.
    instance: u64,
    /// For steps of questions, by the turns of tenants.
    running: Arc<FairSlots>,
    /// For acts, which must not wait for questions: gateways ask what a collection is at every request.
    acting: Arc<Semaphore>,
    received: Arc<Semaphore>,
    appends: Appends,
    positions: Arc<Positions>,
    closing: watch::Receiver<Closing>,
}

/// How far a group is from being served no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// It is served.
    Open,
    /// Another process has it, by the will of this one. Nothing begins; answers that have begun go on.
    Passed,
    /// Answers end.
    Cut,
}

impl Owner {
    /// The span of a call that is recorded where it comes from, and the work within it.
    fn span(&self, trace: Option<&str>, name: &'static str) -> (Current, Span) {
        let Some(parent) = trace.and_then(|text| Parent::parse(text.as_bytes(), None)) else {
            return (Current::default(), Span::none());
        };
        let (trace, span) = self.options.tracer.begin(|| Some(parent), name, Kind::Server);
        (Current { trace, ..Current::default() }, span)
    }

    /// The collection or partition of a place, unless another has its name by now.
    fn collection(&self, place: &CollectionRef) -> Result<Arc<dyn Collection>, Fault> {
        match place.partition {
            None => self.whole(place),
            Some(number) => Ok(self.part(place, number)?),
        }
    }

    /// A partition of the collection of a place.
    fn part(&self, place: &CollectionRef, number: u16) -> Result<Arc<dyn Part>, Fault> {
        match self.newest_part(&place.tenant, &place.name, number, Some(place.made))? {
            Some(part) => Ok(part),
            None => {
                self.whole(place)?;
                Err(Fault::internal(format!("the collection {:?} has no partition {number}", place.name)))
            }
        }
    }

    /// A partition of a collection, made at this time if one is named. One that is not known yet may have been made by the owner of the first
    /// partition since.
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
                // Calls to the bucket: the other tasks of this worker go on elsewhere meanwhile.
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
        let found = self.backend.collection(&place.tenant, &place.name)?;
        match found.filter(|collection| collection.created() == place.made) {
            Some(collection) => Ok(collection),
            None => match self.backend.why_damaged(&place.tenant, &place.name)? {
                Some(damaged) => Err(Fault::Damaged(damaged.into())),
                None => self.still().and(Err(Fault::Closed)),
            },
        }
    }

    /// Whether what was just found absent really is. A store that closes lets go of its collections, and a former owner has none that
    /// were made since. In both cases the next owner is to be asked.
    fn still(&self) -> Result<(), Fault> {
        match *self.closing.borrow() == Closing::Open && (self.options.owns)() {
            true => Ok(()),
            false => Err(Fault::Unavailable("the server that was asked no longer owns the data: try again".to_owned())),
        }
    }

    /// Runs a step of a tenant's question, when it is the tenant's turn.
    async fn step<T: Send + 'static>(
        &self,
        tenant: &str,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let slot = tokio::time::timeout(control.time_left(), self.running.take(tenant)).await;
        run(slot.map_err(|_| Fault::Deadline)??, work).await
    }

    /// Runs an act, once there is a slot for it.
    async fn act<T: Send + 'static>(
        &self,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let slot = tokio::time::timeout(control.time_left(), self.acting.clone().acquire_owned()).await;
        run(slot.map_err(|_| Fault::Deadline)?.map_err(|_| Fault::Closed)?, work).await
    }
}

/// Runs work on a thread that may block, and holds its slot meanwhile. A caller that goes away does not end the work: its control does.
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
