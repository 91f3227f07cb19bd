//! Memory of queries that collect before they return.
//!
//! A sort keeps its first events, an aggregate its groups, a heat map its cells. Each has its own limit; a
//! [`MemoryPool`] limits all of them together. A query that finds no room is refused, so that the process survives.

use crate::error::QueryError;
use std::sync::Arc;

/// Bytes are taken in steps of this size, to keep small growth off the shared account.
const STEP: u64 = 64 << 10;

/// Memory shared by queries. Another component decides how it is divided.
pub trait MemoryPool: Send + Sync + std::fmt::Debug {
    /// Takes bytes; returns whether there was room.
    fn take(&self, bytes: u64) -> bool;

    /// Returns bytes.
    fn give_back(&self, bytes: u64);

    /// The size of the pool, for messages.
    fn limit(&self) -> u64;
}

/// The bytes taken by one query, returned on drop. Unlimited without a pool.
#[derive(Debug, Default)]
pub struct Share {
    memory: Option<Arc<dyn MemoryPool>>,
    bytes: u64,
}

impl Share {
    pub(crate) fn of(memory: Option<Arc<dyn MemoryPool>>) -> Share {
        Share { memory, bytes: 0 }
    }

    /// Takes bytes until the share holds `bytes`.
    ///
    /// # Errors
    /// [`QueryError::Busy`] if the pool has no room.
    pub fn reach(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes = bytes as u64;
        if bytes <= self.bytes {
            return Ok(());
        }
        let more = (bytes - self.bytes).next_multiple_of(STEP);
        if let Some(memory) = &self.memory
            && !memory.take(more)
        {
            return Err(QueryError::Busy { limit: memory.limit() });
        }
        self.bytes += more;
        Ok(())
    }

    /// Returns all bytes; the share can grow again.
    pub fn release(&mut self) {
        if let Some(memory) = &self.memory {
            memory.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A pool of four steps.
    #[derive(Debug, Default)]
    struct Pool(AtomicU64);

    impl MemoryPool for Pool {
        fn take(&self, bytes: u64) -> bool {
            let more = |taken: u64| (taken + bytes <= self.limit()).then_some(taken + bytes);
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }

        fn limit(&self) -> u64 {
            4 * STEP
        }
    }

    #[test]
    fn shares_end_where_the_pool_does_and_come_back() {
        let memory = Arc::new(Pool::default());
        let taken = || memory.0.load(Ordering::Relaxed);
        let (mut first, mut second) = (Share::of(Some(memory.clone())), Share::of(Some(memory.clone())));
        first.reach(3 * STEP as usize - 5).unwrap();
        first.reach(7).unwrap();
        assert_eq!(taken(), 3 * STEP);
        assert!(matches!(second.reach(STEP as usize + 1), Err(QueryError::Busy { limit }) if limit == 4 * STEP));
        second.reach(STEP as usize).unwrap();
        assert_eq!(taken(), 4 * STEP);
        drop(first);
        second.reach(4 * STEP as usize).unwrap();
        drop(second);
        assert_eq!(taken(), 0);
    }
}
