//! Follows a collection: waits for writes, for memory and for a permit, then reads one message.

use super::message::{Framing, Message};
use super::pace::Pace;
use super::pending_message::PendingMessage;
use super::reading::{LiveReader, Step};
use super::request::StreamRequest;
use crate::protocol::problem::Result;
use crate::request::scope::Scope;
use crate::state::event_streams::{ReadQueue, ReadTurn, StreamSlot};
use crate::state::readers::Registration;
use meridian_admission::gate::{Account, Permit};
use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::{Collection, PermitScheduler};
use meridian_model::Seqs;
use meridian_observe::WorkContext;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until, timeout_at};

/// Interval of keep-alive messages: proxies close connections that are silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Min time that a read waits for a permit, however late its turn came.
const PERMIT_WAIT_MIN: Duration = Duration::from_secs(1);
/// How long a stream waits for its turn and for memory before it ends.
const ROOM_WAIT: Duration = Duration::from_secs(60);
/// Time after which a stream whose client reads nothing drops the read in progress, and with it the snapshot.
const REST_AFTER: Duration = Duration::from_secs(1);

/// The next message of a stream.
pub(super) enum Update {
    /// Events, at least one.
    Events(Message),
    /// Nothing was written for a while; sends the client the position of the stream.
    KeepAlive(Seqs),
    /// Some files are damaged: events may be missing from here on.
    Missing(String),
    /// The stream is over.
    End(End),
}

/// Why a stream ends, and the position after which to resume.
pub(super) struct End {
    pub(super) reason: &'static str,
    pub(super) detail: String,
    pub(super) after: Seqs,
}

/// How the delivery of a message ended.
pub(super) enum Delivery<T> {
    /// The client has received it or is gone.
    Done(T),
    /// The client reads too slowly.
    Slow,
    /// The client does not read, and others need the memory.
    Evicted,
    /// The server closes before the client has received it.
    Closing,
}

/// An open stream.
pub(super) struct Follower {
    state: Scope,
    /// The account to which its reads are charged.
    account: Account,
    reading: LiveReader,
    answers: ByteBudget,
    /// The queue in which it waits behind other streams of its tenant.
    line: ReadQueue,
    pace: Pace,
    /// When it began to wait in the queue.
    waits_since: Option<Instant>,
    hand: Arc<PendingMessage>,
    notifications: watch::Receiver<()>,
    ends: Instant,
    _registration: Registration,
    /// The memory of its parsed request.
    _conditions: ByteShare,
    _slot: StreamSlot,
}

impl Follower {
    pub(super) fn new(
        state: Scope,
        account: Account,
        collection: Arc<dyn Collection>,
        (request, conditions): (StreamRequest, ByteShare),
        framing: Framing,
        slot: StreamSlot,
    ) -> Result<Follower> {
        let answers = state.answers();
        let notifications = state.live.subscribe(&state.caller().tenant, collection.name());
        let objects = state.config.stream_objects_max;
        let reading = LiveReader::new(collection, account.ledger.clone(), request, framing, answers.clone(), objects)?;
        let hand = Arc::new(PendingMessage::new(answers.clone()));
        Ok(Follower {
            line: state.live.line(&state.caller().tenant, state.config.admission().slots),
            ends: Instant::now() + state.config.stream_lifetime,
            _registration: state.readers.register(hand.clone()),
            pace: Pace::new(reading.is_behind()),
            waits_since: None,
            state,
            account,
            reading,
            answers,
            hand,
            notifications,
            _conditions: conditions,
            _slot: slot,
        })
    }

    /// Returns the position of the stream.
    pub(super) fn at(&self) -> Seqs {
        self.reading.at()
    }

    /// Returns an end at the current position.
    pub(super) fn end(&self, reason: &'static str, detail: impl Into<String>) -> End {
        End { reason, detail: detail.into(), after: self.at() }
    }

