//! Predicts which queries are short enough for the thread that read their request.
//!
//! As in the branch predictor of a processor, the record of a kind of queries tells how often its next ones are tried.
//! So kinds that are usually long lose little time. At most half of the runtime's threads run tries at a time. The
//! others read requests and put them in the gate's queue, so that overload is noticed. A thread that woke a moment ago
//! had nothing else to do, so it may run one as well.

use meridian_query::{Aggregate, Items, Order};
use std::cell::Cell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use tokio::runtime::{Builder, Handle};
use tokio::time::{Duration, Instant};

/// Number of records. Kinds whose hashes are equal share one, which only makes predictions worse.
const RECORDS: usize = 1024;
/// Max level of a record: after a try at level `n` the next `2^n - 1` queries are not tried.
const LEVEL_MAX: u16 = 6;
/// Time since a thread woke, within which few requests can have queued up for it. Under overload threads never sleep.
const AWAKE_MAX: Duration = Duration::from_millis(1);

thread_local! {
    /// When this thread of the runtime woke. `None` if it never slept, or the runtime is not of [`runtime`].
    static WOKE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns a builder of the runtime of a server. Its threads record when they wake.
pub fn runtime() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().on_thread_unpark(|| WOKE.set(Some(Instant::now())));
    builder
}

fn woke_just_now() -> bool {
    WOKE.get().is_some_and(|woke| woke.elapsed() <= AWAKE_MAX)
}

/// The kind of a query, for predictions: what its duration depends on most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueryKind {
    /// A page of up to `2^limit` events; whether it is ordered by distance or by fields.
    Items { limit: u32, by_distance: bool, by_fields: bool },
    /// Groups of windows, of so many fields, and of windows without events.
    Aggregate { has_windows: bool, by: usize, empty: bool },
    /// A tile of this zoom.
    Tile(u8),
}

impl QueryKind {
    /// Returns the kind of a query for events.
    pub fn items(items: &Items) -> QueryKind {
        QueryKind::Items {
            limit: items.limit.and_then(|limit| limit.checked_ilog2()).map_or(0, |limit| limit + 1),
            by_distance: matches!(items.order, Order::Near { .. }),
            by_fields: matches!(items.order, Order::Fields(_)),
        }
    }

    /// Returns the kind of an aggregate.
    pub fn aggregate(question: &Aggregate) -> QueryKind {
        QueryKind::Aggregate { has_windows: question.windows.is_some(), by: question.by.len(), empty: question.empty }
    }
}

/// The tries in progress, and the records of earlier ones.
#[derive(Debug)]
pub struct BriefRuns {
    running: AtomicUsize,
    running_max: OnceLock<usize>,
    /// Each record is its level times 256, plus the number of queries until the next try.
    records: [AtomicU16; RECORDS],
}

impl Default for BriefRuns {
    fn default() -> BriefRuns {
        BriefRuns {
            running: AtomicUsize::new(0),
            running_max: OnceLock::new(),
            records: std::array::from_fn(|_| AtomicU16::new(0)),
        }
    }
}

/// A try in progress.
pub struct Try<'a> {
    running: &'a AtomicUsize,
    record: &'a AtomicU16,
}

impl BriefRuns {
    /// Starts a try of a query of this kind, unless it is likely to be long, or too many tries are in progress for a
    /// thread that may have requests in its queue.
    pub fn start(&self, tenant: &str, collection: &str, kind: QueryKind) -> Option<Try<'_>> {
        let running_max = *self.running_max.get_or_init(|| Handle::current().metrics().num_workers() / 2);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((tenant, collection, kind));
        let record = &self.records[hash as usize % RECORDS];
        // Relaxed: a record is a hint, and an update that is lost to another thread does no harm.
        let state = record.load(Ordering::Relaxed);
        if state & 0xff > 0 {
            record.store(state - 1, Ordering::Relaxed);
            return None;
        }
        // Relaxed: the count guards nothing but the number of tries.
        if self.running.fetch_add(1, Ordering::Relaxed) >= running_max && !woke_just_now() {
            self.running.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Try { running: &self.running, record })
    }
}

impl Try<'_> {
    /// Records whether the query was short enough.
    pub fn record(&self, was_short: bool) {
        let level = self.record.load(Ordering::Relaxed) >> 8;
        // Step by step also after a short one: kinds whose queries are short and long in turns are seldom tried.
        let level = if was_short { level.saturating_sub(1) } else { (level + 1).min(LEVEL_MAX) };
        let next = level << 8 | ((1 << level) - 1);
        self.record.store(next, Ordering::Relaxed);
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of tries among so many queries, each long or short.
    fn tries(runs: &BriefRuns, queries: usize, mut is_long: impl FnMut(usize) -> bool) -> usize {
        let tried = |n: &usize| {
            let current = runs.start("harbour", "ships", QueryKind::Tile(7));
            current.inspect(|current| current.record(!is_long(*n))).is_some()
        };
        (0..queries).filter(tried).count()
    }

    fn runs_on(threads: usize) -> BriefRuns {
        BriefRuns { running_max: OnceLock::from(threads), ..BriefRuns::default() }
    }

    #[test]
    fn long_kinds_are_tried_rarely_and_short_ones_always() {
        let runs = runs_on(1);
        assert_eq!(tries(&runs, 1_000, |_| false), 1_000);
        let of_long = tries(&runs, 6_400, |_| true);
        assert!((100..=110).contains(&of_long), "{of_long} of 6,400");
        // They are tried again once they are short: after at most 63, then 31, 15, 7, 3 and 1 others.
        let again = tries(&runs, 130, |_| false);
        assert!((10..=80).contains(&again), "{again} of 130");
        assert_eq!(tries(&runs, 1_000, |_| false), 1_000);
        let in_turns = tries(&runs, 1_000, |n| n % 2 == 0);
        assert!(in_turns <= 700, "{in_turns} of 1,000");
    }

    #[test]
    fn threads_remain_for_requests() {
        let runs = runs_on(2);
        let first = runs.start("harbour", "ships", QueryKind::Tile(3));
        let second = runs.start("harbour", "ships", QueryKind::Tile(4));
        assert!(first.is_some() && second.is_some());
        assert!(runs.start("harbour", "planes", QueryKind::Tile(3)).is_none());
        drop(first);
        assert!(runs.start("harbour", "planes", QueryKind::Tile(3)).is_some());
        assert!(runs_on(0).start("harbour", "ships", QueryKind::Tile(3)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_just_woke_has_no_queue() {
        let runs = runs_on(1);
        let _first = runs.start("harbour", "ships", QueryKind::Tile(3));
        let is_tried = || runs.start("harbour", "ships", QueryKind::Tile(4)).is_some();
        assert!(!is_tried());
        WOKE.set(Some(Instant::now()));
        assert!(is_tried());
        tokio::time::advance(AWAKE_MAX * 2).await;
        assert!(!is_tried(), "others may wait for it by now");
    }

    #[test]
    fn the_runtime_tells_its_threads_when_they_wake() {
        let runtime = runtime().worker_threads(1).build().unwrap();
        let woke = runtime.block_on(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            tokio::spawn(async { WOKE.get().is_some() }).await.unwrap()
        });
        assert!(woke);
    }
}
