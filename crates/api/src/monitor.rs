//! A listener for monitors alone: `/metrics`, `/healthz` and `/readyz`, without a token.
//!
//! It is separate from the clients' listener, so a monitor needs no credential, and finds the metrics while clients use up
//! all connections. Every client that reaches its address can read them.

use crate::connection;
use crate::entry::Entry;
use crate::state::AppState;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Duration;

/// Max connected monitors; others wait.
const CONNECTIONS_MAX: usize = 16;
/// Pause after a connection that could not be accepted.
const RETRY: Duration = Duration::from_millis(20);

/// Serves monitors on `listener`, for as long as it is polled.
pub async fn serve_monitors(listener: TcpListener, state: AppState) -> io::Result<()> {
    // An entry of its own for its address, which the guard compares with the host that a request names.
    let entry = Arc::new(Entry::new(state, listener.local_addr()?)?);
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Connections end with this function.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // Before `accept`: further monitors wait in the backlog and take no memory here.
        let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
        match listener.accept().await {
            Ok((stream, address)) => {
                let entry = entry.clone();
                connections.spawn(async move {
                    let _permit = permit;
                    connection::serve_monitor(stream, address.ip(), entry).await;
                });
            }
            Err(e) => {
                tracing::warn!(error = %e, "could not accept a connection of a monitor");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
