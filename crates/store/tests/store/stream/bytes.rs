//! The bytes of a write in a stream, compared with those in a data folder's log.
//!
//! Counted twice. First only what the store writes itself: messages here, records there. Then with what a JetStream
//! server adds to each message in its file. For the folder that excludes the mark of each group, 28 bytes that are
//! written in place. For the stream it excludes replicas, and their own log.

use super::Cluster;
use crate::world::{Event, World, batch};
use meridian_model::IdRole;
use meridian_store::{Collection, Write};

const WRITES: i64 = 20;
/// Bytes that a server adds to a message in its file, as measured with nats-server 2.9.10. They are 30, a subject of 25
/// with the bucket's id, 4, and a header of 45 with the expectation.
const FRAME: u64 = 104;

/// Returns the bytes of the log for writes of `events` events each.
fn log_bytes(collection: &Collection, events: i64) -> u64 {
    let before = collection.stats().log_bytes;
    for n in 0..WRITES {
        let events: Vec<Event> = (n * events..(n + 1) * events).map(|n| Event::new(format!("e{n}"), n)).collect();
        collection.write(Write::new(batch(&collection.schema(), &events))).unwrap();
    }
    collection.stats().log_bytes - before
}

#[test]
fn a_stream_takes_little_more_than_a_folder() {
    // Writes that come alone are a message each. Writes that come together share one, and its frame (`message.rs` has
    // such a group).
    for (events, most, most_framed) in [(1, 1.1, 1.95), (10, 1.1, 1.2), (100, 1.02, 1.1)] {
        let world = World::new();
        let (_store, folder) = world.with_collection(IdRole::Given);
        let cluster = Cluster::default();
        let owner = cluster.first();
        let (folder, stream) = (log_bytes(&folder, events), log_bytes(&owner.collection, events));
        // One of them is the owner record.
        assert_eq!(cluster.streams.messages().len() as i64, WRITES + 1);
        let framed = stream + FRAME * WRITES as u64;
        let [ratio, framed_ratio] = [stream, framed].map(|bytes| bytes as f64 / folder as f64);
        let found = format!(
            "{events} events a write: {folder} bytes in a folder, {stream} in a stream ({ratio:.3} times), {framed} with frames \
             ({framed_ratio:.3} times)"
        );
        println!("{found}");
        assert!(ratio <= most && framed_ratio <= most_framed, "{found}");
    }
}
