//! The execution of a query: in slots shared by all calls or, at a scan server, as a scan of its executor.

use super::Owner;
use super::reply::wire_fault;
use super::scans::{NotStarted, Scan, ScanExecutor};
use crate::wire::call::WireQuery;
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use meridian_backend::{Collection, ReadPoint};
use meridian_observe as observe;
use meridian_query::Control;
use meridian_query::wire::Question;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// First interval at which a scan server checks for what a query names. It doubles up to the max, as each check decodes
/// the query.
const LOOK: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_millis(160);

/// A query of a collection or partition held here.
pub(super) struct BoundQuery {
    pub(super) collection: Arc<dyn Collection>,
    pub(super) at: ReadPoint,
    pub(super) question: Question,
    /// The control, which limits what the query may read.
    pub(super) control: Control,
}

/// How the steps of a query are scheduled.
pub(super) enum Execution {
    /// A slot of the shared pool, acquired for each step, in the queue of this tenant.
    Slots(Arc<str>),
    /// A started scan, which waits for a place for each batch.
    Scan(Arc<Scan>),
    /// A started scan that still has its place: its first batch is yet to come.
    NewScan(Arc<Scan>),
}

impl From<NotStarted> for Fault {
    fn from(_: NotStarted) -> Fault {
        Fault::NotStarted
    }
}

/// Binds a query and starts it. A scan server starts it within its busy timeout, or answers busy.
pub(super) async fn start(
    owner: &Arc<Owner>,
    asked: &WireQuery,
    control: &Control,
) -> Result<(BoundQuery, Execution), Fault> {
    let Some(executor) = &owner.options.scans else {
        return Ok((bind(owner, asked, control)?, Execution::of(&asked.place)));
    };
    let (begun, patience) = (Instant::now(), asked.busy_timeout());
    let bound = follow(owner, executor, asked, control).await?;
    let left = match patience.is_zero() {
        true => patience,
        // Never zero, which would mean no limit.
        false => patience.saturating_sub(begun.elapsed()).max(Duration::from_micros(1)),
    };
    let scan = executor.start(left).await?;
    Ok((bound, Execution::NewScan(scan)))
}

/// Waits until this scan server has the collection, field or snapshot that a query names and another process already
/// has. A follower is a few moments behind, and a gateway only asks for things that exist.
async fn follow(
    owner: &Owner,
    executor: &ScanExecutor,
    asked: &WireQuery,
    control: &Control,
) -> Result<BoundQuery, Fault> {
    let (begun, patience, mut look) = (Instant::now(), asked.busy_timeout(), LOOK);
    loop {
        let is_unknown = match bind(owner, asked, control) {
            Ok(bound) if bound.is_there() => return Ok(bound),
            Ok(_) | Err(Fault::Invalid(_)) => false,
            Err(Fault::Closed) => true,
            Err(fault) => return Err(fault),
        };
        // Zero means no limit.
        let left = if patience.is_zero() { Duration::MAX } else { patience.saturating_sub(begun.elapsed()) };
        if executor.is_draining() || left.is_zero() {
            let busy = executor.refuse();
            // A gateway goes on to the others, and then to the owner: it may never be known here.
            return Err(if is_unknown && left.is_zero() { Fault::Closed } else { busy.into() });
        }
        tokio::time::sleep(look.min(left)).await;
        look = (look * 2).min(LOOK_MAX);
    }
}

/// Returns the collection, snapshot and query of a call.
fn bind(owner: &Owner, asked: &WireQuery, control: &Control) -> Result<BoundQuery, Fault> {
    let collection = owner.collection(&asked.place)?;
    let bytes = serde_json::to_vec(&asked.question).map_err(|e| Fault::internal(e.to_string()))?;
    let (question, _) = Question::from_json(&bytes, &collection.schema()).map_err(wire_fault)?;
    let control = match asked.bytes_max {
        Some(bytes) => control.clone().reading_at_most(bytes),
        None => control.clone(),
    };
    Ok(BoundQuery { collection, at: asked.at.clone().into(), question, control })
}

impl BoundQuery {
    /// Returns true unless this server has yet to reach the snapshot.
    fn is_there(&self) -> bool {
        self.at.seq.as_ref().is_none_or(|seq| self.collection.position().ends().covers(seq))
    }
}

/// Releases a scan's place when dropped, whatever the outcome of its step.
struct RestGuard(Arc<Scan>);

impl Drop for RestGuard {
    fn drop(&mut self) {
        self.0.rest();
    }
}

impl Execution {
    /// Returns an execution in shared slots, in the queue of a collection's tenant.
    pub(super) fn of(place: &CollectionRef) -> Execution {
        Execution::Slots(place.tenant.as_str().into())
    }

    /// Runs the work before the first batch on a thread that may block. A scan keeps its place for that batch: it waits
    /// once for each batch, and not for its plan as well.
    pub(super) async fn open<T: Send + 'static>(
        &mut self,
        owner: &Owner,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let Execution::NewScan(scan) = self else { return self.step(owner, control, work).await };
        let scan = scan.clone();
        // The scan keeps the place until the work ends, even if the caller goes away before.
        run(move || (work(), drop(scan)).0).await
    }

    /// Runs a step of a query on a thread that may block, once it has a slot or a place.
    pub(super) async fn step<T: Send + 'static>(
        &mut self,
        owner: &Owner,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let scan = match self {
            Execution::Slots(tenant) => return owner.step(tenant, control, work).await,
            Execution::NewScan(scan) => scan.clone(),
            Execution::Scan(scan) => {
                scan.again().await;
                scan.clone()
            }
        };
        *self = Execution::Scan(scan.clone());
        run(move || {
            // Released when the work ends, even if the caller goes away before.
            let _resting = RestGuard(scan);
            work()
        })
        .await
    }
}

async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let current = observe::current();
    let done = tokio::task::spawn_blocking(move || current.run(work));
    done.await.map_err(|e| Fault::internal(format!("the scan server failed: {e}")))
}
