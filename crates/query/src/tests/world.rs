//! A small store and, beside it, the plain list of events it should hold.

use crate::aggregate::{Aggregate, Aggregated};
use crate::control::{CancelFlag, Control};
use crate::error::QueryError;
use crate::partial::PartialGroups;
use meridian_index::{Grid, Key};
use meridian_model::builder::Value;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{BatchBuilder, Bounds, Field, FieldType, GeometryType, IdRole, Interval, Schema, Seq, TimeRole};
use meridian_store::seams::{ManualClock, MemoryDisk, Seams, SeededRandom};
use meridian_store::{Collection, Options, Settings, Snapshot, Store, Write};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Where an event is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spot {
    Nowhere,
    Point(f64, f64),
    /// West, south, east, north; drawn as a polygon.
    Rect([f64; 4]),
}

/// An event as the oracle knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub id: String,
    pub spot: Spot,
    /// Open ends are the extremes.
    pub start: i64,
    pub end: i64,
    pub n: Option<i64>,
    pub x: Option<f64>,
    pub s: Option<String>,
    pub b: Option<bool>,
    pub seq: Seq,
}

/// What a collection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    None,
    Points,
    Shapes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    None,
    Instant,
    Interval,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub places: Places,
    pub times: Times,
    pub made_ids: bool,
}

/// Something done to the collection.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Write(Vec<Event>),
    /// Replaces every n-th event by the next of these.
    Replace(usize, Vec<Event>),
    /// Deletes every n-th event.
    Delete(usize),
    Flush,
    Maintain,
}

pub(crate) const HOUR: i64 = 3_600_000_000;

pub(crate) struct World {
    pub kind: Kind,
    pub schema: Arc<Schema>,
    pub collection: Arc<Collection>,
    pub live: Vec<Event>,
    pub clock: Arc<ManualClock>,
    next: usize,
    _store: Store,
}

pub(crate) fn schema_of(kind: Kind) -> Arc<Schema> {
    let field =
        |name: &str, kind: FieldType, required: bool| Field { name: name.to_owned(), kind, required, title: None };
    let time = match kind.times {
        Times::None => TimeRole::None,
        Times::Instant => TimeRole::Instant(0),
        Times::Interval => TimeRole::Interval { start: 0, end: 1 },
    };
    let fields = vec![
        field("t", FieldType::Time, kind.times == Times::Instant),
        field("u", FieldType::Time, false),
        field("n", FieldType::Int, false),
        field("x", FieldType::Float, false),
        field("s", FieldType::Text, false),
        field("b", FieldType::Bool, false),
    ];
    let geometry = match kind.places {
        Places::None => None,
        Places::Points => Some(GeometryType::Point),
        Places::Shapes => Some(GeometryType::Any),
    };
    let id = if kind.made_ids { IdRole::Made } else { IdRole::Given };
    Arc::new(Schema { fields, geometry, time, id, object: Some(4), ..Schema::default() })
}

/// An aggregate worked out in so many slices.
pub(crate) fn aggregate_in(
    slices: usize,
    snapshot: &Snapshot,
    question: &Aggregate,
    control: &Control,
) -> Result<Aggregated, QueryError> {
    PartialGroups::in_slices(slices, snapshot, question, control)?.finish(question, control)
}

impl World {
    pub(crate) fn new(kind: Kind) -> World {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
        let seams =
            Seams { disk: Arc::new(MemoryDisk::new()), clock: clock.clone(), random: Arc::new(SeededRandom::new(7)) };
        let options = Options { background: false, ..Options::at("/data") };
        let store = Store::open(options, seams).unwrap();
        let schema = schema_of(kind);
        let collection = store.create("default", "events", (*schema).clone(), Settings::default()).unwrap();
        World { kind, schema, collection, live: Vec::new(), clock, next: 0, _store: store }
    }

