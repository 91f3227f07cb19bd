//! The backend of a test server: the store itself, or a gateway with the store's owner behind a socket.

use meridian_backend::{Backend, Embedded, RecordSource};
use meridian_query::Control;
use meridian_remote::{OwnerLocation, RemoteBackend, RemoteOptions, ServeOptions};
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::Seams;
use meridian_store::{ControlPlane, Store};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};

/// An owner that serves a store; it stops when dropped.
pub struct Owner {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    address: watch::Sender<Option<OwnerLocation>>,
    known: OwnerLocation,
}

impl Owner {
    /// Sets whether the gateway knows the owner's address.
    pub fn known(&self, known: bool) {
        self.address.send_replace(known.then(|| self.known.clone()));
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Returns whether the tests run over a gateway: `1`, or `bucket` for one whose records are in a bucket.
pub fn is_gateway() -> bool {
    std::env::var("MERIDIAN_TEST_GATEWAY").is_ok_and(|value| value == "1" || value == "bucket")
}

/// Returns whether the records are in a bucket: tests that reach into those of the folder do not apply.
pub fn is_in_bucket() -> bool {
    std::env::var("MERIDIAN_TEST_GATEWAY").is_ok_and(|value| value == "bucket")
}

/// The bucket of each data folder on disk, for servers that restart over it.
static BUCKETS: Mutex<BTreeMap<PathBuf, MemoryBucket>> = Mutex::new(BTreeMap::new());

/// Returns the records of a gateway.
fn records(store: &Arc<Store>, seams: &Seams) -> Arc<dyn RecordSource> {
    if !is_in_bucket() {
        return store.clone();
    }
    let root = store.root();
    let bucket = match root.is_dir() {
        true => BUCKETS.lock().unwrap().entry(root.to_owned()).or_default().clone(),
        false => MemoryBucket::new(),
    };
    ControlPlane::new(Arc::new(bucket), seams, 256 << 20)
}

/// Returns the backend over a store, and the owner behind it if it is a gateway's.
pub fn backend(store: &Arc<Store>, seams: &Seams) -> (Arc<dyn Backend>, Option<Owner>) {
    if !is_gateway() {
        return (Embedded::new(store.clone()), None);
    }
    let (remote, owner) = gateway(store, seams);
    (remote, Some(owner))
}

/// Returns a gateway's backend, and the owner of the store behind it.
pub fn gateway(store: &Arc<Store>, seams: &Seams) -> (Arc<dyn Backend>, Owner) {
    let embedded = Embedded::new(store.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let (told, address) = std::sync::mpsc::channel();
    let clock = seams.clock.clone();
    let control = Arc::new(move |left, cancel| Control::new(clock.clone(), left, cancel));
    let options = ServeOptions::new(1, control, seams.random.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            meridian_remote::serve(embedded, listener, options, async move { drop(stopped.await) }).await.unwrap();
        });
    });
    let known = OwnerLocation::from(address.recv().unwrap().to_string());
    let (address, owner) = watch::channel(Some(known.clone()));
    let remote =
        RemoteBackend::connect(owner, records(store, seams), RemoteOptions::new(seams.random.clone())).unwrap();
    (remote, Owner { stop: Some(stop), thread: Some(thread), address, known })
}
