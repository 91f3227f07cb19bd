//! How many connections each address has open.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The open connections by address.
#[derive(Debug, Clone, Default)]
pub struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection of an address, counted until it is dropped.
#[derive(Debug)]
pub struct Counted {
    addresses: Addresses,
    address: IpAddr,
}

impl Addresses {
    /// Counts a connection, unless its address has `max` already.
    pub fn enter(&self, peer: IpAddr, max: usize) -> Option<Counted> {
        let address = network(peer);
        let mut open = self.0.lock();
        let count = open.entry(address).or_default();
        if *count >= max {
            // An entry that stands for nothing, where the limit is zero, would stay for ever.
            if *count == 0 {
                open.remove(&address);
            }
            return None;
        }
        *count += 1;
        Some(Counted { addresses: self.clone(), address })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.addresses.0.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// What is counted as one client: an address of IPv4, a /64 of IPv6, which is what one site gets (RFC 6177).
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
