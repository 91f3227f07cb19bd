//! The load of a population: arrivals become jobs, and virtual users execute them.

use super::replay::Line;
use super::schedule::times;
use super::shared::TrialState;
use super::user::{Job, Served, UserProfile, VirtualUser};
use crate::clock::micros;
use crate::generate::{Mix, Question, stream};
use crate::protocol::connection::ConnectionPool;
use crate::scenario::{Arrival, ThinkTime};
use meridian_lab_results::record::{Micros, Outcome, Record};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Max jobs that wait for a connection; further arrivals count as not sent at once.
const WAITING_MAX: usize = 100_000;

/// Max users that wait to retry; further ones leave.
const RETRYING_MAX: usize = 500_000;

/// Max arrivals submitted in a row when the lab is behind, before responses are read again.
const ROW: u32 = 8;

/// One population's load on one target.
#[derive(Debug)]
pub struct PopulationLoad {
    /// The trial's load.
    pub shared: Rc<TrialState>,
    /// State shared by its users.
    pub profile: Rc<UserProfile>,
    /// Due times of requests.
    pub arrival: Arrival,
    /// The requests.
    pub mix: RefCell<Mix>,
    /// Its connections.
    pub pool: ConnectionPool,
    /// Max connections.
    pub connections: usize,
    /// The seeds of its random sources: seed, trial, population.
    pub seed: (u64, [u64; 3]),
    /// The lines of a replay.
    pub lines: Vec<Line>,
}

impl PopulationLoad {
    /// Runs the population's load to its end.
    pub async fn run(self) {
        let load = Rc::new(self);
        match &load.arrival {
            Arrival::Closed { users, think_s, think } => load.closed(*users, *think_s, *think).await,
            Arrival::Onoff { bursts, per_burst, gap_s } => load.on_off(*bursts, *per_burst, *gap_s).await,
            _ => load.open().await,
        }
    }

    fn random(&self, part: u64) -> Pcg64 {
        let [a, b, c] = self.seed.1;
        stream(self.seed.0, &[a, b, c, part])
    }

    async fn closed(self: &Rc<Self>, users: u32, think_s: f64, think: ThinkTime) {
        let numbers = Rc::new(Cell::new(0));
        let mut virtual_users = JoinSet::new();
        for user in 0..users {
            virtual_users.spawn_local(Rc::clone(self).user(user, think_s, think, Rc::clone(&numbers)));
        }
        while virtual_users.join_next().await.is_some() {}
    }

    async fn user(self: Rc<Self>, user: u32, think_s: f64, think: ThinkTime, numbers: Rc<Cell<u32>>) {
        let shared = &self.shared;
        let mut random = self.random(u64::from(user) + 2);
        let mut virtual_user = VirtualUser::new(Rc::clone(shared), Rc::clone(&self.profile), user, self.pool.of(user));
        let mut intended = shared.plan.start;
        while intended < shared.plan.end && shared.until(intended).await {
            let n = numbers.get() + 1;
            numbers.set(n);
            shared.arrive(&self.profile.limits);
            let question = self.mix.borrow_mut().next(&mut random);
            let mut job = Job::new(intended, n, question);
            let done = loop {
                match virtual_user.serve(job).await {
                    Served::Ended(done) => break done,
                    Served::Again { next, .. } if shared.until(next.intended).await => job = next,
                    // The load ends first.
                    Served::Again { ended, .. } => break ended,
                }
            };
            intended = match think {
                // Without think time the next request is due now, not at the last response: the time in between is the
                // lab's, not the server's.
                _ if think_s <= 0.0 => shared.clock.now().max(done),
                ThinkTime::Fixed => done + micros(think_s),
                // Sampled by inversion. `1 - u` keeps the logarithm away from zero.
                ThinkTime::Exponential => done + micros(-(1.0 - random.random::<f64>()).ln() * think_s),
            };
        }
    }

