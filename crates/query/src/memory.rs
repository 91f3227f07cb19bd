//! The memory budget of questions: what they collect before they can answer.
//!
//! A sort keeps its first events, an aggregate its groups, a heat map its cells. Each has a limit of its own; [`Memory`]
//! limits all of them together. A question that passes the budget is refused, so that the process survives.

use crate::error::QueryError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes are taken in steps of this size, to keep small growth off the shared counter.
const STEP: u64 = 64 << 10;

/// A budget in bytes.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    taken: AtomicU64,
    refused: AtomicU64,
}

impl Memory {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Memory {
        Memory { limit: limit.max(STEP), taken: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    /// Bytes taken now.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Questions refused for lack of memory since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> Result<(), QueryError> {
        let room = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= self.limit);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(QueryError::Busy { limit: self.limit })
            }
        }
    }
}

/// The bytes that one question has taken; dropping returns them. Without a budget there is no limit.
#[derive(Debug, Default)]
pub(crate) struct Share {
    memory: Option<Arc<Memory>>,
    bytes: u64,
}

impl Share {
    pub(crate) fn of(memory: Option<Arc<Memory>>) -> Share {
        Share { memory, bytes: 0 }
    }

    /// Takes bytes until the share holds `bytes` of them.
    pub(crate) fn reach(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes = bytes as u64;
        if bytes <= self.bytes {
            return Ok(());
        }
        let more = (bytes - self.bytes).next_multiple_of(STEP);
        if let Some(memory) = &self.memory {
            memory.take(more)?;
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_where_the_budget_does_and_come_back() {
        let memory = Arc::new(Memory::new(4 * STEP));
        let (mut first, mut second) = (Share::of(Some(memory.clone())), Share::of(Some(memory.clone())));
        first.reach(3 * STEP as usize - 5).unwrap();
        first.reach(7).unwrap();
        assert_eq!(memory.taken(), 3 * STEP);
        assert!(matches!(second.reach(STEP as usize + 1), Err(QueryError::Busy { limit }) if limit == 4 * STEP));
        second.reach(STEP as usize).unwrap();
        assert_eq!((memory.taken(), memory.refused()), (4 * STEP, 1));
        drop(first);
        second.reach(4 * STEP as usize).unwrap();
        drop(second);
        assert_eq!(memory.taken(), 0);
    }
}
