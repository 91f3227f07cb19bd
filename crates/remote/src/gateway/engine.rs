//! The threads of calls, and the wait for them from threads that block.
//!
//! Calls run on threads of their own, so that a caller may wait on any thread of any runtime. A caller that gives up drops
//! the call, which the owner sees as a stream that was reset.

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

/// How much longer than its deadline a call is waited for: the owner knows better why it ended.
const GRACE: Duration = Duration::from_millis(500);
/// How long work waits for its turn that has neither a deadline nor a client to cancel it.
const TURN_MAX: Duration = Duration::from_secs(30);
/// Threads for all connections: they wait and copy, and compute nothing.
const THREADS: usize = 2;

/// The threads of all calls. Dropped without a wait, from any thread.
#[derive(Debug)]
pub(super) struct Engine(Option<Runtime>, Handle);

impl Engine {
    /// Starts them.
    pub(super) fn start() -> io::Result<Arc<Engine>> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let runtime = threads.worker_threads(THREADS).thread_name("remote").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Arc::new(Engine(Some(runtime), handle)))
    }
}

impl Engine {
    /// Runs work on them.
    pub(super) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.1.spawn(work)
    }

    /// For what needs their runtime.
    pub(super) fn handle(&self) -> &Handle {
        &self.1
    }

    /// Waits for work on them; drops it when the caller gives up. What the caller does has no processor slot meanwhile.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        patience: &Patience,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (done, outcome) = sync_channel(1);
        let waiting = Unpark(thread::current());
        let task = self.spawn(async move {
            // In this order, so that the thread finds the end of work that fails: what is declared last is dropped first.
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
                // The call's end or the flag unparks; a park that ends for nothing looks again.
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
        // On a worker of the server's runtime, its other tasks go to another thread meanwhile.
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

/// Unparks a thread when it is dropped.
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
    /// Of a question, which may be cancelled.
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

    /// Whether a question waits, which has a deadline of its own.
    pub(super) fn is_of_a_question(&self) -> bool {
        self.control.is_some()
    }

    /// When the caller waits no longer. The grace is the owner's: it says the deadline has passed where it knows, as it does most times.
    fn end(&self) -> Option<Instant> {
        self.until.and_then(|until| until.checked_add(GRACE))
    }

    /// Whether the turn of the work behind the caller is no longer waited for. Asked while it is.
    fn turn_is_over(&self) -> impl Fn() -> bool {
        let (control, begun) = (self.control.clone(), OnceCell::new());
        move || match &control {
            Some(control) => control.is_over().is_some(),
            None => begun.get_or_init(Instant::now).elapsed() >= TURN_MAX,
        }
    }

    /// Why the caller waits no longer, if so.
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
    use meridian_observe::{Current, Slot};
    use meridian_query::CancelFlag;
    use meridian_store::seams::Seams;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(3_600);

    /// Tells what becomes of a slot.
    #[derive(Debug)]
    struct Told(mpsc::Sender<&'static str>);

    impl Slot for Told {
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
        let slot = Arc::new(Told(tell.clone()));
        let (answer, asked) = tokio::sync::oneshot::channel();
        let work = async move { asked.await.map_err(|_| Fault::Cancelled) };
        let waiting = thread::spawn({
            let engine = engine.clone();
            move || Current::default().holding(&slot).run(|| engine.wait(&Patience::within(LONG), work))
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
