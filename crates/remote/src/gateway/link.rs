//! The connection to the owner of a group or to a scan server, and the identity of the process at the other end.
//!
//! Calls go to the owner named by the lease at the time. That owner counts as serving once it has identified itself, in
//! its first response over this connection. Until then it may still be opening the partitions it took over. A process
//! that refuses a call has to identify itself again, as the data may have moved.

use super::engine::{Engine, Patience};
use super::{OwnerLocation, RemoteOptions};
use crate::tls;
use crate::wire::fault::Fault;
use crate::wire::{GROUP_HEADER, MESSAGE_BYTES_MAX, OWNER_HEADER, SCAN_SERVER};
use arrow_flight::flight_service_client::FlightServiceClient;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::Request;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};

/// Max time to open a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// Time of silence before the owner is pinged, and then time to respond. A half-open connection is noticed within twice
/// this.
const SILENCE: Duration = Duration::from_secs(2);
/// Max unread bytes of one response.
pub(super) const WINDOW_BYTES: u32 = 256 << 10;
/// Max unread bytes of all responses.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

type Client = FlightServiceClient<Channel>;

/// Epoch and instance number of the server that answered last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ServerInstance {
    epoch: u64,
    instance: u64,
}

/// The process at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Peer {
    address: String,
    process: Option<u64>,
}

impl From<&OwnerLocation> for Peer {
    fn from(at: &OwnerLocation) -> Peer {
        Peer { address: at.address.clone(), process: at.process }
    }
}

/// The connection to a process.
#[derive(Debug, Clone)]
struct Connection {
    peer: Peer,
    client: Client,
    /// Time since which this process is being asked, or refuses calls.
    since: Instant,
    /// Instance number of the server, once it has identified itself.
    instance: Option<u64>,
}

/// A connection for one call.
pub(super) struct CallConnection {
    pub(super) client: Client,
    /// Instance number of the server, if it has identified itself.
    pub(super) instance: Option<u64>,
    peer: Peer,
    group: u16,
}

impl CallConnection {
    /// Builds a request with the headers that name its recipient.
    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let text = self.peer.process.and_then(|process| MetadataValue::try_from(format!("{process:016x}")).ok());
        if let Some(text) = text {
            request.metadata_mut().insert(OWNER_HEADER, text);
        }
        if self.group > 0 {
            request.metadata_mut().insert(GROUP_HEADER, MetadataValue::from(self.group));
        }
        request
    }
}

/// The role of the server at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Owner,
    Scan,
}

/// State of the owner to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// There is no owner.
    Absent,
    /// It is about to hand its data over, or has done so.
    Leaves,
    /// It has not identified itself since this time: it may be opening the partitions it took over.
    Opens(Instant),
    /// It has answered.
    Serves,
}

/// The connection to the owner of a group of partitions, or to a scan server.
#[derive(Debug)]
pub(super) struct Link {
    engine: Arc<Engine>,
    kind: Kind,
    group: u16,
    owner: watch::Receiver<Option<OwnerLocation>>,
    connection: Mutex<Option<Connection>>,
    answered: Mutex<Option<ServerInstance>>,
    pub(super) options: RemoteOptions,
}

impl Link {
    pub(super) fn new(
        engine: Arc<Engine>,
        owner: watch::Receiver<Option<OwnerLocation>>,
        group: u16,
        options: RemoteOptions,
    ) -> Link {
        let (connection, answered) = (Mutex::default(), Mutex::default());
        Link { engine, kind: Kind::Owner, group, owner, connection, answered, options }
    }

    /// Makes a connection to a scan server, on the threads of this one.
    pub(super) fn to_scan_server(&self, at: OwnerLocation) -> Link {
        Link {
            engine: self.engine.clone(),
            kind: Kind::Scan,
            group: 0,
            // A scan server never moves: at a new address it is another process.
            owner: watch::channel(Some(at)).1,
            connection: Mutex::default(),
            answered: Mutex::default(),
            options: self.options.clone(),
        }
    }

