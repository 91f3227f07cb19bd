//! Tracks the open connections and the TLS handshakes of each address.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Max concurrent TLS handshakes of one address; further ones wait for their turn.
const HANDSHAKES_MAX: usize = 64;

/// The open connections, by address.
#[derive(Debug, Clone, Default)]
pub struct Addresses(Arc<Mutex<HashMap<IpAddr, AddressConnections>>>);

/// The open connections of one address.
#[derive(Debug)]
struct AddressConnections {
    connections: usize,
    handshakes: Arc<Semaphore>,
}

/// A connection of an address, counted until dropped.
#[derive(Debug)]
pub struct ConnectionGuard {
    addresses: Addresses,
    address: IpAddr,
    handshakes: Arc<Semaphore>,
}

impl ConnectionGuard {
    /// Returns the semaphore for handshakes of its address.
    pub fn handshakes(&self) -> &Semaphore {
        &self.handshakes
    }
}

impl Addresses {
    /// Counts a connection, unless its address already has `max`.
    pub fn enter(&self, peer: IpAddr, max: usize) -> Option<ConnectionGuard> {
        let address = network(peer);
        let mut open = self.0.lock();
        let connections = open.get(&address).map_or(0, |open| open.connections);
        if connections >= max {
            return None;
        }
        // After the check: a refused address leaves no entry.
        let new = || AddressConnections { connections: 0, handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)) };
        let entry = open.entry(address).or_insert_with(new);
        entry.connections += 1;
        Some(ConnectionGuard { addresses: self.clone(), address, handshakes: entry.handshakes.clone() })
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut open = self.addresses.0.lock();
        if let Some(entry) = open.get_mut(&self.address) {
            entry.connections -= 1;
            // Removed with its last connection, so that the table never has more entries than there are connections.
            if entry.connections == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// Returns the unit counted as one client: an IPv4 address, or an IPv6 /64, since a site gets at least that (RFC 6177).
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections_and_the_table_forgets() {
        let addresses = Addresses::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = addresses.enter(ip("10.0.0.1"), 2).unwrap();
        let second = addresses.enter(ip("::ffff:10.0.0.1"), 2).unwrap();
        assert!(addresses.enter(ip("10.0.0.1"), 2).is_none());
        let other = addresses.enter(ip("10.0.0.2"), 2).unwrap();
        drop(first);
        drop(addresses.enter(ip("10.0.0.1"), 2).unwrap());
        let wide = addresses.enter(ip("2001:db8::1"), 1).unwrap();
        assert!(addresses.enter(ip("2001:db8::ffff:1"), 1).is_none(), "the same site");
        assert!(addresses.enter(ip("2001:db8:0:1::1"), 1).is_some());
        assert!(addresses.enter(ip("10.0.0.3"), 0).is_none());
        drop((second, other, wide));
        assert!(addresses.0.lock().is_empty());
    }
}
