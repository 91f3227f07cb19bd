//! Whether a process answers.

use super::nodes::{Kind, Node};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use ureq::Agent;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(2);

/// Whether a process is ready: it says so, or takes connections where it cannot say. Blocks for a moment.
///
/// Not to be asked again and again of an owner that stands by: it leaves connections waiting until it owns.
pub(super) fn is_ready(node: &Node) -> bool {
    match (node.role, &node.monitor) {
        (Kind::Gateway | Kind::Scan, _) => says_ok(&format!("http://{}/readyz", node.address)),
        (Kind::Log, Some(monitor)) => says_ok(&format!("http://{monitor}/healthz")),
        (Kind::Owner | Kind::Log, _) => takes_connections(&node.address),
    }
}

/// Whether something takes connections at this address.
pub(super) fn takes_connections(address: &str) -> bool {
    let mut found = address.to_socket_addrs().into_iter().flatten();
    found.any(|address| TcpStream::connect_timeout(&address, ANSWER).is_ok())
}

fn says_ok(url: &str) -> bool {
    let config = Agent::config_builder().timeout_global(Some(ANSWER)).http_status_as_error(false).proxy(None).build();
    Agent::new_with_config(config).get(url).call().is_ok_and(|answer| answer.status() == 200)
}
