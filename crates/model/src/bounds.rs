//! The box in longitude, latitude and time of every index in Meridian.

use serde::{Deserialize, Serialize};

/// A closed box: degrees of longitude and latitude (WGS 84) and microseconds since 1970 (UTC).
///
/// `west <= east` always: a query that crosses the antimeridian is split into boxes first. An event without geometry
/// has an empty spatial part (`west > east`), which no spatial query touches and every other box contains. Open ends
/// of time are `i64::MIN` and `i64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "SerializedBounds", into = "SerializedBounds")]
pub struct Bounds {
    /// Min longitude in degrees.
    pub west: f64,
    /// Min latitude in degrees.
    pub south: f64,
    /// Max longitude in degrees.
    pub east: f64,
    /// Max latitude in degrees.
    pub north: f64,
    /// First instant, in microseconds since 1970, inclusive.
    pub start: i64,
    /// Last instant, in microseconds since 1970, inclusive.
    pub end: i64,
}

/// A serialized box. JSON has no infinities, which are the sides of an empty box.
#[derive(Serialize, Deserialize)]
struct SerializedBounds {
    /// West, south, east and north; `None` for an empty spatial part.
    sides: Option<[f64; 4]>,
    start: i64,
    end: i64,
}

impl From<Bounds> for SerializedBounds {
    fn from(b: Bounds) -> SerializedBounds {
        let sides = (!b.is_nowhere()).then_some([b.west, b.south, b.east, b.north]);
        SerializedBounds { sides, start: b.start, end: b.end }
    }
}

impl From<SerializedBounds> for Bounds {
    fn from(written: SerializedBounds) -> Bounds {
        let SerializedBounds { sides, start, end } = written;
        match sides {
            None => Bounds { start, end, ..Bounds::EMPTY },
            Some([west, south, east, north]) => Bounds { west, south, east, north, start, end },
        }
    }
}

impl Bounds {
    /// The empty box; the neutral element of [`Bounds::union`].
    pub const EMPTY: Bounds = Bounds {
        west: f64::INFINITY,
        south: f64::INFINITY,
        east: f64::NEG_INFINITY,
        north: f64::NEG_INFINITY,
        start: i64::MAX,
        end: i64::MIN,
    };

    /// The whole world at all times.
    pub const WORLD: Bounds =
        Bounds { west: -180.0, south: -90.0, east: 180.0, north: 90.0, start: i64::MIN, end: i64::MAX };

    /// The box of one point at one instant.
    pub fn point(lon: f64, lat: f64, time: i64) -> Self {
        Bounds { west: lon, south: lat, east: lon, north: lat, start: time, end: time }
    }

    /// The smallest box that contains both.
    pub fn union(&self, other: &Bounds) -> Bounds {
        Bounds {
            west: self.west.min(other.west),
            south: self.south.min(other.south),
            east: self.east.max(other.east),
            north: self.north.max(other.north),
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Whether the spatial part is empty.
    pub fn is_nowhere(&self) -> bool {
        self.west > self.east || self.south > self.north
    }

    /// Whether the spatial parts share a point; boxes that touch at an edge do.
    pub fn touches_in_space(&self, other: &Bounds) -> bool {
        self.west <= other.east && other.west <= self.east && self.south <= other.north && other.south <= self.north
    }

    /// Whether the two time ranges share an instant.
    pub fn touches_in_time(&self, other: &Bounds) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether this box contains the spatial part of `other`, edges included.
    pub fn holds_in_space(&self, other: &Bounds) -> bool {
        self.west <= other.west && other.east <= self.east && self.south <= other.south && other.north <= self.north
    }

    /// Whether this box contains the time range of `other`, ends included.
    pub fn holds_in_time(&self, other: &Bounds) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The largest `f32` not above a coordinate, for boxes that must contain what they enclose.
pub fn f32_below(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) > x { near.next_down() } else { near }
}

/// The smallest `f32` not below a coordinate.
pub fn f32_above(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) < x { near.next_up() } else { near }
}
