//! Ports of a cluster's processes: those of the last start if they are free, otherwise new ones below the ephemeral
//! range.
//!
//! A port is free between the end of a process and the next start. Meanwhile, a connection of any program may get a
//! port of the ephemeral range.

use super::super::nodes::{Kind, Node, Nodes};
use crate::failure::Failure;
use crate::output::say;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// First port to choose from.
const FIRST: u16 = 10_000;
/// Start of the ephemeral range, by default.
const CONNECTIONS: u16 = 32_768;
/// File with the ephemeral range on Linux.
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Max ports tried before the system chooses one.
const TRIES: usize = 64;

/// Chooses addresses. All chosen ones, and all of the last start, stay bound until this is dropped, so none is chosen
/// twice.
pub(super) struct Ports<'a> {
    before: Option<&'a Nodes>,
    /// Addresses of the last start not yet assigned.
    free: HashMap<String, TcpListener>,
    chosen: Vec<TcpListener>,
}

impl<'a> Ports<'a> {
    /// Starts with the processes of the last start.
    pub(super) fn new(before: Option<&'a Nodes>) -> Ports<'a> {
        let addresses = before.iter().flat_map(|before| &before.nodes).flat_map(Node::addresses);
        let bound = |address: &String| Some((address.clone(), TcpListener::bind(address).ok()?));
        Ports { before, free: addresses.filter_map(bound).collect(), chosen: Vec::new() }
    }

    /// Returns a process with its addresses.
    pub(super) fn node(&mut self, folder: &Path, role: Kind, number: u8) -> Result<Node, Failure> {
        let name = format!("{role}-{number}");
        let before = self.before.and_then(|before| before.named(&name)).cloned();
        let (before, monitor, routes) =
            before.map_or((None, None, None), |node| (Some(node.address), node.monitor, node.routes));
        let address = self.choose(&name, before)?;
        let more = role == Kind::Log;
        let monitor = more.then(|| self.choose(&name, monitor)).transpose()?;
        let routes = more.then(|| self.choose(&name, routes)).transpose()?;
        let log_file = folder.join("logs").join(format!("{name}.log"));
        Ok(Node { name, role, pid: None, address, monitor, routes, log_file })
    }

    fn choose(&mut self, name: &str, before: Option<String>) -> Result<String, Failure> {
        if let Some((address, listener)) = before.as_ref().and_then(|before| self.free.remove_entry(before)) {
            self.chosen.push(listener);
            return Ok(address);
        }
        let failed = |e: io::Error| Failure::Refused(format!("no port of 127.0.0.1 is free: {e}"));
        let listener = listen().map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?.to_string();
        self.chosen.push(listener);
        if let Some(before) = before {
            say(&format!("{name}: another program listens on {before}, so it is on {address} now"));
        }
        Ok(address)
    }
}

/// Returns an address of ended processes on which another program now listens.
pub(super) fn taken(nodes: &Nodes) -> Option<&String> {
    let is_taken =
        |address: &&String| TcpListener::bind(address.as_str()).is_err_and(|e| e.kind() == io::ErrorKind::AddrInUse);
    nodes.nodes.iter().flat_map(Node::addresses).find(is_taken)
}

/// Listens on a free port outside the ephemeral range.
fn listen() -> io::Result<TcpListener> {
    let range = std::fs::read_to_string(RANGE).unwrap_or_default();
    let connections = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(CONNECTIONS);
    let ports = connections.saturating_sub(FIRST);
    for _ in 0..TRIES {
        // At random, since another cluster starting now chooses ports as well.
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
        // If there are no ports below the range, any will do.
        let Some(at) = u32::from_ne_bytes(random).checked_rem(u32::from(ports)) else { break };
        let port = FIRST + u16::try_from(at).unwrap_or(0);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
            listening => return listening,
        }
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(nodes: Vec<Node>) -> Nodes {
        Nodes { gateways: Vec::new(), bucket: String::new(), log: "nats".to_owned(), nodes }
    }

    fn port(address: &str) -> u16 {
        address.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    #[test]
    fn a_port_stays_unless_it_is_taken() {
        let mut ports = Ports::new(None);
        let first = ports.node(Path::new("/f"), Kind::Log, 1).unwrap();
        drop(ports);
        let range = std::fs::read_to_string(RANGE).unwrap();
        let connections: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        assert!((FIRST..connections).contains(&port(&first.address)), "{first:?}");
        let nodes = cluster(vec![first.clone()]);
        let taken = TcpListener::bind(&first.address).unwrap();
        let mut ports = Ports::new(Some(&nodes));
        let second = ports.node(Path::new("/f"), Kind::Log, 1).unwrap();
        assert_ne!(second.address, first.address);
        assert_eq!((second.monitor, second.routes), (first.monitor, first.routes));
        drop(taken);
    }

    #[test]
    fn a_port_of_the_last_start_is_kept_for_its_process() {
        let mut ports = Ports::new(None);
        let nodes = cluster((1..=3).map(|n| ports.node(Path::new("/f"), Kind::Owner, n).unwrap()).collect());
        drop(ports);
        // A new process that comes first gets none of them.
        let mut ports = Ports::new(Some(&nodes));
        let new = ports.node(Path::new("/f"), Kind::Gateway, 1).unwrap();
        assert!(
            nodes.nodes.iter().all(|node| node.address != new.address && TcpListener::bind(&node.address).is_err())
        );
        for (number, node) in (1..).zip(&nodes.nodes) {
            assert_eq!(ports.node(Path::new("/f"), Kind::Owner, number).unwrap().address, node.address);
        }
    }
}
