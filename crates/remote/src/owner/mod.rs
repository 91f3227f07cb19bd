//! The server: answers for a backend of this process.

mod acts;
mod answers;
mod appends;
mod collected;
mod positions;
mod scans;
mod seat;
mod service;
mod streams;

use crate::tls::{self, RoleTls};
use crate::wire::MESSAGE_BYTES_MAX;
use appends::Appends;
use arrow_flight::flight_service_server::FlightServiceServer;
use meridian_backend::{Backend, Collection, Part, Random};
use meridian_observe::{self as observe, Current, Kind, Parent, Span, Tracer};
use meridian_query::{CancelFlag, Control};
use positions::{Noting, Positions};
pub use scans::{ScanLoad, ScanTurns};
use service::Service;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::wire::described::Place;
use crate::wire::fault::Fault;

/// How long started scans have to end after a stop, while others are answered busy.
const DRAIN: Duration = Duration::from_secs(10);
/// How long running calls have to end after a stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long a peer may be silent before it is pinged, and after that.
const SILENCE: Duration = Duration::from_secs(5);
/// Bytes of one answer on their way: a reader that stalls holds no more.
const WINDOW_BYTES: u32 = 2 << 20;
/// Bytes of all answers of a connection on their way.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Calls at a time on one connection.
const STREAMS_MAX: u32 = 4096;
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
    /// Asks each caller for a certificate; `None`: all may call, and without TLS.
    pub tls: Option<RoleTls>,
    /// The turns of questions, of a scan server. `None`: this process owns the data, and starts whatever it is asked.
    pub scans: Option<Arc<ScanTurns>>,
    /// How long after a stop new calls are refused in words, before connections close. Where a connection closes under a call, its caller
    /// cannot know whether it arrived.
    pub linger: Duration,
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
            linger: Duration::ZERO,
        }
    }

    /// Options of a scan server, which owns nothing: `process` is its number in its pin.
    pub fn of_scans(process: u64, scans: Arc<ScanTurns>, control: Controls, random: Arc<dyn Random>) -> ServeOptions {
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
    /// For steps of questions.
    running: Arc<Semaphore>,
    /// For acts, which must not wait for questions: gateways ask what a collection is at every request.
    acting: Arc<Semaphore>,
    received: Arc<Semaphore>,
    appends: Appends,
    positions: Arc<Positions>,
    /// True once the server stops.
    closing: watch::Receiver<bool>,
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
    fn collection(&self, place: &Place) -> Result<Arc<dyn Collection>, Fault> {
        match place.partition {
            None => self.whole(place),
            Some(number) => Ok(self.part(place, number)?),
        }
    }

    /// A partition of the collection of a place.
    fn part(&self, place: &Place, number: u16) -> Result<Arc<dyn Part>, Fault> {
        let found = self.whole(place)?.part(number.into())?;
        found.ok_or_else(|| Fault::internal(format!("the collection {:?} has no partition {number}", place.name)))
    }

    fn whole(&self, place: &Place) -> Result<Arc<dyn Collection>, Fault> {
        let found = self.backend.collection(&place.tenant, &place.name)?;
        match found.filter(|collection| collection.created() == place.made) {
            Some(collection) => Ok(collection),
            None => match self.backend.why_damaged(&place.tenant, &place.name)? {
                Some(damaged) => Err(Fault::Damaged(damaged.into())),
                None => self.still().and(Err(Fault::Closed)),
            },
        }
    }

    /// Whether what was just found absent is. A store that closes lets go of its collections, and a former owner has none that were made
    /// since: in both cases the next owner is to be asked.
    fn still(&self) -> Result<(), Fault> {
        match !*self.closing.borrow() && (self.options.owns)() {
            true => Ok(()),
            false => Err(Fault::Unavailable("the server that was asked no longer owns the data: try again".to_owned())),
        }
    }

    /// Runs a step of a question.
    async fn step<T: Send + 'static>(
        &self,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        self.run(&self.running, control, work).await
    }

    /// Runs work on a thread that may block, once there is a slot. A caller that goes away meanwhile does not end the
    /// work: its control does.
    async fn run<T: Send + 'static>(
        &self,
        slots: &Arc<Semaphore>,
        control: &Control,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let slot = tokio::time::timeout(control.time_left(), slots.clone().acquire_owned()).await;
        let slot = slot.map_err(|_| Fault::Deadline)?.map_err(|_| Fault::Closed)?;
        let current = observe::current();
        let done = tokio::task::spawn_blocking(move || {
            let done = current.run(work);
            drop(slot);
            done
        });
        done.await.map_err(|e| Fault::internal(format!("the owner failed: {e}")))
    }
}

/// Serves a backend until `stop` resolves, then lets running calls end for a while.
///
/// # Errors
/// Those of the listener.
pub async fn serve(
    backend: Arc<dyn Backend>,
    listener: TcpListener,
    options: ServeOptions,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (close, closing) = watch::channel(false);
    let tls = options.tls.clone();
    let scans = options.scans.clone();
    let linger = options.linger;
    let positions = Arc::new(Positions::default());
    backend.subscribe(Arc::new(Noting(Arc::downgrade(&positions))));
    let owner = Arc::new(Owner {
        backend,
        instance: options.random.next_u64(),
        running: Arc::new(Semaphore::new(options.running_max)),
        acting: Arc::new(Semaphore::new(options.running_max)),
        received: Arc::new(Semaphore::new(RECEIVED_KIB_MAX)),
        appends: Appends::default(),
        positions,
        closing: closing.clone(),
        options,
    });
    let service = FlightServiceServer::new(Service(owner))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut ended = closing.clone();
    let ended = async move {
        drop(ended.wait_for(|closing| *closing).await);
        tokio::time::sleep(linger).await;
    };
    let router = Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_keepalive_interval(Some(SILENCE))
        .http2_keepalive_timeout(Some(SILENCE))
        .add_service(service);
    let server = async move {
        match tls {
            Some(tls) => router.serve_with_incoming_shutdown(tls::incoming(listener, tls), ended).await,
            None => {
                router.serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), ended).await
            }
        }
    };
    let mut server = std::pin::pin!(server);
    tokio::select! {
        served = &mut server => {
            close.send_replace(true);
            return served.map_err(io::Error::other);
        }
        () = drained(scans, stop) => drop(close.send(true)),
    }
    // Streams that never end by themselves see `closing`; what still runs after the grace is cut.
    match tokio::time::timeout(linger + GRACE, server).await {
        Ok(served) => served.map_err(io::Error::other),
        Err(_) => Ok(()),
    }
}

/// Resolves at the stop, of a scan server once what it has started has ended. Gateways ask others meanwhile.
async fn drained(scans: Option<Arc<ScanTurns>>, stop: impl Future<Output = ()>) {
    stop.await;
    if let Some(scans) = scans {
        scans.drain();
        // What is cut after that goes on elsewhere, from the last row that arrived.
        drop(tokio::time::timeout(DRAIN, scans.ended()).await);
    }
}
