//! Events in each order, page by page, while writes continue.

use super::world::*;
use crate::cuts::cuts;
use crate::items::{Items, Order, Rows, items};
use crate::sort::{SortKey, SortTarget};
use crate::token::Token;
use meridian_model::filter::Predicate;
use meridian_model::{Seq, Seqs};
use meridian_store::Snapshot;
use proptest::prelude::*;
use std::cmp::Ordering;

/// The contents of one page.
fn drain(answer: &mut Rows) -> (Vec<Seq>, Vec<f64>) {
    let (mut seqs, mut distances, mut over) = (Vec::new(), Vec::new(), false);
    while let Some(hits) = answer.next() {
        let hits = hits.unwrap();
        assert!(!over, "an answer that was over went on");
        over = answer.is_over();
        assert_eq!(hits.batch.rows(), hits.seqs.len());
        assert!(hits.batch.rows() > 0, "an empty batch");
        seqs.extend(hits.seqs);
        distances.extend(hits.distances.unwrap_or_default());
    }
    (seqs, distances)
}

/// All pages of a query, with writes between them; tokens travel as text.
fn pages(world: &mut World, question: &Items, limit: usize, writes: &[Op]) -> (Vec<Seq>, Vec<f64>) {
    let mut snapshot: Snapshot = world.collection.snapshot();
    let mut question = Items { limit: Some(limit), ..question.clone() };
    let (mut seqs, mut distances) = (Vec::new(), Vec::new());
    for page in 0.. {
        let mut answer = items(&snapshot, &question, &world.control()).unwrap();
        let (s, d) = drain(&mut answer);
        assert!(s.len() <= limit);
        seqs.extend(&s);
        distances.extend(d);
        let Some(next) = answer.next_page() else { break };
        assert_eq!(s.len(), limit, "a page that is not full has a next one");
        let token =
            Token { tenant: "default".to_owned(), snapshot: Seqs::one(snapshot.seq), question: 7, after: next.clone() };
        let token = Token::decode(&token.encode()).unwrap();
        if let Some(op) = writes.get(page) {
            world.apply(op);
        }
        snapshot = world.collection.snapshot_at(token.snapshot.at(0)).unwrap();
        question.after = Some(token.after);
        assert!(page < 10_000);
    }
    (seqs, distances)
}

/// All events of a query without a limit.
fn whole(world: &World, question: &Items) -> (Vec<Seq>, Vec<f64>) {
    let mut answer = items(&world.collection.snapshot(), question, &world.control()).unwrap();
    let given = drain(&mut answer);
    assert!(answer.next_page().is_none());
    given
}

pub(super) fn sort_keys() -> impl Strategy<Value = Vec<SortKey>> {
    let target = prop_oneof![4 => (0usize..6).prop_map(SortTarget::Field), 1 => Just(SortTarget::Id)];
    prop::collection::vec((target, any::<bool>()), 1..4)
        .prop_map(|keys| keys.into_iter().map(|(target, descending)| SortKey { target, descending }).collect())
}

