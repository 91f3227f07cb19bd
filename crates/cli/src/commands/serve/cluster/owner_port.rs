//! The port of an owner: it answers gateways while the process has a group, and turns callers away while it stands by.

use crate::failure::Failure;
use meridian_remote::{RoleTls, Served};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long the port is answered after the last group has gone: until gateways have seen the next owner's.
const LINGER: Duration = Duration::from_millis(500);
/// Pause after a connection that could not be taken.
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

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn listen(address: &str) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|e| Failure::Usage(format!("--flight {address}: cannot listen there: {e}")))
}

/// Answers gateways whenever groups are served, until `stopping` and none is.
///
/// # Errors
/// If the port is lost.
pub(super) async fn keep(
    (port, tls): (OwnerPort, Option<RoleTls>),
    served: Arc<Served>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (address, mut listener) = (port.address.to_string(), Some(port.listener));
    loop {
        if listener.is_none() {
            // Where it is not to be had now, it is tried again once there is a group.
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
            // What comes meanwhile is refused in words: where a connection closes under a call, its caller cannot know whether it arrived.
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

/// Closes each connection at once while this process stands by: a client learns that it is there, and is not left waiting.
async fn turn_away(listener: Option<&TcpListener>) -> Infallible {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        if let Err(error) = listener.accept().await {
            tracing::debug!(%error, "a connection was not taken");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
