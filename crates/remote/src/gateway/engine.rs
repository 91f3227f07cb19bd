//! The runtime threads of calls, and how blocking threads wait for them.
//!
//! Calls run on threads of their own, so callers may wait on any thread of any runtime. When a caller gives up, the
//! call is dropped, and the owner sees a reset stream.

use crate::wire::fault::Fault;
use meridian_observe as observe;
use meridian_query::Control;
use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, sync_channel};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long to wait for a call after its deadline: the owner knows better why it ended.
const GRACE: Duration = Duration::from_millis(500);
/// How long to wait for a turn on behalf of work that has neither a deadline nor a client to cancel it.
const TURN_MAX: Duration = Duration::from_secs(30);
/// Threads shared by all connections. They wait and copy, and compute nothing.
const THREADS: usize = 2;

/// The runtime of all calls. Can be dropped on any thread, without waiting.
#[derive(Debug)]
pub(super) struct Engine(Option<Runtime>, Handle);

impl Engine {
    /// Starts the threads.
    pub(super) fn start() -> io::Result<Arc<Engine>> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let runtime = threads.worker_threads(THREADS).thread_name("remote").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Arc::new(Engine(Some(runtime), handle)))
    }
}

impl Engine {
    /// Spawns a task on them.
    pub(super) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.1.spawn(work)
    }

    /// The handle, for code that needs the runtime.
    pub(super) fn handle(&self) -> &Handle {
        &self.1
    }

    /// Waits for a task on them, and drops it when the caller gives up. Releases the caller's processor slot meanwhile.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        patience: &Patience,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (done, outcome) = sync_channel(1);
        let waiting = Unpark(thread::current());
        let task = self.spawn(async move {
            // Drop order matters: the last declared is dropped first, so a thread that wakes up after a panic sees the
            // call as ended.
            let _waiting = waiting;
            let done = done;
            drop(done.send(work.await));
        });
        let wait = || {
            let _cancelled = patience.control.as_ref().map(|control| control.cancel_flag().unparks());
            loop {
                match outcome.try_recv() {
                    Ok(outcome) => return outcome,
                    Err(TryRecvError::Disconnected) => return Err(Fault::internal("a call to the owner failed")),
                    Err(TryRecvError::Empty) => {}
                }
                if let Some(fault) = patience.is_over() {
                    task.abort();
                    return Err(fault);
                }
                // The end of the call or the cancel flag unparks; a spurious wakeup just checks again.
                match patience.end() {
                    Some(end) => thread::park_timeout(end.saturating_duration_since(Instant::now())),
                    None => thread::park(),
                }
            }
        };
        let receive = || {
            let over = patience.turn_is_over();
            observe::away(&over, wait)
        };
        // On a worker of the server's runtime, its other tasks move to another thread meanwhile.
        match Handle::try_current() {
            Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(receive),
            _ => receive(),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Unparks a thread when dropped.
struct Unpark(Thread);

impl Drop for Unpark {
    fn drop(&mut self) {
        self.0.unpark();
    }
}

/// How long a caller waits.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    until: Option<Instant>,
    /// Control of a query, which may be cancelled; `None` for anything else.
    control: Option<Control>,
}

impl Patience {
    pub(super) fn of(control: &Control) -> Patience {
        Patience { control: Some(control.clone()), ..Patience::within(control.time_left()) }
    }

    pub(super) fn within(time: Duration) -> Patience {
        Patience { until: Instant::now().checked_add(time), control: None }
    }

    pub(super) fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Time when the caller gives up. The grace period is for the owner, which usually reports the deadline itself.
    fn end(&self) -> Option<Instant> {
        self.until.and_then(|until| until.checked_add(GRACE))
    }

    /// Returns a check whether the work behind the caller should stop waiting for its turn. Its time starts at the
    /// first check.
    fn turn_is_over(&self) -> impl Fn() -> bool {
        let (control, begun) = (self.control.clone(), OnceCell::new());
        move || match &control {
            Some(control) => control.is_over().is_some(),
            None => begun.get_or_init(Instant::now).elapsed() >= TURN_MAX,
        }
    }

    /// Returns why the caller gives up; `None` while it waits.
    fn is_over(&self) -> Option<Fault> {
        if self.control.as_ref().is_some_and(|control| control.cancel_flag().is_cancelled()) {
            return Some(Fault::Cancelled);
        }
        self.end().is_some_and(|end| Instant::now() >= end).then_some(Fault::Deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_observe::{Slot, WorkContext};
    use meridian_query::CancelFlag;
    use meridian_store::seams::Seams;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(3_600);

    /// Reports the events of a slot.
    #[derive(Debug)]
    struct EventReporter(mpsc::Sender<&'static str>);

    impl Slot for EventReporter {
        fn rest(&self) {
            self.0.send("rests").unwrap();
        }

        fn wake(&self, _: &dyn Fn() -> bool) {
            self.0.send("wakes").unwrap();
        }
    }

    #[test]
    fn a_caller_has_no_slot_while_it_waits_and_takes_one_with_the_answer() {
        let engine = Engine::start().unwrap();
        let (tell, told) = mpsc::channel();
        let slot = Arc::new(EventReporter(tell.clone()));
        let (answer, asked) = tokio::sync::oneshot::channel();
        let work = async move { asked.await.map_err(|_| Fault::Cancelled) };
        let waiting = thread::spawn({
            let engine = engine.clone();
            move || WorkContext::default().holding(&slot).run(|| engine.wait(&Patience::within(LONG), work))
        });
        assert_eq!(told.recv(), Ok("rests"));
        tell.send("answered").unwrap();
        answer.send(7).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), 7);
        drop(tell);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["answered", "wakes"]);
    }

    #[test]
    fn a_wait_ends_with_its_call_with_its_deadline_and_with_its_caller() {
        let engine = Engine::start().unwrap();
        let never = std::future::pending::<Result<(), Fault>>;
        let panics = engine.wait(&Patience::within(LONG), async { if true { panic!("on purpose") } else { Ok(()) } });
        assert!(matches!(panics, Err(Fault::Internal(_))), "{panics:?}");
        assert!(matches!(engine.wait(&Patience::within(Duration::ZERO), never()), Err(Fault::Deadline)));
        let flag = CancelFlag::new();
        let control = Control::new(Seams::real().clock, LONG, flag.clone());
        let (begun, begins) = mpsc::channel();
        let waiting = thread::spawn(move || {
            let work = async move {
                begun.send(()).unwrap();
                never().await
            };
            engine.wait(&Patience::of(&control), work)
        });
        begins.recv().unwrap();
        flag.cancel();
        assert!(matches!(waiting.join().unwrap(), Err(Fault::Cancelled)));
    }
}
