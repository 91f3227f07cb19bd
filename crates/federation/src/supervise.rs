//! Panic handling: a panic costs only its piece of work ([`CatchPanic`]), and long-running tasks and threads restart
//! ([`supervise`], [`supervise_thread`]).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::time::{Duration, Instant};

/// Pause before a restart. It doubles up to the max while the task panics, so that one that panics at once neither
/// fills the log nor keeps a processor busy.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns how often a supervised task or thread has panicked since the start of the process.
pub fn task_panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// A future that returns a panic as an error.
pub(crate) struct CatchPanic<F>(Pin<Box<F>>);

impl<F> CatchPanic<F> {
    pub(crate) fn new(future: F) -> CatchPanic<F> {
        CatchPanic(Box::pin(future))
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A panic leaves only this piece of work half done, and that is dropped.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(said(&*panic))),
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Runs a task that must not end. After a panic, which is logged and counted, it restarts.
pub async fn supervise<F: Future<Output = ()>>(name: &'static str, begin: impl Fn() -> F) {
    let mut restarts = Restarts::new();
    while let Err(panic) = CatchPanic::new(with_faults(name, begin())).await {
        tokio::time::sleep(restarts.count(name, &panic)).await;
        restarts.begun = Instant::now();
    }
}

/// Like [`supervise`], for the work of this thread. `sleep` waits before a restart.
pub fn supervise_thread(name: &'static str, sleep: impl Fn(Duration), mut life: impl FnMut()) {
    let mut restarts = Restarts::new();
    // What a panic leaves half done is the life's own to sort out: it begins again with what it has.
    while let Err(panic) = catch_unwind(AssertUnwindSafe(&mut life)) {
        sleep(restarts.count(name, &said(&*panic)));
        restarts.begun = Instant::now();
    }
}

/// The restarts of one task or thread.
struct Restarts {
    /// When it began the last time.
    begun: Instant,
    /// The next pause.
    pause: Duration,
}

impl Restarts {
    fn new() -> Restarts {
        Restarts { begun: Instant::now(), pause: PAUSE }
    }

    /// Counts and logs a panic; returns the pause before the restart.
    fn count(&mut self, name: &'static str, panic: &str) -> Duration {
        PANICS.fetch_add(1, Ordering::Relaxed);
        let pause = if self.begun.elapsed() >= PAUSE_MAX { PAUSE } else { self.pause };
        self.pause = (pause * 2).min(PAUSE_MAX);
        let pause_ms = pause.as_millis() as u64;
        tracing::error!(task = name, panic, pause_ms, "a supervised task panicked and restarts");
        pause
    }
}

#[cfg(not(any(test, feature = "testing")))]
fn with_faults<F: Future>(_: &'static str, life: F) -> F {
    life
}

#[cfg(any(test, feature = "testing"))]
use faults::with_faults;

/// Panics that tests inject into supervised tasks.
#[cfg(any(test, feature = "testing"))]
pub mod faults {
    use std::cell::RefCell;
    use std::pin::pin;

    thread_local! {
        static PENDING: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// Makes the task of this name panic when it next has work, on this thread.
    pub fn inject_panic(name: &'static str) {
        PENDING.with_borrow_mut(|pending| pending.push(name));
    }

    /// Tasks with an injected panic that has not happened yet.
    pub fn pending_panics() -> Vec<&'static str> {
        PENDING.with_borrow(Clone::clone)
    }

    pub(super) async fn with_faults<F: Future>(name: &'static str, life: F) -> F::Output {
        let mut life = pin!(life);
        std::future::poll_fn(|cx| {
            let dies = PENDING.with_borrow_mut(|pending| {
                let at = pending.iter().position(|other| *other == name);
                at.map(|at| pending.swap_remove(at)).is_some()
            });
            assert!(!dies, "a panic injected into {name}");
            life.as_mut().poll(cx)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often a task begins within an hour that panics after some time.
    async fn begins(lasts: Duration) -> u64 {
        let count = AtomicU64::new(0);
        let life = supervise("test", || {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(lasts).await;
                assert!(lasts > PAUSE_MAX * 60, "on purpose");
            }
        });
        let ended = tokio::time::timeout(PAUSE_MAX * 60, life).await;
        assert!(ended.is_err());
        count.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_counted_and_begins_again_ever_more_rarely() {
        let before = task_panics();
        // After ten doublings once a minute.
        let at_once = begins(Duration::ZERO).await;
        assert!((60..=80).contains(&at_once), "{at_once}");
        assert!(task_panics() >= before + at_once);
        // One that lasts begins again soon.
        let later = begins(PAUSE_MAX * 2).await;
        assert!((29..=31).contains(&later), "{later}");
    }
}
