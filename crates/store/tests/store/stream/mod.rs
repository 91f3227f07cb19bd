//! A store over a bucket with its log in streams. Answers are lost, owners change, every call pauses, and streams lose
//! acknowledged messages.

mod bytes;
mod faults;
mod installs;
mod lies;
mod pauses;
mod retries;
mod standby;
mod takeover;
mod wakes;

use crate::bucket::{WriteOutcome, Writes, seams};
use crate::world::{Event, batch, options, schema};
use meridian_model::IdRole;
use meridian_store::bucket::MemoryBucket;
use meridian_store::stream::MemoryStreams;
use meridian_store::{Collection, Settings, SharedLog, Store, StoreError};
use std::sync::Arc;

/// State shared by the processes of a cluster.
#[derive(Clone, Default)]
pub struct Cluster {
    pub bucket: MemoryBucket,
    pub streams: MemoryStreams,
}

impl Cluster {
    /// Creates a cluster whose messages have at most `message_max` bytes.
    pub fn of(message_max: usize) -> Cluster {
        Cluster { bucket: MemoryBucket::new(), streams: MemoryStreams::new(message_max) }
    }

    pub fn log(&self, accept_loss: bool) -> SharedLog {
        SharedLog::Streams { streams: Arc::new(self.streams.clone()), accept_loss }
    }

    /// Opens the collections as their owner.
    pub fn open(&self) -> Result<Store, StoreError> {
        self.open_with(false)
    }

    pub fn open_with(&self, accept_loss: bool) -> Result<Store, StoreError> {
        Store::open_shared_over(options(), seams(), Arc::new(self.bucket.clone()), self.log(accept_loss))
    }

    /// Creates the collection.
    pub fn first(&self) -> Process {
        let store = self.open().unwrap();
        let collection = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        Process { store, collection }
    }

    /// Takes over the collection.
    pub fn next(&self) -> Process {
        let store = self.open().unwrap();
        assert_eq!(store.problems(), []);
        let collection = store.collection("t", "c").expect("the collection is there");
        Process { store, collection }
    }
}

/// A process that has the collection open.
pub struct Process {
    pub store: Store,
    pub collection: Arc<Collection>,
}

/// Writes `bytes` bytes at once, in ids, which are stored uncompressed and have at most 1024 bytes each.
pub fn write_large(process: &Process, name: &str, bytes: usize) -> Result<(), meridian_store::WriteError> {
    let c = &process.collection;
    let letters = noise(bytes);
    let ids = letters.as_bytes().chunks(1_000).map(String::from_utf8_lossy);
    let events: Vec<Event> = (1..).zip(ids).map(|(n, id)| Event::new(format!("{name}{n}{id}"), n)).collect();
    c.write(meridian_store::Write::new(batch(&c.schema(), &events))).map(drop)
}

/// Returns letters that do not compress.
fn noise(bytes: usize) -> String {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 60) as u8)
    };
    (0..bytes).map(|_| next()).collect()
}
