//! The groups that a process serves at one port: they come and go while it answers.

use super::positions::{Noting, Positions};
use super::scans::ScanExecutor;
use super::service::Service;
use super::slots::FairSlots;
use super::{Appends, Closing, Owner, RECEIVED_KIB_MAX, ServeOptions};
use crate::tls::{self, RoleTls};
use crate::wire::MESSAGE_BYTES_MAX;
use arrow_flight::flight_service_server::FlightServiceServer;
use meridian_backend::Backend;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// How long started scans have to end after a stop, while others are answered busy.
const DRAIN: Duration = Duration::from_secs(10);
/// How long running calls have to end after a stop.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(10);
/// How long a peer may be silent before it is pinged, and after that.
const SILENCE: Duration = Duration::from_secs(5);
/// Bytes of one answer on their way: a reader that stalls holds no more.
const WINDOW_BYTES: u32 = 2 << 20;
/// Bytes of all answers of a connection on their way.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Calls at a time on one connection.
const STREAMS_MAX: u32 = 4096;

/// The groups that a process serves, by number.
#[derive(Default)]
pub struct Served(watch::Sender<Groups>);

#[derive(Default)]
struct Groups {
    owners: BTreeMap<u16, Arc<Owner>>,
    /// Groups that were passed on, some of whose answers still go on.
    ending: usize,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.borrow().owners.keys()).finish()
    }
}

impl Served {
    /// Serves a group by a backend that has its partitions, until what is returned is dropped.
    pub fn mount(self: &Arc<Self>, group: u16, backend: Arc<dyn Backend>, options: ServeOptions) -> Mounted {
        let (close, closing) = watch::channel(Closing::Open);
        let positions = Arc::new(Positions::default());
        backend.subscribe(Arc::new(Noting(Arc::downgrade(&positions))));
        // After that: no write comes between the two.
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
        Mounted { served: self.clone(), group, owner, close }
    }

    /// The owner of a group.
    pub(super) fn of(&self, group: u16) -> Option<Arc<Owner>> {
        self.0.borrow().owners.get(&group).cloned()
    }

    /// Waits until a group is served.
    pub async fn any(&self) {
        // The sender is this.
        drop(self.0.subscribe().wait_for(|groups| !groups.owners.is_empty()).await);
    }

    /// Waits until no group is served, and no answer goes on.
    pub async fn none(&self) {
        drop(self.0.subscribe().wait_for(|groups| groups.owners.is_empty() && groups.ending == 0).await);
    }
}

/// A group that is served.
pub struct Mounted {
    served: Arc<Served>,
    group: u16,
    owner: Arc<Owner>,
    close: watch::Sender<Closing>,
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mounted").field(&self.group).finish()
    }
}

impl Mounted {
    /// Takes no more calls for the group, cuts the answers that have begun, and gives what else runs some time to end.
    pub async fn unmount(self) {
        self.close(Closing::Cut);
        self.ended().await;
    }

    /// Takes no more calls for the group, which another process has by the will of this one. Answers that have begun go on until they end, for 5 s
    /// at most, or until `back`. Then this process has the group again, and needs what they hold.
    pub async fn pass_on(self, back: impl Future<Output = ()>) {
        self.served.0.send_modify(|groups| groups.ending += 1);
        let _ending = Ending(self.served.clone());
        self.close(Closing::Passed);
        tokio::select! {
            () = self.ended() => {}
            () = back => {}
        }
        self.unmount().await;
    }

    /// Waits until no call runs, for a while.
    async fn ended(&self) {
        let begun = Instant::now();
        // Each call holds it. Streams that never end by themselves see that it closes.
        while Arc::strong_count(&self.owner) > 1 && begun.elapsed() < GRACE {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn close(&self, closing: Closing) {
        self.close.send_replace(closing);
        self.served.0.send_modify(|groups| groups.owners.retain(|_, owner| !Arc::ptr_eq(owner, &self.owner)));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.close(Closing::Cut);
    }
}

/// A group that was passed on, until its answers have ended.
struct Ending(Arc<Served>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.0.send_modify(|groups| groups.ending -= 1);
    }
}

/// Serves one backend, as the only group, until `stop` resolves, then lets running calls end for a while.
///
/// # Errors
/// Those of the listener.
pub async fn serve(
    backend: Arc<dyn Backend>,
    listener: TcpListener,
    options: ServeOptions,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let served = Arc::new(Served::default());
    let (scans, tls) = (options.scans.clone(), options.tls.clone());
    let mounted = served.mount(0, backend, options);
    let stopped = async {
        drained(scans, stop).await;
        mounted.close(Closing::Cut);
    };
    serve_groups(served.clone(), (listener, tls), stopped).await
}

/// Serves groups, whichever there are at each moment, until `stop` resolves, then lets running calls end for a while. With TLS each caller is
/// asked for a certificate; without it all may call.
///
/// # Errors
/// Those of the listener.
pub async fn serve_groups(
    served: Arc<Served>,
    (listener, tls): (TcpListener, Option<RoleTls>),
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let service = FlightServiceServer::new(Service(served))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let (close, mut closing) = watch::channel(false);
    let ended = async move { drop(closing.wait_for(|closing| *closing).await) };
    let router = Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        // Clients of a gateway that leave at the same time must not end the calls of the others.
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
    // What still runs after the grace is cut.
    match tokio::time::timeout(GRACE, server).await {
        Ok(served) => served.map_err(io::Error::other),
        Err(_) => Ok(()),
    }
}

/// Resolves at the stop, of a scan server once what it has started has ended. Gateways ask others meanwhile.
async fn drained(scans: Option<Arc<ScanExecutor>>, stop: impl Future<Output = ()>) {
    stop.await;
    if let Some(scans) = scans {
        scans.drain();
        // What is cut after that goes on elsewhere, from the last row that arrived.
        drop(tokio::time::timeout(DRAIN, scans.ended()).await);
    }
}
