//! Protection against server-side request forgery. Names that resolve to private addresses, and literal private
//! addresses, are refused unless the declaration allows them.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns whether an address is on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Follows the IANA registries of special-purpose addresses.
fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let special = v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_documentation()
        || v4.is_multicast()
        || a == 0
        || a >= 240
        || a == 100 && (64..128).contains(&b)
        || a == 192 && b == 0 && c == 0
        || a == 198 && (b == 18 || b == 19);
    !special
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let [a, b, c, ..] = v6.segments();
    // Addresses that embed an IPv4 address (mapped, NAT64, 6to4) route to that address.
    if let Some(v4) = v6.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let last = v6.octets();
    if (a, b) == (0x64, 0xff9b) {
        return c == 0 && is_public_v4(Ipv4Addr::new(last[12], last[13], last[14], last[15]));
    }
    if a == 0x2002 {
        return is_public_v4(Ipv4Addr::new(last[2], last[3], last[4], last[5]));
    }
    // Only 2000::/3 is allocated; 2001::/23 and the documentation range within it are excluded.
    (0x2000..0x4000).contains(&a) && !(a == 0x2001 && (b < 0x200 || b == 0xdb8)) && !(a == 0x3fff && b < 0x1000)
}

/// Returns whether the host of a URL may be called, as far as known without resolving its name.
pub fn may_call(url: &reqwest::Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{}: only http and https are called", url.scheme()));
    }
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(private(host)),
        _ => Ok(()),
    }
}

fn private(host: &str) -> String {
    format!("{host} is a private address, which is not allowed here")
}

/// Resolves names with the system resolver and refuses those without a public address.
#[derive(Debug)]
pub struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await.map(Iterator::collect::<Vec<SocketAddr>>);
            // Checked on the resolved addresses that are then used: a second resolution could return others (DNS
            // rebinding).
            let public: Vec<SocketAddr> =
                found.iter().flatten().copied().filter(|address| is_public(address.ip())).collect();
            match public.is_empty() {
                true => {
                    tracing::debug!(%host, ?found, "a name is not called");
                    // One text for both: callers must not learn which names this network knows.
                    Err(format!("{host} is unknown, or leads to a private address, which is not allowed here").into())
                }
                false => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// The special-purpose networks of IPv4 in the registry of IANA that are not on the public internet, and multicast.
    const SPECIAL: &[([u8; 4], u32)] = &[
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 0, 0], 24),
        ([192, 0, 2, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        ([224, 0, 0, 0], 4),
        ([240, 0, 0, 0], 4),
    ];

    fn is_in(address: u32, (network, bits): ([u8; 4], u32)) -> bool {
        (address ^ u32::from_be_bytes(network)) >> (32 - bits) == 0
    }

    /// Any address, or one beside an end of a special network.
    fn addresses() -> impl Strategy<Value = u32> {
        let ends = (select(SPECIAL), any::<bool>(), -2_i32..=2).prop_map(|((network, bits), is_end, by)| {
            let first = u32::from_be_bytes(network);
            let end = if is_end { first + (u32::MAX >> bits) } else { first };
            end.wrapping_add_signed(by)
        });
        prop_oneof![any::<u32>(), ends]
    }

    proptest! {
        #[test]
        fn an_address_is_public_outside_of_the_special_networks_whatever_form_it_has(address in addresses()) {
            let expected = !SPECIAL.iter().any(|network| is_in(address, *network));
            let v4 = Ipv4Addr::from(address);
            prop_assert_eq!(is_public(v4.into()), expected, "{}", v4);
            let (high, low) = ((address >> 16) as u16, address as u16);
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ] {
                prop_assert_eq!(is_public(v6.into()), expected, "{}", v6);
            }
            // A URL may write it as a number.
            let url = reqwest::Url::parse(&format!("http://{address}/")).expect("a URL");
            prop_assert_eq!(may_call(&url).is_ok(), expected, "{}", url);
        }
    }

    #[tokio::test]
    async fn a_name_that_is_unknown_is_refused_like_one_of_a_private_address() {
        let mut refusals = Vec::new();
        // The second is no name that a resolver could ask for.
        for host in ["localhost", "no..name"] {
            let found = PublicOnly.resolve(host.parse().expect("a name")).await;
            refusals.push(found.err().expect("refused").to_string().replace(host, "NAME"));
        }
        assert!(refusals[0] == refusals[1] && refusals[0].contains("private address"), "{refusals:?}");
    }

    #[test]
    fn private_addresses_are_known_in_every_dress() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            assert!(!is_public(address.parse().expect("an address")), "{address}");
        }
        for address in ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"] {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
        // The URL parser accepts the short and octal forms.
        for url in ["http://127.1/", "http://0x7f.1/", "http://[::1]/", "http://2130706433/", "ftp://example.org/"] {
            assert!(may_call(&reqwest::Url::parse(url).expect("a URL")).is_err(), "{url}");
        }
        assert!(may_call(&reqwest::Url::parse("https://example.org/").expect("a URL")).is_ok());
    }
}
