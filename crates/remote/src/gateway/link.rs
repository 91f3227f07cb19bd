//! The connection to the owner, and calls over it from threads that block.
//!
//! Calls run on threads of their own, so that a caller may wait on any thread of any runtime. A caller that gives up drops
//! the call, which the owner sees as a stream that was reset.

use super::answer::{Answer, Message};
use super::{OwnerAt, RemoteOptions};
use crate::tls;
use crate::wire::answer::Reply;
use crate::wire::call::{Call, Do, Get};
use crate::wire::fault::Fault;
use crate::wire::{GROUP_HEADER, MESSAGE_BYTES_MAX, OWNER_HEADER, REFUSED_HEADER, SCAN_SERVER};
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, FlightData, PutResult, Ticket};
use bytes::Bytes;
use futures_util::stream;
use meridian_query::Control;
use parking_lot::Mutex;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime, RuntimeFlavor};
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(2);
/// How long the owner may be silent before it is pinged, and after that: a half-open connection is noticed within both.
const SILENCE: Duration = Duration::from_secs(2);
/// Bytes of one answer that may lie here unread.
pub(super) const WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of all answers that may lie here unread.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// How often a waiting thread looks whether its caller has gone.
const LOOK: Duration = Duration::from_millis(20);
/// How much longer than its deadline a call is waited for: the owner knows better why it ended.
const GRACE: Duration = Duration::from_millis(500);
/// Pauses before a call is made again that has not begun.
const PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(400)];
/// How long a call that a leaving owner refused waits for the next one.
const CHANGE: Duration = Duration::from_secs(5);
/// Threads for all connections: they wait and copy, and compute nothing.
const THREADS: usize = 2;

type Client = FlightServiceClient<Channel>;

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

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// How long a caller waits.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    until: Option<Instant>,
    /// Of a question, which takes turns with others while it waits.
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

    /// Why the caller waits no longer, if so.
    fn is_over(&self) -> Option<Fault> {
        if self.control.as_ref().is_some_and(|control| control.cancel_flag().is_cancelled()) {
            return Some(Fault::Cancelled);
        }
        // The grace is the owner's: it says the deadline has passed where it knows, as it does most times.
        self.until.is_some_and(|until| Instant::now() >= until + GRACE).then_some(Fault::Deadline)
    }
}

/// Which server answered last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Answered {
    epoch: u64,
    instance: u64,
}

/// A connection, and the process that is asked over it.
struct Asked {
    client: Client,
    process: Option<u64>,
    group: u16,
}

impl Asked {
    /// A request that says whom it is for.
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let text = self.process.and_then(|process| MetadataValue::try_from(format!("{process:016x}")).ok());
        if let Some(text) = text {
            request.metadata_mut().insert(OWNER_HEADER, text);
        }
        if self.group > 0 {
            request.metadata_mut().insert(GROUP_HEADER, MetadataValue::from(self.group));
        }
        request
    }
}

/// What a server is, that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Owner,
    Scan,
}

/// The connection to the owner of a group of partitions, or to a scan server.
#[derive(Debug)]
pub(super) struct Link {
    engine: Arc<Engine>,
    kind: Kind,
    group: u16,
    owner: watch::Receiver<Option<OwnerAt>>,
    client: Mutex<Option<(OwnerAt, Client)>>,
    answered: Mutex<Option<Answered>>,
    pub(super) options: RemoteOptions,
}

impl Link {
    pub(super) fn new(
        engine: Arc<Engine>,
        owner: watch::Receiver<Option<OwnerAt>>,
        group: u16,
        options: RemoteOptions,
    ) -> Link {
        let (client, answered) = (Mutex::default(), Mutex::default());
        Link { engine, kind: Kind::Owner, group, owner, client, answered, options }
    }

