//! Every query through a gateway has the same result as at the owner's own backend.

use super::world::{PATIENCE, Ship, TENANT, World, control, fleet, ships};
use meridian_backend::{Backend, Collection, Near, Partitioned, ReadPoint, ReadResult, RowSink, Write};
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{Batch, Field, FieldType, IdRole, Layout, Positions, Projection, Schema, Seq, Seqs};
use meridian_query::{
    Aggregate, ByValue, Cursor, Density, Function, Items, Order, Passages, QueryError, SortKey, Stats, Tile, Track,
    Windows,
};
use proptest::prelude::*;
use std::sync::Arc;

fn ship() -> impl Strategy<Value = Ship> {
    let place = prop::option::weighted(0.9, (-180.0..180.0f64, -85.0..85.0f64));
    let values = (prop::option::of(-1e6..1e6f64), prop::option::of(any::<i64>()));
    (0..400u32, 0..6u8, values, 1_600_000_000..1_600_400_000i64, place)
        .prop_map(|(id, object, (speed, crew), second, place)| Ship { id, object, speed, crew, second, place })
}

/// Ships with distinct ids, since a batch holds each id once.
fn batch() -> impl Strategy<Value = Vec<Ship>> {
    prop::collection::vec(ship(), 1..80).prop_map(|mut ships| {
        ships.sort_by_key(|ship| ship.id);
        ships.dedup_by_key(|ship| ship.id);
        ships
    })
}

fn filters() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        Just(None),
        Just(Some("speed > 0")),
        Just(Some("ship = 'ship3' or crew is null")),
        Just(Some("S_INTERSECTS(geom, BBOX(-40, -30, 90, 60))")),
        Just(Some("at >= TIMESTAMP('2020-09-15T00:00:00Z') and ship like 'ship%'")),
    ]
}

fn predicate(text: Option<&str>, schema: &Schema) -> Predicate {
    text.map_or_else(Predicate::all, |text| Predicate::bind(&parse_text(text).unwrap(), schema).unwrap())
}

/// All rows of a page: ids, numbers, distances and columns as text, and how the page ends.
type Page = (Vec<String>, Option<Cursor>, Option<u64>, u64, Seqs);

fn page(collection: &dyn Collection, at: ReadPoint, items: &Items) -> Page {
    let control = control(PATIENCE);
    let mut rows = collection.items(at, items, &control).unwrap();
    let mut all = Vec::new();
    for hits in rows.by_ref() {
        let hits = hits.unwrap();
        for (row, seq) in hits.seqs.iter().enumerate() {
            let distance = hits.distances.as_ref().map(|d| d[row]);
            all.push(format!(
                "{} {seq} {distance:?} {:?}",
                hits.batch.id_of(row, *seq),
                hits.batch.slice(row, 1).columns()
            ));
        }
    }
    (all, rows.next_page().cloned(), rows.number_matched(), rows.stats().events_matched, rows.head().seq.clone())
}

/// Returns all pages of a query, on the snapshot of the first.
fn pages(collection: &dyn Collection, items: &Items) -> Vec<Page> {
    let (mut items, mut at, mut pages) = (items.clone(), ReadPoint::newest(), Vec::new());
    loop {
        let page = page(collection, at.clone(), &items);
        (items.after, at.seq) = (page.1.clone(), Some(page.4.clone()));
        let over = page.1.is_none();
        pages.push(page);
        if over {
            return pages;
        }
    }
}

/// Returns a result without the parts that differ from run to run.
fn timeless<T: std::fmt::Debug>(
    read: Result<ReadResult<T>, QueryError>,
    stats: impl Fn(&mut T) -> &mut Stats,
) -> String {
    match read {
        Err(error) => format!("{error:?}"),
        Ok(ReadResult { head, mut value }) => {
            let stats = stats(&mut value);
            (stats.plan_us, stats.scan_us) = (0, 0);
            format!("{:?} {} {} {value:?}", head.seq, head.rows, head.missing.len())
        }
    }
}

/// A sink that records its rows.
#[derive(Default)]
struct Noted(Vec<String>);

impl RowSink for Noted {
    fn begin(&mut self, _: &Schema, layout: &Layout, total: u64, rows: usize) -> Projection {
        self.0.push(format!("{total} {rows}"));
        Projection::all(layout)
    }

    fn row(&mut self, batch: &Batch, row: usize, seq: Option<Seq>, distance_m: Option<f64>) {
        self.0.push(format!("{seq:?} {distance_m:?} {:?}", batch.slice(row, 1).columns()));
    }
}

