//! The port of an owner: serves gateways while the process has a group, and rejects callers while it is a standby.

use crate::failure::Failure;
use meridian_remote::{RoleTls, ServedGroups};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long the port is served after the last group has gone: until gateways have seen the next owner's.
const LINGER: Duration = Duration::from_millis(500);
/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// A port of this process.
pub(super) struct OwnerPort {
    listener: TcpListener,
    address: SocketAddr,
}

impl OwnerPort {
    /// Listens at an address.
    pub(super) async fn open(address: &str) -> Result<OwnerPort, Failure> {
        let listener = listen(address).await?;
        let address = listener.local_addr().map_err(|e| Failure::Refused(format!("no local address: {e}")))?;
        Ok(OwnerPort { listener, address })
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn listen(address: &str) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|e| Failure::Usage(format!("--flight {address}: cannot listen there: {e}")))
}

/// Serves gateways whenever there are groups, until `stopping` and no group is left.
///
/// # Errors
/// If the port is lost.
pub(super) async fn keep(
    (port, tls): (OwnerPort, Option<RoleTls>),
    served: Arc<ServedGroups>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (address, mut listener) = (port.address.to_string(), Some(port.listener));
    loop {
        if listener.is_none() {
            // If it is not available now, it is retried once there is a group.
            listener = listen(&address).await.ok();
        }
        tokio::select! {
            biased;
            () = served.any() => {}
            _ = stopping.wait_for(|stop| *stop) => return Ok(()),
            never = turn_away(listener.as_ref()) => match never {},
        }
        let taken = match listener.take() {
            Some(listener) => listener,
            None => listen(&address).await?,
        };
        let none = async {
            // Calls that arrive meanwhile are refused explicitly. If the connection just closed under a call, its
            // caller could not know whether it arrived.
            loop {
                served.none().await;
                if tokio::time::timeout(LINGER, served.any()).await.is_err() {
                    return;
                }
            }
        };
        let answered = meridian_remote::serve_groups(served.clone(), (taken, tls.clone()), none).await;
        answered.map_err(|e| Failure::Refused(format!("answering gateways failed: {e}")))?;
    }
}

/// Closes each connection at once while this process is a standby: a client learns that it is alive, and is not left
/// waiting.
async fn turn_away(listener: Option<&TcpListener>) -> Infallible {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        if let Err(error) = listener.accept().await {
            tracing::debug!(%error, "a connection was not taken");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