/// One key of the oracle's order.
pub(super) fn by_key(a: &Event, b: &Event, key: &SortKey, kind: Kind) -> Ordering {
    fn nulls_last<T: PartialOrd>(a: Option<T>, b: Option<T>, descending: bool) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => {
                let order = a.partial_cmp(&b).unwrap();
                if descending { order.reverse() } else { order }
            }
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
    let shown = |t: i64, has: bool| (has && t != i64::MIN && t != i64::MAX).then_some(t);
    let (start, end) = (kind.times != Times::None, kind.times == Times::Interval);
    let d = key.descending;
    match key.target {
        SortTarget::Field(0) => nulls_last(shown(a.start, start), shown(b.start, start), d),
        SortTarget::Field(1) => nulls_last(shown(a.end, end), shown(b.end, end), d),
        SortTarget::Field(2) => nulls_last(a.n, b.n, d),
        SortTarget::Field(3) => nulls_last(a.x, b.x, d),
        SortTarget::Field(4) => nulls_last(a.s.as_ref().map(|s| s.as_bytes()), b.s.as_ref().map(|s| s.as_bytes()), d),
        SortTarget::Field(_) => nulls_last(a.b, b.b, d),
        SortTarget::Id => nulls_last(Some(a.id.as_bytes()), Some(b.id.as_bytes()), d),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn natural_order_is_the_oracles_whole_and_in_pages(
        kind in kinds(),
        ops in ops(),
        asked in prop::collection::vec((filters(), 1usize..60), 1..6),
        writes in prop::collection::vec(batches(30).prop_map(Op::Write), 0..3),
    ) {
        let mut world = World::after(kind, &ops);
        for (filter, limit) in asked {
            let question = Items { predicate: filter.predicate(&world), ..Items::all(&world.schema) };
            let mut expected: Vec<_> = filter.matching(&world).iter().map(|e| (world.key(e), e.seq)).collect();
            expected.sort();
            let expected: Vec<Seq> = expected.into_iter().map(|(_, seq)| seq).collect();
            prop_assert_eq!(&whole(&world, &question).0, &expected, "{:?}", &filter);
            let mut all = writes.clone();
            all.extend([Op::Delete(3), Op::Flush, Op::Replace(2, ops.iter().flat_map(|op| match op {
                Op::Write(events) => events.clone(),
                _ => Vec::new(),
            }).take(10).collect()), Op::Maintain]);
            prop_assert_eq!(&pages(&mut world, &question, limit, &all).0, &expected, "{:?} by {}", &filter, limit);
        }
    }

    #[test]
    fn parts_between_cuts_are_the_whole_in_its_order(
        kind in kinds(),
        ops in ops(),
        filter in filters(),
        parts in 1usize..9,
        later in batches(30).prop_map(Op::Write),
    ) {
        let mut world = World::after(kind, &ops);
        let question = Items { predicate: filter.predicate(&world), ..Items::all(&world.schema) };
        let snapshot = world.collection.snapshot();
        let expected = whole(&world, &question).0;
        let cuts = cuts(&snapshot, parts, &world.control()).unwrap();
        prop_assert!(cuts.len() < parts);
        // A part is the same after writes, flushes and merges.
        for op in [later, Op::Flush, Op::Maintain] {
            world.apply(&op);
        }
        let snapshot = world.collection.snapshot_at(snapshot.seq).unwrap();
        let mut together = Vec::new();
        for part in 0..=cuts.len() {
            let after = part.checked_sub(1).map(|before| cuts[before].clone());
            let asked = Items { after, until: cuts.get(part).cloned(), ..question.clone() };
            let mut answer = items(&snapshot, &asked, &world.control()).unwrap();
            together.extend(drain(&mut answer).0);
        }
        prop_assert_eq!(together, expected, "{:?} at {:?}", &filter, &cuts);
    }

    #[test]
    fn by_distance_is_the_oracles_whole_nearest_and_in_pages(
        kind in kinds(),
        ops in ops(),
        asked in prop::collection::vec((filters(), lons(), lats(), 1usize..60, 1usize..40), 1..6),
    ) {
        let mut world = World::after(kind, &ops);
        for (filter, lon, lat, limit, k) in asked {
            let order = Order::Near { lon, lat, k: None };
            let question = Items { predicate: filter.predicate(&world), order, ..Items::all(&world.schema) };
            let mut expected: Vec<(f64, Seq)> = filter
                .matching(&world)
                .iter()
                .map(|e| (e.distance_m(lon, lat), e.seq))
                .filter(|(d, _)| d.is_finite())
                .collect();
            expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let both = |given: (Vec<Seq>, Vec<f64>)| given.1.into_iter().zip(given.0).collect::<Vec<_>>();
            prop_assert_eq!(&both(whole(&world, &question)), &expected, "{:?}", &filter);
            let nearest = Items { order: Order::Near { lon, lat, k: Some(k) }, ..question.clone() };
            let few = &expected[..k.min(expected.len())];
            prop_assert_eq!(&both(whole(&world, &nearest)), few, "{:?} nearest {}", &filter, k);
            let writes = [Op::Delete(2), Op::Flush, Op::Write(ops.iter().flat_map(|op| match op {
                Op::Write(events) => events.clone(),
                _ => Vec::new(),
            }).take(20).collect())];
            prop_assert_eq!(&both(pages(&mut world, &nearest, limit, &[])), few, "{:?} nearest {} by {}", &filter, k, limit);
            prop_assert_eq!(&both(pages(&mut world, &question, limit, &writes)), &expected, "{:?} by {}", &filter, limit);
        }
    }

    #[test]
    fn by_fields_is_the_oracles_in_pages(
        kind in kinds(),
        ops in ops(),
        asked in prop::collection::vec((filters(), sort_keys(), 1usize..60), 1..6),
    ) {
        let mut world = World::after(kind, &ops);
        for (filter, keys, limit) in asked {
            let order = Order::Fields(keys.clone());
            let question = Items { predicate: filter.predicate(&world), order, ..Items::all(&world.schema) };
            let mut expected = filter.matching(&world);
            expected.sort_by(|a, b| {
                let first = keys.iter().map(|key| by_key(a, b, key, kind)).find(|o| *o != Ordering::Equal);
                first.unwrap_or(Ordering::Equal).then(a.seq.cmp(&b.seq))
            });
            let expected: Vec<Seq> = expected.into_iter().map(|e| e.seq).collect();
            let writes = [Op::Delete(2), Op::Flush];
            prop_assert_eq!(&pages(&mut world, &question, limit, &writes).0, &expected, "{:?} {:?} by {}", &filter, &keys, limit);
        }
    }
}

/// A filter of a thousand boxes or windows is a single walk: each event comes once, and the tested rows stay close to
/// the matches.
#[test]
fn a_thousand_boxes_or_windows_are_one_walk() {
    let mut world = World::new(Kind { places: Places::Points, times: Times::Instant, made_ids: true });
    let spread = |i: i64, by: i64, parts: i64| (i * by % parts) as f64 / parts as f64;
    let events = (0..20_000i64).map(|i| Event {
        id: String::new(),
        spot: Spot::Point(spread(i, 7_919, 40_009) * 360.0 - 180.0, spread(i, 104_729, 40_013) * 180.0 - 90.0),
        start: i * 61_000_000,
        end: i * 61_000_000,
        n: None,
        x: None,
        s: None,
        b: None,
        seq: Seq(0),
    });
    world.apply(&Op::Write(events.collect()));
    let corner = |i: i64| (spread(i, 7_919, 1_009) * 350.0 - 180.0, spread(i, 6_389, 1_013) * 170.0 - 90.0);
    let boxes: Vec<Filter> = (0..1_000i64).map(&corner).map(|(w, s)| Filter::Bbox([w, s, w + 1.0, s + 1.0])).collect();
    let windows: Vec<Filter> =
        (0..1_000i64).map(|i| i * 1_220_000_000).map(|t| Filter::During(t, t + 130_000_000)).collect();
    let wide = |i: i64, (w, s): (f64, f64)| {
        Filter::And(
            Box::new(Filter::Bbox([w, s, w + 10.0, s + 10.0])),
            Box::new(Filter::During(i * 1_220_000_000, i * 1_220_000_000 + 90_000_000_000)),
        )
    };
    let both: Vec<Filter> = (0..1_000i64).map(|i| wide(i, corner(i))).collect();
    let asked = [boxes, windows, both].map(|filters| {
        let predicate = Predicate::or(filters.iter().map(|f| f.predicate(&world)).collect());
        let matching = |e: &&Event| filters.iter().any(|f| f.holds(e, world.kind) == Some(true));
        let mut expected: Vec<Seq> = world.live.iter().filter(matching).map(|e| e.seq).collect();
        expected.sort();
        assert!(expected.len() > 100);
        (Items { predicate, ..Items::all(&world.schema) }, expected)
    });
    for _ in 0..2 {
        for (question, expected) in &asked {
            let mut answer = items(&world.collection.snapshot(), question, &world.control()).unwrap();
            let mut found = drain(&mut answer).0;
            found.sort();
            assert_eq!(&found, expected);
            let stats = answer.stats();
            assert!(stats.nodes_visited < 1_000 && stats.events_tested <= 20_000, "{stats:?}");
        }
        world.apply(&Op::Flush);
    }
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: false };
    let world = World::new(kind);
    let snapshot = world.collection.snapshot();
    let ask = |question: &Items| items(&snapshot, question, &world.control()).err().map(|e| e.to_string());
    let all = Items::all(&world.schema);
    let keys = SortKey::parse("-n,+s", &world.schema).unwrap();
    assert_eq!(keys[0], SortKey { target: SortTarget::Field(2), descending: true });
    assert!(ask(&Items { order: Order::Fields(keys), ..all.clone() }).unwrap().contains("limit"));
    assert!(ask(&Items { limit: Some(0), ..all.clone() }).unwrap().contains("limit"));
    assert!(
        ask(&Items { order: Order::Near { lon: 0.0, lat: 91.0, k: None }, ..all.clone() })
            .unwrap()
            .contains("latitude")
    );
    let elsewhere = crate::Cursor::Near { distance_m: 1.0, seq: Seq(1), given: 1 };
    assert!(ask(&Items { after: Some(elsewhere), ..all.clone() }).unwrap().contains("token"));
    assert!(SortKey::parse("nothing", &world.schema).is_err());
    assert!(ask(&all).is_none());
}

#[test]
fn columns_that_were_not_asked_for_are_not_there() {
    let kind = Kind { places: Places::Points, times: Times::Instant, made_ids: false };
    let mut world = World::new(kind);
    let event = Event {
        id: String::new(),
        spot: Spot::Point(1.0, 2.0),
        start: 0,
        end: 0,
        n: Some(1),
        x: Some(2.0),
        s: Some("a".to_owned()),
        b: None,
        seq: Seq(0),
    };
    world.apply(&Op::Write(vec![event]));
    world.apply(&Op::Flush);
    let projection = crate::select(&world.schema, Some(&["x"])).unwrap();
    let predicate = Filter::Same("a".to_owned()).predicate(&world);
    let question = Items { projection, predicate, ..Items::all(&world.schema) };
    let snapshot = world.collection.snapshot();
    let hits = items(&snapshot, &question, &world.control()).unwrap().next().unwrap().unwrap();
    assert!(hits.batch.field(3).is_some() && hits.batch.points().is_some() && hits.batch.ids().is_some());
    assert!(hits.batch.field(4).is_none() && hits.batch.field(0).is_none());
    assert!(crate::select(&world.schema, Some(&["nothing"])).is_err());
}
