//! Page tokens across changes of processes: a token's snapshot stays while it is used, and expires afterwards.

use super::{Process, seams, write};
use crate::world::{content, options, schema};
use meridian_model::{IdRole, Seq};
use meridian_store::bucket::MemoryBucket;
use meridian_store::seams::{ManualClock, Seams};
use meridian_store::{Collection, Settings, Store};
use std::sync::Arc;

const SECOND: i64 = 1_000_000;

/// The processes of a cluster, sharing one clock.
struct Cluster {
    bucket: MemoryBucket,
    clock: Arc<ManualClock>,
    /// Number of writes so far.
    written: i64,
}

impl Cluster {
    fn new() -> (Cluster, Process) {
        let clock = Arc::new(ManualClock::new(crate::world::START));
        let mut cluster = Cluster { bucket: MemoryBucket::new(), clock, written: 0 };
        let store = Store::open_shared(options(), cluster.seams(), Arc::new(cluster.bucket.clone())).unwrap();
        let collection = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
        let owner = Process { store, collection };
        (0..4).for_each(|_| cluster.write(&owner));
        // Nothing of the start is remembered any more.
        cluster.pass(&owner, 1000);
        (cluster, owner)
    }

    fn seams(&self) -> Seams {
        Seams { clock: self.clock.clone(), ..seams() }
    }

    fn takes_over(&self) -> Process {
        let store = Store::open_shared(options(), self.seams(), Arc::new(self.bucket.clone())).unwrap();
        let collection = store.collection("t", "c").unwrap();
        Process { store, collection }
    }

    fn reader(&self) -> (Store, Arc<Collection>) {
        let store = Store::open_read_only(options(), self.seams(), Arc::new(self.bucket.clone())).unwrap();
        store.refresh().unwrap();
        let collection = store.collection("t", "c").unwrap();
        (store, collection)
    }

    fn write(&mut self, owner: &Process) {
        self.written += 1;
        write(&owner.collection, self.written);
        owner.collection.flush().unwrap();
    }

    /// Lets time pass, while all earlier events are gradually deleted and merged.
    fn pass(&mut self, owner: &Process, seconds: i64) {
        for _ in 0..seconds / 10 {
            self.clock.advance(10 * SECOND);
            self.write(owner);
            owner.collection.delete(&[format!("w{}-1", self.written), format!("w{}-0", self.written - 1)]).unwrap();
            owner.collection.flush().unwrap();
            owner.store.trim_serving();
            owner.collection.maintain().unwrap();
        }
    }
}

fn shown(collection: &Collection, seq: Seq) -> Option<Vec<(String, u64, i64)>> {
    collection.snapshot_at(seq).ok().map(|snapshot| content(&snapshot))
}

#[test]
fn a_snapshot_of_an_owner_outlives_it() {
    let (mut cluster, mut owner) = Cluster::new();
    let first = owner.collection.snapshot();
    let (seq, expected) = (first.seq, Some(content(&first)));
    drop(first);
    for _ in 0..4 {
        // The next owner knows of no use before its start, and the log has the former one's unflushed writes.
        owner.collection.delete(&[format!("w{}-2", cluster.written)]).unwrap();
        owner = cluster.takes_over();
        cluster.pass(&owner, 290);
        assert_eq!(shown(&owner.collection, seq), expected);
    }
    cluster.pass(&owner, 400);
    assert_eq!(shown(&owner.collection, seq), None);
}

#[test]
fn a_snapshot_of_a_reader_outlives_it_and_ends() {
    let (mut cluster, owner) = Cluster::new();
    let (reader, seen) = cluster.reader();
    let first = seen.snapshot();
    let (seq, expected) = (first.seq, Some(content(&first)));
    drop(first);
    for _ in 0..3 {
        cluster.clock.advance(SECOND);
        reader.refresh().unwrap();
        cluster.pass(&owner, 10);
    }
    // It leaves: its pin goes, and a client continues at another reader.
    drop(seen);
    reader.leave();
    cluster.pass(&owner, 260);
    let (next, seen) = cluster.reader();
    assert_eq!(shown(&seen, seq), expected);
    next.leave();
    cluster.pass(&owner, 1000);
    let (_last, seen) = cluster.reader();
    assert_eq!(shown(&seen, seq), None);
    assert!(!owner.collection.note_use(seq));
}

#[test]
fn a_use_that_the_owner_is_told_of_is_one_of_its_own() {
    let (mut cluster, mut owner) = Cluster::new();
    let (reader, seen) = cluster.reader();
    let first = seen.snapshot();
    let (seq, expected) = (first.seq, Some(content(&first)));
    drop((first, seen));
    // No owner ever sees its pin.
    reader.leave();
    for turn in 0..6 {
        assert!(owner.collection.note_use(seq), "{turn}");
        cluster.pass(&owner, 290);
        if turn == 3 {
            owner = cluster.takes_over();
        }
    }
    let (reader, seen) = cluster.reader();
    assert_eq!(shown(&seen, seq), expected);
    reader.leave();
    let ahead = Seq(owner.collection.snapshot().seq.0 + 1);
    assert!(!owner.collection.note_use(ahead), "of another collection");
    owner = cluster.takes_over();
    cluster.pass(&owner, 400);
    assert!(!owner.collection.note_use(seq));
    let (_reader, seen) = cluster.reader();
    assert_eq!(shown(&seen, seq), None);
}
