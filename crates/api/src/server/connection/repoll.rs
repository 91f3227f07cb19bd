//! Polls a connection again at once if it was woken while it was polled.
//!
//! The parser and the handler of an HTTP/1.1 connection are one task, and wake each other through channels. A fast
//! client also sends its next request before the poll that answered it has ended. In both cases the runtime would queue
//! the task and wake another thread to take it, although this thread can continue. These switches took 7 % of the
//! processor time of a write of one event (decision 085).

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Max polls in a row. A connection may wake itself so that others have their turn, and a second poll only delays that.
const POLLS_MAX: usize = 2;

/// Bit of a state: a poll is in progress, and a wake is only recorded.
const POLLING: u8 = 1;
/// Bit of a state: a wake came since the last poll began.
const WOKEN: u8 = 2;

#[derive(Debug, Default)]
struct WakeState {
    state: AtomicU8,
    /// The waker of the task.
    task: AtomicWaker,
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A write in any case, also by a second wake: the exchange with which the next poll begins then sees what
        // happened before it.
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & POLLING == 0 {
            self.task.wake();
        }
    }
}

/// Runs a future, and polls it again at once if it was woken while it was polled.
pub async fn repolled<F: Future>(mut work: Pin<&mut F>) -> F::Output {
    let wakes = Arc::new(WakeState::default());
    let waker = Waker::from(wakes.clone());
    poll_fn(|task| {
        // Before the state, so that a wake after this poll reaches the task.
        wakes.task.register(task.waker());
        for _ in 0..POLLS_MAX {
            // Acquires what happened before earlier wakes, and stays before the reads of the poll.
            wakes.state.swap(POLLING, Ordering::AcqRel);
            if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(output);
            }
            if wakes.state.swap(0, Ordering::AcqRel) & WOKEN == 0 {
                return Poll::Pending;
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future that wakes itself so often, until it is done: the polls and the wakes of its task.
    fn polls_and_wakes(times: usize) -> (usize, usize) {
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(counter.clone());
        let mut left = times;
        let inner = pin!(poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let mut work = pin!(repolled(inner));
        let mut polls = 1;
        while work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            polls += 1;
        }
        (polls, counter.0.load(Ordering::Relaxed))
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_without_the_runtime() {
        assert_eq!(polls_and_wakes(0), (1, 0));
        assert_eq!(polls_and_wakes(1), (1, 0));
        // Other tasks have their turn after two polls.
        assert_eq!(polls_and_wakes(2), (2, 1));
        assert_eq!(polls_and_wakes(5), (3, 2));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        let (to, mut from) = tokio::sync::mpsc::channel::<u32>(1);
        let (back, mut answers) = tokio::sync::mpsc::channel::<u32>(1);
        let echo = tokio::spawn(async move {
            let echo = pin!(async move {
                while let Some(n) = from.recv().await {
                    if back.send(n).await.is_err() {
                        break;
                    }
                }
            });
            repolled(echo).await;
        });
        let sender = std::thread::spawn(move || (0..100_000).all(|n| to.blocking_send(n).is_ok()));
        let all = async {
            for n in 0..100_000 {
                assert_eq!(answers.recv().await, Some(n));
            }
        };
        tokio::time::timeout(Duration::from_secs(120), all).await.expect("a wake was lost");
        echo.await.expect("the echo ends");
        assert!(sender.join().expect("the sender ends"));
    }
}
