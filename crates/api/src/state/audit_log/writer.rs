//! Group commit of the audit log.
//!
//! Lines wait in a queue. One of the waiting tasks takes the turn and writes the queued lines with a single sync. The
//! others find their lines already written when they get the turn. Only one thread waits for the disk, however many
//! acts are in progress.

use crate::protocol::problem::{Problem, Result};
use meridian_backend::{Act, AuditLog};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot::{self, Sender};

/// Max number of waiting lines. Beyond it no act begins; acts in progress are completed.
pub const WAITING_MAX: usize = 4096;
/// Max lines per group.
const GROUP_MAX: usize = 64;

/// A waiting line, with the sender for its number once it is on disk. The sender is dropped if the line could not be
/// written.
type QueuedLine = (Act, Sender<u64>);

pub struct Writer {
    log: Arc<dyn AuditLog>,
    waiting: Mutex<VecDeque<QueuedLine>>,
    /// Held by the writing task until its sync has ended.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Writer {
    pub fn new(log: Arc<dyn AuditLog>) -> Writer {
        Writer { log, waiting: Mutex::default(), turn: Arc::default() }
    }

    pub fn log(&self) -> &Arc<dyn AuditLog> {
        &self.log
    }

    pub fn is_full(&self) -> bool {
        self.waiting.lock().len() >= WAITING_MAX
    }

    /// Appends a line and returns its number once it is on disk; `None` if it could not be written.
    ///
    /// # Errors
    /// A panic of the writing thread.
    pub async fn append(&self, act: Act) -> Result<Option<u64>> {
        let (sender, mut written) = oneshot::channel();
        self.waiting.lock().push_back((act, sender));
        loop {
            // The lock moves to the writing thread, so that dropping this task does not let a second writer begin.
            let turn = self.turn.clone().lock_owned().await;
            match written.try_recv() {
                Ok(n) => return Ok(Some(n)),
                Err(oneshot::error::TryRecvError::Closed) => return Ok(None),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            let group: Vec<QueuedLine> = {
                let mut waiting = self.waiting.lock();
                let size = waiting.len().min(GROUP_MAX);
                waiting.drain(..size).collect()
            };
            let log = self.log.clone();
            let wrote = tokio::task::spawn_blocking(move || {
                write(log.as_ref(), group);
                drop(turn);
            });
            wrote.await.map_err(Problem::internal)?;
        }
    }
}

fn write(log: &dyn AuditLog, group: Vec<QueuedLine>) {
    let (acts, senders): (Vec<Act>, Vec<Sender<u64>>) = group.into_iter().unzip();
    match log.append(&acts) {
        // A dropped task needs no number.
        Ok(first) => (first..).zip(senders).for_each(|(n, sender)| {
            let _ = sender.send(n);
        }),
        Err(error) => tracing::error!(%error, acts = acts.len(), "administrative acts could not be recorded"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_backend::{AuditPage, RecordedAct, StoreError};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A log whose disk is controlled by the test.
    #[derive(Debug, Default)]
    struct Slow {
        disk: Mutex<()>,
        /// Sizes of the groups.
        groups: Mutex<Vec<usize>>,
        last: AtomicU64,
    }

    impl AuditLog for Slow {
        fn append(&self, acts: &[Act]) -> std::result::Result<u64, StoreError> {
            self.groups.lock().push(acts.len());
            let _disk = self.disk.lock();
            match acts.iter().any(|act| act.target == "/full") {
                true => Err(StoreError::Busy("full".to_owned())),
                false => Ok(self.last.fetch_add(acts.len() as u64, Ordering::Relaxed) + 1),
            }
        }

        fn page(
            &self,
            _: u64,
            _: usize,
            _: &dyn Fn(&RecordedAct) -> bool,
        ) -> std::result::Result<AuditPage, StoreError> {
            Ok(AuditPage { lines: Vec::new(), next: None })
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn acts_at_the_same_time_share_syncs_and_one_thread() {
        const ACTS: usize = 200;
        let log = Arc::new(Slow::default());
        let writer = Arc::new(Writer::new(log.clone()));
        let append = |target: &str| {
            let (writer, act) = (writer.clone(), Act { target: target.to_owned(), ..Act::default() });
            tokio::spawn(async move { writer.append(act).await.unwrap() })
        };
        let disk = log.disk.lock();
        let tasks: Vec<_> = (0..ACTS).map(|_| append("/tokens/1")).collect();
        // Aborting one task does not let a second thread begin.
        tasks[0].abort();
        // Either the first group has begun, or all acts are waiting.
        let begun = || !log.groups.lock().is_empty();
        let arrived = || writer.waiting.lock().len() + log.groups.lock().iter().sum::<usize>();
        while !begun() || arrived() < ACTS - 1 {
            std::thread::yield_now();
        }
        assert_eq!(log.groups.lock().len(), 1, "the others wait without a thread");
        drop(disk);
        let mut numbers = Vec::new();
        for task in tasks {
            numbers.extend(task.await.ok().flatten());
        }
        numbers.sort_unstable();
        assert!(numbers.len() >= ACTS - 1 && numbers.is_sorted_by(|a, b| a < b), "each has its own: {numbers:?}");
        assert!(log.groups.lock().len() <= 1 + ACTS.div_ceil(GROUP_MAX), "{:?}", log.groups.lock());
        assert_eq!(append("/full").await.unwrap(), None);
        assert!(append("/tokens/2").await.unwrap().is_some(), "the next one is written");
    }
}
