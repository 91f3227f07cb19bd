//! The roll of a cluster: each process periodically publishes what it is, its condition, and which formats it reads.
//!
//! Each has an object `nodes/{process}/{number}`, as in `peers.rs`. From the roll an owner learns which standbys exist,
//! and when all live processes read the formats of the next level (`levels.rs`). It also lists the processes for
//! operators. The outcome of an order to a process (`orders.rs`) is reported here.

use super::Bucket;
use super::orders::OrderOutcome;
use super::peers::{Peers, name_of, newest, read_newest};
use crate::error::StoreError;
use crate::seams::Seams;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) const FOLDER: &str = "nodes/";

/// The condition of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It serves clients, or owns collections.
    Serves,
    /// It is a standby: ready to own collections, without a lease.
    StandsBy,
    /// It takes no new work until it restarts.
    Drained,
    /// A condition of a newer program.
    #[serde(other)]
    Other,
}

/// The status that a process reports. Fields of newer programs are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Its role: `owner`, `gateway` or `scan`.
    pub role: String,
    /// The random number of this start of the process; an owner also has it in its lease.
    pub process: u64,
    /// Version of its program.
    pub program: String,
    /// Level of its program (`model::policy::level`).
    pub level: u32,
    /// The address at which clients or gateways reach it.
    pub address: String,
    /// Its condition.
    pub condition: Condition,
    /// Names of the leases it holds.
    #[serde(default)]
    pub leases: Vec<String>,
    /// The last order it has executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<OrderOutcome>,
}

/// The entry of this process on the roll of its cluster.
#[derive(Debug)]
pub struct Roll(Peers);

impl Roll {
    /// Joins as the process of this random number. `ttl` is how long a silent process counts.
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams, process: u64, ttl: Duration) -> Roll {
        Roll(Peers::within(FOLDER, ttl, bucket, seams, process))
    }

    /// Publishes the state of this process, and returns how often it has done so.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn say(&self, node: &Node) -> Result<u64, StoreError> {
        // Texts, numbers and lists: encoding cannot fail.
        self.0.say(&serde_json::to_vec(node).unwrap_or_default())
    }

    /// Returns the entries of other live processes. `None` stands for a live process whose object cannot be parsed.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn hear(&self) -> Result<Vec<Option<Node>>, StoreError> {
        Ok(self.0.hear()?.iter().map(|said| serde_json::from_slice(said).ok()).collect())
    }

    /// Notifies the others that this process is gone.
    pub fn leave(&self) {
        self.0.leave();
    }

    /// Returns the last entries of all processes, live or not, or that of the process with this number.
    ///
    /// # Errors
    /// Errors of the bucket. Objects that cannot be parsed are left out.
    pub fn read(bucket: &dyn Bucket, process: Option<u64>) -> Result<Vec<RollEntry>, StoreError> {
        let folder = process.map_or(FOLDER.to_owned(), |process| format!("{FOLDER}{process:016x}/"));
        let names = bucket.list(&folder).map_err(StoreError::io("list", &Path::new(&bucket.place()).join(&folder)))?;
        let mut all = Vec::new();
        for (process, number) in newest(FOLDER, &names) {
            match read_newest(bucket, FOLDER, process, number) {
                Ok(Some((said, content))) => {
                    if let Ok(node) = serde_json::from_slice(&content) {
                        let written = bucket.modified(&name_of(FOLDER, process, said)).ok().flatten();
                        all.push(RollEntry { said, written, node });
                    }
                }
                Ok(None) => {}
                Err(error @ (StoreError::Corrupt { .. } | StoreError::NewerFormat { .. })) => {
                    tracing::warn!(%error, "what a process says of itself does not read");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}

/// The last entry of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollEntry {
    /// How often it has published its state; this grows while it lives.
    pub said: u64,
    /// When it did, by the bucket's clock, in microseconds since 1970; `None` if the bucket does not report it.
    pub written: Option<i64>,
    /// Its entry.
    pub node: Node,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;

    fn node(process: u64) -> Node {
        Node {
            node: format!("n{process}"),
            role: "owner".to_owned(),
            process,
            program: "0.0.0".to_owned(),
            level: 1,
            address: String::new(),
            condition: Condition::StandsBy,
            leases: Vec::new(),
            done: None,
        }
    }

    #[test]
    fn processes_are_on_the_roll_while_they_live() {
        let memory = MemoryBucket::new();
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let (seams, ttl) = (Seams::real(), Duration::from_secs(8));
        let (one, two) = (Roll::new(bucket.clone(), &seams, 1, ttl), Roll::new(bucket.clone(), &seams, 2, ttl));
        assert_eq!((one.say(&node(1)).unwrap(), one.say(&node(1)).unwrap()), (1, 2));
        two.say(&node(2)).unwrap();
        assert_eq!(one.hear().unwrap(), [Some(node(2))]);
        let all = |process| {
            let all = Roll::read(bucket.as_ref(), process).unwrap().into_iter();
            all.map(|one| (one.said, one.node)).collect::<Vec<_>>()
        };
        assert_eq!(all(None), [(2, node(1)), (1, node(2))]);
        assert_eq!(all(Some(2)), [(1, node(2))]);
        // An entry renewed between the listing and the read is found.
        memory.freeze_listings(true);
        two.say(&node(2)).unwrap();
        assert_eq!((one.hear().unwrap(), all(Some(2))), (vec![Some(node(2))], vec![(2, node(2))]));
        memory.freeze_listings(false);
        two.leave();
        assert!(one.hear().unwrap().is_empty());
        // One that cannot be parsed counts as present.
        two.say(&node(2)).unwrap();
        let (name, _) = memory.objects().into_iter().find(|(name, _)| name.contains("/0000000000000002/")).unwrap();
        memory.harm(&name, Some(b"damaged".to_vec()));
        assert_eq!(one.hear().unwrap(), [None]);
        assert_eq!(all(None), [(2, node(1))]);
    }

    #[test]
    fn a_node_of_a_newer_program_reads() {
        let mut newer = serde_json::to_value(node(7)).unwrap();
        newer["condition"] = "asleep".into();
        newer["unknown"] = 1.into();
        let read: Node = serde_json::from_value(newer).unwrap();
        assert_eq!(read, Node { condition: Condition::Other, ..node(7) });
    }
}
