//! Values of GTFS-Realtime: what a plain encoder of protocol buffers writes, the reader gives back.

use crate::common::points::{number, place, read_points, text};
use crate::common::shown::value;
use meridian_formats::{BatchLimits, Format, ReadOptions, infer, reader};
use meridian_model::FieldType;
use proptest::prelude::*;
use std::io::Cursor;

const FIELDS: [(&str, FieldType); 10] = [
    ("time", FieldType::Time),
    ("entity", FieldType::Text),
    ("vehicle", FieldType::Text),
    ("trip", FieldType::Text),
    ("direction", FieldType::Int),
    ("bearing", FieldType::Float),
    ("odometer", FieldType::Float),
    ("speed", FieldType::Float),
    ("stop_sequence", FieldType::Int),
    ("status", FieldType::Text),
];

/// The last second of the year 9999.
const SECONDS_MAX: u64 = 253_402_300_799;

#[derive(Debug, Clone)]
struct Vehicle {
    entity: String,
    vehicle: String,
    trip: String,
    deleted: bool,
    /// Whether the fields of each message come in the reverse order, as the format allows.
    reversed: bool,
    lon: f32,
    lat: f32,
    bearing: Option<f32>,
    odometer: Option<f64>,
    speed: Option<f32>,
    time: Option<u64>,
    direction: Option<u32>,
    sequence: Option<u32>,
    status: Option<u64>,
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n > 0x7f {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn integer(field: u64, n: u64) -> Vec<u8> {
    [varint(field << 3), varint(n)].concat()
}

fn double(field: u64, x: f64) -> Vec<u8> {
    [varint(field << 3 | 1), x.to_le_bytes().to_vec()].concat()
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn float(field: u64, x: f32) -> Vec<u8> {
    [varint(field << 3 | 5), x.to_le_bytes().to_vec()].concat()
}

/// Returns a message of the fields that are present.
fn message<const N: usize>(fields: [Option<Vec<u8>>; N], reversed: bool) -> Vec<u8> {
    let mut fields: Vec<Vec<u8>> = fields.into_iter().flatten().collect();
    if reversed {
        fields.reverse();
    }
    fields.concat()
}

impl Vehicle {
    fn encoded(&self) -> Vec<u8> {
        let of = |fields: [Option<Vec<u8>>; 5]| message(fields, self.reversed);
        let some = |field: u64, text: &str| Some(bytes(field, text.as_bytes()));
        let direction = self.direction.map(|n| integer(6, u64::from(n)));
        let trip = of([some(1, &self.trip), direction, None, None, None]);
        let position = of([
            Some(float(1, self.lat)),
            Some(float(2, self.lon)),
            self.bearing.map(|x| float(3, x)),
            self.odometer.map(|x| double(4, x)),
            self.speed.map(|x| float(5, x)),
        ]);
        let vehicle = message(
            [
                Some(bytes(1, &trip)),
                Some(bytes(2, &position)),
                self.sequence.map(|n| integer(3, u64::from(n))),
                self.status.map(|n| integer(4, n)),
                self.time.map(|n| integer(5, n)),
                Some(bytes(8, &of([some(1, &self.vehicle), None, None, None, None]))),
                // Fields of extensions, one of each form.
                Some(integer(1999, u64::MAX)),
                Some(double(2000, 1.5)),
                Some(bytes(2001, b"more")),
                Some(float(2002, 2.5)),
            ],
            self.reversed,
        );
        of([some(1, &self.entity), self.deleted.then(|| integer(2, 1)), Some(bytes(4, &vehicle)), None, None])
    }

    /// Returns the expected value of each field; `made` is the time of the feed.
    fn expected(&self, made: Option<u64>) -> [String; 10] {
        let status = self.status.map(|n| match n {
            0 => "INCOMING_AT".to_owned(),
            1 => "STOPPED_AT".to_owned(),
            2 => "IN_TRANSIT_TO".to_owned(),
            other => other.to_string(),
        });
        [
            number(self.time.or(made).map(|seconds| seconds * 1_000_000)),
            text(&self.entity),
            text(&self.vehicle),
            text(&self.trip),
            number(self.direction),
            // A float keeps the digits of its single precision.
            number(self.bearing),
            number(self.odometer),
            number(self.speed),
            number(self.sequence),
            text(&status.unwrap_or_default()),
        ]
    }
}

/// Degrees in single precision, with the antimeridian or the pole, and what is next to it and to zero.
fn degrees(max: f32) -> impl Strategy<Value = f32> {
    let edges = vec![-max, max, max.next_down(), -max.next_down(), 0.0, -0.0, 1e-7, -1e-7, 0.1];
    prop_oneof![-max..=max, prop::sample::select(edges)]
}

fn seconds() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![0..=SECONDS_MAX, prop::sample::select(vec![0, 127, 128, SECONDS_MAX])])
}

fn numbers() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(prop_oneof![any::<u32>(), prop::sample::select(vec![0, 1, 127, 128, u32::MAX])])
}

