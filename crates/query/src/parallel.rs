//! Runs large queries on several threads, without starving other queries.
//!
//! A query is divided into tasks, each the rows below one node. It gets at most half of the machine's processors
//! ([`slices`]), from a pool that all queries share. Small ones stay on the calling thread, and so do all while
//! others wait for a processor. The assignment of tasks to slices depends only on their numbers, so that float sums
//! are the same each time.

use crate::candidates::Candidates;
use crate::control::{Stats, threads};
use crate::error::QueryError;
use crate::scan::Scan;
use meridian_index::{Node, Tree};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Min rows for which a query is worth several threads.
pub(crate) const PARALLEL_ROWS: u64 = 1 << 20;
/// Level of the nodes that form a task: some 260,000 rows.
const TASK_LEVEL: u8 = 3;

/// The rows below one node of a part.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) part: u32,
    tree: Tree,
    node: Node,
    /// Whether the tree is over the part's time order.
    pub(crate) by_time: bool,
}

impl Task {
    /// The tree and the node.
    pub(crate) fn node(&self) -> (&Tree, Node) {
        (&self.tree, self.node)
    }

    pub(crate) fn candidates(&self, scan: &mut Scan) -> Candidates {
        let all = Candidates::below(&self.tree, self.node, false).within(scan.bounds);
        let all = all.in_stretches(scan.stretches(self.part));
        // In time order, rows have other numbers.
        if self.by_time { all } else { all.sifted(scan.sieve(self.part)) }
    }
}

/// Divides the trees of a part into tasks.
pub(crate) fn add_tasks(tasks: &mut Vec<Task>, part: u32, trees: &[Tree], by_time: bool) {
    for tree in trees {
        let mut open: Vec<Node> = tree.root().into_iter().collect();
        while let Some(node) = open.pop() {
            if node.level() > TASK_LEVEL {
                open.extend(tree.children(node).rev());
            } else {
                tasks.push(Task { part, tree: tree.clone(), node, by_time });
            }
        }
    }
}

/// Number of threads that a query over `rows` rows may use.
pub(crate) fn slices(rows: u64) -> usize {
    if rows < PARALLEL_ROWS { 1 } else { threads().div_ceil(2) }
}

/// `None` if the system provides no threads: then queries stay on the calling thread.
static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    ThreadPoolBuilder::new().num_threads(threads()).thread_name(|i| format!("query-{i}")).build().ok()
});

/// Processes tasks in `slices` slices, and returns the results of the slices in order. Adds the costs to the scan's.
/// After an error in one slice the others stop at their next task.
pub(crate) fn work<T: Send>(
    scan: &mut Scan,
    tasks: &[Task],
    slices: usize,
    make: impl Fn(&mut Scan) -> T + Sync,
    task: impl Fn(&mut T, &mut Scan, &Task) -> Result<(), QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    let slices = if tasks.len() > 1 { slices.max(1) } else { 1 };
    // Helpers never wait for the scheduler: a paused one would keep a thread of the pool from the running query.
    let pool = if slices > 1 && !scan.control.stays_on_thread() { POOL.as_ref() } else { None };
    // The same slices one after another: sums must depend neither on the pool nor on other queries.
    let Some(pool) = pool else {
        return (0..slices)
            .map(|i| {
                let mut made = make(scan);
                tasks.iter().skip(i).step_by(slices).try_for_each(|t| task(&mut made, scan, t))?;
                Ok(made)
            })
            .collect();
    };
    let failed = AtomicBool::new(false);
    let slots: Vec<Mutex<Option<Slice<T>>>> = (0..slices).map(|_| Mutex::new(None)).collect();
    let scan_ref = &*scan;
    pool.scope(|scope| {
        for (i, slot) in slots.iter().enumerate() {
            let (failed, make, task) = (&failed, &make, &task);
            scope.spawn(move |_| {
                // Each slice has its own counters and open chunks, so that slices share no mutable state.
                let mut scan = scan_ref.fork();
                let began = scan.control.elapsed_us();
                let mut made = make(&mut scan);
                // Every n-th task, fixed in advance: work stealing would change the order of float additions between
                // runs.
                let mut mine = tasks.iter().skip(i).step_by(slices).take_while(|_| !failed.load(Ordering::Relaxed));
                let result = mine.try_for_each(|t| task(&mut made, &mut scan, t));
                // Relaxed is enough: it only saves work, and the result travels through the slot.
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                scan.control.helped(began);
                let slice = Slice { stats: scan.stats, result: result.map(|()| made) };
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slice);
            });
        }
    });
    let mut all = Vec::with_capacity(slices);
    for slot in slots {
        if let Some(slice) = slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // In slice order, like the results.
            scan.stats.merge(&slice.stats);
            all.push(slice.result);
        }
    }
    all.into_iter().collect()
}

/// The outcome of one slice.
struct Slice<T> {
    stats: Stats,
    result: Result<T, QueryError>,
}
