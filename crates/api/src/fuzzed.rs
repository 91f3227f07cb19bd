//! Parsers of request heads for `fuzz/targets`. Not part of the crate's interface.

use crate::entry::{Client, client};
use crate::network::Network;
use crate::sign_in::cookie;
use axum::http::HeaderMap;
use std::net::IpAddr;

/// The address of the client behind a peer, as proxies state it; `None` if the request is refused.
pub fn client_of(peer: IpAddr, proxies: &[Network], headers: &HeaderMap) -> Option<IpAddr> {
    client(Client { address: peer, secure: false }, proxies, headers).ok().map(|client| client.address)
}

/// The text of a session that a cookie holds.
pub fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie::SESSION.read(false, headers)
}
