//! Subscribers are notified of writes.

use crate::world::{Event, World, batch};
use meridian_model::{IdRole, Subscriber, WrittenBatch};
use meridian_store::{Write, WriteError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Recorder {
    open: AtomicBool,
    written: Mutex<Vec<WrittenBatch>>,
}

impl Subscriber for Recorder {
    fn listens(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn notify(&self, written: WrittenBatch) {
        self.written.lock().unwrap().push(written);
    }
}

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

#[test]
fn every_acknowledged_write_is_heard_once_in_order_and_nothing_else_is() {
    for world in World::each() {
        let (store, c) = world.with_collection(IdRole::Given);
        let recorder = Arc::new(Recorder::default());
        store.subscribe(recorder.clone());
        c.write(Write::new(batch(&c.schema(), &events(0, 10)))).unwrap();
        assert!(recorder.written.lock().unwrap().is_empty(), "there was no listener");
        recorder.open.store(true, Ordering::SeqCst);

        let acknowledged = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for writer in 1..=6 {
                let (c, acknowledged) = (&c, &acknowledged);
                scope.spawn(move || {
                    for n in 0..20 {
                        let from = writer * 1000 + n * 5;
                        let write =
                            Write::new(batch(&c.schema(), &events(from, from + 5))).with_key(format!("k{from}"));
                        let outcome = c.write(write.clone()).unwrap();
                        acknowledged.lock().unwrap().push((outcome.first, from));
                        // A repeated write, and existing ids: neither counts as a write.
                        assert_eq!(c.write(write).unwrap().duplicates, 5);
                        let taken = c.write(Write::new(batch(&c.schema(), &events(from, from + 1))));
                        assert!(matches!(taken, Err(WriteError::Conflict { .. })));
                    }
                });
            }
        });
        let replaced = c.write(Write::new(batch(&c.schema(), &events(0, 1))).replacing()).unwrap();
        acknowledged.lock().unwrap().push((replaced.first, 0));
        c.delete(&["id-3".to_owned()]).unwrap();

        let mut acknowledged = acknowledged.into_inner().unwrap();
        acknowledged.sort_unstable();
        let written = recorder.written.lock().unwrap();
        let notified: Vec<_> = written
            .iter()
            .map(|written| {
                assert_eq!((&*written.tenant, &*written.collection), ("t", "c"));
                let first = written.batch.id_of(0, written.first);
                assert_eq!(written.seqs().len(), written.batch.rows());
                (written.first, first.strip_prefix("id-").unwrap().parse().unwrap())
            })
            .collect();
        assert_eq!(notified, acknowledged);
    }
}
