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

/// Reads the command of a descriptor of Arrow Flight; gives the target of its request, or the refusal.
#[cfg(feature = "flight")]
pub fn flight_command(command: &[u8]) -> Result<String, String> {
    crate::flight::target_of(command).map_err(|problem| problem.detail().to_owned())
}

/// Reads the JSON of a ticket of Arrow Flight, whose signature is right; gives it as it is written again, or the refusal.
#[cfg(feature = "flight")]
pub fn flight_ticket(json: &[u8]) -> Result<Vec<u8>, String> {
    crate::flight::reread_ticket(json).map_err(|problem| problem.detail().to_owned())
}

/// The text of a session that a cookie holds.
pub fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie::SESSION.read(false, headers)
}
