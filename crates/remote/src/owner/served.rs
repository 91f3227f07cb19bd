//! The groups a process serves at one port. They come and go while it serves.

use super::positions::{PositionSubscriber, Positions};
use super::scans::ScanExecutor;
use super::service::Service;
use super::slots::FairSlots;
use super::{Appends, Owner, RECEIVED_KIB_MAX, ServeOptions, ShutdownStage};
use crate::tls::{self, RoleTls};
use crate::wire::MESSAGE_BYTES_MAX;
use arrow_flight::flight_service_server::FlightServiceServer;
use meridian_backend::Backend;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// How long started scans may run after a stop, while new ones are answered busy.
const DRAIN: Duration = Duration::from_secs(10);
/// How long running calls may take to end after a stop.
const GRACE: Duration = Duration::from_secs(5);
/// Poll interval for their end.
const LOOK: Duration = Duration::from_millis(10);
/// Time of silence before a peer is pinged, and then time to respond.
const SILENCE: Duration = Duration::from_secs(5);
/// Bytes of one response in flight: a stalled reader holds no more.
const WINDOW_BYTES: u32 = 2 << 20;
/// Bytes in flight of all responses of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Max concurrent calls on one connection.
const STREAMS_MAX: u32 = 4096;

/// The groups that a process serves, by number.
#[derive(Default)]
pub struct ServedGroups(watch::Sender<Groups>);

#[derive(Default)]
struct Groups {
    owners: BTreeMap<u16, Arc<Owner>>,
    /// Number of groups handed over that still have running responses.
    ending: usize,
}

impl fmt::Debug for ServedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.borrow().owners.keys()).finish()
    }
}

impl ServedGroups {
    /// Serves a group through a backend with its partitions, until the returned value is dropped.
    pub fn mount(self: &Arc<Self>, group: u16, backend: Arc<dyn Backend>, options: ServeOptions) -> MountedGroup {
        let (close, closing) = watch::channel(ShutdownStage::Open);
        let positions = Arc::new(Positions::default());
        backend.subscribe(Arc::new(PositionSubscriber(Arc::downgrade(&positions))));
        // After the registration, so that no write falls between the two.
        positions.begin(backend.held());
        let owner = Arc::new(Owner {
            backend,
            instance: options.random.next_u64(),
            running: FairSlots::new(options.running_max),
            acting: Arc::new(Semaphore::new(options.running_max)),
            received: Arc::new(Semaphore::new(RECEIVED_KIB_MAX)),
            appends: Appends::default(),
            positions,
            closing,
            options,
        });
        self.0.send_modify(|groups| drop(groups.owners.insert(group, owner.clone())));
        MountedGroup { served: self.clone(), group, owner, close }
    }

    /// Returns the owner of a group.
    pub(super) fn of(&self, group: u16) -> Option<Arc<Owner>> {
        self.0.borrow().owners.get(&group).cloned()
    }

    /// Waits until a group is served.
    pub async fn any(&self) {
        // Never fails: the sender is `self`.
        drop(self.0.subscribe().wait_for(|groups| !groups.owners.is_empty()).await);
    }

    /// Waits until no group is served and no response is running.
    pub async fn none(&self) {
        drop(self.0.subscribe().wait_for(|groups| groups.owners.is_empty() && groups.ending == 0).await);
    }
}

/// A group being served; dropping it ends that.
pub struct MountedGroup {
    served: Arc<ServedGroups>,
    group: u16,
    owner: Arc<Owner>,
    close: watch::Sender<ShutdownStage>,
}

impl fmt::Debug for MountedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mounted").field(&self.group).finish()
    }
}

impl MountedGroup {
    /// Takes no more calls for the group, ends its running responses, and lets other calls finish for a while.
    pub async fn unmount(self) {
        self.close(ShutdownStage::Cut);
        self.ended().await;
    }

