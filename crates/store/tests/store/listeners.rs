//! Who hears of what is written.

use crate::world::{Event, World, batch};
use meridian_model::{Heard, IdRole, Subscriber};
use meridian_store::{Write, WriteError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Ears {
    open: AtomicBool,
    heard: Mutex<Vec<Heard>>,
}

impl Subscriber for Ears {
    fn listens(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn hear(&self, heard: Heard) {
        self.heard.lock().unwrap().push(heard);
    }
}

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

#[test]
fn every_acknowledged_write_is_heard_once_in_order_and_nothing_else_is() {
    let world = World::new();
    let (store, c) = world.with_collection(IdRole::Given);
    let ears = Arc::new(Ears::default());
    store.subscribe(ears.clone());
    c.write(Write::new(batch(&c.schema(), &events(0, 10)))).unwrap();
    assert!(ears.heard.lock().unwrap().is_empty(), "nobody listened");
    ears.open.store(true, Ordering::SeqCst);

    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for writer in 1..=6 {
            let (c, acknowledged) = (&c, &acknowledged);
            scope.spawn(move || {
                for n in 0..20 {
                    let from = writer * 1000 + n * 5;
                    let write = Write::new(batch(&c.schema(), &events(from, from + 5))).with_key(format!("k{from}"));
                    let written = c.write(write.clone()).unwrap();
                    acknowledged.lock().unwrap().push((written.first, from));
                    // The same once more, and ids that are there already: neither is a write.
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
    let heard = ears.heard.lock().unwrap();
    let told: Vec<_> = heard
        .iter()
        .map(|heard| {
            assert_eq!((&*heard.tenant, &*heard.collection), ("t", "c"));
            let first = heard.batch.id_of(0, heard.first);
            assert_eq!(heard.seqs().len(), heard.batch.rows());
            (heard.first, first.strip_prefix("id-").unwrap().parse().unwrap())
        })
        .collect();
    assert_eq!(told, acknowledged);
}
