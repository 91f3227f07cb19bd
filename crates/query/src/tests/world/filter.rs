//! Filters, and their result for an event by the oracle.

use super::{Event, Kind, Spot, Times, World};
use meridian_model::Interval;
use meridian_model::filter::{Predicate, parse_text};

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
            // Generated ids are not a property; queries for one go through `Snapshot::find`.
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

    /// The filter's result for an event; `None` is unknown.
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

    /// Matching events, ids included (only as the whole filter).
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