    /// Takes no more calls for the group, which this process has handed over. Running responses continue until they
    /// end, at most 5 s, or until `back` resolves. Then this process owns the group again, and needs the memory they
    /// hold.
    pub async fn pass_on(self, back: impl Future<Output = ()>) {
        self.served.0.send_modify(|groups| groups.ending += 1);
        let _ending = EndingGuard(self.served.clone());
        self.close(ShutdownStage::Passed);
        tokio::select! {
            () = self.ended() => {}
            () = back => {}
        }
        self.unmount().await;
    }

    /// Waits until no call is running, with a timeout.
    async fn ended(&self) {
        let begun = Instant::now();
        // Each call holds a reference. Endless streams end by themselves when they see the close.
        while Arc::strong_count(&self.owner) > 1 && begun.elapsed() < GRACE {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn close(&self, closing: ShutdownStage) {
        self.close.send_replace(closing);
        self.served.0.send_modify(|groups| groups.owners.retain(|_, owner| !Arc::ptr_eq(owner, &self.owner)));
    }
}

impl Drop for MountedGroup {
    fn drop(&mut self) {
        self.close(ShutdownStage::Cut);
    }
}

/// Counts a group that was handed over, until its responses have ended.
struct EndingGuard(Arc<ServedGroups>);

impl Drop for EndingGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|groups| groups.ending -= 1);
    }
}

/// Serves one backend as the only group until `stop` resolves, then lets running calls end for a while.
///
/// # Errors
/// Those of the listener.
pub async fn serve(
    backend: Arc<dyn Backend>,
    listener: TcpListener,
    options: ServeOptions,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let served = Arc::new(ServedGroups::default());
    let (scans, tls) = (options.scans.clone(), options.tls.clone());
    let mounted = served.mount(0, backend, options);
    let stopped = async {
        drained(scans, stop).await;
        mounted.close(ShutdownStage::Cut);
    };
    serve_groups(served.clone(), (listener, tls), stopped).await
}

/// Serves the current groups until `stop` resolves, then lets running calls end for a while. With TLS each caller must
/// show a certificate; without it anyone may call.
///
/// # Errors
/// Those of the listener.
pub fn serve_groups<'a>(
    served: Arc<ServedGroups>,
    (listener, tls): (TcpListener, Option<RoleTls>),
    stop: impl Future<Output = ()> + Send + 'a,
) -> Serving<'a> {
    serving(served, listener, tls, Box::pin(stop))
}

/// A server that runs. Boxed and made without type parameters, so that it is compiled here and not where it is polled.
pub type Serving<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

type Stop<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn serving<'a>(served: Arc<ServedGroups>, listener: TcpListener, tls: Option<RoleTls>, stop: Stop<'a>) -> Serving<'a> {
    Box::pin(run(served, listener, tls, stop))
}

async fn run(served: Arc<ServedGroups>, listener: TcpListener, tls: Option<RoleTls>, stop: Stop<'_>) -> io::Result<()> {
    let service = FlightServiceServer::new(Service(served))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let (close, mut closing) = watch::channel(false);
    let ended = async move { drop(closing.wait_for(|closing| *closing).await) };
    let router = Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        // When many clients of a gateway leave at once, the calls of the others must go on.
        .http2_max_pending_accept_reset_streams(Some(STREAMS_MAX as usize))
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
        served = &mut server => return served.map_err(io::Error::other),
        () = stop => drop(close.send(true)),
    }
    // Calls still running after the grace period are cut off.
    match tokio::time::timeout(GRACE, server).await {
        Ok(served) => served.map_err(io::Error::other),
        Err(_) => Ok(()),
    }
}

/// Resolves at the stop; for a scan server, once the started scans have ended. Gateways use other servers meanwhile.
async fn drained(scans: Option<Arc<ScanExecutor>>, stop: impl Future<Output = ()>) {
    stop.await;
    if let Some(scans) = scans {
        scans.drain();
        // Scans cut off after that continue at another server, from the last row that arrived.
        drop(tokio::time::timeout(DRAIN, scans.ended()).await);
    }
}
