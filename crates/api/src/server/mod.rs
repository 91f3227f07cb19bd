//! The accept loop: connections, with limits on their number and on how slow they may be.

mod assembly;
mod background;
pub mod connection;
pub mod in_process;
pub mod monitor;
mod running;

use crate::entry::Entry;
use crate::protocol::problem::{Kind, Problem};
use crate::state::AppState;
use axum::body::Bytes;
use axum::http::HeaderMap;
use connection::{Addresses, ConnectionHandler, Tls};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The sockets on which the server accepts connections.
#[derive(Debug)]
pub struct Listeners {
    /// HTTP.
    pub http: TcpListener,
    /// Arrow Flight, if it is served.
    pub flight: Option<TcpListener>,
    /// The control socket, whose clients are operators: only the owner of the data folder can connect to it.
    pub control: Option<UnixListener>,
}

impl From<TcpListener> for Listeners {
    fn from(http: TcpListener) -> Listeners {
        Listeners { http, flight: None, control: None }
    }
}

/// Serves on `listeners` until `shutdown` completes, then lets running requests finish for at most
/// [`crate::ServerConfig::shutdown_grace`] and returns. The store stays open; the caller closes it.
///
/// With `tls`, network clients must use TLS, and may use HTTP/2. The connection limits apply to HTTP and Flight
/// together.
pub fn serve<'a>(
    listeners: impl Into<Listeners>,
    tls: Option<Tls>,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> Serving<'a> {
    serving(listeners.into(), tls, state, Box::pin(shutdown))
}

/// A server that runs. It is boxed, and made in a function without type parameters. A future is compiled in the crate
/// that polls it. So this one, and all that it starts, is compiled here with the profile of this crate (decision 082).
pub type Serving<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

fn serving<'a>(listeners: Listeners, tls: Option<Tls>, state: AppState, shutdown: Shutdown<'a>) -> Serving<'a> {
    Box::pin(run(listeners, tls, state, shutdown))
}

type Shutdown<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

async fn run(listeners: Listeners, tls: Option<Tls>, state: AppState, mut shutdown: Shutdown<'_>) -> io::Result<()> {
    let Listeners { http, flight, control } = listeners;
    let entry = Arc::new(Entry::new(state.clone(), http.local_addr()?)?);
    let (handler, of_flight) = (ConnectionHandler::Http(entry.clone()), flight_handler(flight.as_ref(), &state)?);
    // Aborted when this function returns: requests rely on these tasks until then.
    let _tending = running::begin(&state)?;
    let (stop, stopping) = watch::channel(false);
    let (mut connections, addresses) = (JoinSet::new(), Addresses::default());
    loop {
        let (accepted, handler) = tokio::select! {
            () = shutdown.as_mut() => break,
            // Finished tasks stay in the set until they are joined.
            Some(_) = connections.join_next(), if !connections.is_empty() => {
                state.metrics.connections_open.store(connections.len(), Ordering::Relaxed);
                continue;
            }
            stream = operators(control.as_ref()) => {
                // Outside the limits: the operator must be able to reach a server that is full.
                connections.spawn(connection::serve_owner(stream, entry.clone(), stopping.clone()));
                continue;
            }
            accepted = http.accept() => (accepted, &handler),
            accepted = accept(flight.as_ref()) => (accepted, of_flight.as_ref().unwrap_or(&handler)),
        };
        let (stream, address) = match accepted {
            Ok((stream, address)) => (stream, address.ip()),
            Err(e) => {
                // Out of file descriptors, or a client that disconnected while queued: neither ends the server.
                tracing::warn!(error = %e, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        // A proxy's connections belong to its clients.
        let is_proxy = state.config.proxies.iter().any(|network| network.contains(address));
        let max = if is_proxy { usize::MAX } else { state.config.connections_per_address_max };
        let counted = addresses.enter(address, max).filter(|_| connections.len() < state.config.connections_max);
        let Some(counted) = counted else {
            state.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            // `try_write` never waits: the accept loop must not depend on a client that is refused. These few bytes fit
            // in a new socket's buffer. Under TLS or HTTP/2 no client could read them.
            if tls.is_none() && matches!(handler, ConnectionHandler::Http(_)) {
                let _ = stream.try_write(&too_many_connections());
            }
            continue;
        };
        // Without this, the second part of a small response would wait for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        // Before its task starts, since the first request may ask for this number.
        state.metrics.connections_open.store(connections.len() + 1, Ordering::Relaxed);
        connections.spawn(connection::serve(stream, address, counted, tls.clone(), handler.clone(), stopping.clone()));
    }
    // First of all: a client that connects from now on is refused at once and can try another server. Otherwise it
    // would wait in the backlog of a stopping one.
    drop((http, flight, control));
    // Their connections close then.
    running::end_streams(&state);
    // Idle keep-alive connections close now; the others close after the response in progress.
    let _ = stop.send(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(state.config.shutdown_grace, finished).await.is_err() {
        tracing::warn!(connections = connections.len(), "requests still running after the grace period are aborted");
        // Aborting drops the response bodies, which cancels their queries: no thread stays busy with one.
        connections.shutdown().await;
    }
    running::stop_saved(&state).await;
    Ok(())
}

/// Returns the response to a connection over the limit.
fn too_many_connections() -> Bytes {
    connection::canned(&Problem::new(Kind::Overloaded, "too many connections").settled(), &HeaderMap::new(), false)
}

/// Creates the server side for Arrow Flight clients.
#[cfg(feature = "flight")]
fn flight_handler(listener: Option<&TcpListener>, state: &AppState) -> io::Result<Option<ConnectionHandler>> {
    let Some(listener) = listener else { return Ok(None) };
    // A separate entry, because the address that it listens on is one of its names.
    let entry = Entry::new(state.clone(), listener.local_addr()?)?;
    Ok(Some(ConnectionHandler::Flight(Arc::new(crate::flight::Flight::new(Arc::new(entry))?))))
}

#[cfg(not(feature = "flight"))]
fn flight_handler(listener: Option<&TcpListener>, _: &AppState) -> io::Result<Option<ConnectionHandler>> {
    match listener {
        None => Ok(None),
        Some(_) => Err(io::Error::other("this program was built without the feature `flight`")),
    }
}

/// Accepts the next Arrow Flight connection; never completes if Flight is not served.
async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Accepts the next connection to the control socket; never completes if there is none.
async fn operators(control: Option<&UnixListener>) -> UnixStream {
    let Some(control) = control else { return std::future::pending().await };
    loop {
        match control.accept().await {
            Ok((stream, _)) => return stream,
            Err(e) => {
                tracing::warn!(error = %e, "could not accept a connection to the control socket");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::too_many_connections;

    #[test]
    fn the_canned_refusal_is_a_complete_response() {
        let bytes = too_many_connections();
        let (head, body) = std::str::from_utf8(&bytes).unwrap().split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(head.contains(&format!("\r\nretry-after: {}\r\n", body["retry_after_seconds"])), "{head}");
    }
}
