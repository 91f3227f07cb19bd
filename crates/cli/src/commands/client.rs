//! The API as used by commands: a running server, or a data folder that this process serves to itself.
//!
//! Both answer the same requests with the same code, so that `--data` and `--url` cannot differ.

use crate::args::{OwnerTarget, Target, folder_exists};
#[cfg(feature = "cluster")]
use crate::calls::calls;
#[cfg(feature = "cluster")]
use crate::commands::serve::cluster::BucketSession;
#[cfg(feature = "cluster")]
use crate::config::{Config, S3};
use crate::control;
use crate::failure::Failure;
use crate::http::{Parameter, Server};
use crate::trust::Address;
use meridian_admission::identity::Fault;
use meridian_api::{AppState, ServerConfig};
use meridian_backend::{Backend, Embedded};
use meridian_store::seams::Seams;
#[cfg(feature = "cluster")]
use meridian_store::{ControlPlane, seams::MemoryDisk};
use meridian_store::{Options, Store, StoreError};
use serde_json::Value;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long a command of the owner waits for a folder that another process has open.
const TURN_MAX: Duration = Duration::from_secs(10);
/// Poll interval of that wait.
const TURN_INTERVAL: Duration = Duration::from_millis(50);
/// How often a command on a bucket loads what its owner has flushed.
#[cfg(feature = "cluster")]
const FOLLOW: Duration = Duration::from_millis(500);

/// The server that responds to requests.
pub struct Client {
    server: Server,
    /// Set if this process serves a folder.
    own: Option<LocalServer>,
}

/// A data folder or a bucket, opened and served on a loopback port that only this process knows.
struct LocalServer {
    held: HeldResource,
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

/// Resources released at the end.
enum HeldResource {
    Store(Arc<Store>),
    #[cfg(feature = "cluster")]
    BucketSession(Box<BucketSession>),
}

impl Client {
    /// A client of this target.
    pub fn open(target: &Target) -> Result<Client, Failure> {
        match target {
            Target::Server(address) => Ok(Client { server: Server::at(address)?, own: None }),
            Target::Folder(folder) => {
                folder_exists(folder, ", or a server with --url")?;
                Client::of_store(folder, open_store(folder))
            }
        }
    }

    /// A client for the owner of a data folder or of a bucket, whether or not servers serve it. On a server, a client
    /// for the holder of `MERIDIAN_TOKEN`.
    pub fn for_owner(target: &OwnerTarget) -> Result<Client, Failure> {
        match target {
            OwnerTarget::Target(Target::Server(address)) => Ok(Client { server: Server::at(address)?, own: None }),
            OwnerTarget::Target(Target::Folder(folder)) => Client::of_served(folder),
            OwnerTarget::Bucket { address, config } => Client::of_bucket(address, config.as_deref()),
        }
    }

    /// Makes a client of a data folder, a server, or the collections in a bucket, which it may have flushed.
    pub fn of_collections(target: &OwnerTarget) -> Result<Client, Failure> {
        match target {
            OwnerTarget::Target(target) => Client::open(target),
            OwnerTarget::Bucket { address, config } => Client::of_session(address, config.as_deref()),
        }
    }

    /// Makes a client of the collections in a bucket, through their owner if there is one.
    #[cfg(feature = "cluster")]
    fn of_session(address: &str, config: Option<&Path>) -> Result<Client, Failure> {
        crate::args::bucket_exists(address)?;
        let mut config = config.map(Config::read).transpose()?.unwrap_or_default();
        address.clone_into(&mut config.cluster.bucket);
        let runtime = LocalServer::runtime()?;
        let session = runtime.block_on(BucketSession::begin(config))?;
        let backend = session.backend();
        Client::of_own(LocalServer::serve(address, runtime, HeldResource::BucketSession(Box::new(session)), backend)?)
    }

    #[cfg(not(feature = "cluster"))]
    fn of_session(address: &str, config: Option<&Path>) -> Result<Client, Failure> {
        Client::of_bucket(address, config)
    }