    /// A world after some operations.
    pub(crate) fn after(kind: Kind, ops: &[Op]) -> World {
        let mut world = World::new(kind);
        ops.iter().for_each(|op| world.apply(op));
        world
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::Write(events) => {
                let mut events: Vec<Event> = events.iter().map(|e| self.fit(e)).collect();
                for event in &mut events {
                    event.id = format!("e{}", self.next);
                    self.next += 1;
                }
                self.write(events, false);
            }
            Op::Replace(every, events) if !self.kind.made_ids => {
                let mut fresh = Vec::new();
                for (i, event) in events.iter().enumerate() {
                    if let Some(old) = self.live.get(i * every) {
                        fresh.push(Event { id: old.id.clone(), ..self.fit(event) });
                    }
                }
                let ids: Vec<String> = fresh.iter().map(|e| e.id.clone()).collect();
                self.live.retain(|e| !ids.contains(&e.id));
                self.write(fresh, true);
            }
            Op::Replace(..) => {}
            Op::Delete(every) => {
                let ids: Vec<String> = self.live.iter().step_by(*every).map(|e| e.id.clone()).collect();
                let deleted = self.collection.delete(&ids).unwrap();
                assert_eq!(deleted.deleted, ids.len() as u64);
                self.live.retain(|e| !ids.contains(&e.id));
            }
            Op::Flush => self.collection.flush().unwrap(),
            Op::Maintain => self.collection.maintain().unwrap(),
        }
    }

    /// Writes events with the ids that they have.
    pub(crate) fn write_as_they_are(&mut self, events: &[Event]) {
        let events = events.iter().map(|event| self.fit(event)).collect();
        self.write(events, false);
    }

    /// Deletes those of these ids that are here.
    pub(crate) fn delete(&mut self, ids: &[String]) {
        let here: Vec<String> = self.live.iter().filter(|e| ids.contains(&e.id)).map(|e| e.id.clone()).collect();
        assert_eq!(self.collection.delete(&here).unwrap().deleted, here.len() as u64);
        self.live.retain(|e| !ids.contains(&e.id));
    }

    /// The event as this kind of collection keeps it.
    fn fit(&self, event: &Event) -> Event {
        let mut event = event.clone();
        event.spot = match (self.kind.places, event.spot) {
            (Places::None, _) => Spot::Nowhere,
            (Places::Points, Spot::Rect([w, s, ..])) => Spot::Point(w, s),
            (_, spot) => spot,
        };
        (event.start, event.end) = match self.kind.times {
            Times::None => (0, 0),
            Times::Instant => {
                let at = if event.start == i64::MIN { 0 } else { event.start };
                (at, at)
            }
            Times::Interval => (event.start, event.end),
        };
        event
    }

    fn write(&mut self, mut events: Vec<Event>, replace: bool) {
        if events.is_empty() {
            return;
        }
        let mut builder = BatchBuilder::new(self.schema.clone());
        for event in &events {
            builder.set_id(event.id.clone()).unwrap();
            match event.spot {
                Spot::Nowhere => {}
                Spot::Point(lon, lat) => builder.set_point(lon, lat).unwrap(),
                Spot::Rect([w, s, e, n]) => {
                    let rect = geo_types::Rect::new((w, s), (e, n)).to_polygon();
                    builder.set_geometry(&rect.into()).unwrap();
                }
            }
            let time = |t: i64| if t == i64::MIN || t == i64::MAX { Value::Null } else { Value::Time(t) };
            match self.kind.times {
                Times::None => {}
                Times::Instant => builder.set(0, time(event.start)).unwrap(),
                Times::Interval => {
                    builder.set(0, time(event.start)).unwrap();
                    builder.set(1, time(event.end)).unwrap();
                }
            }
            builder.set(2, event.n.map_or(Value::Null, Value::Int)).unwrap();
            builder.set(3, event.x.map_or(Value::Null, Value::Float)).unwrap();
            builder.set(4, event.s.clone().map_or(Value::Null, Value::Text)).unwrap();
            builder.set(5, event.b.map_or(Value::Null, Value::Bool)).unwrap();
            builder.end_event().unwrap();
        }
        let write = Write::new(builder.finish().unwrap());
        let written = self.collection.write(if replace { write.replacing() } else { write }).unwrap();
        for (i, event) in events.iter_mut().enumerate() {
            event.seq = Seq(written.first.0 + i as u64);
            if self.kind.made_ids {
                event.id = event.seq.to_id();
            }
        }
        self.live.extend(events);
    }

    pub(crate) fn control(&self) -> Control {
        Control::new(self.clock.clone(), Duration::from_secs(3600), CancelFlag::new())
    }

    pub(crate) fn key(&self, event: &Event) -> Key {
        Grid::of(&self.schema).key(&event.bounds())
    }

    /// Events that match by the oracle.
    pub(crate) fn matching(&self, filter: &Filter) -> Vec<&Event> {
        self.live.iter().filter(|e| filter.holds(e, self.kind) == Some(true)).collect()
    }
}

