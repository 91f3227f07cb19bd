//! Addresses are escaped and bounded, and a server that cannot be reached is named.

use super::*;

fn at(url: &str) -> Result<Server, Failure> {
    Server::at(&Address { url: url.to_owned(), ca: None })
}

#[test]
fn addresses_are_escaped() {
    let server = at("http://127.0.0.1:1/").unwrap();
    let url = server.address(&["collections", "a b", "items"], &[("filter", "a ='ä&b+'".to_owned())]);
    assert_eq!(url, "http://127.0.0.1:1/collections/a%20b/items?filter=a+='%C3%A4%26b%2B'");
    for bad in ["127.0.0.1:7117", "ftp://x", "http://", "https://", ""] {
        assert!(at(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_address_that_is_too_long_is_not_asked_for() {
    let filter = "x".repeat(ADDRESS_BYTES_MAX);
    let server = at("http://127.0.0.1:9").unwrap();
    let error = server.find_json(&["collections"], &[("filter", filter)]).unwrap_err();
    assert_eq!(error.code(), 2);
    assert!(error.to_string().contains("shorten --filter"), "{error}");
}

#[test]
fn an_unreachable_server_is_named() {
    // Port 9 (discard) on loopback: nothing listens there.
    let error = at("http://127.0.0.1:9").unwrap().find_json(&["collections"], &[]).unwrap_err();
    assert_eq!(error.code(), 3);
    assert!(error.to_string().contains("http://127.0.0.1:9"), "{error}");
}
