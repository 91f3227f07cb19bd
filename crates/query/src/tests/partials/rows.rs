//! Rows of several partitions, page by page.

use super::super::items::{by_key, sort_keys};
use super::super::world::*;
use super::{Partitions, given_kinds, shipped, steps};
use crate::cursor::Cursor;
use crate::error::QueryError;
use crate::items::{Items, Order, items};
use crate::partial::{MergedRows, PartRows, PartialRows, RowStream, RowsSummary};
use meridian_model::{Seq, SeqLayout};
use proptest::prelude::*;
use std::cmp::Ordering;

const LAYOUT: SeqLayout = SeqLayout::Partitioned;

/// The rows of one partition after a round trip over the wire.
struct Shipped {
    rows: std::vec::IntoIter<PartialRows>,
    summary: RowsSummary,
}

impl Iterator for Shipped {
    type Item = Result<PartialRows, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(Ok)
    }
}

impl RowStream for Shipped {
    fn summary(&self) -> RowsSummary {
        self.summary
    }

    fn at_most(&mut self, _: usize) {}

    fn rest(&mut self) -> usize {
        0
    }
}

fn seq_of(cursor: &mut Cursor) -> &mut Seq {
    match cursor {
        Cursor::Natural { seq, .. } | Cursor::Near { seq, .. } | Cursor::Fields { seq, .. } => seq,
    }
}

/// A cursor with the number that a store of this partition will assign to its event.
fn in_partition(mut cursor: Cursor, part: u8) -> Cursor {
    let seq = seq_of(&mut cursor);
    *seq = LAYOUT.seq(seq.position(), part, SeqLayout::Embedded.ordinal(*seq));
    cursor
}

/// The last cursor of an embedded store that is not after a cursor of a partition.
fn in_store(mut cursor: Cursor, part: u8) -> Cursor {
    let seq = seq_of(&mut cursor);
    let (position, ordinal) = (seq.position(), LAYOUT.ordinal(*seq));
    *seq = match part.cmp(&LAYOUT.partition(*seq)) {
        Ordering::Less => Seq::end_of(position),
        Ordering::Equal => Seq::new(position, ordinal),
        Ordering::Greater => Seq(Seq::new(position, 0).0.saturating_sub(1)),
    };
    cursor
}

fn pieces(rows: &PartialRows) -> Vec<PartialRows> {
    let cursors = rows.cursors.chunks(7).enumerate();
    cursors.map(|(i, c)| PartialRows { batch: rows.batch.slice(i * 7, c.len()), cursors: c.to_vec() }).collect()
}

/// Queries every partition for a page.
fn ask(all: &Partitions, question: &Items) -> Vec<Shipped> {
    let parts = all.parts.iter().enumerate().map(|(i, part)| {
        let after = question.after.clone().map(|cursor| in_store(cursor, i as u8));
        let asked = Items { after, ..question.clone() };
        let mut rows = PartRows::of(&part.collection.snapshot(), &asked, &part.control()).unwrap();
        let given = rows.by_ref().map(|rows| {
            let batch = shipped(&rows.unwrap().to_arrow(&asked.order).unwrap());
            let PartialRows { batch, cursors } = PartialRows::from_arrow(&batch, &asked.order, &part.schema).unwrap();
            let cursors = cursors.into_iter().map(|cursor| in_partition(cursor, i as u8)).collect();
            PartialRows { batch, cursors }
        });
        // In small batches, so that partitions run out of one in the middle of another's.
        let given: Vec<PartialRows> = given.flat_map(|rows| pieces(&rows)).collect();
        let summary = RowsSummary::from_arrow(&shipped(&rows.summary().to_arrow().unwrap())).unwrap();
        assert_eq!(summary, rows.summary());
        Shipped { rows: given.into_iter(), summary }
    });
    parts.collect()
}

/// The ids of all pages, with the total reported by the first page.
fn pages(all: &Partitions, question: &Items) -> (Vec<String>, Option<u64>) {
    let mut question = question.clone();
    let (mut ids, mut matched) = (Vec::new(), None);
    for page in 0.. {
        let mut rows = MergedRows::new(ask(all, &question), &question);
        let mut given = 0;
        for hits in rows.by_ref() {
            let hits = hits.unwrap();
            assert!(hits.batch.rows() > 0 && hits.batch.rows() == hits.seqs.len());
            assert!(hits.distances.as_ref().is_none_or(|d| d.len() == hits.seqs.len()));
            given += hits.seqs.len();
            ids.extend((0..hits.batch.rows()).map(|row| hits.batch.id_of(row, hits.seqs[row])));
        }
        assert!(question.limit.is_none_or(|limit| given <= limit));
        if page == 0 {
            matched = rows.number_matched();
        }
        let Some(next) = rows.next_page() else { break };
        assert_eq!(Some(given), question.limit, "a page that is not full has a next one");
        question.after = Some(next.clone());
        assert!(page < 10_000);
    }
    (ids, matched)
}

