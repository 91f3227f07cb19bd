//! Networks in the settings.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address, or all addresses with a prefix: `192.0.2.7`, `10.0.0.0/8`, `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Returns whether an address is in this network. An IPv4 address in IPv6 form counts as the IPv4 address.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl fmt::Display for Network {
    /// Writes a single address without a prefix length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() { self.0.addr().fmt(f) } else { self.0.fmt(f) }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let address = text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
        let network = address.or_else(|_| text.parse());
        network.map(Network).map_err(|_| {
            format!("{text:?}: expected an address such as 192.0.2.7, or a network such as 10.0.0.0/8 or 2001:db8::/32")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        for (network, address, within) in [
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "::ffff:192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.1.2.3/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "192.0.2.7", true),
            ("0.0.0.0/0", "::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), within, "{network} {address}");
            assert_eq!(network.to_string().parse(), Ok(network));
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0", "proxy.example.org", "10.0.0.0/8 "] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_network_is_the_addresses_of_equal_leading_bits(base: u32, other: u32, length in 0..=32u32) {
            let network: Network = format!("{}/{length}", std::net::Ipv4Addr::from(base)).parse().unwrap();
            let alike = (base ^ other).leading_zeros() >= length;
            proptest::prop_assert_eq!(network.contains(std::net::Ipv4Addr::from(other).into()), alike);
            proptest::prop_assert_eq!(network.to_string().parse(), Ok(network));
        }
    }
}