fn vehicle() -> impl Strategy<Value = Vehicle> {
    let texts = (any::<String>(), "[a-z]{0,200}", "[A-Z0-9 :é]{0,8}", prop::bool::weighted(0.3), any::<bool>());
    let motion = (prop::option::of(0f32..=360.0), prop::option::of(0f64..1e9), prop::option::of(0f32..1e3));
    let rest = (seconds(), numbers(), numbers(), prop::option::of(0..5u64));
    (texts, degrees(180.0), degrees(90.0), motion, rest).prop_map(|(texts, lon, lat, motion, rest)| {
        let (entity, vehicle, trip, deleted, reversed) = texts;
        let (bearing, odometer, speed) = motion;
        let (time, direction, sequence, status) = rest;
        Vehicle {
            entity,
            vehicle,
            trip,
            deleted,
            reversed,
            lon,
            lat,
            bearing,
            odometer,
            speed,
            time,
            direction,
            sequence,
            status,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn vehicles_are_read_as_they_were_encoded(
        vehicles in prop::collection::vec(vehicle(), 1..8),
        made in seconds(),
    ) {
        let header = message([Some(bytes(1, b"2.0")), Some(integer(2, 0)), made.map(|n| integer(3, n))], false);
        let mut feed = bytes(1, &header);
        vehicles.iter().for_each(|vehicle| feed.extend(bytes(2, &vehicle.encoded())));
        let batch = read_points(Format::GtfsRt, feed, &FIELDS);
        let batch = batch.map_err(|e| TestCaseError::fail(e.to_string()))?;
        // A value of a deleted vehicle must not appear in the one after it.
        let kept: Vec<&Vehicle> = vehicles.iter().filter(|vehicle| !vehicle.deleted).collect();
        prop_assert_eq!(batch.rows(), kept.len());
        for (row, vehicle) in kept.iter().enumerate() {
            let (lon, lat) = place(&batch, row).unwrap();
            prop_assert_eq!((lon.to_string(), lat.to_string()), (vehicle.lon.to_string(), vehicle.lat.to_string()));
            for ((name, _), expected) in FIELDS.iter().zip(vehicle.expected(made)) {
                prop_assert_eq!(value(&batch, name, row), expected, "{}", name);
            }
        }
    }
}

#[test]
fn entities_that_are_not_positions_are_counted() {
    let entity = |fields: &[Vec<u8>]| bytes(2, &fields.concat());
    let vehicle = bytes(4, &bytes(2, &[float(1, 52.5), float(2, 13.5)].concat()));
    let feed = [
        bytes(1, &bytes(1, b"2.0")),
        entity(&[bytes(1, b"a"), bytes(3, b""), vehicle]),
        entity(&[bytes(1, b"b"), bytes(3, b"")]),
        entity(&[bytes(1, b"c"), bytes(5, b"")]),
        entity(&[bytes(1, b"d"), bytes(5, b""), integer(2, 1)]),
    ]
    .concat();
    let options = ReadOptions::default();
    let schema = infer(Format::GtfsRt, Box::new(Cursor::new(feed.clone())), &options).unwrap().schema;
    let mut events = reader(Format::GtfsRt, Box::new(Cursor::new(feed)), schema.into(), &options).unwrap();
    assert_eq!(events.next_batch(&BatchLimits::default()).unwrap().unwrap().rows(), 1);
    let named: Vec<(String, u64)> = events.report().unread.named.into_iter().collect();
    assert_eq!(named, [("alert".to_owned(), 1), ("trip_update".to_owned(), 2)]);
}
