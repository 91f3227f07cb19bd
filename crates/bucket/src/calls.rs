//! Blocking calls over a runtime, with deadlines.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use meridian_store::bucket::{Put, Span};
use object_store::Error;
use std::error::Error as _;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::coop::unconstrained;
use tokio::time::timeout;

/// Timeout of a call that moves few bytes.
pub(crate) const SMALL: Duration = Duration::from_secs(10);
/// Timeout of a call that lists, or moves an object or a part of one.
pub(crate) const LARGE: Duration = Duration::from_secs(60);

/// Max concurrent calls of one request for several ranges.
const TOGETHER: usize = 16;

/// Runs calls on a runtime with timers, while the calling thread waits.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    handle: Handle,
}

impl Calls {
    pub(crate) fn new(handle: Handle) -> Calls {
        Calls { handle }
    }

    /// Waits for a call, and converts its error to that of a disk.
    pub(crate) fn wait<T>(
        &self,
        within: Duration,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> io::Result<T> {
        self.answer(within, call)?.map_err(error_of)
    }

    /// Waits for a call until its deadline. A call past it is abandoned, and may have taken effect, or may still do so.
    pub(crate) fn answer<T>(&self, within: Duration, call: impl Future<Output = T>) -> io::Result<T> {
        // Polled on this thread rather than by `Handle::block_on`, which panics on a thread of the runtime. A task
        // spawned on such a thread would in turn wait for it.
        let _runtime = self.handle.enter();
        // If this thread is running a task, that task's budget is not renewed here: once it is used up, each poll would
        // yield.
        let mut call = pin!(unconstrained(timeout(within, call)));
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match call.as_mut().poll(&mut context) {
                Poll::Ready(Ok(answer)) => return Ok(answer),
                Poll::Ready(Err(_)) => {
                    let detail = format!("the bucket did not answer within {} s", within.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, detail));
                }
                // A wake between the poll and here is kept, and makes this return at once.
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Calls {
    /// Waits for independent calls, [`TOGETHER`] at a time, and returns their results in order. Calls unfinished at the
    /// deadline are errors.
    pub(crate) fn together<T>(
        &self,
        within: Duration,
        calls: Vec<impl Future<Output = io::Result<T>>>,
    ) -> Vec<io::Result<T>> {
        let (count, mut answers) = (calls.len(), Vec::with_capacity(calls.len()));
        let mut running = stream::iter(calls).buffered(TOGETHER);
        let ended = self.answer(within, async {
            while let Some(answer) = running.next().await {
                answers.push(answer);
            }
        });
        let late = || match &ended {
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            Ok(()) => Err(ErrorKind::TimedOut.into()),
        };
        while answers.len() < count {
            answers.push(late());
        }
        answers
    }
}

/// Returns the bytes of a range if they are complete.
pub(crate) fn whole(bytes: Bytes, span: &Span) -> io::Result<Vec<u8>> {
    if bytes.len() == span.bytes() { Ok(bytes.into()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Converts the error of a call to an I/O error of the right kind.
pub(crate) fn error_of(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::AlreadyExists { .. } => ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        Error::InvalidPath { .. } => ErrorKind::InvalidInput,
        // The disk's error is somewhere below.
        other => kind_below(other).unwrap_or(ErrorKind::Other),
    };
    io::Error::new(kind, error)
}

fn kind_below(error: &Error) -> Option<ErrorKind> {
    let mut at = error.source();
    while let Some(source) = at {
        if let Some(io) = source.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        at = source.source();
    }
    None
}

/// The outcome of a create.
pub(crate) fn put_of(answer: io::Result<()>) -> io::Result<Put> {
    match answer {
        Ok(()) => Ok(Put::Created),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Put::Exists),
        Err(error) => Err(error),
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
        let late = calls.wait(Duration::from_millis(20), std::future::pending::<object_store::Result<()>>());
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        // On a thread of the runtime as well.
        let hop = async { tokio::task::spawn_blocking(|| 7).await.map_err(|source| Error::JoinError { source }) };
        let inside = runtime.block_on(async move { tokio::spawn(async move { calls.wait(SMALL, hop) }).await });
        assert_eq!(inside.unwrap().unwrap(), 7);
    }

    #[test]
    fn a_task_may_make_any_number_of_calls() {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let calls = Calls::new(runtime.handle().clone());
        let many = async move {
            (0..500).try_for_each(|_| {
                let hop =
                    async { tokio::task::spawn_blocking(|| ()).await.map_err(|source| Error::JoinError { source }) };
                calls.wait(Duration::from_millis(500), hop)
            })
        };
        runtime.block_on(async move { tokio::spawn(many).await }).unwrap().unwrap();
    }

    #[test]
    fn calls_together_are_answered_in_order_and_late_ones_are_errors() {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let calls = Calls::new(runtime.handle().clone());
        // More than run at a time. The later ones are quicker.
        let all = (0..40u64).map(|n| async move {
            tokio::time::sleep(Duration::from_millis(40 - n)).await;
            if n == 7 { Err(io::Error::from(ErrorKind::NotFound)) } else { Ok(n) }
        });
        let answers = calls.together(SMALL, all.collect());
        for (n, answer) in (0..40).zip(answers) {
            match n {
                7 => assert_eq!(answer.unwrap_err().kind(), ErrorKind::NotFound),
                _ => assert_eq!(answer.unwrap(), n),
            }
        }
        let late = |n: u64| async move { if n == 0 { io::Result::Ok(n) } else { std::future::pending().await } };
        let answers = calls.together(Duration::from_millis(20), (0..3).map(late).collect());
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert_eq!(answers[2].as_ref().unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn the_kind_of_an_error_is_that_of_the_disk() {
        let full: io::Error = ErrorKind::StorageFull.into();
        let error = Error::Generic { store: "test", source: Box::new(full) };
        assert_eq!(error_of(error).kind(), ErrorKind::StorageFull);
    }
}
