//! Serves groups at one port.

use super::groups::{GRACE, ServedGroups};
use super::scans::ScanExecutor;
use super::service::Service;
use super::{ServeOptions, ShutdownStage};
use crate::tls::{self, RoleTls};
use crate::wire::MESSAGE_BYTES_MAX;
use arrow_flight::flight_service_server::FlightServiceServer;
use meridian_backend::Backend;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// How long started scans may run after a stop, while new ones are answered busy.
const DRAIN: Duration = Duration::from_secs(10);
/// Time of silence before a peer is pinged, and then time to respond.
const SILENCE: Duration = Duration::from_secs(5);
/// Bytes of one response in flight: a stalled reader holds no more.
const WINDOW_BYTES: u32 = 2 << 20;
/// Bytes in flight of all responses of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Max concurrent calls on one connection.
const STREAMS_MAX: u32 = 4096;

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
