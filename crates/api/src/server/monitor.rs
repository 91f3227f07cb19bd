//! A listener for monitors alone: `/metrics`, `/healthz` and `/readyz`, without a token.
//!
//! It is separate from the clients' listener. A monitor therefore needs no credential, and can read the metrics while
//! clients use up all connections. Any client that reaches its address can read them.

use crate::entry::Entry;
use crate::server::{Serving, connection};
use crate::state::AppState;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Duration;

/// Max connected monitors; others wait.
const CONNECTIONS_MAX: usize = 16;
/// Pause after a failed `accept`.
const RETRY: Duration = Duration::from_millis(20);

/// Serves monitors on `listener` until dropped.
pub fn serve_monitors(listener: TcpListener, state: AppState) -> Serving<'static> {
    Box::pin(run(listener, state))
}

async fn run(listener: TcpListener, state: AppState) -> io::Result<()> {
    // A separate entry for this address, which the guard compares with the host named by a request.
    let entry = Arc::new(Entry::new(state, listener.local_addr()?)?);
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Connections end with this function.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // Acquired before `accept`, so that further monitors wait in the backlog and take no memory here.
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