    async fn open(self: &Rc<Self>) {
        let shared = &self.shared;
        let (mut random, dispatcher) = (self.random(0), Rc::new(Dispatcher::new(Rc::clone(self))));
        let (mut n, mut row) = (0_u32, 0);
        let due: Box<dyn Iterator<Item = Micros>> = match &self.arrival {
            Arrival::Replay { speed, .. } =>
            {
                #[expect(clippy::cast_precision_loss, reason = "microseconds of a log")]
                Box::new(self.lines.iter().map(move |line| shared.plan.measured + micros(line.at as f64 / 1e6 / speed)))
            }
            arrival => times(arrival, &shared.plan, self.random(1)),
        };
        for intended in due {
            if !shared.until(intended).await {
                break;
            }
            // While connections open and caches warm up, lateness harms no figure.
            if shared.plan.phase_of(intended, self.profile.ends).is_counted() {
                shared.counts.late_by(shared.clock.now() - intended);
            }
            shared.arrive(&self.profile.limits);
            let question = self.question(n, &mut random);
            n += 1;
            dispatcher.submit(Job::new(intended, n, question));
            row += 1;
            // Otherwise a lab that is behind would submit for long without reading a response, and measure its own
            // delay.
            if row % ROW == 0 {
                tokio::task::yield_now().await;
            }
        }
        dispatcher.drained().await;
        self.profile.compared().await;
    }

    fn question(&self, n: u32, random: &mut Pcg64) -> Question {
        let mut mix = self.mix.borrow_mut();
        if self.lines.is_empty() { mix.next(random) } else { mix.nth(n as usize) }
    }

    async fn on_off(self: &Rc<Self>, bursts: u32, per_burst: u32, gap_s: f64) {
        let shared = &self.shared;
        let (mut random, dispatcher) = (self.random(0), Rc::new(Dispatcher::new(Rc::clone(self))));
        let (mut n, mut intended) = (0, shared.plan.measured);
        for _ in 0..bursts {
            if !shared.until(intended).await {
                break;
            }
            shared.counts.late_by(shared.clock.now() - intended);
            for _ in 0..per_burst {
                shared.arrive(&self.profile.limits);
                n += 1;
                dispatcher.submit(Job::new(intended, n, self.mix.borrow_mut().next(&mut random)));
            }
            dispatcher.drained().await;
            // From the end of the last response: the gap is idle time of the server.
            intended = dispatcher.counter.last_end.get().max(intended) + micros(gap_s);
        }
        self.profile.compared().await;
    }
}

/// Passes jobs to users: to a free one, to a new one, or to the queue.
#[derive(Debug)]
struct Dispatcher {
    load: Rc<PopulationLoad>,
    counter: Rc<Counter>,
    virtual_users: RefCell<JoinSet<()>>,
    /// Next attempts, each until it is due.
    retries: RefCell<JoinSet<()>>,
}

#[derive(Debug)]
struct Counter {
    free: RefCell<Vec<Rc<JobSlot>>>,
    waiting: RefCell<VecDeque<Job>>,
    /// Jobs that have not ended.
    busy: Cell<usize>,
    empty: Notify,
    last_end: Cell<Micros>,
}

#[derive(Debug, Default)]
struct JobSlot {
    job: RefCell<Option<Job>>,
    waker: RefCell<Option<Waker>>,
}

impl Dispatcher {
    fn new(load: Rc<PopulationLoad>) -> Dispatcher {
        Dispatcher {
            load,
            counter: Rc::new(Counter {
                free: RefCell::default(),
                waiting: RefCell::default(),
                busy: Cell::new(0),
                empty: Notify::new(),
                last_end: Cell::new(Micros::MIN),
            }),
            virtual_users: RefCell::default(),
            retries: RefCell::default(),
        }
    }

    /// Accepts an arrival.
    fn submit(self: &Rc<Self>, job: Job) {
        self.counter.busy.set(self.counter.busy.get() + 1);
        self.place(job);
    }