    /// Waits for the next update. If the wait is dropped, nothing is lost: the client reconnects at its last position.
    pub(super) async fn next(self) -> (Follower, Update) {
        let mut follower = self;
        let alive = Instant::now() + KEEP_ALIVE;
        loop {
            // Marked as seen before the flag and the position are read, so that later changes notify again.
            follower.notifications.mark_unchanged();
            if follower.state.live.is_closed() {
                let end = follower.closing(follower.at());
                return (follower, Update::End(end));
            }
            if Instant::now() >= follower.ends {
                let end = follower.end("lifetime", "the stream reached its max duration: reconnect");
                return (follower, Update::End(end));
            }
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
                    // Notified without a new event: the write went to another collection of the same name.
                    return (follower, next);
                }
                continue;
            }
            if let Some(at) = follower.pace.next_read_at().filter(|_| !follower.reading.is_reading()) {
                sleep_until(at).await;
            }
            // Before the permit, since a wait for memory may be long.
            let turn = match follower.turn(alive.min(follower.ends)).await {
                Some(turn) => turn,
                None if Instant::now() >= alive => {
                    let next = follower.waiting();
                    return (follower, next);
                }
                None => continue,
            };
            let permit = match follower.permit(alive.min(follower.ends)).await {
                Some(permit) => permit,
                None if Instant::now() >= alive => {
                    let next = Update::KeepAlive(follower.at());
                    return (follower, next);
                }
                None => continue,
            };
            let read = tokio::task::spawn_blocking(move || {
                permit.meter().begin();
                let turns = PermitScheduler::of(&permit);
                let work = WorkContext::default().holding(&turns);
                let read = work.run(|| follower.reading.read(follower.pace.room()));
                drop(permit);
                // The turn and its memory move into the read: if the client leaves, the read continues unobserved, and
                // they are released only when it ends.
                (follower, turn, read)
            });
            // A read that panics ends its stream; the client reconnects at its last position.
            let (back, turn, read) = match read.await {
                Ok(read) => read,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            follower = back;
            if let Ok(step) = &read {
                follower.pace.observe(step, follower.reading.is_behind());
            }
            match read {
                Ok(Step::Message(rendered)) => return (follower, Update::Events(rendered.charged(turn.share))),
                Ok(Step::Missing(detail)) => return (follower, Update::Missing(detail)),
                Ok(Step::NoMatch | Step::CaughtUp) if Instant::now() >= alive => {
                    let next = Update::KeepAlive(follower.at());
                    return (follower, next);
                }
                Ok(Step::Larger(_) | Step::NoMatch | Step::CaughtUp) => {}
                Err(problem) => {
                    let end = follower.end("error", problem.detail());
                    return (follower, Update::End(end));
                }
            }
        }
    }

    /// Waits for a turn with memory for a message; `None` if there is none in time, or if the server closes.
    async fn turn(&mut self, until: Instant) -> Option<ReadTurn> {
        if self.line.is_short() {
            // Streams ahead in the queue may need the memory of this stream's read.
            self.reading.rest();
        }
        let (state, reading) = (&self.state, &mut self.reading);
        let mut turn = pin!(self.line.turn(&state.readers, &self.answers, self.pace.room()));
        let mut closed = pin!(state.live.closed(&mut self.notifications));
        let rest_at = Instant::now() + REST_AFTER;
        let turn = loop {
            tokio::select! {
                biased;
                turn = turn.as_mut() => break Some(turn),
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

    /// Waits for a permit for one read. Idle streams hold none, so that thousands of quiet streams leave the permits to
    /// queries. Returns `None` if there is none in time, or if the server closes.
    async fn permit(&mut self, until: Instant) -> Option<Permit> {
        let account = Account { class: self.pace.class(self.account.class), ..self.account.clone() };
        let until = until.max(Instant::now() + PERMIT_WAIT_MIN);
        tokio::select! {
            biased;
            permit = self.state.gate.resume(&account, Duration::ZERO, until) => permit.ok(),
            () = self.state.live.closed(&mut self.notifications) => None,
        }
    }

    /// Returns a keep-alive for a stream that waits for its turn, or its end.
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
        match self.state.view().existing(collection.name()) {
            // Compared by creation time, because a new collection may have the old name.
            Ok(Some(now)) if now.created() == collection.created() => Update::KeepAlive(self.at()),
            // Unknown at present; the position stays.
            Err(_) => Update::KeepAlive(self.at()),
            _ => Update::End(self.end("gone", "the collection was removed or renamed")),
        }
    }

    /// Waits until `taken` completes for a message of this size. Ends early when the client exceeds its time for the
    /// message, when it is evicted, or when the server closes.
    pub(super) async fn deliver<T>(&mut self, bytes: usize, taken: impl Future<Output = T>) -> Delivery<T> {
        let begun = Instant::now();
        let slow_at = begun + self.send_timeout(bytes);
        let (hand, mut rests) = (&self.hand, false);
        hand.hold(bytes);
        let (mut taken, mut closed) = (pin!(taken), pin!(self.state.live.closed(&mut self.notifications)));
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
                // Last, so that a client that has received the message learns of the server's closing in the next
                // message.
                () = closed.as_mut() => return Delivery::Closing,
            }
        }
    }

    /// Counts events that the system has accepted for sending.
    pub(super) fn count_sent(&self, events: usize) {
        self.state.live.sent.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Reports that the message in hand is dropped: it is no longer a reason to evict this client or to wait for it.
    pub(super) fn drop_message(&self) {
        self.hand.release();
    }

    /// Returns the max time for a client to receive this many bytes.
    fn send_timeout(&self, bytes: usize) -> Duration {
        let config = &self.state.config;
        let at_rate = (bytes as u64).checked_div(config.answer_rate_min).map(Duration::from_secs);
        config.write_stall.saturating_add(at_rate.unwrap_or(Duration::from_secs(u64::from(u32::MAX))))
    }

    /// Returns the end for a client that reads too slowly; it resumes after the last event it received.
    pub(super) fn too_slow(&self, after: Seqs) -> End {
        self.state.live.slow.fetch_add(1, Ordering::Relaxed);
        let detail = "the client reads more slowly than it may: reconnect";
        let collection = self.reading.collection().name();
        tracing::info!(collection, %after, "a reader of a stream was disconnected: it reads too slowly");
        End { reason: "slow", detail: detail.to_owned(), after }
    }

    /// Returns the end for a client that was evicted.
    pub(super) fn evicted(&self, after: Seqs) -> End {
        let detail = "the client did not take the message while others needed the memory for responses: reconnect";
        End { reason: "evicted", detail: detail.to_owned(), after }
    }

    /// Returns the end for a client of a closing server.
    pub(super) fn closing(&self, after: Seqs) -> End {
        End { reason: "closing", detail: "the server is shutting down: reconnect".to_owned(), after }
    }
}
