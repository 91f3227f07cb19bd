//! The memory of a query, charged to its tenant's part.

use meridian_admission::{ByteBudget, ByteShare};
use meridian_query::MemoryPool;
use parking_lot::Mutex;
use std::sync::Arc;

/// The memory of one query.
#[derive(Debug)]
pub(super) struct QueryMemory {
    budget: ByteBudget,
    share: Mutex<ByteShare>,
}

impl QueryMemory {
    /// Starts with an empty share of a tenant's budget.
    pub(super) fn of(budget: &ByteBudget) -> Arc<QueryMemory> {
        Arc::new(QueryMemory { budget: budget.clone(), share: Mutex::new(budget.empty()) })
    }
}

impl MemoryPool for QueryMemory {
    fn take(&self, bytes: u64) -> bool {
        let mut share = self.share.lock();
        // The share grows to a total, while the query asks for more: a sum that overflows is refused.
        let wanted = usize::try_from(bytes).ok().and_then(|bytes| share.bytes().checked_add(bytes));
        wanted.is_some_and(|bytes| share.try_grow(bytes))
    }

    fn give_back(&self, bytes: u64) {
        self.share.lock().shrink(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    fn limit(&self) -> u64 {
        self.budget.limit() as u64
    }
}
