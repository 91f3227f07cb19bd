//! Panics: one costs the work that it happens in ([`Contained`]), and what is to go on for good goes on ([`always`]).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Pause before what died begins again, so that what dies at once does not fill the log.
const BREATH: Duration = Duration::from_millis(100);

/// A future whose panic is a value.
pub(crate) struct Contained<F>(Pin<Box<F>>);

impl<F> Contained<F> {
    pub(crate) fn new(future: F) -> Contained<F> {
        Contained(Box::pin(future))
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // What a panic leaves half done is this one piece of work, which is dropped.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(said(&*panic))),
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// Does what is to go on for good: where it dies of a panic, that is logged, and it begins again.
pub(crate) async fn always<F: Future<Output = ()>>(name: &'static str, begin: impl Fn() -> F) {
    while let Err(panic) = Contained::new(mortal(name, begin())).await {
        tracing::error!(task = name, panic, "what is to go on for good died of a panic, and begins again");
        tokio::time::sleep(BREATH).await;
    }
}

#[cfg(not(test))]
fn mortal<F: Future>(_: &'static str, life: F) -> F {
    life
}

#[cfg(test)]
use doom::mortal;

/// Death as tests ordain it.
#[cfg(test)]
pub(crate) mod doom {
    use std::cell::RefCell;
    use std::pin::pin;

    thread_local! {
        static DOOMED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// What has this name dies when it next has something to do, on this thread.
    pub(crate) fn doom(name: &'static str) {
        DOOMED.with_borrow_mut(|doomed| doomed.push(name));
    }

    /// Those that have not died yet.
    pub(crate) fn doomed() -> Vec<&'static str> {
        DOOMED.with_borrow(Clone::clone)
    }

    pub(super) async fn mortal<F: Future>(name: &'static str, life: F) -> F::Output {
        let mut life = pin!(life);
        std::future::poll_fn(|cx| {
            let dies = DOOMED.with_borrow_mut(|doomed| {
                let at = doomed.iter().position(|other| *other == name);
                at.map(|at| doomed.swap_remove(at)).is_some()
            });
            assert!(!dies, "{name} is doomed");
            life.as_mut().poll(cx)
        })
        .await
    }
}
