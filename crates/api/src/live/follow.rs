//! Follows a collection: waits for writes, for memory and for a permit, then reads one message.

use super::hand::Hand;
use super::message::{Framing, Message};
use super::reading::{Reading, Step};
use super::request::StreamRequest;
use super::streams::{Line, StreamSlot, Turn};
use crate::problem::Result;
use crate::scope::Scope;
use crate::stream::{Readers, Registration};
use meridian_admission::gate::{Account, Class};
use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::Collection;
use meridian_model::Seq;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until, timeout_at};

/// Delay between two reads, so that writes in quick succession are read together.
const BATCH_DELAY: Duration = Duration::from_millis(5);
/// Interval of keep-alive messages: proxies close connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a read waits for a permit before it tries again.
const PERMIT_WAIT: Duration = Duration::from_secs(30);
/// How long a stream waits for its turn and for memory before it ends.
const ROOM_WAIT: Duration = Duration::from_secs(60);
/// Bytes that are reserved for a message, at least and while nothing is known of its size.
const ROOM_MIN: usize = 8 << 10;
/// The same where more events follow than went into the last message.
const ROOM_MANY: usize = 64 << 10;
/// When a stream whose client takes nothing drops the read in progress, and with it the snapshot.
const REST_AFTER: Duration = Duration::from_secs(1);

/// The next message of a stream.
pub(super) enum Update {
    /// Events, at least one.
    Events(Message),
    /// Nothing was written for a while: the client is sent the position of the stream.
    KeepAlive(Seq),
    /// Some files are damaged: events may be missing from here on.
    Missing(String),
    /// The stream is over.
    End(End),
}

/// Why a stream ends, and the position to resume after.
pub(super) struct End {
    pub(super) reason: &'static str,
    pub(super) detail: String,
    pub(super) after: Seq,
}

/// How the delivery of a message ended.
pub(super) enum Delivery<T> {
    /// The client has taken it, or is gone.
    Done(T),
    /// The client takes it too slowly.
    Slow,
    /// The client takes nothing, and others need the memory.
    Evicted,
}

/// An open stream.
pub(super) struct Follower {
    state: Scope,
    /// The account that its reads are charged to.
    account: Account,
    reading: Reading,
    answers: ByteBudget,
    /// Where it waits to read behind other streams of its tenant.
    line: Line,
    /// Whether there were more events than went into the last message.
    behind: bool,
    /// Bytes that the next message is thought to take.
    room: usize,
    /// Since when it waits there.
    waits_since: Option<Instant>,
    hand: Arc<Hand>,
    notifications: watch::Receiver<()>,
    ends: Instant,
    caught_up_at: Option<Instant>,
    _registration: Registration,
    /// The memory of its request.
    _request: ByteShare,
    _slot: StreamSlot,
}

impl Follower {
    pub(super) fn new(
        state: Scope,
        account: Account,
        collection: Arc<dyn Collection>,
        (request, of_request): (StreamRequest, ByteShare),
        framing: Framing,
        slot: StreamSlot,
    ) -> Result<Follower> {
        let answers = state.answers();
        let notifications = state.live.subscribe(collection.name());
        let objects = state.config.stream_objects_max;
        let reading = Reading::new(collection, account.ledger.clone(), request, framing, answers.clone(), objects)?;
        let hand = Arc::new(Hand::new(answers.clone()));
        Ok(Follower {
            line: state.live.line(&state.caller().tenant, state.config.admission().slots),
            ends: Instant::now() + state.config.stream_lifetime,
            _registration: Readers::register(state.state(), hand.clone()),
            behind: reading.is_behind(),
            room: ROOM_MIN,
            waits_since: None,
            caught_up_at: None,
            state,
            account,
            reading,
            answers,
            hand,
            notifications,
            _request: of_request,
            _slot: slot,
        })
    }

    /// The position of the stream.
    pub(super) fn at(&self) -> Seq {
        self.reading.at()
    }

