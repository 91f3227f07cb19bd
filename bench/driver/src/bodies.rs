//! Generated events {symbol, type, price, time} in the encoding of each server.
//!
//! Times rise by about a millisecond, prices walk in cents, and a hundred symbols alternate at random: a stream of
//! trades. The same seed makes the same events in every encoding.

use crate::wire::{self, message};
use arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use std::fmt::Write;
use std::sync::Arc;

/// 2026-01-01T00:00:00Z in microseconds since 1970.
const START_US: i64 = 1_767_225_600_000_000;
/// The epoch of PostgreSQL, 2000-01-01, in microseconds since 1970.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// How a batch is written down.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Meridian: newline-delimited JSON.
    Ndjson,
    /// Meridian: an Arrow IPC stream.
    Arrow,
    /// QuestDB: InfluxDB line protocol over HTTP.
    Ilp,
    /// PostgreSQL: COPY of binary rows, a transaction a batch.
    Copy,
    /// PostgreSQL: a prepared INSERT from binary arrays, a transaction a batch.
    Insert,
}

/// The statement that `Encoding::Insert` prepares.
pub const INSERT: &str =
    "INSERT INTO events SELECT * FROM unnest($1::text[], $2::int8[], $3::float8[], $4::timestamptz[])";

struct Event {
    symbol: [u8; 4],
    kind: i64,
    cents: i64,
    time_us: i64,
}

impl Event {
    fn symbol(&self) -> &str {
        std::str::from_utf8(&self.symbol).unwrap_or_default()
    }

    fn price(&self) -> f64 {
        self.cents as f64 / 100.0
    }
}

/// An endless stream of events.
pub struct Events {
    state: u64,
    time_us: i64,
    cents: [i64; 100],
}

impl Events {
    /// Creates events from a seed, the first of them `later_s` seconds after the start.
    pub fn new(seed: u64, later_s: u32) -> Events {
        Events { state: seed, time_us: START_US + i64::from(later_s) * 1_000_000, cents: [10_000; 100] }
    }

    /// Returns a number from 0 to `bound` - 1 (SplitMix64: Steele, Lea and Flood, 2014).
    fn random(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn next(&mut self) -> Event {
        let which = self.random(100) as usize;
        self.cents[which] = (self.cents[which] + self.random(21) as i64 - 10).max(1);
        self.time_us += 1 + self.random(2_000) as i64;
        let symbol = [b'S', b'Y', b'0' + (which / 10) as u8, b'0' + (which % 10) as u8];
        Event { symbol, kind: self.random(8) as i64, cents: self.cents[which], time_us: self.time_us }
    }

    /// Returns the next batch as its bare bytes: the bytes that `raw` writes, and that the protocol carries without
    /// its head.
    pub fn batch(&mut self, encoding: Encoding, rows: usize) -> Result<Vec<u8>, String> {
        let events: Vec<Event> = (0..rows).map(|_| self.next()).collect();
        match encoding {
            Encoding::Ndjson => Ok(ndjson(&events)),
            Encoding::Arrow => arrow(&events).map_err(|e| e.to_string()),
            Encoding::Ilp => Ok(ilp(&events)),
            Encoding::Copy => Ok(copy(&events)),
            Encoding::Insert => Ok(insert(&events)),
        }
    }
}

/// Returns a batch with its protocol framing.
pub fn request(encoding: Encoding, body: Vec<u8>, target: &str, address: &str) -> Vec<u8> {
    match encoding {
        Encoding::Ndjson => wire::post(target, address, "application/x-ndjson", &body),
        Encoding::Arrow => wire::post(target, address, "application/vnd.apache.arrow.stream", &body),
        Encoding::Ilp => wire::post(target, address, "text/plain", &body),
        Encoding::Copy => {
            [message(b'Q', b"COPY events FROM STDIN (FORMAT binary)\0"), message(b'd', &body), message(b'c', b"")]
                .concat()
        }
        Encoding::Insert => [message(b'B', &body), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat(),
    }
}

fn ndjson(events: &[Event]) -> Vec<u8> {
    let mut text = String::with_capacity(events.len() * 90);
    for e in events {
        let time = rfc3339(e.time_us);
        let _ = writeln!(
            text,
            "{{\"symbol\":\"{}\",\"type\":{},\"price\":{}.{:02},\"time\":\"{time}\"}}",
            e.symbol(),
            e.kind,
            e.cents / 100,
            e.cents % 100
        );
    }
    text.into_bytes()
}

/// Formats a time within some weeks of the start; no others are generated here.
fn rfc3339(time_us: i64) -> String {
    let us = time_us - START_US;
    let (day, us) = (us / 86_400_000_000, us % 86_400_000_000);
    let (month, day) = if day < 31 { (1, day + 1) } else { (2, day - 30) };
    let (hour, minute, second) = (us / 3_600_000_000, us / 60_000_000 % 60, us / 1_000_000 % 60);
    format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", us % 1_000_000)
}

fn arrow(events: &[Event]) -> Result<Vec<u8>, arrow_schema::ArrowError> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("symbol", DataType::Utf8, false),
        Field::new("type", DataType::Int64, false),
        Field::new("price", DataType::Float64, false),
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
    ]));
    let batch = RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(StringArray::from_iter_values(events.iter().map(Event::symbol))),
            Arc::new(Int64Array::from_iter_values(events.iter().map(|e| e.kind))),
            Arc::new(Float64Array::from_iter_values(events.iter().map(Event::price))),
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(events.iter().map(|e| e.time_us)).with_timezone("UTC"),
            ),
        ],
    )?;
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn ilp(events: &[Event]) -> Vec<u8> {
    let mut text = String::with_capacity(events.len() * 60);
    for e in events {
        let (whole, part) = (e.cents / 100, e.cents % 100);
        let _ = writeln!(text, "events,symbol={} type={}i,price={whole}.{part:02} {}", e.symbol(), e.kind, e.time_us);
    }
    text.into_bytes()
}

fn copy(events: &[Event]) -> Vec<u8> {
    let mut bytes = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for e in events {
        bytes.extend_from_slice(&4i16.to_be_bytes());
        for value in [&e.symbol[..], &e.kind.to_be_bytes(), &e.price().to_be_bytes(), &postgres_time(e)] {
            sized(&mut bytes, value);
        }
    }
    bytes.extend_from_slice(&(-1i16).to_be_bytes());
    bytes
}

fn postgres_time(e: &Event) -> [u8; 8] {
    (e.time_us - POSTGRES_EPOCH_US).to_be_bytes()
}

fn sized(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
    bytes.extend_from_slice(value);
}

/// Returns the parameters of a Bind message: four arrays, all binary.
fn insert(events: &[Event]) -> Vec<u8> {
    /// Object ids of text, int8, float8 and timestamptz.
    const TYPES: [u32; 4] = [25, 20, 701, 1184];
    let mut bind = b"\0s\0\0\x01\0\x01\0\x04".to_vec();
    for (column, oid) in TYPES.into_iter().enumerate() {
        let mut array = Vec::with_capacity(20 + events.len() * 12);
        for word in [1, 0, oid, events.len() as u32, 1] {
            array.extend_from_slice(&word.to_be_bytes());
        }
        for e in events {
            match column {
                0 => sized(&mut array, &e.symbol),
                1 => sized(&mut array, &e.kind.to_be_bytes()),
                2 => sized(&mut array, &e.price().to_be_bytes()),
                _ => sized(&mut array, &postgres_time(e)),
            }
        }
        sized(&mut bind, &array);
    }
    bind.extend_from_slice(&[0, 0]);
    bind
}