fn noted(pass: impl FnOnce(&mut Noted)) -> Vec<String> {
    let mut sink = Noted::default();
    pass(&mut sink);
    sink.0
}

/// Asserts that both backends return the same.
macro_rules! same {
    ($world:expr, $ask:expr) => {{
        let (theirs, ours) = &$world;
        let ask = $ask;
        prop_assert_eq!(ask(theirs.as_ref()), ask(ours.as_ref()));
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn answers_are_those_of_the_owner(
        batches in prop::collection::vec(batch(), 1..4),
        given in any::<bool>(),
        partitions in prop_oneof![Just(1u16), Just(4)],
        in_parts in any::<bool>(),
        filter in filters(),
        limit in prop_oneof![Just(1usize), Just(7), Just(1000)],
        lon in -180.0..180.0f64,
        lat in -80.0..80.0f64,
    ) {
        let world = World::new();
        let id = if given { IdRole::Given } else { IdRole::Made };
        let both = world.partitioned("ships", id, partitions);
        let mut written = None;
        for batch in &batches {
            // Half of the writes go through the gateway.
            let write = Write::new(ships(&both.1.schema(), batch)).replacing();
            let first = both.1.write(write);
            let again = both.0.write(Write::new(ships(&both.0.schema(), &batch[..1])).replacing());
            prop_assert_eq!(first.is_ok(), true, "{:?}", first);
            prop_assert!(again.is_ok());
            written = written.or(first.ok());
        }
        let schema = both.0.schema();
        let predicate = predicate(filter, &schema);
        let within = || control(PATIENCE);
        // A gateway queries partition by partition where several servers have them.
        let both = match in_parts && partitions > 1 {
            true => {
                let part = |number: u16| both.1.part(number.into()).unwrap().unwrap();
                let parts = (0..partitions).map(part).collect();
                prop_assert!(both.1.part(partitions.into()).unwrap().is_none());
                (both.0, Arc::new(Partitioned::new(parts)) as Arc<dyn Collection>)
            }
            false => both,
        };

        same!(both, |c: &dyn Collection| (c.schema(), c.settings(), c.position(), c.oldest(), c.created(), c.name().to_owned()));
        // With a new description: the owner was written to without the gateway.
        let fresh = world.remote.collection(TENANT, "ships").unwrap().unwrap();
        let (theirs, ours) = (both.0.stats(), fresh.stats());
        prop_assert_eq!((theirs.events, theirs.bounds, theirs.position), (ours.events, ours.bounds, ours.position));

        let orders = [
            Order::Natural,
            Order::Near { lon, lat, k: None },
            Order::Near { lon, lat, k: Some(11) },
            Order::Fields(SortKey::parse("-speed,ship", &schema).unwrap()),
        ];
        for order in orders {
            let items = Items { predicate: predicate.clone(), order, limit: Some(limit), ..Items::all(&schema) };
            same!(both, |c: &dyn Collection| pages(c, &items));
            same!(both, |c: &dyn Collection| c.explain(ReadPoint::newest(), &items, &within()).unwrap().value.returned);
        }
        let all = Items { predicate: predicate.clone(), ..Items::all(&schema) };
        same!(both, |c: &dyn Collection| page(c, ReadPoint::newest(), &all));
        same!(both, |c: &dyn Collection| c.cuts(ReadPoint::newest(), 4, &within()).unwrap());
        for cut in both.0.cuts(ReadPoint::newest(), 4, &within()).unwrap() {
            let part = Items { until: Some(cut), ..all.clone() };
            same!(both, |c: &dyn Collection| page(c, ReadPoint::newest(), &part));
        }
        same!(both, |c: &dyn Collection| c.count(ReadPoint::newest(), &predicate, u64::MAX, &within()).unwrap());
        same!(both, |c: &dyn Collection| c.count(ReadPoint::newest(), &predicate, 0, &within()).unwrap());

        let by = [None, schema.field_index("ship")];
        let windows = [None, Some(Windows::parse("PT6H", "UTC").unwrap())];
        for (by, windows) in by.into_iter().zip(windows) {
            let functions = Function::parse("count,sum(speed),avg(speed),min(crew),max(crew),sum(crew)", &schema).unwrap();
            let question = Aggregate { predicate: predicate.clone(), functions, windows, by: by.into_iter().collect(), empty: by.is_none() };
            same!(both, |c: &dyn Collection| timeless(c.aggregate(ReadPoint::newest(), &question, &within()), |a| &mut a.stats));
        }
        let density = Density { predicate: predicate.clone(), bbox: [-180.0, -90.0, 180.0, 90.0], width: 36, height: 18 };
        same!(both, |c: &dyn Collection| timeless(c.density(ReadPoint::newest(), &density, &within()), |a| &mut a.stats));
        for density in [false, true] {
            let tile = Tile { predicate: predicate.clone(), z: 1, row: 0, column: 1, layer: "ships".into(), fields: None, density, average: None };
            same!(both, |c: &dyn Collection| timeless(c.tile(ReadPoint::newest(), &tile, &within()), |a| &mut a.stats));
        }
        let track = Track { object: "ship1".into(), predicate: predicate.clone(), simplify_m: Some(1000.0) };
        same!(both, |c: &dyn Collection| timeless(c.track(ReadPoint::history(), &track, &within()), |a| &mut a.stats));
        for after in [None, Some(ByValue::Text("ship1".into()))] {
            let passages = Passages { predicate: predicate.clone(), after, limit: 3 };
            same!(both, |c: &dyn Collection| timeless(c.passages(ReadPoint::history(), &passages, &within()), |a| &mut a.stats));
        }
        let id = if given { format!("id{}", batches[0][0].id) } else { written.map_or_else(String::new, |written| written.first.to_id()) };
        for id in [id.as_str(), "absent"] {
            same!(both, |c: &dyn Collection| format!("{:?}", c.event(id).map(|read| read.value.map(|(b, s)| (s, format!("{:?}", b.columns()))))));
            same!(both, |c: &dyn Collection| noted(|sink| assert_eq!(c.find(id, sink).unwrap(), id != "absent")));
        }
        let near = Near { lon, lat, radius_m: 5_000_000.0, skip: 2, limit: 10 };
        same!(both, |c: &dyn Collection| noted(|sink| assert!(c.near(&near, None, sink).unwrap())));
        same!(both, |c: &dyn Collection| noted(|sink| c.page(3, 20, &within(), sink).unwrap()));
        same!(both, |c: &dyn Collection| {
            let mut changes = c.changes_between(&Positions::default(), &c.position(), 50).unwrap();
            let (mut all, left_out) = (Vec::new(), changes.left_out());
            while let Some((batch, seqs)) = changes.read().unwrap() {
                let text = |row| format!("{:?}", batch.slice(row, 1).columns());
                all.extend(seqs.iter().enumerate().map(|(row, seq)| (*seq, text(row))));
            }
            (all, left_out, changes.upto())
        });
        same!(both, |c: &dyn Collection| {
            let (mut changes, mut found) = (c.changes_after(&c.position().map(|_| Seq(0)), 1000, 1024).unwrap(), Vec::new());
            let columns = Projection::all(&Layout::of(&schema));
            while let Some((batch, seqs)) = changes.read().unwrap() {
                let prior = c.prior_events();
                for (row, seq) in seqs.iter().enumerate() {
                    assert!(prior.object(&batch, row).is_some());
                    let before = prior.before(&batch, row, *seq, &columns).unwrap();
                    found.push(before.map(|(batch, seq)| (seq, format!("{:?}", batch.columns()))));
                }
            }
            found
        });
    }
}

#[test]
fn fields_that_come_later_are_known_at_once() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    let before = ours.schema();
    let flag = Field { name: "flag".into(), kind: FieldType::Text, required: false, title: None };
    ours.change(vec![flag], None).unwrap();
    assert_eq!(ours.schema(), theirs.schema());
    // A batch with the previous schema is written with nulls, and the response has the new schema.
    ours.write(Write::new(ships(&before, &fleet(3)))).unwrap();
    let items = Items::all(&ours.schema());
    assert_eq!(page(&*ours, ReadPoint::newest(), &items), page(&*theirs, ReadPoint::newest(), &items));
    assert_eq!(Arc::clone(&ours.event("id1").unwrap().value.unwrap().0.schema().clone()), theirs.schema());
}

#[test]
fn a_random_event_is_one_of_them() {
    let world = World::new();
    let (theirs, ours) = world.collection("ships", IdRole::Given);
    let random = meridian_backend::Seams::real().random;
    assert!(!ours.sample(random.as_ref(), &control(PATIENCE), &mut Noted::default()).unwrap());
    theirs.write(Write::new(ships(&theirs.schema(), &fleet(1)))).unwrap();
    let ours = noted(|sink| assert!(ours.sample(random.as_ref(), &control(PATIENCE), sink).unwrap()));
    let theirs = noted(|sink| assert!(theirs.sample(random.as_ref(), &control(PATIENCE), sink).unwrap()));
    assert_eq!(ours, theirs);
}
