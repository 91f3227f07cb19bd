//! Orders of an operator to a process of the cluster: objects `orders/{process}/{number}`, which the process finds when
//! it next publishes its state.
//!
//! An order is addressed to one start of a process, so it cannot reach the next one. A process executes its orders in
//! turn, and only polls for the next number. The operator that creates that number has given the order; another
//! operator trying at the same time is refused. The outcome is on the roll (`roll.rs`). An order holds how often its
//! process had published its state by then. If that count has grown too far since, the order is too old: the operator
//! gave up on it long ago.

use super::Bucket;
use super::create::{CreateOutcome, create};
use crate::codec::{frame, unframe};
use crate::error::StoreError;
use crate::seams::Seams;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"MRDNORDR";
const VERSION: u32 = 1;
/// Max publications of its process after which an order is too old.
const AGE_MAX: u64 = 16;

/// The kind of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderKind {
    /// Hands over a lease.
    Handover {
        /// Name of the lease.
        lease: String,
        /// The epoch in which the process holds it; in a later epoch the order does not apply.
        epoch: u64,
        /// The process that gets it; `None` for the most suitable one.
        to: Option<u64>,
    },
    /// Takes no new work, and hands over all leases.
    Drain,
    /// Takes work again.
    Undo,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The kind of order.
    pub what: OrderKind,
    /// How often the process had published its state when the order was given.
    pub said: u64,
    /// Random, so that no other order has the same bytes.
    pub id: u64,
}

/// The outcome of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderOutcome {
    /// The number of the order.
    pub order: u64,
    /// Whether it was carried out.
    pub done: bool,
    /// What was done, or why not, as a sentence.
    pub text: String,
}

/// The orders to one process.
#[derive(Debug)]
pub struct Orders {
    bucket: Arc<dyn Bucket>,
    seams: Seams,
    process: u64,
}

impl Orders {
    /// Addresses the process of this number.
    pub fn new(bucket: Arc<dyn Bucket>, seams: &Seams, process: u64) -> Orders {
        Orders { bucket, seams: seams.clone(), process }
    }

    /// Gives an order under a number, the one after the last that was executed. `said` is how often the process has
    /// published its state. Returns true if it was given; false if another order has the number.
    ///
    /// # Errors
    /// Errors of the bucket: the order may have been given nevertheless.
    pub fn give(&self, number: u64, what: OrderKind, said: u64) -> Result<bool, StoreError> {
        let (name, path) = self.name(number);
        let order = Order { what, said, id: self.seams.random.next_u64() };
        let json = serde_json::to_vec(&order).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        match create(self.bucket.as_ref(), self.seams.clock.as_ref(), &name, &frame(MAGIC, VERSION, &json)) {
            Ok(created) => Ok(created == CreateOutcome::Ours),
            Err(failure) => Err(StoreError::io("create", &path)(failure.into_error())),
        }
    }

    /// Returns the order of a number; `None` if there is none. Also returns whether it still applies for a process that
    /// has renewed its entry `said` times.
    ///
    /// # Errors
    /// Errors of the bucket. An order that cannot be parsed is damaged, or comes from a newer program.
    pub fn get(&self, number: u64, said: u64) -> Result<Option<(Order, bool)>, StoreError> {
        let (name, path) = self.name(number);
        let bytes = match self.bucket.get(&name) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::io("read", &path)(e)),
        };
        let content = unframe(&path, MAGIC, VERSION, &bytes)?;
        let order: Order = serde_json::from_slice(content)
            .map_err(|e| StoreError::corrupt(&path, format!("it is no order that this program knows: {e}")))?;
        let counts = said <= order.said.saturating_add(AGE_MAX);
        Ok(Some((order, counts)))
    }

    /// Removes an order that was executed, or that has no waiter left.
    ///
    /// # Errors
    /// Errors of the bucket.
    pub fn remove(&self, number: u64) -> Result<(), StoreError> {
        let (name, path) = self.name(number);
        self.bucket.delete(&name).map_err(StoreError::io("delete", &path))
    }

    fn name(&self, number: u64) -> (String, PathBuf) {
        let name = format!("orders/{:016x}/{number:016x}", self.process);
        let path = Path::new(&self.bucket.place()).join(&name);
        (name, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;

    #[test]
    fn an_order_is_given_once_and_grows_old() {
        let memory = MemoryBucket::new();
        let bucket: Arc<dyn Bucket> = Arc::new(memory.clone());
        let (one, other) = (Orders::new(bucket.clone(), &Seams::real(), 1), Orders::new(bucket, &Seams::real(), 2));
        assert_eq!(one.get(1, 5).unwrap(), None);
        assert!(one.give(1, OrderKind::Drain, 5).unwrap());
        assert!(!one.give(1, OrderKind::Undo, 5).unwrap(), "the number is taken");
        let (order, counts) = one.get(1, 5).unwrap().unwrap();
        assert!(order.what == OrderKind::Drain && counts);
        assert!(one.get(1, 5 + AGE_MAX).unwrap().unwrap().1);
        assert!(!one.get(1, 6 + AGE_MAX).unwrap().unwrap().1, "it was given long ago");
        assert_eq!(other.get(1, 5).unwrap(), None, "it is for one start of a process");
        one.remove(1).unwrap();
        assert!(memory.objects().is_empty());
        // An order of a newer program.
        let newer = frame(MAGIC, VERSION, br#"{"what":{"dance":{}},"said":1,"id":1}"#);
        memory.harm("orders/0000000000000001/0000000000000002", Some(newer));
        assert!(matches!(one.get(2, 1), Err(StoreError::Corrupt { .. })));
    }
}
