//! Several threads at once, with the real flushing and merging threads.

use crate::world::{Event, World, batch, options, schema};
use meridian_model::{IdRole, Projection, Seq};
use meridian_store::seams::{Clock, Seams, SystemClock};
use meridian_store::{Options, Settings, Store, Write, WriteError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

#[test]
fn readers_see_whole_batches_and_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        data: folder.path().to_owned(),
        background: true,
        memory_bytes: 2 << 20,
        log_bytes: 1 << 20,
        ..options()
    };
    let store = Store::open(options.clone(), Seams::real()).unwrap();
    let c = store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    let done = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    const WRITERS: i64 = 4;
    const BATCHES: i64 = 60;
    const ROWS: i64 = 50;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| {
                let (c, acknowledged) = (&c, &acknowledged);
                scope.spawn(move || {
                    for b in 0..BATCHES {
                        // Every event of a batch has the batch's number as n.
                        let number = w * BATCHES + b;
                        let events: Vec<Event> = (0..ROWS)
                            .map(|i| Event { n: number, ..Event::new(format!("{number}/{i}"), number * ROWS + i) })
                            .collect();
                        c.write(Write::new(batch(&c.schema(), &events)).with_key(number.to_string())).unwrap();
                        acknowledged.fetch_add(ROWS as u64, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            let (c, acknowledged, done) = (&c, &acknowledged, &done);
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    let least = acknowledged.load(Ordering::SeqCst);
                    let snapshot = c.snapshot();
                    let mut rows_of: BTreeMap<i64, i64> = BTreeMap::new();
                    let mut total = 0;
                    for part in snapshot.parts.iter() {
                        let batch = part.read(0..part.rows(), &Projection::all(&snapshot.layout)).unwrap();
                        let visible = part.visible(0..part.rows()).unwrap();
                        let Some(meridian_model::FieldColumn::Int(n)) = batch.field(1) else { panic!() };
                        for row in 0..batch.rows() {
                            if visible.value(row) {
                                *rows_of.entry(n.value(row)).or_default() += 1;
                                total += 1;
                            }
                        }
                    }
                    assert!(rows_of.values().all(|rows| *rows == ROWS), "half a batch: {rows_of:?}");
                    assert!(total >= least, "{total} events seen where {least} were acknowledged");
                    let again = c.snapshot_at(snapshot.seq).unwrap();
                    assert_eq!(again.seq, snapshot.seq);
                }
            });
        }
        writers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, Ordering::SeqCst);
    });
    let events = (WRITERS * BATCHES * ROWS) as u64;
    assert_eq!(c.stats().events, events);
    assert!(c.stats().position == (WRITERS * BATCHES) as u64);
    assert_eq!(c.snapshot().seq, Seq::end_of((WRITERS * BATCHES) as u64));
    store.close().unwrap();
    drop((store, c));
    let store = Store::open(options, Seams::real()).unwrap();
    let c = store.collection("t", "c").unwrap();
    assert_eq!(c.stats().events, events);
    assert_eq!(store.check(), []);
    // Keys are remembered as well.
    let again = [Event::new("0/0", 0)];
    let reused = c.write(Write::new(batch(&c.schema(), &again)).with_key("0"));
    assert!(matches!(reused, Err(WriteError::KeyReused { events, .. }) if events == ROWS as u64), "{reused:?}");
}

/// A clock that looks up collections when it is read, which happens during a creation.
#[derive(Debug, Default)]
struct Finding {
    store: OnceLock<Weak<Store>>,
    found: AtomicU64,
}

impl Clock for Finding {
    fn now(&self) -> i64 {
        if let Some(store) = self.store.get().and_then(Weak::upgrade) {
            let (tell, told) = mpsc::channel();
            // On a separate thread, which would block if the creation kept others out.
            std::thread::spawn(move || tell.send(store.collection("t", "c").is_some() && store.list("t").len() == 1));
            let found = told.recv_timeout(Duration::from_secs(20)).unwrap_or(false);
            self.found.fetch_add(found.into(), Ordering::SeqCst);
        }
        SystemClock::new().now()
    }

    fn elapsed(&self) -> i64 {
        SystemClock::new().elapsed()
    }

    fn sleep(&self, time: Duration) {
        SystemClock::new().sleep(time);
    }
}

#[test]
fn queries_find_their_collection_while_another_is_created() {
    let world = World::new();
    let clock = Arc::new(Finding::default());
    let store = Store::open(world.options.clone(), Seams { clock: clock.clone(), ..world.seams() }).unwrap();
    let store = Arc::new(store);
    store.create("t", "c", schema(IdRole::Given), Settings::default()).unwrap();
    clock.store.set(Arc::downgrade(&store)).unwrap();
    store.create("t", "d", schema(IdRole::Given), Settings::default()).unwrap();
    assert!(clock.found.load(Ordering::SeqCst) > 0);
}
