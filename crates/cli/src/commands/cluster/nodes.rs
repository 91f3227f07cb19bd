//! `cluster.json`: the processes of a folder, for scripts, for `meridian cluster status` and for the next start.

use super::private;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FILE: &str = "cluster.json";

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Gateway,
    Owner,
    Scan,
    /// A server of the log in NATS.
    Log,
}

impl Kind {
    /// In start order: each one needs those before it.
    pub(super) const ALL: [Kind; 4] = [Kind::Log, Kind::Owner, Kind::Scan, Kind::Gateway];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Gateway => "gateway",
            Kind::Owner => "owner",
            Kind::Scan => "scan",
            Kind::Log => "log",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) role: Kind,
    /// Its process id; `None` while it is not running.
    pub(super) pid: Option<u32>,
    /// Its listening address: for clients, for gateways, or for owners.
    pub(super) address: String,
    /// Monitoring address of a server of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) monitor: Option<String>,
    /// Address for the other servers of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) routes: Option<String>,
    /// Its output.
    pub(super) log_file: PathBuf,
}

impl Node {
    /// Returns all its listening addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &String> {
        [Some(&self.address), self.monitor.as_ref(), self.routes.as_ref()].into_iter().flatten()
    }
}

/// All processes of a folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Nodes {
    /// URLs of the gateways.
    pub(super) gateways: Vec<String>,
    /// Address of the bucket.
    pub(super) bucket: String,
    /// `bucket` or `nats`.
    pub(super) log: String,
    pub(super) nodes: Vec<Node>,
}

impl Nodes {
    /// Reads the processes of a folder; `None` if no cluster was started there.
    pub(super) fn read(folder: &Path) -> Result<Option<Nodes>, Failure> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Failure::Refused(format!("{} cannot be read: {e}", path.display()))),
        };
        serde_json::from_str(&text).map(Some).map_err(|e| {
            let path = path.display();
            Failure::Bad(format!("{path} does not read: {e}; without it `meridian cluster up` chooses other ports"))
        })
    }

    /// Replaces the file in one step, since scripts may read it at any time.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let (path, beside) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|e| Failure::Refused(format!("{} cannot be written: {e}", path.display())))?;
        private::write(&beside, &(text + "\n"))
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(|e| Failure::Refused(format!("{} cannot be written: {e}", path.display())))
    }

    /// Returns the process with this name.
    pub(super) fn named(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Returns the number of processes with this role.
    pub(super) fn count(&self, role: Kind) -> usize {
        self.nodes.iter().filter(|node| node.role == role).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_has_the_names_that_scripts_rely_on() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Nodes::read(folder.path()).unwrap().is_none());
        let node = Node {
            name: "gateway-1".to_owned(),
            role: Kind::Gateway,
            pid: Some(7),
            address: "127.0.0.1:4711".to_owned(),
            monitor: None,
            routes: None,
            log_file: PathBuf::from("logs/gateway-1.log"),
        };
        let nodes = Nodes {
            gateways: vec!["http://127.0.0.1:4711".to_owned()],
            bucket: "file:///b".to_owned(),
            log: "bucket".to_owned(),
            nodes: vec![node],
        };
        nodes.write(folder.path()).unwrap();
        let back = Nodes::read(folder.path()).unwrap().unwrap();
        assert_eq!(back.named("gateway-1").unwrap().pid, Some(7));
        assert_eq!((back.count(Kind::Gateway), back.count(Kind::Log)), (1, 0));
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["gateways"][0], "http://127.0.0.1:4711");
        assert_eq!(value["nodes"][0]["role"], "gateway");
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert_eq!(Nodes::read(folder.path()).unwrap_err().code(), 1);
    }
}