    /// Makes a read-only client of the records in a bucket, and of what owners have flushed to it.
    #[cfg(feature = "cluster")]
    fn of_bucket(address: &str, config: Option<&Path>) -> Result<Client, Failure> {
        let (seams, runtime) = (Seams::real(), LocalServer::runtime()?);
        crate::args::bucket_without_key(address)?;
        let s3 = config.map(Config::read).transpose()?.map_or_else(S3::default, |config| config.cluster.s3).options();
        let bucket = meridian_bucket::open(address, &s3, &calls()?, &seams.random).map_err(|e| match e {
            StoreError::Invalid(what) => Failure::Usage(format!("--bucket {address}: {what}")),
            other => other.into(),
        })?;
        let options = Options::at("/of-this-command");
        // Servers decide how much of the audit log is kept.
        let records = ControlPlane::new(bucket.clone(), &seams, u64::MAX);
        // It needs a folder only for its lock.
        let in_memory = Seams { disk: Arc::new(MemoryDisk::new()), ..seams };
        let store = Arc::new(Store::open_read_only(options, in_memory, bucket)?);
        let followed = Arc::downgrade(&store);
        // A removal waits until other servers know of the suspension, and checks again.
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(FOLLOW).await;
                let Some(store) = followed.upgrade() else { return };
                // A failed refresh is retried in the next round.
                let _ = tokio::task::spawn_blocking(move || store.refresh()).await;
            }
        });
        let backend = Embedded::with_records(store.clone(), records);
        Client::of_own(LocalServer::serve(address, runtime, HeldResource::Store(store), backend)?)
    }

    #[cfg(not(feature = "cluster"))]
    fn of_bucket(address: &str, _config: Option<&Path>) -> Result<Client, Failure> {
        Err(Failure::Usage(format!("--bucket {address}: this program was built without the feature `cluster`")))
    }

    /// A client of the server of a folder, or of the folder if there is none.
    fn of_served(folder: &Path) -> Result<Client, Failure> {
        let until = Instant::now() + TURN_MAX;
        loop {
            // A served folder is locked, so it cannot be opened a second time. Its owner reaches the server by the
            // socket.
            if control::is_served(folder) {
                return Ok(Client { server: Server::on_socket(folder), own: None });
            }
            match open_store(folder) {
                // A server locks the folder before it listens on the socket, and for a moment after. A command locks it
                // briefly.
                Err(StoreError::InUse { .. }) if Instant::now() < until => std::thread::sleep(TURN_INTERVAL),
                opened => return Client::of_store(folder, opened),
            }
        }
    }

    /// Returns the same client, with changes applied to the tenant that an operator names.
    pub fn within(self, tenant: Option<&str>) -> Result<Client, Failure> {
        match tenant {
            None => Ok(self),
            Some(tenant) => Ok(Client { server: self.server.within(tenant)?, own: self.own }),
        }
    }

    fn of_store(folder: &Path, opened: Result<Store, StoreError>) -> Result<Client, Failure> {
        let store = Arc::new(opened.map_err(Failure::of_folder)?);
        let backend = Embedded::new(store.clone());
        Client::of_own(LocalServer::serve(
            &folder.display().to_string(),
            LocalServer::runtime()?,
            HeldResource::Store(store),
            backend,
        )?)
    }

    fn of_own((own, url, token): (LocalServer, String, String)) -> Result<Client, Failure> {
        Ok(Client { server: Server::with_token(&Address { url, ca: None }, Some(&token))?, own: Some(own) })
    }

    /// Posts a JSON document, and returns the JSON answer.
    pub fn ask(&self, path: &[&str], document: &Value) -> Result<Value, Failure> {
        self.server.ask(path, document)
    }

    /// Patches a resource with a JSON document.
    pub fn patch(&self, path: &[&str], document: &Value) -> Result<(), Failure> {
        match self.server.patch(path, &[], document)? {
            None => Ok(()),
            Some(events) => Err(Failure::Refused(format!("it would remove {events} events"))),
        }
    }

    /// Deletes a resource; `false` if there is none.
    pub fn delete(&self, path: &[&str]) -> Result<bool, Failure> {
        self.server.delete(path)
    }

    /// Deletes the events that match, and returns the outcome as a JSON document.
    pub fn delete_matching(&self, path: &[&str], parameters: &[Parameter]) -> Result<Value, Failure> {
        self.server.delete_matching(path, parameters)
    }

    /// Gets a resource as a stream of bytes.
    pub fn stream(&self, path: &[&str], parameters: &[Parameter]) -> Result<Box<dyn Read>, Failure> {
        Ok(Box::new(self.server.stream(path, parameters)?))
    }

    /// Gets a JSON document.
    pub fn json(&self, path: &[&str], parameters: &[Parameter]) -> Result<Value, Failure> {
        serde_json::from_reader(io::BufReader::new(self.stream(path, parameters)?))
            .map_err(|e| Failure::Refused(format!("the answer is not JSON, or broke off: {e}")))
    }

    /// Requests work without a time limit, and returns its result as a JSON document.
    pub fn post(&self, path: &[&str]) -> Result<Value, Failure> {
        self.server.work(path)
    }

    /// Sends a JSON document, and returns the response as a stream, without a time limit.
    pub fn post_stream(&self, path: &[&str], document: &Value) -> Result<Box<dyn Read>, Failure> {
        Ok(Box::new(self.server.post_stream(path, document)?))
    }

    /// Ends the client; a folder is closed cleanly.
    pub fn close(self) -> Result<(), Failure> {
        self.own.map_or(Ok(()), LocalServer::close)
    }
}