    /// An end at the current position.
    pub(super) fn end(&self, reason: &'static str, detail: impl Into<String>) -> End {
        End { reason, detail: detail.into(), after: self.at() }
    }

    /// Waits for the next update. If the wait is dropped nothing is lost: the client reconnects at its last position.
    pub(super) async fn next(self) -> (Follower, Update) {
        let mut follower = self;
        let alive = Instant::now() + KEEP_ALIVE;
        loop {
            if follower.state.live.is_closed() {
                let end = follower.end("closing", "the server is shutting down: reconnect");
                return (follower, Update::End(end));
            }
            if Instant::now() >= follower.ends {
                let end = follower.end("lifetime", "the stream reached its max duration: reconnect");
                return (follower, Update::End(end));
            }
            // Marked as seen before the position is read, so that a write after that read notifies again.
            follower.notifications.mark_unchanged();
            if !follower.reading.is_behind() {
                if Instant::now() >= alive {
                    let next = follower.check_collection();
                    return (follower, next);
                }
                let until = alive.min(follower.ends);
                let notified = timeout_at(until, follower.notifications.changed()).await.is_ok();
                if notified
                    && !follower.reading.is_behind()
                    && let next @ Update::End(_) = follower.check_collection()
                {
                    // Notified without a new event: the write went to another collection of this name.
                    return (follower, next);
                }
                continue;
            }
            // Only a stream that has caught up delays its read. One that is behind reads at full speed.
            if let Some(at) = follower.caught_up_at.filter(|_| !follower.reading.is_reading()) {
                sleep_until(at + BATCH_DELAY).await;
            }
            // Before the permit: a wait for memory may be long.
            let turn = match follower.turn(alive.min(follower.ends)).await {
                Some(turn) => turn,
                None if Instant::now() >= alive => {
                    let next = follower.waiting();
                    return (follower, next);
                }
                None => continue,
            };
            // A permit for each read and none while idle, so that thousands of quiet streams leave the permits to
            // queries.
            let account = follower.account_now();
            let resumed = follower.state.gate.resume(&account, Duration::ZERO, Instant::now() + PERMIT_WAIT).await;
            let Ok(permit) = resumed else { continue };
            let read = tokio::task::spawn_blocking(move || {
                permit.meter().begin();
                let read = follower.reading.read(follower.room);
                drop(permit);
                (follower, read)
            });
            // A read that panics ends its stream: the client reconnects at its last position.
            let read = read.await;
            let Turn { share, .. } = turn;
            let read = match read {
                Ok((back, read)) => {
                    follower = back;
                    read
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            match read {
                Ok(Step::Message(rendered)) => {
                    follower.behind = follower.reading.is_behind();
                    let more = if follower.behind { ROOM_MANY } else { ROOM_MIN };
                    follower.room = rendered.bytes().max(more);
                    let message = rendered.charged(share);
                    follower.state.live.sent.fetch_add(message.ends.len() as u64, Ordering::Relaxed);
                    return (follower, Update::Events(message));
                }
                Ok(Step::Larger(bytes)) => follower.room = bytes,
                Ok(Step::Missing(detail)) => return (follower, Update::Missing(detail)),
                Ok(Step::NoMatch | Step::CaughtUp) if Instant::now() >= alive => {
                    let next = Update::KeepAlive(follower.at());
                    return (follower, next);
                }
                Ok(Step::CaughtUp) => (follower.caught_up_at, follower.behind) = (Some(Instant::now()), false),
                Ok(Step::NoMatch) => {}
                Err(problem) => {
                    let end = follower.end("error", problem.detail());
                    return (follower, Update::End(end));
                }
            }
        }
    }

    /// The account of the next read. One that catches up is not interactive: many such streams would starve queries.
    fn account_now(&self) -> Account {
        let class = if self.behind { self.account.class.max(Class::Batch) } else { self.account.class };
        Account { class, ..self.account.clone() }
    }

    /// A turn with memory for a message; `None` where there is none in time, or the server closes.
    async fn turn(&mut self, until: Instant) -> Option<Turn> {
        if self.line.is_short() {
            // Those before it may need the memory of its read.
            self.reading.rest();
        }
        let (state, notifications, reading) = (&self.state, &mut self.notifications, &mut self.reading);
        let closed = async {
            while !state.live.is_closed() {
                if notifications.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let (mut turn, mut closed) = (pin!(self.line.turn(state.state(), &self.answers, self.room)), pin!(closed));
        let rest_at = Instant::now() + REST_AFTER;
        let turn = loop {
            tokio::select! {
                biased;
                turn = turn.as_mut() => break turn,
                () = closed.as_mut() => break None,
                () = sleep_until(until) => break None,
                () = sleep_until(rest_at), if reading.is_reading() => reading.rest(),
            }
        };
        match turn {
            Some(_) => self.waits_since = None,
            None => _ = self.waits_since.get_or_insert_with(Instant::now),
        }
        turn
    }

    /// A sign of life of a stream that waits for its turn, or its end.
    fn waiting(&self) -> Update {
        match self.waits_since.is_some_and(|since| since.elapsed() >= ROOM_WAIT) {
            false => Update::KeepAlive(self.at()),
            true => Update::End(
                self.end("busy", "others use all the memory for responses, or all turns to read: reconnect later"),
            ),
        }
    }

    /// Checks that the collection is still the followed one.
    fn check_collection(&self) -> Update {
        let collection = self.reading.collection();
        match self.state.view().collection(collection.name()) {
            // By the time of creation: a new collection may have the old name.
            Ok(Some(now)) if now.created() == collection.created() => Update::KeepAlive(self.at()),
            // Nobody can say at present; the position stays.
            Err(_) => Update::KeepAlive(self.at()),
            _ => Update::End(self.end("gone", "the collection was removed or renamed")),
        }
    }

    /// Waits while a message of this many bytes is `taken`: as long as its client may take for it, or until the client is
    /// evicted.
    pub(super) async fn deliver<T>(&mut self, bytes: usize, taken: impl Future<Output = T>) -> Delivery<T> {
        let begun = Instant::now();
        let slow_at = begun + self.send_timeout(bytes);
        let hand = self.hand.clone();
        hand.hold(bytes);
        let (mut taken, mut rests) = (pin!(taken), false);
        loop {
            tokio::select! {
                biased;
                done = taken.as_mut() => {
                    hand.release();
                    return Delivery::Done(done);
                }
                () = hand.evicted() => return Delivery::Evicted,
                () = sleep_until(slow_at) => return Delivery::Slow,
                () = sleep_until(begun + REST_AFTER), if !rests => {
                    self.reading.rest();
                    rests = true;
                }
            }
        }
    }

    /// The message in hand is dropped: it is no longer a reason to evict this client or to wait for it.
    pub(super) fn drop_message(&self) {
        self.hand.release();
    }

    /// Max time for a client to receive this many bytes.
    fn send_timeout(&self, bytes: usize) -> Duration {
        let config = &self.state.config;
        let at_rate = (bytes as u64).checked_div(config.answer_rate_min).map(Duration::from_secs);
        config.write_stall.saturating_add(at_rate.unwrap_or(Duration::from_secs(u64::from(u32::MAX))))
    }

    /// The end for a client that reads too slowly; it resumes after the last event it received.
    pub(super) fn too_slow(&self, after: Seq) -> End {
        self.state.live.slow.fetch_add(1, Ordering::Relaxed);
        let detail = "the client reads more slowly than it may: reconnect";
        let collection = self.reading.collection().name();
        tracing::info!(collection, %after, "a reader of a stream was disconnected: it reads too slowly");
        End { reason: "slow", detail: detail.to_owned(), after }
    }

    /// The end for a client that was evicted.
    pub(super) fn evicted(&self, after: Seq) -> End {
        let detail = "the client took nothing while others needed the memory for responses: reconnect";
        End { reason: "evicted", detail: detail.to_owned(), after }
    }
}
