//! The request that a thread works for.

use crate::slot::Slot;
use crate::span::{Kind, Span};
use crate::tracer::Trace;
use crate::work::Work;
use std::cell::RefCell;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};

/// Names a request, in log lines and in the header `X-Request-Id` of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestId {
    /// Made by this server.
    Made(u64),
    /// Given by the client.
    Given(Arc<str>),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Made(n) => write!(f, "{n:016x}"),
            RequestId::Given(text) => f.write_str(text),
        }
    }
}

/// The work of a thread.
#[derive(Debug, Clone, Default)]
pub struct Current {
    /// The request.
    pub request: Option<RequestId>,
    /// Its place in a trace.
    pub trace: Option<Trace>,
    /// Its cost.
    pub work: Option<Arc<Work>>,
    /// The processor slot that it holds.
    pub slot: Option<Weak<dyn Slot>>,
}

thread_local! {
    static CURRENT: RefCell<Current> =
        const { RefCell::new(Current { request: None, trace: None, work: None, slot: None }) };
}

pub(crate) fn with<T>(look: impl FnOnce(&Current) -> T) -> T {
    CURRENT.with_borrow(look)
}

/// The work of this thread.
pub fn current() -> Current {
    CURRENT.with_borrow(Clone::clone)
}

/// A span of the current work; none without a sampled trace.
pub fn span(name: &'static str) -> Span {
    with(|current| current.span(name))
}

/// Measures the current work from now on, up to the end of what it runs within.
pub fn measure(work: Arc<Work>) {
    CURRENT.with_borrow_mut(|current| current.work = Some(work));
}

/// Says which processor slot the current work holds from now on, up to the end of what it runs within. It is not kept from being dropped.
pub fn hold<S: Slot + 'static>(slot: &Arc<S>) {
    let slot: Weak<dyn Slot> = Arc::<S>::downgrade(slot);
    CURRENT.with_borrow_mut(|current| current.slot = Some(slot));
}

impl Current {
    /// The same work, which holds this processor slot.
    pub fn holding<S: Slot + 'static>(self, slot: &Arc<S>) -> Current {
        let slot: Weak<dyn Slot> = Arc::<S>::downgrade(slot);
        Current { slot: Some(slot), ..self }
    }

    /// A span of this work; none without a sampled trace.
    pub fn span(&self, name: &'static str) -> Span {
        self.trace.as_ref().map_or(Span::none(), |trace| trace.child(name, Kind::Internal))
    }

    /// Does work for it on this thread.
    pub fn run<T>(mut self, work: impl FnOnce() -> T) -> T {
        let _swapped = Swapped::new(&mut self);
        work()
    }
}

/// Does the work of a future for it.
pub async fn within<F: Future>(mut current: Current, work: F) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| {
        // At each poll, since others use the thread in between.
        let _swapped = Swapped::new(&mut current);
        work.as_mut().poll(cx)
    })
    .await
}

/// The thread's value and another one, exchanged until this is dropped, by a panic too.
struct Swapped<'a>(&'a mut Current);

impl<'a> Swapped<'a> {
    fn new(current: &'a mut Current) -> Swapped<'a> {
        // Swapped, not cloned: a poll must not count references for each value that it carries.
        CURRENT.with_borrow_mut(|held| std::mem::swap(held, current));
        Swapped(current)
    }
}

impl Drop for Swapped<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|held| std::mem::swap(held, self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn of(n: u64) -> Current {
        Current { request: Some(RequestId::Made(n)), ..Current::default() }
    }

    #[test]
    fn futures_on_one_thread_keep_their_requests_apart() {
        let work = |n| {
            within(of(n), async move {
                for _ in 0..3 {
                    assert_eq!(current().request, Some(RequestId::Made(n)));
                    let mut yielded = false;
                    std::future::poll_fn(|_| {
                        if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                }
                n
            })
        };
        let (mut one, mut other) = (Box::pin(work(1)), Box::pin(work(2)));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(one.as_mut().poll(&mut cx).is_pending() && other.as_mut().poll(&mut cx).is_pending());
            assert_eq!(current().request, None);
        }
        assert_eq!((one.as_mut().poll(&mut cx), other.as_mut().poll(&mut cx)), (Poll::Ready(1), Poll::Ready(2)));
    }

    #[test]
    fn work_within_work_ends_where_it_began_also_by_a_panic() {
        of(1).run(|| {
            let failed = std::panic::catch_unwind(|| of(2).run(|| panic!("on purpose")));
            assert!(failed.is_err());
            assert_eq!(current().request, Some(RequestId::Made(1)));
        });
        assert_eq!(current().request, None);
        assert_eq!(RequestId::Made(10).to_string(), "000000000000000a");
    }
}