fn open_store(folder: &Path) -> Result<Store, StoreError> {
    Store::open(Options::at(folder), Seams::real())
}

impl LocalServer {
    /// The runtime of the server, which needs its own threads: this one blocks while it waits for responses.
    fn runtime() -> Result<Runtime, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))
    }

    /// Serves a store, of a folder or of a bucket, to this process; returns the address, and the token that it takes.
    fn serve(
        place: &str,
        runtime: Runtime,
        held: HeldResource,
        backend: Arc<dyn Backend>,
    ) -> Result<(LocalServer, String, String), Failure> {
        let seams = Seams::real();
        // No other request waits behind this one, so only the user can end it.
        let patient = Duration::from_secs(7 * 86_400);
        let mut config = ServerConfig {
            timeout_default: patient,
            timeout_stream: patient,
            timeout_max: patient,
            write_stall: patient,
            shutdown_grace: Duration::from_secs(1),
            ..ServerConfig::default()
        };
        // Saved searches need a server: this process sends one request and ends.
        config.saved.enabled = false;
        let failed = |e: io::Error| Failure::Refused(format!("cannot serve {place} to this command: {e}"));
        // A port chosen by the system cannot collide with a server's or another command's.
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let (stop, stopped) = oneshot::channel();
        let refused = |e: Fault| Failure::Refused(format!("cannot open {place}: {e}"));
        let state = AppState::new(backend, &seams, config).map_err(refused)?;
        // The folder's owner runs this command. Other users of this machine reach the port too, but not the token.
        let token = state.registry.create_passing(state.now()).map_err(refused)?;
        let served = runtime.spawn(meridian_api::serve(listener, None, state, async {
            let _ = stopped.await;
        }));
        Ok((LocalServer { held, runtime, stop, served }, url, token))
    }

    fn close(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        // The server ends first: its last writes must be in the store before that is closed.
        let _ = self.runtime.block_on(self.served);
        // Its threads end later: calls to a bucket run on them.
        let closed = match self.held {
            HeldResource::Store(store) => store.close().map_err(Failure::from),
            #[cfg(feature = "cluster")]
            HeldResource::BucketSession(session) => self.runtime.block_on(session.end()),
        };
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        closed
    }
}