impl Event {
    pub(crate) fn bounds(&self) -> Bounds {
        let place = match self.spot {
            Spot::Nowhere => Bounds::EMPTY,
            Spot::Point(lon, lat) => Bounds::point(lon, lat, 0),
            Spot::Rect([west, south, east, north]) => Bounds { west, south, east, north, start: 0, end: 0 },
        };
        Bounds { start: self.start, end: self.end, ..place }
    }

    pub(crate) fn centre(&self) -> Option<(f64, f64)> {
        match self.spot {
            Spot::Nowhere => None,
            Spot::Point(lon, lat) => Some((lon, lat)),
            Spot::Rect([w, s, e, n]) => Some(((w + e) * 0.5, (s + n) * 0.5)),
        }
    }

    pub(crate) fn distance_m(&self, lon: f64, lat: f64) -> f64 {
        match self.spot {
            Spot::Nowhere => f64::INFINITY,
            Spot::Point(x, y) => meridian_model::sphere::distance_m(lon, lat, x, y),
            Spot::Rect([w, s, e, n]) => {
                let rect = geo_types::Rect::new((w, s), (e, n)).to_polygon();
                meridian_model::filter::distance_to_geometry_m(lon, lat, &rect.into())
            }
        }
    }
}

/// A filter that both the store and the oracle understand.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    All,
    Bbox([f64; 4]),
    During(i64, i64),
    Near(f64, f64, f64),
    More(i64),
    Less(f64),
    Same(String),
    Flag(bool),
    NoValue,
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
    Ids(Vec<usize>),
}

impl Filter {
    pub(crate) fn predicate(&self, world: &World) -> Predicate {
        let cql = |text: &str| Predicate::bind(&parse_text(text).unwrap(), &world.schema).unwrap();
        match self {
            Filter::All => Predicate::all(),
            Filter::Bbox([w, s, e, n]) => Predicate::bbox(*w, *s, *e, *n),
            Filter::During(start, end) => Predicate::interval(Interval { start: *start, end: *end }),
            Filter::Near(lon, lat, radius) => Predicate::near(*lon, *lat, *radius),
            Filter::More(n) => cql(&format!("n > {n}")),
            Filter::Less(x) => cql(&format!("x <= {x:?}")),
            Filter::Same(s) => cql(&format!("s = '{s}'")),
            Filter::Flag(b) => cql(&format!("b = {}", if *b { "TRUE" } else { "FALSE" })),
            Filter::NoValue => cql("x IS NULL"),
            Filter::Not(inner) => inner.predicate(world).not(),
            Filter::And(a, b) => Predicate::and(vec![a.predicate(world), b.predicate(world)]),
            Filter::Or(a, b) => Predicate::or(vec![a.predicate(world), b.predicate(world)]),
            // Made ids are no property; asking for one goes through `Snapshot::find`.
            Filter::Ids(_) if world.kind.made_ids => Predicate::all(),
            Filter::Ids(picks) => {
                let ids = self.ids(picks, world);
                cql(&format!("id IN ({})", ids.iter().map(|i| format!("'{i}'")).collect::<Vec<_>>().join(",")))
            }
        }
    }

    fn ids(&self, picks: &[usize], world: &World) -> Vec<String> {
        let live = |i: &usize| world.live.get(i % world.live.len().max(1)).map(|e| e.id.clone());
        let mut ids: Vec<String> = picks.iter().filter_map(live).collect();
        ids.push("absent".to_owned());
        ids
    }

