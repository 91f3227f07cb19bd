//! What a write takes in a stream, beside what it takes in a data folder's log.

use super::Cluster;
use crate::world::{Event, World, batch};
use meridian_model::IdRole;
use meridian_store::{Collection, Write};

/// Bytes that the log took of writes of so many events each.
fn log_bytes(collection: &Collection, events: i64) -> u64 {
    let before = collection.stats().log_bytes;
    for n in 0..20 {
        let events: Vec<Event> = (n * events..(n + 1) * events).map(|n| Event::new(format!("e{n}"), n)).collect();
        collection.write(Write::new(batch(&collection.schema(), &events))).unwrap();
    }
    collection.stats().log_bytes - before
}

#[test]
fn a_stream_takes_little_more_than_a_folder() {
    for (events, most) in [(1, 1.1), (10, 1.1), (100, 1.02)] {
        let world = World::new();
        let (_store, folder) = world.with_collection(IdRole::Given);
        let owner = Cluster::default().first();
        let (folder, stream) = (log_bytes(&folder, events), log_bytes(&owner.collection, events));
        let ratio = stream as f64 / folder as f64;
        println!("{events} events a write: {folder} bytes in a folder, {stream} in a stream, {ratio:.3} times");
        assert!(
            ratio <= most,
            "{events} events a write: {folder} bytes in a folder, {stream} in a stream, {ratio:.3} times"
        );
    }
}
