//! Every query has the same result, however many partitions there are.

use super::{KINDS, Kind, NUMBER, OBJECT, PARTITIONS, SPEED, TIME, World, all, event, events, numbers, sorted};
use crate::{Collection, Near, ReadPoint, ReadResult, RowSink, Write};
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{Batch, BatchBuilder, Layout, Positions, Projection, Schema, Seq, Seqs};
use meridian_query::{
    Aggregate, ByValue, Control, Cursor, Density, Function, Items, Order, Passages, SortKey, Tile, Track, Windows,
};
use proptest::prelude::*;

/// A step applied to both collections.
#[derive(Debug, Clone)]
enum Step {
    Write(Vec<i64>),
    Delete(Vec<i64>),
    /// By a filter: all below this number.
    DeleteBelow(i64),
    Flush,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let some = || prop::collection::btree_set(0..400i64, 1..60).prop_map(|set| set.into_iter().collect::<Vec<_>>());
    prop_oneof![
        6 => some().prop_map(Step::Write),
        1 => some().prop_map(Step::Delete),
        1 => (0..40i64).prop_map(Step::DeleteBelow),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

/// Makes a world after some steps. With made ids each number is written once, so that it names one event.
fn world(kind: Kind, steps: &[Step]) -> World {
    let mut world = World::new(kind);
    let mut taken = std::collections::BTreeSet::new();
    for step in steps {
        match step {
            Step::Write(numbers) => {
                let fresh: Vec<i64> = numbers.iter().copied().filter(|n| taken.insert(*n) || kind.given).collect();
                if !fresh.is_empty() {
                    world.write(fresh);
                }
            }
            Step::Delete(numbers) if kind.given => {
                let ids: Vec<String> = numbers.iter().map(|n| format!("id {n}")).collect();
                let deleted = world.both().map(|collection| collection.delete(&ids).unwrap().deleted);
                assert_eq!(deleted[0], deleted[1]);
            }
            Step::Delete(_) => {}
            Step::DeleteBelow(n) => {
                let predicate = predicate(Some(&format!("n < {n}")), &world.one.schema());
                let delete = |collection: &dyn Collection| {
                    collection.delete_matching(&predicate, ReadPoint::history(), &world.control()).unwrap().deleted
                };
                assert_eq!(delete(&*world.one), delete(&*world.many));
            }
            Step::Flush => world.flush(),
            Step::Reopen => world.reopen(),
        }
    }
    world
}

fn predicate(text: Option<&str>, schema: &Schema) -> Predicate {
    text.map_or_else(Predicate::all, |text| Predicate::bind(&parse_text(text).unwrap(), schema).unwrap())
}

/// Returns all pages of a query on the snapshot of the first: the numbers of each, and the known total.
fn pages(collection: &dyn Collection, question: &Items, control: &Control) -> Vec<(Vec<i64>, Option<u64>)> {
    let (mut question, mut at, mut pages) = (question.clone(), ReadPoint::newest(), Vec::new());
    loop {
        let mut rows = collection.items(at.clone(), &question, control).unwrap();
        let mut page = Vec::new();
        for hits in rows.by_ref() {
            page.extend(numbers(&hits.unwrap().batch));
        }
        assert_eq!(rows.head().seq.len(), collection.position().len());
        pages.push((page, rows.number_matched()));
        let Some(next) = rows.next_page() else { return pages };
        // Encoded as in a page token.
        question.after = Cursor::from_bytes(&next.to_bytes());
        at.seq = Some(rows.head().seq.clone());
        assert!(pages.len() < 1_000, "the pages have no end");
    }
}

/// A sink that records numbers, distances and totals.
#[derive(Default)]
struct Noted {
    total: u64,
    rows: Vec<(i64, Option<f64>)>,
    made: bool,
}

impl RowSink for Noted {
    fn begin(&mut self, _: &Schema, layout: &Layout, total: u64, _: usize) -> Projection {
        self.total = total;
        Projection::all(layout)
    }

    fn row(&mut self, batch: &Batch, row: usize, seq: Option<Seq>, distance_m: Option<f64>) {
        self.made |= seq.is_some();
        self.rows.push((numbers(&batch.slice(row, 1))[0], distance_m));
    }
}

fn noted(pass: impl FnOnce(&mut Noted)) -> Noted {
    let mut sink = Noted::default();
    pass(&mut sink);
    sink
}

/// Returns all changes after a place, and where the reader is then.
fn changes(collection: &dyn Collection, after: &Seqs, max: usize) -> (Vec<i64>, Seqs, u64) {
    let mut changes = collection.changes_after(after, max, 1_000).unwrap();
    let mut found = Vec::new();
    while let Some((batch, seqs)) = changes.read().unwrap() {
        assert_eq!(batch.rows(), seqs.len());
        found.extend(numbers(&batch));
    }
    (found, changes.upto(), changes.left_out())
}

macro_rules! same {
    ($world:expr, $ask:expr) => {{
        let ask = $ask;
        prop_assert_eq!(ask(&*$world.one), ask(&*$world.many));
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn answers_do_not_depend_on_partitions(
        kind in prop::sample::select(KINDS.to_vec()),
        steps in prop::collection::vec(step(), 1..12),
        filter in prop::sample::select(vec![None, Some("speed > 30"), Some("ship = 'ship 3'"), Some("n < 100 or ship is null")]),
        limit in prop::sample::select(vec![1usize, 7, 1_000]),
        (lon, lat) in (-180.0..180.0f64, -80.0..80.0f64),
    ) {
        let world = world(kind, &steps);
        let (schema, control) = (world.one.schema(), world.control());
        let predicate = predicate(filter, &schema);
        same!(world, |c: &dyn Collection| (c.stats().events, c.schema()));
        prop_assert_eq!(world.many.settings().partitions, PARTITIONS);

        let all_of = Items { predicate: predicate.clone(), ..Items::all(&schema) };
        for history in [false, true] {
            let at = ReadPoint { history, ..ReadPoint::default() };
            same!(world, |c: &dyn Collection| sorted(all(c, at.clone(), &all_of, &control)));
            same!(world, |c: &dyn Collection| c.count(at.clone(), &predicate, u64::MAX, &control).unwrap());
        }
        let orders = [
            Order::Near { lon, lat, k: None },
            Order::Near { lon, lat, k: Some(11) },
            Order::Fields(SortKey::parse("-n", &schema).unwrap()),
            Order::Fields(SortKey::parse("ship,-speed,n", &schema).unwrap()),
        ];
        for order in orders {
            let question = Items { order, limit: Some(limit), ..all_of.clone() };
            same!(world, |c: &dyn Collection| pages(c, &question, &control).into_iter().map(|page| page.0).collect::<Vec<_>>());
            same!(world, |c: &dyn Collection| c.explain(ReadPoint::newest(), &question, &control).unwrap().value.returned);
        }
        // Neighbours in natural order may share a key; then their numbers decide, which differ.
        let natural = Items { limit: Some(limit), ..all_of.clone() };
        same!(world, |c: &dyn Collection| {
            let pages = pages(c, &natural, &control);
            let sizes: Vec<usize> = pages.iter().map(|page| page.0.len()).collect();
            (sizes, sorted(pages.into_iter().flat_map(|page| page.0).collect()))
        });

        let cuts = world.many.cuts(ReadPoint::newest(), 5, &control).unwrap();
        prop_assert!(cuts.len() < 5);
        let mut together = Vec::new();
        for part in 0..=cuts.len() {
            let after = part.checked_sub(1).map(|before| cuts[before].clone());
            let asked = Items { after, until: cuts.get(part).cloned(), ..all_of.clone() };
            together.extend(all(&*world.many, ReadPoint::newest(), &asked, &control));
        }
        prop_assert_eq!(sorted(together), sorted(all(&*world.many, ReadPoint::newest(), &all_of, &control)));

        for (by, windows) in [(vec![], None), (vec![OBJECT], None), (vec![OBJECT, NUMBER], Some(Windows::parse("PT6H", "UTC").unwrap()))] {
            let names = "count,sum(n),avg(speed),min(n),max(speed),percentile(speed,90),distinct(n),top(n,3)";
            let functions = Function::parse(names, &schema).unwrap();
            let question = Aggregate { predicate: predicate.clone(), functions, windows, by, empty: false };
            same!(world, |c: &dyn Collection| c.aggregate(ReadPoint::newest(), &question, &control).unwrap().value.groups);
        }
        let density = Density { predicate: predicate.clone(), bbox: [-180.0, -90.0, 180.0, 90.0], width: 36, height: 18 };
        same!(world, |c: &dyn Collection| c.density(ReadPoint::newest(), &density, &control).unwrap().value.counts);
        for counts in [false, true] {
            // Only one property; made ids are written as well.
            let fields = Some(vec![NUMBER, SPEED]);
            let tile = Tile { predicate: predicate.clone(), z: 1, row: 0, column: 1, layer: "l".into(), fields, density: counts, average: None };
            same!(world, |c: &dyn Collection| {
                let tile = c.tile(ReadPoint::newest(), &tile, &control).unwrap().value;
                (tile.kind, tile.events, (counts || kind.given).then_some(tile.bytes.len()))
            });
        }
        if kind.object {
            let track = Track { object: "ship 1".into(), predicate: predicate.clone(), simplify_m: Some(1_000_000.0) };
            same!(world, |c: &dyn Collection| {
                let track = c.track(ReadPoint::history(), &track, &control).unwrap().value;
                (track.events, track.points.into_iter().map(|p| (p.time, p.lon.to_bits(), p.lat.to_bits())).collect::<Vec<_>>())
            });
            for after in [None, Some(ByValue::Text("ship 1".into()))] {
                let passages = Passages { predicate: predicate.clone(), after, limit: 2 };
                same!(world, |c: &dyn Collection| {
                    let found = c.passages(ReadPoint::history(), &passages, &control).unwrap().value;
                    (found.passages, found.more)
                });
            }
        }
        for (skip, count) in [(0, 5), (3, 20)] {
            let near = Near { lon, lat, radius_m: 5_000_000.0, skip, limit: count };
            let (one, many) = (&world.one, &world.many);
            let [a, b] = [one, many].map(|c| noted(|sink| assert!(c.near(&near, None, sink).unwrap())));
            prop_assert_eq!((a.total, a.rows, a.made), (b.total, b.rows, b.made));
        }
        same!(world, |c: &dyn Collection| {
            let (mut seen, mut total) = (Vec::new(), None);
            while total.is_none_or(|total| (seen.len() as u64) < total) {
                let page = noted(|sink| c.page(seen.len() as u64, 13, &control, sink).unwrap());
                total = Some(page.total);
                seen.extend(page.rows.into_iter().map(|row| row.0));
            }
            sorted(seen)
        });
        let sampled = noted(|sink| assert_eq!(world.many.sample(&*meridian_store::seams::Seams::real().random, &control, sink).unwrap(), world.many.stats().events > 0));
        prop_assert_eq!(sampled.rows.len() as u64, world.many.stats().events.min(1));
    }

    #[test]
    fn each_event_has_its_id_and_is_read_once_as_a_change(
        kind in prop::sample::select(KINDS.to_vec()),
        steps in prop::collection::vec(step(), 1..8),
        more in prop::collection::btree_set(400..500i64, 1..50),
        max in prop::sample::select(vec![1usize, 10, 10_000]),
    ) {
        let world = world(kind, &steps);
        let control = world.control();
        let schema = world.many.schema();
        // Ids identify their events, in whichever partition.
        let mut ids = std::collections::BTreeSet::new();
        for hits in world.many.items(ReadPoint::history(), &Items::all(&schema), &control).unwrap() {
            let hits = hits.unwrap();
            for (row, n) in numbers(&hits.batch).into_iter().enumerate() {
                let id = hits.batch.id_of(row, hits.seqs[row]);
                let ReadResult { head, value } = world.many.event(&id).unwrap();
                let (batch, seq) = value.expect("an event of its id");
                prop_assert_eq!((numbers(&batch), seq), (vec![n], hits.seqs[row]));
                prop_assert!(head.seq.covers(&Seqs::default().past(Seq(0))) && head.seq.len() == usize::from(PARTITIONS));
                prop_assert!(ids.insert(id), "two events of one id");
            }
        }
        for absent in ["id of nobody", "zzzzzzzzzzzzz", "0000000000000", ""] {
            prop_assert!(world.many.event(absent).unwrap().value.is_none());
        }

        // From the beginning, in lists of any size: every existing event, once.
        let (mut at, mut seen) = (world.many.position().map(|_| Seq(0)), Vec::new());
        loop {
            let (some, upto, left_out) = changes(&*world.many, &at, max);
            prop_assert!(upto.covers(&at));
            seen.extend(some);
            at = upto;
            if left_out == 0 {
                break;
            }
        }
        let history = |c: &dyn Collection| sorted(all(c, ReadPoint::history(), &Items::all(&c.schema()), &control));
        prop_assert_eq!(sorted(seen), history(&*world.many));
        prop_assert_eq!(&at, &world.many.position().ends());
        // An up-to-date reader gets new events, and nothing else.
        let before = world.many.position();
        world.many.write(Write::new(events(&*world.many, more.iter().copied()))).unwrap();
        let more: Vec<i64> = more.into_iter().collect();
        prop_assert_eq!(sorted(changes(&*world.many, &at, 10_000).0), more.clone());
        let after = world.many.position();
        prop_assert!(after.covers(&before) && !before.covers(&after));
        let mut between = world.many.changes_between(&before, &after, 10_000).unwrap();
        let mut found = Vec::new();
        while let Some((batch, _)) = between.read().unwrap() {
            found.extend(numbers(&batch));
        }
        prop_assert_eq!(sorted(found), more);
    }

    #[test]
    fn the_event_before_is_the_same_where_objects_have_a_partition(
        numbers_of in prop::collection::vec(prop::collection::btree_set(0..200i64, 1..20), 2..6),
    ) {
        let kind = Kind { given: false, object: true, latest: false };
        let world = World::new(kind);
        let mut taken = std::collections::BTreeSet::new();
        for some in &numbers_of {
            let fresh: Vec<i64> = some.iter().copied().filter(|n| taken.insert(*n)).collect();
            if !fresh.is_empty() {
                world.write(fresh);
            }
        }
        let before = |collection: &dyn Collection| {
            let prior = collection.prior_events();
            let mut found = std::collections::BTreeMap::new();
            let mut changes = collection.changes_between(&Positions::default(), &collection.position(), 10_000).unwrap();
            while let Some((batch, seqs)) = changes.read().unwrap() {
                for (row, seq) in seqs.iter().enumerate() {
                    let mut columns = Projection::none(batch.layout());
                    columns.add(batch.layout().field(NUMBER));
                    let event = prior.before(&batch, row, Seq(seq.0 & !0xffff), &columns).unwrap();
                    let event = event.map(|(batch, _)| numbers(&batch)[0]);
                    found.insert(numbers(&batch)[row], (event, prior.object(&batch, row).is_some()));
                }
            }
            found
        };
        prop_assert_eq!(before(&*world.one), before(&*world.many));
    }
}

#[test]
fn fields_that_are_added_reach_every_partition() {
    let mut world = World::new(KINDS[0]);
    world.write(0..50);
    let field = meridian_model::Field {
        name: "crew".to_owned(),
        kind: meridian_model::FieldType::Int,
        required: false,
        title: None,
    };
    for collection in world.both() {
        collection.change(vec![field.clone()], None).unwrap();
    }
    for collection in world.both() {
        let mut builder = BatchBuilder::new(collection.schema());
        for n in 50..80 {
            builder.set(SPEED + 1, meridian_model::builder::Value::Int(n)).unwrap();
            event(&mut builder, n);
        }
        collection.write(Write::new(builder.finish().unwrap())).unwrap();
    }
    for _ in 0..2 {
        let schema = world.many.schema();
        assert_eq!(schema, world.one.schema());
        let question = Items { predicate: predicate(Some("crew >= 60"), &schema), ..Items::all(&schema) };
        let found = sorted(all(&*world.many, ReadPoint::newest(), &question, &world.control()));
        assert_eq!(found, (60..80).collect::<Vec<_>>());
        world.reopen();
    }
    assert_eq!(world.many.schema().fields[TIME].name, "at");
}

#[test]
fn a_page_of_the_nearest_is_near_or_refused() {
    let world = World::new(KINDS[0]);
    let most = 1 << 14;
    // Off the middle between two events of a parallel.
    let near = |skip, limit| Near { lon: 3.003, lat: 5.0, radius_m: 21_000_000.0, skip, limit };
    let page = |collection: &dyn Collection, near: Near| {
        let mut sink = Noted::default();
        collection.near(&near, None, &mut sink).map(|_| (sink.total, sink.rows))
    };
    world.write(0..most);
    // After all events there is nothing, however far.
    for (skip, limit) in [(most as usize - 5, 10), (most as usize, 10), (usize::MAX, usize::MAX)] {
        let near = near(skip, limit);
        assert_eq!(page(&*world.many, near).unwrap(), page(&*world.one, near).unwrap());
    }
    world.write(most..most + 100);
    let (total, rows) = page(&*world.many, near(most as usize - 5, 5)).unwrap();
    assert_eq!((total, rows.len()), (most as u64 + 100, 5));
    assert!(page(&*world.many, near(most as usize - 5, 6)).is_err());
}
