//! Where a request came from, and when.

use super::forwarded::Client;
use super::{Access, Entry, Route, client};
use crate::fields;
use crate::problem::{Kind, Problem, Result};
use crate::relay::{self, Relayed};
use axum::http::HeaderMap;
use std::net::IpAddr;
use tokio::time::{Duration, Instant};

/// Where a request came from, and when.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The other end of its connection.
    pub peer: Peer,
    /// The address of its client: the peer's, or that stated by a trusted proxy; none over the control socket.
    pub client: Option<IpAddr>,
    /// Whether its client uses TLS, as seen here or by a trusted proxy.
    pub secure: bool,
    /// When its head had been read.
    pub at: Instant,
    /// The statement of another gateway that has passed it on.
    pub relayed: Option<Relayed>,
}

/// A connection, as its requests see it.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// Its other end.
    pub peer: Peer,
    /// Whether it uses TLS.
    pub secure: bool,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A program at this address.
    Address(IpAddr),
    /// A program of the data folder's owner, over the control socket.
    Socket,
    /// A program at this address, on the listener for monitors.
    Monitor(IpAddr),
}

/// Paths that monitors are served, without a credential.
const MONITORED: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

impl Peer {
    /// The access that it needs for a route; `None` if the route is not served to it.
    pub(super) fn access(self, route: &Route) -> Option<Access> {
        match self {
            Peer::Address(_) | Peer::Socket => Some(route.access),
            Peer::Monitor(_) => MONITORED.contains(&route.path).then_some(Access::Open),
        }
    }
}

impl Entry {
    /// Where a request came from. Without proxies in the settings, nothing of its head is read for this.
    pub(super) fn arrival(&self, connection: Connection, at: Instant, headers: &HeaderMap) -> Result<Arrival> {
        let Connection { peer, secure } = connection;
        let address = match peer {
            Peer::Address(address) => address,
            Peer::Socket => return Ok(Arrival { peer, client: None, secure, at, relayed: None }),
            // No proxy stands before it, and no gateway forwards to it.
            Peer::Monitor(address) => return Ok(Arrival { peer, client: Some(address), secure, at, relayed: None }),
        };
        let gateways = self.state.config.gateways.as_ref();
        if let Some((gateways, header)) = gateways.zip(fields::first(headers, &relay::HEADER)) {
            let relayed = gateways.read(header.as_bytes()).ok_or_else(|| {
                let detail = "the request was passed on to another process, which has ended: try again";
                Problem::new(Kind::Overloaded, detail).retry_after(Duration::from_secs(1))
            })?;
            let (client, secure) = (Some(relayed.client), relayed.is_secure());
            return Ok(Arrival { peer, client, secure, at, relayed: Some(relayed) });
        }
        let client = client(Client { address, secure }, &self.state.config.proxies, headers)?;
        Ok(Arrival { peer, client: Some(client.address), secure: client.secure, at, relayed: None })
    }
}
