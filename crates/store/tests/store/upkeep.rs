//! The cost of upkeep for readers and writers, on a clock that counts each call.

use crate::world::{Event, START, World, batch, schema};
use meridian_model::IdRole;
use meridian_store::seams::{Clock, Seams};
use meridian_store::{Collection, Settings, Store, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A clock that advances a millisecond each time it is read, and counts the pauses.
#[derive(Debug, Default)]
struct Ticking {
    micros: AtomicI64,
    rests: AtomicU64,
}

impl Clock for Ticking {
    fn now(&self) -> i64 {
        START + self.micros.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> i64 {
        self.micros.fetch_add(1_000, Ordering::SeqCst)
    }

    fn sleep(&self, time: Duration) {
        self.rests.fetch_add(1, Ordering::SeqCst);
        self.micros.fetch_add(time.as_micros() as i64, Ordering::SeqCst);
    }
}

/// Creates a collection whose flushes create one segment each.
fn collection(clock: &Arc<Ticking>) -> (Store, Arc<Collection>) {
    let mut world = World::new();
    world.options.segment_rows_min = 1 << 16;
    let store = Store::open(world.options.clone(), Seams { clock: clock.clone(), ..world.seams() }).unwrap();
    let c = store.create("t", "c", schema(IdRole::Made), Settings::default()).unwrap();
    (store, c)
}

fn write_and_flush(c: &Collection, from: i64) {
    let events: Vec<Event> = (from..from + 5000).map(|n| Event::new("", n)).collect();
    c.write(Write::new(batch(&c.schema(), &events))).unwrap();
    c.flush().unwrap();
}

#[test]
fn installs_say_for_how_long_no_write_was_committed() {
    let (_store, c) = collection(&Arc::default());
    let installs = || (c.stats().install_us, c.stats().install_us_max);
    assert_eq!(installs(), (0, 0));
    write_and_flush(&c, 0);
    let (first, longest) = installs();
    assert!(first >= 1_000 && longest == first, "{first} us, the longest of {longest}");
    write_and_flush(&c, 5000);
    let (both, longest) = installs();
    assert!(both >= first + 1_000, "{both} us after {first}");
    assert_eq!(longest, first.max(both - first));
}

#[test]
fn a_merge_rests_while_somebody_holds_a_snapshot() {
    let rests = |reading: bool| {
        let clock = Arc::<Ticking>::default();
        let (_store, c) = collection(&clock);
        let reader = reading.then(|| c.snapshot());
        (0..4).for_each(|flush| write_and_flush(&c, flush * 5000));
        assert_eq!(clock.rests.load(Ordering::SeqCst), 0, "writers may wait for the memory that a flush frees");
        assert!(c.maintain_segments().unwrap());
        assert_eq!(c.stats().merge_rows, 20_000);
        drop(reader);
        clock.rests.load(Ordering::SeqCst)
    };
    assert_eq!(rests(false), 0);
    // After each block of 4,096 rows.
    assert_eq!(rests(true), 5);
}
