//! A store over a bucket behaves like one over a folder. A reader of the bucket shows the folder's content at the time
//! of the flush.

use super::{PROCESSES, seams};
use crate::world::{Event, World, batch, content, options, schema};
use meridian_model::{IdRole, Seq};
use meridian_store::seams::{Random, SeededRandom};
use meridian_store::{Collection, Settings, Store, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The same collection over both.
struct Pair {
    worlds: [World; 2],
    open: Option<[(Store, Arc<Collection>); 2]>,
    role: IdRole,
}

impl Pair {
    fn new(role: IdRole) -> Pair {
        let worlds = World::each();
        let open = worlds.each_ref().map(|world| world.with_collection(role));
        Pair { worlds, open: Some(open), role }
    }

    fn both(&self) -> [&Collection; 2] {
        self.open.as_ref().unwrap().each_ref().map(|(_, c)| c.as_ref())
    }

    /// Checks that both return the same for one request, and returns that.
    fn ask<T: PartialEq + std::fmt::Debug>(&self, what: &str, ask: impl Fn(&Collection) -> T) -> T {
        let [folder, bucket] = self.both().map(ask);
        assert_eq!(folder, bucket, "{what}");
        folder
    }

    fn reopen(&mut self, clean: bool) {
        let open = self.open.take().unwrap();
        if clean {
            open.iter().for_each(|(store, _)| store.close().unwrap());
        }
        drop(open);
        self.open = Some(self.worlds.each_ref().map(|world| world.with_collection(self.role)));
    }
}

#[test]
fn a_bucket_answers_as_a_folder_does() {
    for seed in 0..40 {
        let random = SeededRandom::new(seed);
        let below = |n: u64| random.next_u64() % n;
        let mut pair = Pair::new(if seed % 3 == 0 { IdRole::Made } else { IdRole::Given });
        let bucket = Arc::new(pair.worlds[1].bucket.clone().unwrap());
        PROCESSES.fetch_add(1, Ordering::Relaxed);
        let reader = Store::open_read_only(options(), seams(), bucket).unwrap();
        let (mut tokens, mut flushed): (Vec<Seq>, _) = (Vec::new(), content(&pair.both()[0].snapshot()));
        for step in 0..40 {
            let from = below(600) as i64;
            match below(12) {
                0..=4 => {
                    let events: Vec<Event> =
                        (from..from + 1 + below(120) as i64).map(|n| Event::new(format!("e{n}"), n)).collect();
                    let (key, replace) = (below(3) == 0, below(2) == 0);
                    let _ = pair.ask("a write", |c| {
                        let mut write = Write::new(batch(&c.schema(), &events));
                        if key {
                            write = write.with_key(format!("key {}", from % 7));
                        }
                        let written = c.write(if replace { write.replacing() } else { write });
                        written.map_err(|error| error.to_string())
                    });
                }
                5 | 6 => {
                    let ids: Vec<String> = (from..from + 30).map(|n| format!("e{n}")).collect();
                    pair.ask("a deletion by id", |c| c.delete(&ids).unwrap());
                }
                7 => {
                    pair.ask("a deletion of rows", |c| {
                        let snapshot = c.snapshot();
                        let rows: Vec<_> = snapshot.parts.iter().map(|part| (part.clone(), vec![0])).collect();
                        // The first row of a part is the same in both, because parts are built alike.
                        c.delete_rows(&rows).unwrap()
                    });
                }
                8 => {
                    pair.both().iter().for_each(|c| c.flush().unwrap());
                    flushed = content(&pair.both()[0].snapshot());
                    reader.refresh().unwrap();
                }
                9 => pair.both().iter().for_each(|c| {
                    c.flush().unwrap();
                    c.maintain().unwrap();
                }),
                10 => pair.reopen(below(2) == 0),
                _ => tokens.push(pair.both()[0].snapshot().seq),
            }
            if matches!(step % 5, 4) {
                pair.ask("everything", |c| (content(&c.snapshot()), content(&c.history()), c.stats().events));
                for token in &tokens {
                    pair.ask("an earlier snapshot", |c| c.snapshot_at(*token).map(|s| content(&s)).ok());
                }
            }
        }
        pair.both().iter().for_each(|c| c.flush().unwrap());
        reader.refresh().unwrap();
        let last = pair.ask("everything", |c| content(&c.snapshot()));
        let read = reader.collection("t", "c").unwrap();
        assert_eq!(content(&read.snapshot()), last, "seed {seed}: {} events before", flushed.len());
        for (store, _) in pair.open.as_ref().unwrap() {
            assert_eq!(store.check(), [], "seed {seed}");
        }
    }
}

#[test]
fn the_schema_of_the_worlds_is_the_same() {
    let pair = Pair::new(IdRole::Made);
    assert_eq!(*pair.ask("the schema", Collection::schema), schema(IdRole::Made));
    assert_eq!(pair.ask("the settings", Collection::settings), Settings::default());
}
