//! Connections: their protocols, and refusals before any request.
//!
//! The layers, from the bottom: a stream whose client keeps up (`stall.rs`), TLS if configured (`tls.rs`), then one of
//! two protocols. These are HTTP/1.1 (`http1.rs` over `wire.rs`, in `repoll.rs`) and HTTP/2 (`http2.rs`, one request in
//! `exchange.rs`).
//! The entry point above does not know about the layers.

mod addresses;
mod exchange;
mod frames;
mod head_timeout;
mod http1;
mod http2;
mod plain;
mod read_head;
mod repoll;
mod send_queue;
mod stall;
mod tls;
mod wire;

pub use addresses::{Addresses, ConnectionGuard};
pub use tls::{Certificate, CertificateFault, Tls};
pub use wire::canned;

use crate::entry::{Entry, Incoming};
#[cfg(feature = "flight")]
use crate::flight::Flight;
use crate::request::dispatch::{Connection, Peer};
use crate::state::AppState;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use stall::StallTimeout;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;

/// The handler of a connection's requests.
#[derive(Clone)]
pub enum ConnectionHandler {
    /// HTTP, both versions.
    Http(Arc<Entry>),
    /// Arrow Flight, over HTTP/2 only.
    #[cfg(feature = "flight")]
    Flight(Arc<Flight>),
}

impl ConnectionHandler {
    /// Returns the server's state.
    pub fn state(&self) -> &AppState {
        match self {
            ConnectionHandler::Http(entry) => entry.state(),
            #[cfg(feature = "flight")]
            ConnectionHandler::Flight(flight) => flight.state(),
        }
    }

    /// Lets a listed page read a refusal that is made before the request is handled.
    fn share(&self, asked: &HeaderMap, response: &mut Response) {
        match self {
            ConnectionHandler::Http(entry) => entry.share(asked, response.headers_mut()),
            // Pages do not speak gRPC.
            #[cfg(feature = "flight")]
            ConnectionHandler::Flight(_) => {}
        }
    }

    /// Handles a request.
    async fn answer<B: Incoming>(&self, from: Connection, request: Request<B>) -> Response {
        match self {
            ConnectionHandler::Http(entry) => entry.answer(from, request).await,
            // Boxed: otherwise the future of every request would have room for everything that Flight may await.
            #[cfg(feature = "flight")]
            ConnectionHandler::Flight(flight) => Box::pin(flight.answer(from, request)).await,
        }
    }
}

/// Serves a network client until it or `stopping` ends the connection.
pub async fn serve(
    stream: TcpStream,
    address: IpAddr,
    counted: ConnectionGuard,
    tls: Option<Tls>,
    handler: ConnectionHandler,
    mut stopping: watch::Receiver<bool>,
) {
    let from = Connection { peer: Peer::Address(address), secure: tls.is_some() };
    let config = &handler.state().config;
    let Some(tls) = tls else {
        let stream = StallTimeout::new(stream, handler.state());
        return match &handler {
            ConnectionHandler::Http(entry) => http1::serve(stream, from, entry, stopping).await,
            // gRPC clients know in advance that a server speaks HTTP/2 (RFC 9113, 3.3).
            #[cfg(feature = "flight")]
            ConnectionHandler::Flight(_) => http2::serve(stream, from, &handler, stopping).await,
        };
    };
    let secured = async {
        // Decided by the first byte, before the limits: a client that sends nothing takes no handshake slot.
        if !plain::speaks_tls(&stream).await? {
            plain::refuse(stream).await;
            return Ok(None);
        }
        let stream = StallTimeout::new(stream, handler.state());
        tls.shake_hands(stream, counted.handshakes()).await.map(Some)
    };
    // One deadline for first byte, turn and handshake, so that a silent client cannot hold its connection longer.
    let secured = tokio::select! {
        secured = tokio::time::timeout(config.handshake_timeout, secured) => secured,
        // No request has begun.
        _ = stopping.wait_for(|stop| *stop) => return,
    };
    let stream = match secured {
        Ok(Ok(Some(stream))) => stream,
        Ok(Ok(None)) => return,
        failed => {
            handler.state().metrics.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            let error = failed.ok().and_then(Result::err).map(tracing::field::display);
            return tracing::debug!(client = %address, error, "no TLS handshake");
        }
    };
    // A client that negotiates nothing speaks HTTP/1.1.
    if stream.get_ref().1.alpn_protocol() == Some(tls::H2) {
        return http2::serve(stream, from, &handler, stopping).await;
    }
    match &handler {
        ConnectionHandler::Http(entry) => http1::serve(stream, from, entry, stopping).await,
        #[cfg(feature = "flight")]
        ConnectionHandler::Flight(_) => {
            tracing::debug!(client = %address, "a client of Flight that does not speak HTTP/2")
        }
    }
}

/// Serves a client of the control socket: the owner of the data folder.
pub async fn serve_owner(stream: UnixStream, entry: Arc<Entry>, stopping: watch::Receiver<bool>) {
    let from = Connection { peer: Peer::Socket, secure: false };
    let stream = StallTimeout::new(stream, entry.state());
    http1::serve(stream, from, &entry, stopping).await;
}

/// Serves a monitor, until it is dropped.
pub async fn serve_monitor(stream: TcpStream, address: IpAddr, entry: Arc<Entry>) {
    let from = Connection { peer: Peer::Monitor(address), secure: false };
    let stream = StallTimeout::new(stream, entry.state());
    // The sender lives as long as the connection: monitors see a shutdown until its end.
    let (_running, stopping) = watch::channel(false);
    http1::serve(stream, from, &entry, stopping).await;
}

/// Serves a client in memory, for `crate::fuzzed`.
pub async fn serve_bytes<S>(
    stream: S,
    from: Connection,
    handler: &ConnectionHandler,
    stopping: watch::Receiver<bool>,
    is_http2: bool,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match handler {
        ConnectionHandler::Http(entry) if !is_http2 => http1::serve(stream, from, entry, stopping).await,
        handler => http2::serve(stream, from, handler, stopping).await,
    }
}
