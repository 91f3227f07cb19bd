//! What is stored once: an id in a collection, and the batch of a key.

use crate::world::{Event, World, batch, content, events};
use meridian_model::IdRole;
use meridian_store::seams::CrashStyle;
use meridian_store::{Write, WriteError};

#[test]
fn ids_stand_once_in_a_batch_and_once_in_a_collection() {
    for world in World::each() {
        let (_store, c) = world.with_collection(IdRole::Given);
        let twice = [Event::new("a", 1), Event::new("b", 2), Event::new("a", 3)];
        let Err(WriteError::Invalid(errors)) = c.write(Write::new(batch(&c.schema(), &twice))) else {
            panic!("a batch with an id twice was taken")
        };
        assert_eq!(errors.len(), 1);
        assert_eq!((errors[0].line, errors[0].field.as_deref()), (Some(3), Some("id")));
        assert!(errors[0].detail.contains("\"a\"") && errors[0].detail.contains("event 1"), "{}", errors[0]);
        assert_eq!(c.stats().events, 0);

        c.write(Write::new(batch(&c.schema(), &events(0, 300)))).unwrap();
        let again = c.write(Write::new(batch(&c.schema(), &events(100, 400))));
        let Err(WriteError::Conflict { ids, total }) = again else { panic!("{again:?}") };
        assert_eq!((ids.len(), total, ids[0].as_str()), (100, 200, "id-100"));
        assert_eq!(c.stats().events, 300);
        let replaced = c.write(Write::new(batch(&c.schema(), &events(100, 400))).replacing()).unwrap();
        assert_eq!((replaced.written, replaced.replaced), (300, 200));
        assert_eq!(c.stats().events, 400);
    }
}

#[test]
fn a_batch_sent_twice_is_stored_once_for_a_day() {
    for world in World::each() {
        let (store, c) = world.with_collection(IdRole::Made);
        let send = |c: &meridian_store::Collection, key: &str| {
            c.write(Write::new(batch(&c.schema(), &events(0, 10))).with_key(key)).unwrap()
        };
        let first = send(&c, "one");
        assert_eq!((first.written, first.duplicates), (10, 0));
        let second = send(&c, "one");
        assert_eq!((second.written, second.duplicates, second.position), (0, 10, first.position));
        c.flush().unwrap();
        send(&c, "two");
        world.disk.crash(CrashStyle::Lose);
        drop((store, c));
        let (store, c) = world.with_collection(IdRole::Made);
        assert_eq!(send(&c, "one").duplicates, 10);
        assert_eq!(send(&c, "two").duplicates, 10);
        // Many flushes merge the files of keys.
        for i in 0..30 {
            send(&c, &format!("more {i}"));
            c.flush().unwrap();
        }
        assert!(world.bucket.is_some() || world.files(".keys").len() <= 9);
        drop((store, c));
        let (_store, c) = world.with_collection(IdRole::Made);
        // A log in a bucket lets time pass between groups.
        world.clock.advance(86_380_000_000);
        assert_eq!(send(&c, "one").duplicates, 10);
        assert_eq!(send(&c, "more 3").duplicates, 10);
        world.clock.advance(30_000_000);
        assert_eq!(send(&c, "one").written, 10);
        assert_eq!(c.stats().events, 330);
    }
}

#[test]
fn too_many_keys_are_refused_and_none_is_forgotten() {
    for mut world in World::each() {
        world.options.keys_max = 5;
        let (_store, c) = world.with_collection(IdRole::Made);
        let send = |key: &str| c.write(Write::new(batch(&c.schema(), &events(0, 1))).with_key(key));
        for i in 0..5 {
            send(&i.to_string()).unwrap();
        }
        assert!(matches!(send("5"), Err(WriteError::Busy(_))));
        assert_eq!(send("0").unwrap().duplicates, 1);
        world.clock.advance(86_400_000_000);
        assert_eq!(send("5").unwrap().written, 1);
    }
}

#[test]
fn ids_of_a_large_batch_are_found_wherever_they_are() {
    for world in World::each() {
        let (_store, c) = world.with_collection(IdRole::Given);
        let numbered = |from: i64, to: i64, n: i64| -> Vec<Event> {
            (from..to).map(|i| Event::new(format!("id-{i}"), n)).collect()
        };
        let write = |events: &[Event]| Write::new(batch(&c.schema(), events));
        // Two segments, two large memory trees and one too small for a filter; ids 2,000 to 3,000 were replaced in
        // each.
        for (from, to, n) in [(0, 3_000, 0), (2_000, 6_000, 1), (5_000, 9_000, 2), (2_000, 3_000, 3), (9_000, 9_100, 4)]
        {
            c.write(write(&numbered(from, to, n)).replacing()).unwrap();
            if n < 2 {
                c.flush().unwrap();
            }
        }
        c.delete(&["id-10".to_owned(), "id-8999".to_owned(), "id-9001".to_owned()]).unwrap();
        let Err(WriteError::Conflict { ids, total }) = c.write(write(&numbered(-50, 9_200, 5))) else {
            panic!("ids that are there were taken again")
        };
        assert_eq!((ids[0].as_str(), total), ("id-0", 9_100 - 3));
        let done = c.write(write(&numbered(-50, 9_200, 5)).replacing()).unwrap();
        assert_eq!((done.written, done.replaced), (9_250, 9_100 - 3));
        let found = content(&c.snapshot());
        assert_eq!(found.len(), 9_250);
        assert!(found.iter().all(|(_, _, n)| *n == 5));
    }
}
