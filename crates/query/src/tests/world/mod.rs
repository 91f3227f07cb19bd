//! A small store and, beside it, the plain list of events it should hold.

mod filter;
mod strategies;

pub(crate) use filter::Filter;
pub(crate) use strategies::{batches, bboxes, filters, kinds, lats, lons, ops, texts};

use crate::aggregate::{Aggregate, Aggregated};
use crate::control::{CancelFlag, Control};
use crate::error::QueryError;
use crate::partial::PartialGroups;
use meridian_index::{Grid, Key};
use meridian_model::builder::Value;
use meridian_model::{BatchBuilder, Bounds, Field, FieldType, GeometryType, IdRole, Schema, Seq, TimeRole};
use meridian_store::seams::{ManualClock, MemoryDisk, Seams, SeededRandom};
use meridian_store::{Collection, Options, Settings, Snapshot, Store, Write};
use std::sync::Arc;
use std::time::Duration;

/// Location of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spot {
    Nowhere,
    Point(f64, f64),
    /// West, south, east, north; drawn as a polygon.
    Rect([f64; 4]),
}

/// An event as known to the oracle.
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

/// The kind of a collection.
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

/// An operation on the collection.
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

/// An aggregate computed in a given number of slices.
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

    /// Writes events with their own ids.
    pub(crate) fn write_as_they_are(&mut self, events: &[Event]) {
        let events = events.iter().map(|event| self.fit(event)).collect();
        self.write(events, false);
    }

    /// Deletes the existing events among these ids.
    pub(crate) fn delete(&mut self, ids: &[String]) {
        let here: Vec<String> = self.live.iter().filter(|e| ids.contains(&e.id)).map(|e| e.id.clone()).collect();
        assert_eq!(self.collection.delete(&here).unwrap().deleted, here.len() as u64);
        self.live.retain(|e| !ids.contains(&e.id));
    }

    /// The event as this kind of collection stores it.
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

    /// Matching events by the oracle.
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
