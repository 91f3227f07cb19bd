//! The order of a collection: a key per event on a fixed world grid.

use crate::columns::Boxes;
use crate::hilbert::{BITS_2D, BITS_3D, hilbert_2d, hilbert_3d};
use meridian_model::{Batch, Bounds, Schema};
use rayon::prelude::*;

/// The position of an event in its collection; `(Key, Seq)` is the total order.
///
/// From the highest bits: size class (8), time bucket (40), position on the curve within the bucket (64). The size
/// class comes first, so that boxes far larger than their neighbours are grouped in a run, and so in a separate tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(pub u128);

const BUCKET_BITS: u32 = 40;
const CURVE_BITS: u32 = 64;
/// Added to a bucket's number so that buckets before 1970 sort first.
const BUCKET_BIAS: i64 = 1 << (BUCKET_BITS - 1);

/// First of the size classes of events without geometry: they sort last, purely by time.
///
/// A tree never mixes them with others, because a box cannot express that some of its events are nowhere.
pub const CLASS_NOWHERE: u8 = 0xf0;

/// Class limits of spatial extent: longest side as a fraction of the world (360° of longitude, 180° of latitude).
const SPACE_STEPS: [f64; 3] = [1.0 / 4096.0, 1.0 / 256.0, 1.0 / 16.0];
/// Class limits of duration, in sixteenths of the time unit. Longer, then open-ended, follow.
const TIME_STEPS: [i64; 3] = [1, 16, 256];
/// Length of a bucket in time units, by duration class: never much shorter than its events.
const TIME_SCALES: [i64; 5] = [1, 1, 16, 256, 256];
/// Share of the cube's side given to a time bucket, relative to the whole world in space. Most collections cover a
/// part of the world. With a full side the curve would split their time before it separates places (figures in
/// docs/decisions/013).
const TIME_SHARE: f64 = 1.0 / 8.0;
/// Class of intervals with an open start or end.
const TIME_OPEN: u8 = 4;

impl Key {
    /// Assembles a key; bits of `bucket` above 40 are cut off.
    pub const fn new(class: u8, bucket: u64, curve: u64) -> Key {
        let bucket = bucket & ((1 << BUCKET_BITS) - 1);
        Key((class as u128) << (BUCKET_BITS + CURVE_BITS) | (bucket as u128) << CURVE_BITS | curve as u128)
    }

    /// Size class: each has its own tree.
    pub const fn class(self) -> u8 {
        (self.0 >> (BUCKET_BITS + CURVE_BITS)) as u8
    }

    /// Number of the time bucket, biased to be unsigned.
    pub const fn bucket(self) -> u64 {
        (self.0 >> CURVE_BITS) as u64 & ((1 << BUCKET_BITS) - 1)
    }

    /// Position within the bucket.
    pub const fn curve(self) -> u64 {
        self.0 as u64
    }
}

/// The grid of a collection, fixed for its life: the whole world by its time unit.
///
/// - Geometry and time: a three-dimensional Hilbert curve within each bucket of time, 21 bits for each side of the
///   world and 18 for time. So a cell is some 19 m of longitude at the equator by 10 m of latitude by 2.3 s of a
///   week.
/// - Geometry only: a two-dimensional Hilbert curve, 31 bits each.
/// - No geometry (of the collection, or of one event): ordered by time alone.
///
/// The size class is `16 * d + s`. `s` counts how many of 1/4096, 1/256 and 1/16 of the world the greater side of the
/// box exceeds. `d` counts how many of 1/16, 1 and 16 time units the duration exceeds, with 4 for open ends. The
/// class is [`CLASS_NOWHERE`]` + d` without geometry. Boxes are placed at their centre, intervals with one open end
/// at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    has_time: bool,
    unit: i64,
}

impl Grid {
    /// The grid of a schema.
    pub fn of(schema: &Schema) -> Grid {
        Grid { has_time: schema.has_time(), unit: schema.time_unit_us.max(1) }
    }

    /// The time unit in microseconds.
    pub fn unit_us(&self) -> i64 {
        self.unit
    }

    /// Number of the time unit, from 1970, that contains an instant; open ends are in the first and last unit.
    pub fn bin(&self, micros: i64) -> i64 {
        micros.div_euclid(self.unit)
    }

    /// First and last microsecond of a time unit.
    pub fn bin_interval(&self, bin: i64) -> (i64, i64) {
        let start = bin.saturating_mul(self.unit);
        (start, start.saturating_add(self.unit - 1))
    }

