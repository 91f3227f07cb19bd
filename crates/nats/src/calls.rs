//! Blocking calls over a runtime, with deadlines.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::{EnterGuard, Handle};
use tokio::task::coop::unconstrained;
use tokio::time::timeout;

/// Timeout of a call.
pub(crate) const CALL: Duration = Duration::from_secs(10);
/// Timeout of an acknowledgement.
pub(crate) const ACK: Duration = Duration::from_secs(5);

/// Runs calls on a runtime that has timers and the connection's tasks, while the calling thread waits. No thread of
/// that runtime may call: a task that it has to run would wait for this thread.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    handle: Handle,
}

impl Calls {
    pub(crate) fn new(handle: Handle) -> Calls {
        Calls { handle }
    }

    /// Enters the runtime, for code that spawns tasks while this is held.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Waits for a call until its deadline. A call past it is abandoned, and may have taken effect, or may still do so.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        self.within(CALL, call)
    }

    /// As [`Calls::wait`], with another timeout.
    pub(crate) fn within<T>(&self, most: Duration, call: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        // Polled on this thread rather than by `Handle::block_on`, which panics on a thread of the runtime.
        let _runtime = self.handle.enter();
        // If this thread is running a task, that task's budget is not renewed here: once it is used up, each poll would
        // yield.
        let mut call = pin!(unconstrained(timeout(most, call)));
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match call.as_mut().poll(&mut context) {
                Poll::Ready(Ok(answer)) => return answer,
                Poll::Ready(Err(_)) => {
                    let detail = format!("NATS did not answer within {} s", most.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, detail));
                }
                // A wake between the poll and here is kept, and makes this return at once.
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn a_call_past_its_deadline_is_given_up_on_any_thread() {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let calls = Calls::new(runtime.handle().clone());
        let late = calls.within(Duration::from_millis(20), std::future::pending::<io::Result<()>>());
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        // Also on a thread of another runtime, and more often than a task may poll.
        let other = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let many = async move {
            for n in 0..500 {
                let hop = async move { tokio::task::spawn_blocking(move || n).await.map_err(io::Error::other) };
                assert_eq!(calls.within(Duration::from_millis(500), hop).unwrap(), n);
            }
        };
        other.block_on(async move { tokio::spawn(many).await }).unwrap();
    }
}
