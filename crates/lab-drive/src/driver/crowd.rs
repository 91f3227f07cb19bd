//! A population at work: its arrivals become jobs, its seats do them.

use super::replay::Line;
use super::schedule::times;
use super::seat::{Job, Manner, Seat};
use super::shared::Shared;
use crate::clock::micros;
use crate::generate::{Mix, Question, stream};
use crate::protocol::link::Links;
use crate::scenario::{Arrival, Think};
use meridian_lab_results::record::{Micros, Outcome, Record};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Jobs that wait for a connection; beyond them an arrival counts as not sent at once.
const WAITING_MOST: usize = 100_000;

/// Arrivals handed on in a row when the lab is behind, before answers are read again.
const ROW: u32 = 8;

/// A population with all that it needs.
#[derive(Debug)]
pub struct Crowd {
    /// The trial's load.
    pub shared: Rc<Shared>,
    /// How its users are.
    pub manner: Rc<Manner>,
    /// When they come.
    pub arrival: Arrival,
    /// What they ask.
    pub mix: RefCell<Mix>,
    /// Where.
    pub links: Links,
    /// Most connections.
    pub connections: usize,
    /// What its random sources come from: seed, trial, population.
    pub seed: (u64, [u64; 3]),
    /// The lines of a replay.
    pub lines: Vec<Line>,
}

impl Crowd {
    /// Runs the population's load to its end.
    pub async fn run(self) {
        let crowd = Rc::new(self);
        match &crowd.arrival {
            Arrival::Closed { users, think_s, think } => crowd.closed(*users, *think_s, *think).await,
            Arrival::Onoff { bursts, per_burst, gap_s } => crowd.on_off(*bursts, *per_burst, *gap_s).await,
            _ => crowd.open().await,
        }
    }

    fn random(&self, part: u64) -> Pcg64 {
        let [a, b, c] = self.seed.1;
        stream(self.seed.0, &[a, b, c, part])
    }

    async fn closed(self: &Rc<Self>, users: u32, think_s: f64, think: Think) {
        let numbers = Rc::new(Cell::new(0));
        let mut seats = JoinSet::new();
        for user in 0..users {
            seats.spawn_local(Rc::clone(self).user(user, think_s, think, Rc::clone(&numbers)));
        }
        while seats.join_next().await.is_some() {}
    }

    async fn user(self: Rc<Self>, user: u32, think_s: f64, think: Think, numbers: Rc<Cell<u32>>) {
        let shared = &self.shared;
        let mut random = self.random(u64::from(user) + 2);
        let mut seat = Seat::new(Rc::clone(shared), Rc::clone(&self.manner), user, self.links.of(user));
        let mut intended = shared.plan.start;
        while intended < shared.plan.end && shared.until(intended).await {
            let n = numbers.get() + 1;
            numbers.set(n);
            shared.arrive(&self.manner.limits);
            let question = self.mix.borrow_mut().next(&mut random);
            let done = seat.serve(Job { intended, n, question }).await;
            intended = match think {
                _ if think_s <= 0.0 => shared.clock.now().max(done),
                Think::Fixed => done + micros(think_s),
                Think::Exponential => done + micros(-(1.0 - random.random::<f64>()).ln() * think_s),
            };
        }
    }

    async fn open(self: &Rc<Self>) {
        let shared = &self.shared;
        let (mut random, desk) = (self.random(0), Desk::new(Rc::clone(self)));
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
            // While connections are made and caches warm up, being late harms no figure.
            if shared.plan.phase_of(intended, self.manner.ends).is_counted() {
                shared.counts.late_by(shared.clock.now() - intended);
            }
            shared.arrive(&self.manner.limits);
            let question = self.question(n, &mut random);
            n += 1;
            desk.submit(Job { intended, n, question });
            row += 1;
            if row % ROW == 0 {
                tokio::task::yield_now().await;
            }
        }
        desk.drained().await;
        self.manner.compared().await;
    }

    fn question(&self, n: u32, random: &mut Pcg64) -> Question {
        let mut mix = self.mix.borrow_mut();
        if self.lines.is_empty() { mix.next(random) } else { mix.nth(n as usize) }
    }

    async fn on_off(self: &Rc<Self>, bursts: u32, per_burst: u32, gap_s: f64) {
        let shared = &self.shared;
        let (mut random, desk) = (self.random(0), Desk::new(Rc::clone(self)));
        let (mut n, mut intended) = (0, shared.plan.measured);
        for _ in 0..bursts {
            if !shared.until(intended).await {
                break;
            }
            shared.counts.late_by(shared.clock.now() - intended);
            for _ in 0..per_burst {
                shared.arrive(&self.manner.limits);
                n += 1;
                desk.submit(Job { intended, n, question: self.mix.borrow_mut().next(&mut random) });
            }
            desk.drained().await;
            intended = desk.last_end.get().max(intended) + micros(gap_s);
        }
        self.manner.compared().await;
    }
}

