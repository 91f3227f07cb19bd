//! The queue of password work.
//!
//! One hash takes about 30 ms of processor time and 19 MiB. Hashes run one at a time, off the threads of the async
//! runtime. So any number of sign-in attempts costs other clients no more than that.
//!
//! No tenant holds more slots in the queue than are free. A single tenant may therefore hold half of them, and the more
//! tenants there are, the fewer each holds. A slot stays free for a tenant that holds none. Tenants take turns: a
//! request waits for the earlier ones of its tenant, then for one of each other tenant.

use crate::protocol::problem::{Problem, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{AcquireError, Semaphore};

/// Max requests that run or wait; further ones get 503.
const SLOTS: usize = 64;
/// Max wait.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Runs password work.
pub struct Passwords {
    lines: Arc<Lines>,
    /// Held by the running work.
    turn: Arc<Semaphore>,
}

/// The queues of tenants whose requests run or wait.
type Lines = Mutex<HashMap<String, TenantQueue>>;

/// The queue of a tenant.
struct TenantQueue {
    slots: usize,
    /// Held by the tenant's next request.
    head: Arc<Semaphore>,
}

/// A slot in a tenant's queue, given back when dropped.
struct QueueSlot {
    lines: Arc<Lines>,
    tenant: String,
    head: Arc<Semaphore>,
}

impl QueueSlot {
    fn take(lines: &Arc<Lines>, tenant: &str) -> Option<QueueSlot> {
        let mut all = lines.lock();
        let (held, here) = (all.values().map(|line| line.slots).sum::<usize>(), all.get(tenant).map_or(0, |l| l.slots));
        // A tenant may hold as many slots as are free: the more it holds, the sooner it is refused.
        if held + here >= SLOTS {
            return None;
        }
        let line =
            all.entry(tenant.to_owned()).or_insert_with(|| TenantQueue { slots: 0, head: Arc::new(Semaphore::new(1)) });
        line.slots += 1;
        Some(QueueSlot { lines: lines.clone(), tenant: tenant.to_owned(), head: line.head.clone() })
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get_mut(&self.tenant) {
            line.slots -= 1;
            // Removed with its last slot, so that the table never has more queues than slots.
            if line.slots == 0 {
                lines.remove(&self.tenant);
            }
        }
    }
}

impl Default for Passwords {
    fn default() -> Passwords {
        Passwords { lines: Arc::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Passwords {
    /// Runs `work` for a tenant when its turn comes.
    ///
    /// # Errors
    /// `busy`, called with the number of slots, if too many requests wait or the wait is too long.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: &str,
        work: impl FnOnce() -> T + Send + 'static,
        busy: impl Fn(usize) -> Problem,
    ) -> Result<T> {
        let slot = QueueSlot::take(&self.lines, tenant).ok_or_else(|| busy(SLOTS))?;
        let (head, turn) = (slot.head.clone(), self.turn.clone());
        // First the head of the tenant's queue, then the turn, so that at most one request per tenant waits for the
        // turn. Both semaphores are fair.
        let turns = async move { Ok::<_, AcquireError>((head.acquire_owned().await?, turn.acquire_owned().await?)) };
        let turns = tokio::time::timeout(WAIT_MAX, turns).await.map_err(|_| busy(SLOTS))?.map_err(Problem::internal)?;
        let run = move || {
            let done = work();
            // Held until the work ends: if the client disconnects, no other hash starts alongside.
            drop((turns, slot));
            done
        };
        tokio::task::spawn_blocking(run).await.map_err(Problem::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_with_much_work_leave_slots_to_tenants_with_none() {
        let lines = Arc::default();
        let fill = |tenant: &str| std::iter::from_fn(|| QueueSlot::take(&lines, tenant)).collect::<Vec<_>>();
        let (one, other) = (fill("one"), fill("other"));
        assert_eq!((one.len(), other.len()), (32, 16));
        assert!(QueueSlot::take(&lines, "quiet").is_some());
        drop((one, other));
        assert!(lines.lock().is_empty());
        assert_eq!(fill("other").len(), 32);
    }
}