    /// A connection to a scan server, on the threads of this one.
    pub(super) fn to_scan_server(&self, at: OwnerAt) -> Link {
        Link {
            engine: self.engine.clone(),
            kind: Kind::Scan,
            group: 0,
            // It stays there: one that moves is another one.
            owner: watch::channel(Some(at)).1,
            client: Mutex::default(),
            answered: Mutex::default(),
            options: self.options.clone(),
        }
    }

    /// Runs work on the threads of calls.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.engine.1.spawn(work)
    }

    /// The owner's address, as it changes.
    pub(super) fn owner(&self) -> watch::Receiver<Option<OwnerAt>> {
        self.owner.clone()
    }

    /// The number of the server that answered last.
    pub(super) fn instance(&self) -> Option<u64> {
        self.answered.lock().map(|answered| answered.instance)
    }

    /// The patience of a call without a deadline.
    pub(super) fn patience(&self) -> Patience {
        Patience::within(self.options.timeout)
    }

    /// Waits for work on the threads of calls; drops it when the caller gives up.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        patience: &Patience,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (done, outcome) = sync_channel(1);
        let task = self.spawn(async move { drop(done.send(work.await)) });
        let receive = || loop {
            match outcome.recv_timeout(LOOK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(Fault::internal("a call to the owner failed")),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(fault) = patience.is_over() {
                        task.abort();
                        return Err(fault);
                    }
                    // The owner works for the question: a long one gives its slot to others here as it does there.
                    if let Some(control) = &patience.control {
                        control.waited(LOOK);
                    }
                }
            }
        };
        // On a worker of the server's runtime, its other tasks go to another thread meanwhile.
        match Handle::try_current() {
            Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(receive),
            _ => receive(),
        }
    }

    /// The connection to the owner, made when it is first used; another where the owner has moved.
    fn client(&self) -> Result<Asked, Fault> {
        let Some(owner) = self.owner.borrow().clone() else {
            let why = "no server owns the data at present: another takes over within seconds, try again";
            return Err(Fault::Unavailable(why.to_owned()));
        };
        let mut client = self.client.lock();
        if let Some((_, client)) = client.as_ref().filter(|(of, _)| *of == owner) {
            return Ok(Asked { client: client.clone(), process: owner.process, group: self.group });
        }
        let address = &owner.address;
        // Also over TLS, which is below: tonic knows the scheme https for TLS of its own alone.
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| Fault::Unavailable(format!("the owner's address {address:?} is none: {e}")))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let _engine = self.engine.1.enter();
        let channel = tls::channel(&endpoint, address, &self.options.security).map_err(|why| {
            Fault::Unavailable(format!("the server that has the data, at {address}, cannot be called: {why}"))
        })?;
        let made = FlightServiceClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let process = owner.process;
        *client = Some((owner, made.clone()));
        Ok(Asked { client: made, process, group: self.group })
    }

    /// Notes who answered, and refuses one that no longer owns the data: its lease passed to a later epoch. What it says of a change it was
    /// asked for is true still (`of_change`): a change that it made stands before the later epoch began.
    fn heard(&self, metadata: &MetadataMap, of_change: bool) -> Result<(), Fault> {
        let text = metadata.get(OWNER_HEADER).and_then(|value| value.to_str().ok());
        let parsed = text.and_then(|text| {
            let (epoch, instance) = text.split_once('-')?;
            let epoch = match self.kind {
                Kind::Owner => epoch.parse().ok()?,
                Kind::Scan => (epoch == SCAN_SERVER).then_some(0)?,
            };
            Some(Answered { epoch, instance: u64::from_str_radix(instance, 16).ok()? })
        });
        let Some(now) = parsed else {
            return Err(Fault::internal("a server answered that is not the one that was asked"));
        };
        let mut answered = self.answered.lock();
        if answered.is_some_and(|last| last.epoch > now.epoch) {
            return if of_change {
                Ok(())
            } else {
                Err(Fault::Unavailable("a server answered that no longer owns the data: try again".to_owned()))
            };
        }
        *answered = Some(now);
        Ok(())
    }

    /// Waits while the data passes from its owner to the next one. Gives whether it did: who was refused asks that one.
    pub(super) async fn has_passed(&self) -> bool {
        let mut owner = self.owner.clone();
        if !owner.borrow().as_ref().is_some_and(|owner| owner.leaves) {
            return false;
        }
        let next = owner.wait_for(|owner| owner.as_ref().is_none_or(|owner| !owner.leaves));
        matches!(tokio::time::timeout(CHANGE, next).await, Ok(Ok(owner)) if owner.is_some())
    }

    /// Makes a call again while it has not begun and the link is at fault.
    pub(super) async fn again<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        mut call: impl FnMut() -> F,
    ) -> Result<T, Fault> {
        let mut pauses = PAUSES.into_iter();
        loop {
            match call().await {
                Err(fault) if fault.is_of_the_link() && self.owner.borrow().is_some() => {
                    if !self.has_passed().await {
                        let Some(pause) = pauses.next() else { return Err(fault) };
                        tokio::time::sleep(pause).await;
                    }
                }
                other => return other,
            }
        }
    }

    /// Begins an answer: its first message has arrived.
    pub(super) async fn get(&self, ticket: Vec<u8>) -> Result<(Answer, Message), Fault> {
        let mut asked = self.client()?;
        let request = asked.request(Ticket::new(ticket));
        let response = asked.client.do_get(request).await.map_err(link_fault)?;
        self.heard(response.metadata(), false)?;
        let mut answer = Answer::new(response.into_inner());
        let first = answer.next().await?;
        let first = first.ok_or_else(|| Fault::internal("an answer without a message"))?;
        Ok((answer, first))
    }

    /// Asks and waits for the first message; again if the link was at fault.
    pub(super) fn ask(self: &Arc<Self>, get: Get, patience: &Patience) -> Result<(Answer, Message), Fault> {
        let ticket = Call::of(get, patience.left()).to_json()?;
        let link = self.clone();
        self.wait(patience, async move { link.again(|| link.get(ticket.clone())).await })
    }

    async fn action(&self, body: Vec<u8>, of_change: bool) -> Result<Vec<Bytes>, Failed> {
        let mut asked = self.client().map_err(Failed::before)?;
        let request = asked.request(Action::new("meridian", body));
        let response = asked.client.do_action(request).await.map_err(Failed::of)?;
        self.heard(response.metadata(), of_change).map_err(Failed::after)?;
        let (mut stream, mut bodies) = (response.into_inner(), Vec::new());
        while let Some(result) = stream.message().await.map_err(Failed::of)? {
            bodies.push(result.body);
        }
        // The data was passed on meanwhile, and nothing was done.
        match bodies.first().map(|first| Reply::<IgnoredAny>::read(first)) {
            Some(Err(fault)) if fault.is_of_the_link() => Err(Failed::before(fault)),
            _ => Ok(bodies),
        }
    }

    /// Does something once: again only while no connection was made.
    async fn action_once(&self, body: Vec<u8>) -> Result<Vec<Bytes>, Fault> {
        let mut pauses = PAUSES.into_iter();
        loop {
            match self.action(body.clone(), true).await {
                Ok(bodies) => return Ok(bodies),
                Err(Failed { fault: Fault::Unavailable(why), arrived: true }) => {
                    return Err(Fault::Unavailable(format!("whether it was done is not known: {why}")));
                }
                Err(Failed { fault, arrived }) if arrived || self.owner.borrow().is_none() => return Err(fault),
                Err(Failed { fault, .. }) => {
                    if !self.has_passed().await {
                        let Some(pause) = pauses.next() else { return Err(fault) };
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        }
    }

    /// Does something that may be done twice.
    pub(super) async fn act(&self, ask: Do) -> Result<Vec<Bytes>, Fault> {
        self.repeat(&Call::of(ask, self.options.timeout).to_json()?).await
    }

    /// The same by its call.
    pub(super) async fn repeat(&self, body: &[u8]) -> Result<Vec<Bytes>, Fault> {
        self.again(|| async { Ok(self.action(body.to_vec(), false).await?) }).await
    }

    /// Does something that may be done twice, and returns the messages of the answer.
    pub(super) fn repeatable(self: &Arc<Self>, ask: Do, patience: &Patience) -> Result<Vec<Bytes>, Fault> {
        let body = Call::of(ask, patience.left()).to_json()?;
        let link = self.clone();
        self.wait(patience, async move { link.repeat(&body).await })
    }

    /// The value of something that may be asked twice.
    pub(super) fn value<T: DeserializeOwned>(self: &Arc<Self>, ask: Do, patience: &Patience) -> Result<T, Fault> {
        one(&self.repeatable(ask, patience)?)
    }

    /// The value of something that may be asked twice, asked once: for callers that can do without it.
    pub(super) fn value_now<T: DeserializeOwned>(self: &Arc<Self>, ask: Do, patience: &Patience) -> Result<T, Fault> {
        let body = Call::of(ask, patience.left()).to_json()?;
        let link = self.clone();
        one(&self.wait(patience, async move { Ok(link.action(body, false).await?) })?)
    }

    /// Does something once. Where the link fails in the middle, whether it was done is not known, and the fault says so.
    pub(super) fn once<T: DeserializeOwned>(self: &Arc<Self>, ask: Do, patience: &Patience) -> Result<T, Fault> {
        let body = Call::of(ask, patience.left()).to_json()?;
        let link = self.clone();
        one(&self.wait(patience, async move { link.action_once(body).await })?)
    }

    /// Sends the messages of a write and returns its outcome.
    pub(super) async fn put(&self, messages: Vec<FlightData>) -> Result<Bytes, Failed> {
        let mut asked = self.client().map_err(Failed::before)?;
        let request = asked.request(stream::iter(messages));
        let response = asked.client.do_put(request).await.map_err(Failed::of)?;
        self.heard(response.metadata(), true).map_err(Failed::after)?;
        let first: Option<PutResult> = response.into_inner().message().await.map_err(Failed::of)?;
        let first = first.ok_or_else(|| Failed::after(Fault::internal("a write without an answer")))?;
        Ok(first.app_metadata)
    }
}

/// Why a call has no answer, and whether it may have arrived.
pub(super) struct Failed {
    pub(super) fault: Fault,
    pub(super) arrived: bool,
}

impl Failed {
    fn before(fault: Fault) -> Failed {
        Failed { fault, arrived: false }
    }

    fn after(fault: Fault) -> Failed {
        Failed { fault, arrived: true }
    }

    fn of(status: Status) -> Failed {
        let arrived = !is_unconnected(&status) && !status.metadata().contains_key(REFUSED_HEADER);
        Failed { arrived, fault: link_fault(status) }
    }
}

impl From<Failed> for Fault {
    fn from(failed: Failed) -> Fault {
        failed.fault
    }
}

/// Whether a call failed before there was a connection.
fn is_unconnected(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

pub(super) fn one<T: DeserializeOwned>(bodies: &[Bytes]) -> Result<T, Fault> {
    Reply::read(bodies.first().ok_or_else(|| Fault::internal("an act without an answer"))?)
}

/// The fault of a call that the connection ended. What the owner has to say it says in messages.
pub(super) fn link_fault(status: Status) -> Fault {
    match status.code() {
        Code::DeadlineExceeded => Fault::Deadline,
        Code::OutOfRange | Code::ResourceExhausted | Code::Unimplemented | Code::InvalidArgument => {
            Fault::internal(format!("the owner of the data refused a call: {}", status.message()))
        }
        _ => {
            tracing::debug!(%status, "a call to the owner broke off");
            Fault::Unavailable(match tls::refusal_of(&status) {
                Some(why) => format!("the server that has the data cannot be reached: {why}"),
                None => "the server that has the data cannot be reached: try again".to_owned(),
            })
        }
    }
}
