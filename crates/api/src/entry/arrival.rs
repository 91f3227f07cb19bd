//! The origin and the arrival time of a request.

use super::forwarded::Client;
use super::{Entry, client};
use crate::fields;
use crate::problem::{Kind, Problem, Result};
use crate::relay::{self, Relayed};
use axum::http::HeaderMap;
use std::net::IpAddr;
use tokio::time::{Duration, Instant};

/// The origin and the arrival time of a request.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The peer of its connection.
    pub peer: Peer,
    /// The address of its client: the peer's, or the one stated by a trusted proxy; `None` over the control socket.
    pub client: Option<IpAddr>,
    /// Whether its client uses TLS, as seen here or as stated by a trusted proxy.
    pub secure: bool,
    /// When its head had been read.
    pub at: Instant,
    /// The statement of another gateway that relayed it.
    pub relayed: Option<Relayed>,
}

/// A connection, as seen by its requests.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// Its peer.
    pub peer: Peer,
    /// Whether it uses TLS.
    pub secure: bool,
}

/// The peer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A program at this address.
    Address(IpAddr),
    /// A program of the data folder's owner, over the control socket.
    Socket,
}

impl Entry {
    /// Determines where a request came from. Reads nothing of its head for this if the settings list no proxies.
    pub(super) fn arrival(&self, connection: Connection, at: Instant, headers: &HeaderMap) -> Result<Arrival> {
        let Connection { peer, secure } = connection;
        let Peer::Address(address) = peer else {
            return Ok(Arrival { peer, client: None, secure, at, relayed: None });
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