    fn place(self: &Rc<Self>, job: Job) {
        let counter = &self.counter;
        let free = counter.free.borrow_mut().pop();
        if let Some(slot) = free {
            *slot.job.borrow_mut() = Some(job);
            // The job is stored before the wake-up, so that the user finds it.
            if let Some(waker) = slot.waker.borrow_mut().take() {
                waker.wake();
            }
            return;
        }
        let mut virtual_users = self.virtual_users.borrow_mut();
        if virtual_users.len() < self.load.connections {
            let user = u32::try_from(virtual_users.len()).unwrap_or(u32::MAX);
            let load = &self.load;
            let virtual_user =
                VirtualUser::new(Rc::clone(&load.shared), Rc::clone(&load.profile), user, load.pool.of(user));
            // Opens a connection only if all are busy, so that a slow load opens few.
            virtual_users.spawn_local(work(virtual_user, job, Rc::clone(counter), Rc::downgrade(self)));
        } else if counter.waiting.borrow().len() < WAITING_MAX {
            counter.waiting.borrow_mut().push_back(job);
        } else {
            let (shared, profile) = (&self.load.shared, &self.load.profile);
            let record = Record {
                trial: shared.trial,
                phase: shared.plan.phase_of(job.intended, profile.ends),
                target: profile.target,
                population: profile.population,
                request: job.question.request,
                n: job.n,
                attempt: job.attempt,
                intended: job.intended,
                first_intended: job.first_intended,
                outcome: Outcome::NotSent,
                detail: Some(format!("{WAITING_MAX} requests waited for a connection")),
                ..Record::default()
            };
            // Recorded, not dropped: an arrival that was due and not sent is part of the result.
            shared.keep(record, &profile.limits);
            counter.left(job.intended);
        }
    }

    /// Places a job again once its next attempt is due.
    fn retry(self: &Rc<Self>, ended: Micros, job: Job) {
        let mut retries = self.retries.borrow_mut();
        // Attempts that were placed are removed to make room.
        while retries.try_join_next().is_some() {}
        if retries.len() >= RETRYING_MAX {
            self.counter.left(ended);
            return;
        }
        let dispatcher = Rc::downgrade(self);
        let (shared, counter) = (Rc::clone(&self.load.shared), Rc::clone(&self.counter));
        retries.spawn_local(async move {
            match shared.until(job.intended).await.then(|| dispatcher.upgrade()).flatten() {
                Some(dispatcher) => dispatcher.place(job),
                // The load ends first.
                None => counter.left(ended),
            }
        });
    }

    /// Waits until every job is done.
    async fn drained(&self) {
        // A loop, since `notify_one` keeps its permit, which may stem from an earlier idle moment.
        while self.counter.busy.get() > 0 {
            self.counter.empty.notified().await;
        }
    }
}

impl Counter {
    fn left(&self, ended: Micros) {
        self.last_end.set(ended.max(self.last_end.get()));
        self.busy.set(self.busy.get() - 1);
        if self.busy.get() == 0 {
            self.empty.notify_one();
        }
    }
}

/// Executes jobs as they are placed. Refers to the dispatcher weakly, since the dispatcher owns this task.
async fn work(mut virtual_user: VirtualUser, first: Job, counter: Rc<Counter>, dispatcher: Weak<Dispatcher>) {
    let slot = Rc::new(JobSlot::default());
    let mut job = first;
    loop {
        match (virtual_user.serve(job).await, dispatcher.upgrade()) {
            (Served::Again { ended, next }, Some(dispatcher)) => dispatcher.retry(ended, next),
            (Served::Again { ended, .. } | Served::Ended(ended), _) => counter.left(ended),
        }
        // The queue is checked before the user goes idle; otherwise a job could wait while its user sleeps.
        let waiting = counter.waiting.borrow_mut().pop_front();
        job = match waiting {
            Some(job) => job,
            None => {
                counter.free.borrow_mut().push(Rc::clone(&slot));
                poll_fn(|context| match slot.job.borrow_mut().take() {
                    Some(job) => Poll::Ready(job),
                    None => {
                        *slot.waker.borrow_mut() = Some(context.waker().clone());
                        Poll::Pending
                    }
                })
                .await
            }
        };
    }
}
