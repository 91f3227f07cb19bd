//! The connection to the owner of a group, or to a scan server, and who answers there.
//!
//! The owner that is asked is the one that its lease names at the time. It counts once it has named itself, with its first answer over this
//! connection. Until then it may still be opening what it took over. One that refuses a call has to name itself anew, as the data may be another's.

use super::engine::{Engine, Patience};
use super::{OwnerAt, RemoteOptions};
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

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(2);
/// How long the owner may be silent before it is pinged, and after that: a half-open connection is noticed within both.
const SILENCE: Duration = Duration::from_secs(2);
/// Bytes of one answer that may lie here unread.
pub(super) const WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of all answers that may lie here unread.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

type Client = FlightServiceClient<Channel>;

/// The epoch of the server that answered last, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answered {
    epoch: u64,
    instance: u64,
}

/// The process at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Peer {
    address: String,
    process: Option<u64>,
}

impl From<&OwnerAt> for Peer {
    fn from(at: &OwnerAt) -> Peer {
        Peer { address: at.address.clone(), process: at.process }
    }
}

/// The connection to a process.
#[derive(Debug, Clone)]
struct Connection {
    peer: Peer,
    client: Client,
    /// Since when this process is asked, or refuses.
    since: Instant,
    /// The number of the server there, once it has named itself.
    instance: Option<u64>,
}

/// A connection to make one call over.
pub(super) struct Asked {
    pub(super) client: Client,
    /// The number of the server, if it has named itself.
    pub(super) instance: Option<u64>,
    peer: Peer,
    group: u16,
}

impl Asked {
    /// A request that says whom it is for.
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

/// What a server is, that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Owner,
    Scan,
}

/// How the owner stands that is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is none.
    Absent,
    /// It is about to pass the data on, or has.
    Leaves,
    /// It has not named itself since this moment: it may be opening what it took over.
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
    owner: watch::Receiver<Option<OwnerAt>>,
    connection: Mutex<Option<Connection>>,
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
        let (connection, answered) = (Mutex::default(), Mutex::default());
        Link { engine, kind: Kind::Owner, group, owner, connection, answered, options }
    }

    /// A connection to a scan server, on the threads of this one.
    pub(super) fn to_scan_server(&self, at: OwnerAt) -> Link {
        Link {
            engine: self.engine.clone(),
            kind: Kind::Scan,
            group: 0,
            // It stays there: one that moves is another one.
            owner: watch::channel(Some(at)).1,
            connection: Mutex::default(),
            answered: Mutex::default(),
            options: self.options.clone(),
        }
    }

    /// Runs work on the threads of calls.
    pub(super) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.engine.spawn(work)
    }

    /// Waits for work on the threads of calls; drops it when the caller gives up.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        patience: &Patience,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.engine.wait(patience, work)
    }

    /// The owner's address, as it changes.
    pub(super) fn owner(&self) -> watch::Receiver<Option<OwnerAt>> {
        self.owner.clone()
    }

    /// The patience of a call without a deadline.
    pub(super) fn patience(&self) -> Patience {
        Patience::within(self.options.timeout)
    }

    /// How the owner stands now.
    pub(super) fn standing(&self) -> Standing {
        let owner = self.owner.borrow();
        let Some(owner) = owner.as_ref() else { return Standing::Absent };
        if owner.leaves {
            return Standing::Leaves;
        }
        match &*self.connection.lock() {
            Some(connection) if connection.peer == Peer::from(owner) => match connection.instance {
                Some(_) => Standing::Serves,
                None => Standing::Opens(connection.since),
            },
            // Not asked yet.
            _ => Standing::Opens(Instant::now()),
        }
    }

    /// The connection to the owner, made when it is first used; another where the owner has moved.
    pub(super) fn connect(&self) -> Result<Asked, Fault> {
        let peer = self.owner.borrow().as_ref().map(Peer::from);
        let Some(peer) = peer else {
            let why = "no server owns the data at present: another takes over within seconds, try again";
            return Err(Fault::Unavailable(why.to_owned()));
        };
        let mut known = self.connection.lock();
        let connection = match known.take().filter(|known| known.peer == peer) {
            Some(connection) => connection,
            None => {
                let client = self.open(&peer.address)?;
                Connection { peer: peer.clone(), client, since: Instant::now(), instance: None }
            }
        };
        let Connection { client, instance, .. } = known.insert(connection).clone();
        Ok(Asked { client, instance, peer, group: self.group })
    }

    /// Notes that a process has refused a call, or no longer had the data in the middle of it.
    pub(super) fn refused(&self, by: &Asked) {
        let mut known = self.connection.lock();
        if let Some(connection) = known.as_mut().filter(|known| known.peer == by.peer && known.instance.is_some()) {
            (connection.instance, connection.since) = (None, Instant::now());
        }
    }

    fn open(&self, address: &str) -> Result<Client, Fault> {
        // Also over TLS, which is below: tonic knows the scheme https for TLS of its own alone.
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| Fault::Unavailable(format!("the owner's address {address:?} is none: {e}")))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // Answers are let go of before their last frame. Those that come late would end the connection, and every call on it.
            .http2_max_local_error_reset_streams(None);
        let _engine = self.engine.handle().enter();
        let channel = tls::channel(&endpoint, address, &self.options.security).map_err(|why| {
            Fault::Unavailable(format!("the server that has the data, at {address}, cannot be called: {why}"))
        })?;
        Ok(FlightServiceClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// Notes who answered, and refuses one that no longer owns the data: its lease passed to a later epoch. What it says of a change it was
    /// asked for is true still (`of_change`): a change that it made stands before the later epoch began.
    pub(super) fn heard(&self, asked: &Asked, metadata: &MetadataMap, of_change: bool) -> Result<(), Fault> {
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
        if let Some(connection) = self.connection.lock().as_mut().filter(|known| known.peer == asked.peer) {
            connection.instance = Some(now.instance);
        }
        Ok(())
    }
}
