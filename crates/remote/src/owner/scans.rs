//! Turns of queries at a scan server: which one works on a batch, which waits, and which gets a busy response.
//!
//! The rules are in [`meridian_model::policy::busy`]. This module supplies the clock and wakes the waiters.

use meridian_model::policy::busy::{Executor, ExecutorStep, Limits};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Load of a scan server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScanLoad {
    /// Scans working on a batch.
    pub working: u64,
    /// Scans started and not ended.
    pub started: u64,
    /// Scans waiting to start.
    pub waiting: u64,
}

/// The scans of a server. Shared by its calls and its load reports.
#[derive(Debug)]
pub struct ScanExecutor {
    state: Mutex<State>,
    /// Notified when a scan leaves.
    left: Notify,
    begun: Instant,
    answered_busy: AtomicU64,
    begun_scans: AtomicU64,
    given: AtomicU64,
}

#[derive(Debug)]
struct State {
    executor: Executor<u64>,
    /// Waiters; each receives whether it may run, or false for busy.
    waits: HashMap<u64, oneshot::Sender<bool>>,
    numbers: u64,
    draining: bool,
}

/// The scan was not started in time, and never will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotStarted;

impl ScanExecutor {
    /// Starts without scans, within these limits.
    pub fn new(limits: Limits) -> Arc<ScanExecutor> {
        let state = State { executor: Executor::new(limits), waits: HashMap::new(), numbers: 0, draining: false };
        Arc::new(ScanExecutor {
            state: Mutex::new(state),
            left: Notify::new(),
            begun: Instant::now(),
            answered_busy: AtomicU64::new(0),
            begun_scans: AtomicU64::new(0),
            given: AtomicU64::new(0),
        })
    }

    /// Returns the current load.
    pub fn load(&self) -> ScanLoad {
        let executor = &self.state.lock().executor;
        let (working, started) = (executor.working() as u64, executor.started() as u64);
        ScanLoad { working, started, waiting: executor.waiting() as u64 }
    }

    /// Number of scans answered busy so far.
    pub fn answered_busy(&self) -> u64 {
        self.answered_busy.load(Ordering::Relaxed)
    }

    /// Number of scans started so far.
    pub fn begun(&self) -> u64 {
        self.begun_scans.load(Ordering::Relaxed)
    }

    /// Number of batches started so far.
    pub fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Stops starting scans: waiting and new ones are answered busy.
    pub fn drain(&self) {
        let mut state = self.state.lock();
        state.draining = true;
        for scan in state.executor.drain() {
            // Without an entry, the waiter has gone.
            state.waits.remove(&scan).map(|wait| wait.send(false));
        }
    }

    /// Returns true once no more scans start.
    pub(super) fn is_draining(&self) -> bool {
        self.state.lock().draining
    }

    /// Waits until all started scans have left.
    pub(super) async fn ended(&self) {
        loop {
            // Created before the check, so that a scan that leaves in between is not missed.
            let left = self.left.notified();
            if self.state.lock().executor.started() == 0 {
                return;
            }
            left.await;
        }
    }

    /// Counts a scan answered busy.
    pub(super) fn refuse(&self) -> NotStarted {
        self.answered_busy.fetch_add(1, Ordering::Relaxed);
        NotStarted
    }

    /// Waits for the start of a scan, at most this long; zero: as long as the caller does.
    pub(super) async fn start(self: &Arc<Self>, busy_timeout: Duration) -> Result<Arc<Scan>, NotStarted> {
        let (scan, verdict) = {
            let mut state = self.state.lock();
            state.numbers += 1;
            let number = state.numbers;
            if state.executor.arrive(number, busy_timeout, self.begun.elapsed()).is_err() {
                return Err(self.refuse());
            }
            // From here on, dropping the scan (for example when the caller goes away) makes it leave.
            (Arc::new(Scan { scans: self.clone(), number }), wait_for(&mut state, number))
        };
        self.pump();
        match self.verdict(verdict, (!busy_timeout.is_zero()).then(|| Instant::now() + busy_timeout)).await {
            true => {
                self.begun_scans.fetch_add(1, Ordering::Relaxed);
                Ok(scan)
            }
            false => Err(self.refuse()),
        }
    }

    /// Waits for the verdict. When its patience ends, a scan applies the rules itself, since nothing else keeps time
    /// for it.
    async fn verdict(&self, mut verdict: oneshot::Receiver<bool>, until: Option<Instant>) -> bool {
        if let Some(until) = until {
            tokio::select! {
                biased;
                told = &mut verdict => return told.unwrap_or(false),
                () = tokio::time::sleep_until(until) => self.pump(),
            }
        }
        // A clock read slightly early can leave it waiting, so it checks again until the verdict arrives.
        loop {
            tokio::select! {
                biased;
                told = &mut verdict => return told.unwrap_or(false),
                () = tokio::time::sleep(LOOK), if until.is_some() => self.pump(),
            }
        }
    }