/// Hands jobs to seats: to one that is free, to a new one, or to the queue.
#[derive(Debug)]
struct Desk {
    crowd: Rc<Crowd>,
    counter: Rc<Counter>,
    seats: RefCell<JoinSet<()>>,
    last_end: Rc<Cell<Micros>>,
}

#[derive(Debug, Default)]
struct Counter {
    free: RefCell<Vec<Rc<Mailbox>>>,
    waiting: RefCell<VecDeque<Job>>,
    busy: Cell<usize>,
    empty: Notify,
}

#[derive(Debug, Default)]
struct Mailbox {
    job: RefCell<Option<Job>>,
    waker: RefCell<Option<Waker>>,
}

impl Desk {
    fn new(crowd: Rc<Crowd>) -> Desk {
        Desk { crowd, counter: Rc::default(), seats: RefCell::default(), last_end: Rc::new(Cell::new(Micros::MIN)) }
    }

    fn submit(&self, job: Job) {
        let counter = &self.counter;
        counter.busy.set(counter.busy.get() + 1);
        let free = counter.free.borrow_mut().pop();
        if let Some(mailbox) = free {
            *mailbox.job.borrow_mut() = Some(job);
            if let Some(waker) = mailbox.waker.borrow_mut().take() {
                waker.wake();
            }
            return;
        }
        let mut seats = self.seats.borrow_mut();
        if seats.len() < self.crowd.connections {
            let user = u32::try_from(seats.len()).unwrap_or(u32::MAX);
            let crowd = &self.crowd;
            let seat = Seat::new(Rc::clone(&crowd.shared), Rc::clone(&crowd.manner), user, crowd.links.of(user));
            seats.spawn_local(work(seat, job, Rc::clone(counter), Rc::clone(&self.last_end)));
        } else if counter.waiting.borrow().len() < WAITING_MOST {
            counter.waiting.borrow_mut().push_back(job);
        } else {
            let (shared, manner) = (&self.crowd.shared, &self.crowd.manner);
            let record = Record {
                trial: shared.trial,
                phase: shared.plan.phase_of(job.intended, manner.ends),
                target: manner.target,
                population: manner.population,
                request: job.question.request,
                n: job.n,
                intended: job.intended,
                outcome: Outcome::NotSent,
                detail: Some(format!("{WAITING_MOST} requests waited for a connection")),
                ..Record::default()
            };
            shared.keep(record, &manner.limits);
            counter.left();
        }
    }

    /// Comes back when every job has been done.
    async fn drained(&self) {
        while self.counter.busy.get() > 0 {
            self.counter.empty.notified().await;
        }
    }
}

impl Counter {
    fn left(&self) {
        self.busy.set(self.busy.get() - 1);
        if self.busy.get() == 0 {
            self.empty.notify_one();
        }
    }
}

async fn work(mut seat: Seat, first: Job, counter: Rc<Counter>, last_end: Rc<Cell<Micros>>) {
    let mailbox = Rc::new(Mailbox::default());
    let mut job = first;
    loop {
        last_end.set(seat.serve(job).await.max(last_end.get()));
        counter.left();
        let waiting = counter.waiting.borrow_mut().pop_front();
        job = match waiting {
            Some(job) => job,
            None => {
                counter.free.borrow_mut().push(Rc::clone(&mailbox));
                poll_fn(|context| match mailbox.job.borrow_mut().take() {
                    Some(job) => Poll::Ready(job),
                    None => {
                        *mailbox.waker.borrow_mut() = Some(context.waker().clone());
                        Poll::Pending
                    }
                })
                .await
            }
        };
    }
}