    /// What the filter says of an event; `None`: unknown.
    pub(crate) fn holds(&self, event: &Event, kind: Kind) -> Option<bool> {
        match self {
            Filter::All => Some(true),
            Filter::Bbox([w, s, e, n]) => {
                let b = event.bounds();
                let touches = |w: f64, e: f64| b.west <= e && w <= b.east && b.south <= *n && *s <= b.north;
                let hit = if w > e { touches(*w, 180.0) || touches(-180.0, *e) } else { touches(*w, *e) };
                (event.spot != Spot::Nowhere).then_some(hit)
            }
            Filter::During(start, end) => Some(kind.times == Times::None || event.start <= *end && *start <= event.end),
            Filter::Near(lon, lat, radius) => {
                (event.spot != Spot::Nowhere).then(|| event.distance_m(*lon, *lat) <= *radius)
            }
            Filter::More(n) => event.n.map(|v| v > *n),
            Filter::Less(x) => event.x.map(|v| v <= *x),
            Filter::Same(s) => event.s.as_ref().map(|v| v == s),
            Filter::Flag(b) => event.b.map(|v| v == *b),
            Filter::NoValue => Some(event.x.is_none()),
            Filter::Not(inner) => inner.holds(event, kind).map(|v| !v),
            Filter::And(a, b) => match (a.holds(event, kind), b.holds(event, kind)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Filter::Or(a, b) => match (a.holds(event, kind), b.holds(event, kind)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Filter::Ids(_) => None,
        }
    }

    /// Events that match, ids included (only as the whole filter).
    pub(crate) fn matching<'w>(&self, world: &'w World) -> Vec<&'w Event> {
        match self {
            Filter::Ids(_) if world.kind.made_ids => world.live.iter().collect(),
            Filter::Ids(picks) => {
                let ids = self.ids(picks, world);
                world.live.iter().filter(|e| ids.contains(&e.id)).collect()
            }
            _ => world.matching(self),
        }
    }
}

/// Longitudes that touch each other, the antimeridian and the edges of the world.
pub(crate) fn lons() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-6i32..=6).prop_map(|i| f64::from(i) * 30.0),
        4 => -180.0..=180.0f64,
        2 => (-10.0..=10.0f64).prop_map(|d| if d < 0.0 { 180.0 + d } else { -180.0 + d }),
        3 => 10.0..11.0f64,
    ]
}

pub(crate) fn lats() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-3i32..=3).prop_map(|i| f64::from(i) * 30.0),
        4 => -90.0..=90.0f64,
        1 => prop_oneof![89.0..=90.0f64, -90.0..=-89.0f64],
        3 => 50.0..51.0f64,
    ]
}

fn spots() -> impl Strategy<Value = Spot> {
    let rect = |(a, b): (f64, f64), (c, d): (f64, f64)| {
        let (w, e) = (a.min(c), a.max(c));
        let (s, n) = (b.min(d), b.max(d));
        if w < e && s < n { Spot::Rect([w, s, e, n]) } else { Spot::Point(w, s) }
    };
    prop_oneof![
        1 => Just(Spot::Nowhere),
        8 => (lons(), lats()).prop_map(|(x, y)| Spot::Point(x, y)),
        1 => ((lons(), lats()), (lons(), lats())).prop_map(move |(a, b)| rect(a, b)),
        3 => ((lons(), lats()), (0.0..2.0f64, 0.0..2.0f64)).prop_map(move |((x, y), (w, h))| {
            rect((x, y), ((x + w).min(180.0), (y + h).min(90.0)))
        }),
    ]
}

pub(crate) fn instants() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0i64..400).prop_map(|h| 1_760_000_400_000_000 + h * HOUR),
        4 => 1_760_000_000_000_000i64..1_763_000_000_000_000,
        1 => -2_000_000_000_000_000i64..2_000_000_000_000_000,
    ]
}