    /// Spawns a task on the threads of calls.
    pub(super) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.engine.spawn(work)
    }

    /// Waits for a task on the threads of calls, and drops it when the caller gives up.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        patience: &Patience,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.engine.wait(patience, work)
    }

    /// Watches the owner's address.
    pub(super) fn owner(&self) -> watch::Receiver<Option<OwnerLocation>> {
        self.owner.clone()
    }

    /// Patience of a call without a deadline.
    pub(super) fn patience(&self) -> Patience {
        Patience::within(self.options.timeout)
    }

    /// Current state of the owner.
    pub(super) fn standing(&self) -> OwnerState {
        let owner = self.owner.borrow();
        let Some(owner) = owner.as_ref() else { return OwnerState::Absent };
        if owner.leaves {
            return OwnerState::Leaves;
        }
        match &*self.connection.lock() {
            Some(connection) if connection.peer == Peer::from(owner) => match connection.instance {
                Some(_) => OwnerState::Serves,
                None => OwnerState::Opens(connection.since),
            },
            // Not called yet.
            _ => OwnerState::Opens(Instant::now()),
        }
    }

    /// Returns the connection to the owner, made on first use and replaced when the owner moves.
    pub(super) fn connect(&self) -> Result<CallConnection, Fault> {
        let peer = self.owner.borrow().as_ref().map(Peer::from);
        let Some(peer) = peer else {
            let why = "no server owns the data at present: another takes over within seconds, try again";
            return Err(Fault::Unavailable(why.to_owned()));
        };
        // Locked until the connection is stored, so that concurrent calls share one. Opening it does not block.
        let mut known = self.connection.lock();
        let connection = match known.take().filter(|known| known.peer == peer) {
            Some(connection) => connection,
            None => {
                let client = self.open(&peer.address)?;
                Connection { peer: peer.clone(), client, since: Instant::now(), instance: None }
            }
        };
        let Connection { client, instance, .. } = known.insert(connection).clone();
        Ok(CallConnection { client, instance, peer, group: self.group })
    }

    /// Records that a process refused a call, or lost the data in the middle of one.
    pub(super) fn refused(&self, by: &CallConnection) {
        let mut known = self.connection.lock();
        // Only the first refusal sets the time. Later ones must not prolong the wait for the next owner.
        if let Some(connection) = known.as_mut().filter(|known| known.peer == by.peer && known.instance.is_some()) {
            (connection.instance, connection.since) = (None, Instant::now());
        }
    }

    fn open(&self, address: &str) -> Result<Client, Fault> {
        // Plain `http` even with TLS, which is a layer below: tonic accepts `https` only for its own TLS.
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| Fault::Unavailable(format!("the owner's address {address:?} is none: {e}")))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // Responses may be abandoned before their last frame. Late frames would otherwise end the connection and
            // every call on it.
            .http2_max_local_error_reset_streams(None);
        let _engine = self.engine.handle().enter();
        let channel = tls::channel(&endpoint, address, &self.options.security).map_err(|why| {
            Fault::Unavailable(format!("the server that has the data, at {address}, cannot be called: {why}"))
        })?;
        Ok(FlightServiceClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// Records who answered, and rejects a process that no longer owns the data because its lease passed to a later
    /// epoch. A response to a change (`of_change`) is still accepted: the change was made before the later epoch began.
    pub(super) fn heard(&self, asked: &CallConnection, metadata: &MetadataMap, of_change: bool) -> Result<(), Fault> {
        let text = metadata.get(OWNER_HEADER).and_then(|value| value.to_str().ok());
        let parsed = text.and_then(|text| {
            let (epoch, instance) = text.split_once('-')?;
            let epoch = match self.kind {
                Kind::Owner => epoch.parse().ok()?,
                Kind::Scan => (epoch == SCAN_SERVER).then_some(0)?,
            };
            Some(ServerInstance { epoch, instance: u64::from_str_radix(instance, 16).ok()? })
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
        if let Some(connection) = self.connection.lock().as_mut().filter(|known| known.peer == asked.peer) {
            connection.instance = Some(now.instance);
        }
        Ok(())
    }
}
