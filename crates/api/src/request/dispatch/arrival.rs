//! Where a request came from, and when.

use crate::cluster::gateways::RelayOrigin;
use std::net::IpAddr;
use tokio::time::Instant;

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
    /// The statement of the gateway that relayed it, if any.
    pub relayed: Option<RelayOrigin>,
}

/// A connection, as seen by its requests.
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