    /// The first time unit of the bucket of an event with this key; 0 without time.
    ///
    /// Buckets are one unit long, or 16 or 256 units for long intervals.
    pub fn first_bin(&self, key: Key) -> i64 {
        if !self.has_time {
            return 0;
        }
        // Events without geometry are in buckets of one unit, whatever their duration.
        let duration = if key.class() >= CLASS_NOWHERE { 0 } else { usize::from(key.class() >> 4) };
        let scale = TIME_SCALES.get(duration).copied().unwrap_or(1);
        (key.bucket() as i64 - BUCKET_BIAS).saturating_mul(scale)
    }

    /// The first and the last bucket of events of a size class within these bounds.
    pub fn buckets(&self, class: u8, bounds: &Bounds) -> (u64, u64) {
        let unit = match class {
            CLASS_NOWHERE.. => self.unit,
            _ if !self.has_time => return (0, 0),
            _ => self.unit.saturating_mul(TIME_SCALES.get(usize::from(class >> 4)).copied().unwrap_or(1)),
        };
        (split(bounds.start, unit).0, split(bounds.end, unit).0)
    }

    /// The key of one event.
    pub fn key(&self, bounds: &Bounds) -> Key {
        let duration = self.duration_class(bounds);
        let time = middle(bounds);
        if bounds.is_nowhere() {
            // Ordered by first instant, which for this purpose need not be the middle.
            let time = if bounds.start == i64::MIN { time } else { bounds.start };
            let (bucket, offset) = split(time, self.unit);
            return Key::new(CLASS_NOWHERE + duration, bucket, offset as u64);
        }
        let class = duration << 4 | space_class(bounds);
        let (lon, lat) = ((bounds.west + bounds.east) * 0.5, (bounds.south + bounds.north) * 0.5);
        if !self.has_time {
            return Key::new(class, 0, hilbert_2d(cell(lon, 360.0, BITS_2D), cell(lat, 180.0, BITS_2D)));
        }
        let unit = self.unit.saturating_mul(TIME_SCALES[usize::from(duration)]);
        let (bucket, offset) = split(time, unit);
        // Time takes an eighth of the cube's side, so leaves are cut finer in space than in time.
        let part = offset as f64 / unit as f64 * TIME_SHARE;
        let curve = hilbert_3d(cell(lon, 360.0, BITS_3D), cell(lat, 180.0, BITS_3D), scale(part, BITS_3D));
        Key::new(class, bucket, curve)
    }

    /// The keys of all rows, computed in parallel; reads the columns of `Projection::add_boxes` and `add_time`.
    pub fn keys(&self, batch: &Batch) -> Vec<Key> {
        let boxes = Boxes::of(batch);
        (0..batch.rows()).into_par_iter().with_min_len(4096).map(|row| self.key(&boxes.bounds(row))).collect()
    }

    fn duration_class(&self, bounds: &Bounds) -> u8 {
        if bounds.start == bounds.end {
            return 0;
        }
        if bounds.start == i64::MIN || bounds.end == i64::MAX {
            return TIME_OPEN;
        }
        // In 128 bits: an interval may span all of time.
        let sixteenths = (i128::from(bounds.end) - i128::from(bounds.start)) * 16;
        TIME_STEPS.iter().filter(|&&step| sixteenths > i128::from(step) * i128::from(self.unit)).count() as u8
    }
}

/// Number of the bucket, biased, and microseconds since its start.
fn split(time: i64, unit: i64) -> (u64, i64) {
    let number = time.div_euclid(unit);
    // At the min unit, a minute, all of i64 is 39 bits of buckets: the clamp is for hand-made units.
    let bucket = (number.clamp(-BUCKET_BIAS, BUCKET_BIAS - 1) + BUCKET_BIAS) as u64;
    // An overflow of the product wraps back: the true difference is below `unit`.
    (bucket, time.wrapping_sub(number.wrapping_mul(unit)))
}

/// The instant that represents an interval: its middle, or its closed end.
fn middle(bounds: &Bounds) -> i64 {
    match (bounds.start, bounds.end) {
        (i64::MIN, i64::MAX) => 0,
        (i64::MIN, end) => end,
        (start, i64::MAX) => start,
        (start, end) => ((i128::from(start) + i128::from(end)) >> 1) as i64,
    }
}

fn space_class(bounds: &Bounds) -> u8 {
    let side = ((bounds.east - bounds.west) / 360.0).max((bounds.north - bounds.south) / 180.0);
    SPACE_STEPS.iter().filter(|&&step| side > step).count() as u8
}

/// Cell of a coordinate in degrees on a world of `width` degrees centred on 0.
fn cell(degrees: f64, width: f64, bits: u32) -> u32 {
    scale(degrees / width + 0.5, bits)
}

/// Cell of a fraction of 1; the far edge belongs to the last cell, and a cast clamps values outside.
fn scale(part: f64, bits: u32) -> u32 {
    ((part * f64::from(1u32 << bits)) as u32).min((1 << bits) - 1)
}