    /// Executes the executor's steps: notifies the scans that work or are busy.
    fn pump(&self) {
        let mut state = self.state.lock();
        while let Some(next) = state.executor.next(self.begun.elapsed()) {
            let (scan, works) = match next {
                ExecutorStep::Work(scan) => (scan, true),
                ExecutorStep::Busy(scan) => (scan, false),
            };
            self.given.fetch_add(u64::from(works), Ordering::Relaxed);
            // If its call was dropped meanwhile, the scan leaves by itself.
            state.waits.remove(&scan).map(|wait| wait.send(works));
        }
    }
}

/// Interval of further checks after a scan's patience has ended.
const LOOK: Duration = Duration::from_millis(1);

fn wait_for(state: &mut State, scan: u64) -> oneshot::Receiver<bool> {
    let (tell, told) = oneshot::channel();
    state.waits.insert(scan, tell);
    told
}

/// A started scan, which has a place. It leaves when the last reference is dropped; its work holds one as well.
#[derive(Debug)]
pub(super) struct Scan {
    scans: Arc<ScanExecutor>,
    number: u64,
}

impl Scan {
    /// Ends a batch: another scan may take the place.
    pub(super) fn rest(&self) {
        self.scans.state.lock().executor.rest(&self.number);
        self.scans.pump();
    }

    /// Waits for a place for the next batch, behind all other waiters. Never answered busy.
    pub(super) async fn again(&self) {
        let verdict = {
            let mut state = self.scans.state.lock();
            state.executor.again(&self.number);
            wait_for(&mut state, self.number)
        };
        self.scans.pump();
        self.scans.verdict(verdict, None).await;
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        {
            let mut state = self.scans.state.lock();
            state.executor.leave(&self.number);
            state.waits.remove(&self.number);
        }
        self.scans.pump();
        self.scans.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(places: usize, started: usize, waiting: usize) -> Arc<ScanExecutor> {
        ScanExecutor::new(Limits { places, started, waiting })
    }

    fn load(turns: &ScanExecutor) -> (u64, u64, u64) {
        let ScanLoad { working, started, waiting } = turns.load();
        (working, started, waiting)
    }

    #[tokio::test(start_paused = true)]
    async fn a_scan_waits_for_its_start_and_is_busy_at_the_end_of_its_patience() {
        let turns = turns(1, 8, 1);
        let first = turns.start(Duration::ZERO).await.unwrap();
        assert_eq!(load(&turns), (1, 1, 0));
        let waits = tokio::spawn({
            let turns = turns.clone();
            async move { turns.start(Duration::from_millis(33)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(load(&turns), (1, 1, 1));
        // The queue is full.
        assert_eq!(turns.start(Duration::from_secs(9)).await.unwrap_err(), NotStarted);
        assert_eq!(waits.await.unwrap(), Err(NotStarted));
        assert_eq!((load(&turns), turns.answered_busy(), turns.begun()), ((1, 1, 0), 2, 1));
        // The waiter takes the place that becomes free.
        let waits = tokio::spawn({
            let turns = turns.clone();
            async move { turns.start(Duration::from_secs(33)).await }
        });
        tokio::task::yield_now().await;
        first.rest();
        let second = waits.await.unwrap().unwrap();
        assert_eq!(load(&turns), (1, 2, 0));
        drop(second);
        first.again().await;
        assert_eq!(load(&turns), (1, 1, 0));
        drop(first);
        assert_eq!(load(&turns), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_leaves_and_a_server_that_drains_ends_what_has_started() {
        let turns = turns(1, 8, 8);
        let first = turns.start(Duration::ZERO).await.unwrap();
        drop(tokio::time::timeout(Duration::from_millis(5), turns.start(Duration::ZERO)).await);
        assert_eq!(load(&turns), (1, 1, 0), "its caller has gone");
        let waits = tokio::spawn({
            let turns = turns.clone();
            async move { turns.start(Duration::ZERO).await.map(drop) }
        });
        tokio::task::yield_now().await;
        turns.drain();
        assert_eq!(waits.await.unwrap(), Err(NotStarted));
        assert!(turns.start(Duration::from_secs(1)).await.is_err());
        first.rest();
        first.again().await;
        let ended = tokio::spawn({
            let turns = turns.clone();
            async move { turns.ended().await }
        });
        tokio::task::yield_now().await;
        assert!(!ended.is_finished());
        drop(first);
        ended.await.unwrap();
    }
}