/// Checks that these are the expected events in an order that the query allows: ties may come in any.
fn check(
    all: &Partitions,
    ids: &[String],
    mut expected: Vec<&Event>,
    k: Option<usize>,
    order: impl Fn(&Event, &Event) -> Ordering,
) -> Result<(), TestCaseError> {
    expected.sort_by(|a, b| order(a, b));
    let events = all.events();
    let given: Vec<&Event> = ids.iter().map(|id| events[id.as_str()]).collect();
    prop_assert_eq!(given.len(), k.map_or(expected.len(), |k| k.min(expected.len())));
    let mut once: Vec<&str> = ids.iter().map(String::as_str).collect();
    once.sort_unstable();
    once.dedup();
    prop_assert_eq!(once.len(), ids.len(), "an event came twice");
    for (given, expected) in given.iter().zip(&expected) {
        prop_assert_eq!(order(given, expected), Ordering::Equal, "{:?} where {:?} belongs", given, expected);
    }
    prop_assert!(given.iter().all(|event| expected.iter().any(|e| e.id == event.id)), "an event that does not match");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn merged_rows_are_those_of_all_events(
        kind in given_kinds(),
        count in 1usize..6,
        steps in steps(),
        asked in prop::collection::vec((filters(), 1usize..60), 1..4),
        (lon, lat, k) in (lons(), lats(), prop::option::of(1usize..40)),
        keys in sort_keys(),
    ) {
        let all = Partitions::after(kind, count, &steps);
        for (filter, limit) in asked {
            let predicate = filter.predicate(&all.whole);
            let question = Items { predicate, limit: Some(limit), ..Items::all(&all.whole.schema) };
            let expected = filter.matching(&all.whole);

            let key = |event: &Event| all.whole.key(event);
            let natural = |a: &Event, b: &Event| key(a).cmp(&key(b));
            let (ids, matched) = pages(&all, &question);
            prop_assert_eq!(matched, None);
            check(&all, &ids, expected.clone(), None, natural)?;
            check(&all, &pages(&all, &Items { limit: None, ..question.clone() }).0, expected.clone(), None, natural)?;

            let placed: Vec<&Event> = expected.iter().copied().filter(|e| e.distance_m(lon, lat).is_finite()).collect();
            let near = Items { order: Order::Near { lon, lat, k }, ..question.clone() };
            let (ids, matched) = pages(&all, &near);
            check(&all, &ids, placed, k, |a, b| a.distance_m(lon, lat).total_cmp(&b.distance_m(lon, lat)))?;
            let whole = items(&all.whole.collection.snapshot(), &near, &all.whole.control()).unwrap().number_matched();
            prop_assert!(matched.is_none_or(|matched| whole.is_none_or(|whole| matched == whole)));

            let by_fields = Items { order: Order::Fields(keys.clone()), ..question };
            let order = |a: &Event, b: &Event| {
                keys.iter().map(|key| by_key(a, b, key, kind)).find(|o| *o != Ordering::Equal).unwrap_or(Ordering::Equal)
            };
            check(&all, &pages(&all, &by_fields).0, expected, None, order)?;
        }
    }

    #[test]
    fn one_partition_gives_what_the_snapshot_gives(
        kind in kinds(),
        ops in ops(),
        (filter, limit) in (filters(), 1usize..60),
        keys in sort_keys(),
        (lon, lat) in (lons(), lats()),
    ) {
        let world = World::after(kind, &ops);
        let snapshot = world.collection.snapshot();
        let question = Items { predicate: filter.predicate(&world), limit: Some(limit), ..Items::all(&world.schema) };
        for order in [Order::Natural, Order::Near { lon, lat, k: None }, Order::Fields(keys)] {
            let question = Items { order, ..question.clone() };
            let mut rows = items(&snapshot, &question, &world.control()).unwrap();
            let part = PartRows::of(&snapshot, &question, &world.control()).unwrap();
            let mut merged = MergedRows::new([part], &question);
            let drain = |rows: &mut dyn Iterator<Item = Result<crate::Hits, QueryError>>| {
                let mut all: (Vec<Seq>, Vec<f64>) = Default::default();
                for hits in rows {
                    let hits = hits.unwrap();
                    all.0.extend(hits.seqs);
                    all.1.extend(hits.distances.unwrap_or_default());
                }
                all
            };
            prop_assert_eq!(drain(&mut merged), drain(&mut rows));
            prop_assert_eq!(merged.next_page(), rows.next_page());
            prop_assert_eq!(merged.number_matched(), rows.number_matched());
            prop_assert_eq!(merged.is_over(), rows.is_over());
        }
    }
}
