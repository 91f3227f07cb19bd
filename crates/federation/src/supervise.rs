//! Panic handling: a panic costs only its piece of work ([`CatchPanic`]), and long-running tasks restart
//! ([`supervise`]).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Pause before a restart, so that a task that panics at once does not fill the log.
const PAUSE: Duration = Duration::from_millis(100);

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

/// Runs a task that must not end. After a panic, which is logged, it restarts.
pub async fn supervise<F: Future<Output = ()>>(name: &'static str, begin: impl Fn() -> F) {
    while let Err(panic) = CatchPanic::new(with_faults(name, begin())).await {
        tracing::error!(task = name, panic, "a supervised task panicked and restarts");
        tokio::time::sleep(PAUSE).await;
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
