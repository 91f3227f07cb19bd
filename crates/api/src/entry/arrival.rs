//! Step 1 of the entry point: where a request came from.

use super::Entry;
use crate::protocol::fields;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::dispatch::{Arrival, Client, Connection, Peer, client};
use crate::request::route::{Access, Route};
use crate::searches::relay;
use axum::http::HeaderMap;
use tokio::time::Instant;

/// Paths that monitors are served, without a credential.
const MONITORED: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

/// Returns the access that a peer needs for a route; `None` if the route is not served to it.
pub(super) fn access(peer: Peer, route: &Route) -> Option<Access> {
    match peer {
        Peer::Address(_) | Peer::Socket => Some(route.access),
        Peer::Monitor(_) => MONITORED.contains(&route.path).then_some(Access::Open),
    }
}

impl Entry {
    /// Determines where a request came from. Reads nothing of its head for this if the settings list no proxies.
    pub(super) fn arrival(&self, connection: Connection, at: Instant, headers: &HeaderMap) -> Result<Arrival> {
        let Connection { peer, secure } = connection;
        let address = match peer {
            Peer::Address(address) => address,
            Peer::Socket => return Ok(Arrival { peer, client: None, secure, at, relayed: None }),
            // There is no proxy in front of it, and no gateway relays to it.
            Peer::Monitor(address) => return Ok(Arrival { peer, client: Some(address), secure, at, relayed: None }),
        };
        let gateways = self.state.config.gateways.as_ref();
        if let Some((gateways, header)) = gateways.zip(fields::first(headers, &relay::HEADER)) {
            let relayed = gateways.read(header.as_bytes()).ok_or_else(|| {
                let detail = "the request was passed on to another process, which has ended: try again";
                Problem::new(Kind::Overloaded, detail)
            })?;
            let (client, secure) = (Some(relayed.client), relayed.is_secure());
            return Ok(Arrival { peer, client, secure, at, relayed: Some(relayed) });
        }
        let client = client(Client { address, secure }, &self.state.config.proxies, headers)?;
        Ok(Arrival { peer, client: Some(client.address), secure: client.secure, at, relayed: None })
    }
}