fn spans() -> impl Strategy<Value = (i64, i64)> {
    (instants(), prop_oneof![Just(0i64), 0..HOUR, 0..1000 * HOUR], 0u8..10).prop_map(|(start, length, open)| match open
    {
        0 => (i64::MIN, start),
        1 => (start, i64::MAX),
        _ => (start, start + length),
    })
}

pub(crate) fn texts() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "Z", "é", ""]).prop_map(str::to_owned)
}

pub(crate) fn events() -> impl Strategy<Value = Event> {
    (
        spots(),
        spans(),
        prop::option::weighted(0.8, -5i64..6),
        prop::option::weighted(0.8, prop_oneof![(-4i32..5).prop_map(f64::from), -1e6..1e6f64]),
        prop::option::weighted(0.8, texts()),
        prop::option::weighted(0.8, any::<bool>()),
    )
        .prop_map(|(spot, (start, end), n, x, s, b)| Event {
            id: String::new(),
            spot,
            start,
            end,
            n,
            x,
            s,
            b,
            seq: Seq(0),
        })
}

pub(crate) fn batches(most: usize) -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![
        3 => prop::collection::vec(events(), 1..most),
        // Some events many times over, so that there are nodes of one value and trees of several levels.
        1 => (prop::collection::vec(events(), 1..20), 1..most).prop_map(|(events, times)| {
            events.iter().cycle().take(events.len() * times.min(40)).cloned().collect()
        }),
    ]
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => batches(80).prop_map(Op::Write),
        2 => (1usize..7, prop::collection::vec(events(), 1..20)).prop_map(|(every, e)| Op::Replace(every, e)),
        1 => (1usize..9).prop_map(Op::Delete),
        2 => Just(Op::Flush),
        1 => Just(Op::Maintain),
    ];
    prop::collection::vec(op, 1..9)
}

pub(crate) fn kinds() -> impl Strategy<Value = Kind> {
    (
        prop_oneof![1 => Just(Places::None), 4 => Just(Places::Points), 3 => Just(Places::Shapes)],
        prop_oneof![1 => Just(Times::None), 4 => Just(Times::Instant), 3 => Just(Times::Interval)],
        prop::bool::weighted(0.3),
    )
        .prop_map(|(places, times, made_ids)| Kind { places, times, made_ids })
}

pub(crate) fn bboxes() -> impl Strategy<Value = [f64; 4]> {
    prop_oneof![
        2 => (lons(), lats(), lons(), lats()).prop_map(|(w, a, e, b)| [w, a.min(b), e, a.max(b)]),
        1 => (lons(), lats(), 0.0..3.0f64, 0.0..3.0f64)
            .prop_map(|(w, s, dx, dy)| [w, s, (w + dx).min(180.0), (s + dy).min(90.0)]),
        1 => Just([-180.0, -90.0, 180.0, 90.0]),
    ]
}

pub(crate) fn filters() -> impl Strategy<Value = Filter> {
    let plain = prop_oneof![
        2 => Just(Filter::All),
        4 => bboxes().prop_map(Filter::Bbox),
        3 => (instants(), instants(), 0u8..8).prop_map(|(a, b, open)| match open {
            0 => Filter::During(i64::MIN, a),
            1 => Filter::During(a, i64::MAX),
            _ => Filter::During(a.min(b), a.max(b)),
        }),
        3 => (lons(), lats(), prop_oneof![0.0..100_000.0f64, 0.0..2.1e7f64]).prop_map(|(x, y, r)| Filter::Near(x, y, r)),
        1 => (-6i64..6).prop_map(Filter::More),
        1 => (-5.0..5.0f64).prop_map(Filter::Less),
        1 => texts().prop_map(Filter::Same),
        1 => any::<bool>().prop_map(Filter::Flag),
        1 => Just(Filter::NoValue),
    ];
    let combined = plain.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|f| Filter::Not(Box::new(f))),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Filter::And(Box::new(a), Box::new(b))),
            1 => (inner.clone(), inner).prop_map(|(a, b)| Filter::Or(Box::new(a), Box::new(b))),
        ]
    });
    prop_oneof![
        9 => combined,
        1 => prop::collection::vec(any::<usize>(), 0..8).prop_map(Filter::Ids),
    ]
}
