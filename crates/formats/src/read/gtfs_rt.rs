//! GTFS-Realtime: the positions of vehicles in a feed, entity by entity.

use super::table::{Cell, Kind, Row, Source};
use crate::error::Fault;
use crate::input::{Input, utf8};
use crate::options::ReadOptions;
use crate::report::Unread;
use crate::values::{epoch, single};
use crate::wkb_out::{Parts, Position};
use meridian_model::Invalid;
use std::io::Read;

const COLUMNS: [(&str, Kind); 19] = [
    ("geometry", Kind::Shape),
    ("time", Kind::Time),
    ("entity", Kind::Text),
    ("vehicle", Kind::Text),
    ("label", Kind::Text),
    ("license_plate", Kind::Text),
    ("trip", Kind::Text),
    ("route", Kind::Text),
    ("direction", Kind::Int),
    ("start_date", Kind::Text),
    ("start_time", Kind::Text),
    ("bearing", Kind::Float),
    ("odometer", Kind::Float),
    ("speed", Kind::Float),
    ("stop", Kind::Text),
    ("stop_sequence", Kind::Int),
    ("status", Kind::Text),
    ("congestion", Kind::Text),
    ("occupancy", Kind::Text),
];

const STATUS: &[&str] = &["INCOMING_AT", "STOPPED_AT", "IN_TRANSIT_TO"];
const CONGESTION: &[&str] =
    &["UNKNOWN_CONGESTION_LEVEL", "RUNNING_SMOOTHLY", "STOP_AND_GO", "CONGESTION", "SEVERE_CONGESTION"];
const OCCUPANCY: &[&str] = &[
    "EMPTY",
    "MANY_SEATS_AVAILABLE",
    "FEW_SEATS_AVAILABLE",
    "STANDING_ROOM_ONLY",
    "CRUSHED_STANDING_ROOM_ONLY",
    "FULL",
    "NOT_ACCEPTING_PASSENGERS",
    "NO_DATA_AVAILABLE",
    "NOT_BOARDABLE",
];

/// Content of entities that is not a position, by its field.
const OTHERS: [(u64, &str); 5] =
    [(3, "trip_update"), (5, "alert"), (6, "shape"), (7, "stop"), (8, "trip_modifications")];

/// Vehicle positions of one feed message, or of several consecutive ones.
pub(crate) struct GtfsRt {
    input: Input,
    /// Creation time of the feed in seconds: the time of positions without one.
    made: Option<u64>,
    begun: bool,
    ordinal: u64,
    unread: Unread,
}

impl GtfsRt {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> GtfsRt {
        GtfsRt { input: Input::new(source, options), made: None, begun: false, ordinal: 0, unread: Unread::default() }
    }

    /// Returns the next field of the feed message: its number and content.
    fn field(&mut self) -> Result<Option<(u64, Vec<u8>)>, Fault> {
        let line = self.ordinal + 1;
        if !self.input.has_more()? {
            return Ok(None);
        }
        let (number, kind) = split(self.varint(line)?);
        if kind != LENGTH {
            return Err(Fault::stop(Invalid::new("not GTFS-Realtime: a feed message holds messages").at_line(line)));
        }
        let bytes = self.varint(line)?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let range = self.input.needed(bytes, line, "an entity of the feed")?;
        Ok(Some((number, self.input.bytes(range).to_vec())))
    }

    fn varint(&mut self, line: u64) -> Result<u64, Fault> {
        let mut bytes = Vec::new();
        while bytes.len() < 10 && bytes.last().is_none_or(|byte| byte & 0x80 != 0) {
            let range = self.input.needed(1, line, "a number of the feed")?;
            bytes.extend_from_slice(self.input.bytes(range));
        }
        Message(&bytes).varint().map_err(Fault::stop)
    }
}

impl Source for GtfsRt {
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        Ok(COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect())
    }

    fn unread(&self) -> Unread {
        self.unread.clone()
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, Fault> {
        while let Some((number, bytes)) = self.field()? {
            let first = !std::mem::replace(&mut self.begun, true);
            match number {
                1 => self.made = made(&bytes).map_err(Fault::stop)?,
                _ if first => {
                    return Err(Fault::stop(Invalid::new("not GTFS-Realtime: it does not begin with a header")));
                }
                2 => {
                    self.ordinal += 1;
                    if entity(&bytes, self.made, row, &mut self.unread)? {
                        return Ok(true);
                    }
                    // A deleted vehicle may have values that the next one lacks.
                    row.clear();
                }
                _ => {}
            }
        }
        if self.begun { Ok(false) } else { Err(Fault::stop(Invalid::new("the input is empty: expected a feed"))) }
    }
}

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;

fn split(tag: u64) -> (u64, u64) {
    (tag >> 3, tag & 7)
}

/// The unread rest of a message, read field by field.
struct Message<'a>(&'a [u8]);

/// A value of a field.
#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    fn varint(&mut self) -> Result<u64, Invalid> {
        let mut number = 0u64;
        for (i, byte) in self.0.iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f).checked_shl(7 * i as u32).unwrap_or(0);
            if byte & 0x80 == 0 {
                self.0 = &self.0[i + 1..];
                return Ok(number);
            }
        }
        Err(damaged())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*head)
    }

    /// Returns the next field; `None` at the end.
    fn field(&mut self) -> Result<Option<(u64, Field<'a>)>, Invalid> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, kind) = split(self.varint()?);
        let value = match kind {
            VARINT => Field::Number(self.varint()?),
            FIXED_32 => Field::Float(f32::from_le_bytes(self.take()?)),
            FIXED_64 => Field::Double(f64::from_le_bytes(self.take()?)),
            LENGTH => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let (head, rest) = self.0.split_at_checked(length).ok_or_else(damaged)?;
                self.0 = rest;
                Field::Bytes(head)
            }
            _ => return Err(damaged()),
        };
        Ok(Some((number, value)))
    }
}

fn damaged() -> Invalid {
    Invalid::new("the GTFS-Realtime data is damaged or cut off")
}

/// Returns the time stamp of a header.
fn made(bytes: &[u8]) -> Result<Option<u64>, Invalid> {
    let (mut message, mut made) = (Message(bytes), None);
    while let Some((number, value)) = message.field()? {
        if let (3, Field::Number(seconds)) = (number, value) {
            made = Some(seconds);
        }
    }
    Ok(made)
}

/// Puts the position of an entity into a row; returns false if the entity is not a vehicle. Other content is counted.
fn entity(bytes: &[u8], made: Option<u64>, row: &mut Row, unread: &mut Unread) -> Result<bool, Invalid> {
    let (mut message, mut found, mut deleted) = (Message(bytes), false, false);
    let mut others = [0; OTHERS.len()];
    while let Some((number, value)) = message.field()? {
        match (number, value) {
            (1, Field::Bytes(id)) => text(row, "entity", id)?,
            (2, Field::Number(flag)) => deleted = flag != 0,
            (4, Field::Bytes(vehicle)) => {
                found = true;
                position_of(vehicle, made, row)?;
            }
            (other, Field::Bytes(_)) => {
                if let Some(at) = OTHERS.iter().position(|(field, _)| *field == other) {
                    others[at] = 1;
                }
            }
            _ => {}
        }
    }
    for ((_, name), count) in OTHERS.iter().zip(others).filter(|(_, count)| !deleted && *count > 0) {
        unread.add(name, count);
    }
    Ok(found && !deleted)
}

fn position_of(bytes: &[u8], made: Option<u64>, row: &mut Row) -> Result<(), Invalid> {
    let (mut message, mut seconds) = (Message(bytes), made);
    while let Some((number, value)) = message.field()? {
        match (number, value) {
            (1, Field::Bytes(trip)) => each(trip, |number, value| match (number, value) {
                (1, Field::Bytes(id)) => text(row, "trip", id),
                (2, Field::Bytes(time)) => text(row, "start_time", time),
                (3, Field::Bytes(date)) => text(row, "start_date", date),
                (5, Field::Bytes(route)) => text(row, "route", route),
                (6, Field::Number(direction)) => row.set(column("direction"), Cell::Int(direction as i64)),
                _ => Ok(()),
            })?,
            (2, Field::Bytes(position)) => place(position, row)?,
            (3, Field::Number(n)) => row.set(column("stop_sequence"), Cell::Int(i64::from(n as u32)))?,
            (4, Field::Number(n)) => word(row, "status", STATUS, n)?,
            (5, Field::Number(n)) => seconds = Some(n),
            (6, Field::Number(n)) => word(row, "congestion", CONGESTION, n)?,
            (7, Field::Bytes(stop)) => text(row, "stop", stop)?,
            (8, Field::Bytes(vehicle)) => each(vehicle, |number, value| match (number, value) {
                (1, Field::Bytes(id)) => text(row, "vehicle", id),
                (2, Field::Bytes(label)) => text(row, "label", label),
                (3, Field::Bytes(plate)) => text(row, "license_plate", plate),
                _ => Ok(()),
            })?,
            (9, Field::Number(n)) => word(row, "occupancy", OCCUPANCY, n)?,
            _ => {}
        }
    }
    if let Some(seconds) = seconds {
        let micros = epoch(i64::try_from(seconds).unwrap_or(i64::MAX), 1_000_000);
        row.set(column("time"), Cell::Time(micros.map_err(|e| crate::values::blame(e, "time"))?))?;
    }
    Ok(())
}

fn place(bytes: &[u8], row: &mut Row) -> Result<(), Invalid> {
    let (mut lat, mut lon) = (None, None);
    each(bytes, |number, value| {
        match (number, value) {
            (1, Field::Float(x)) => lat = Some(single(x)),
            (2, Field::Float(x)) => lon = Some(single(x)),
            (3, Field::Float(x)) => row.set(column("bearing"), Cell::Float(single(x)))?,
            (4, Field::Double(x)) => row.set(column("odometer"), Cell::Float(x))?,
            (5, Field::Float(x)) => row.set(column("speed"), Cell::Float(single(x)))?,
            _ => {}
        }
        Ok(())
    })?;
    match (lon, lat) {
        (Some(x), Some(y)) => row.set(0, Cell::Shape(&Parts::Point(Position { x, y, z: None }).wkb())),
        _ => Err(Invalid::field("geometry", "the position has no longitude or no latitude")),
    }
}

/// Passes each field of a message to `take`.
fn each<'a>(bytes: &'a [u8], mut take: impl FnMut(u64, Field<'a>) -> Result<(), Invalid>) -> Result<(), Invalid> {
    let mut message = Message(bytes);
    while let Some((number, value)) = message.field()? {
        take(number, value)?;
    }
    Ok(())
}

fn column(name: &str) -> usize {
    COLUMNS.iter().position(|(known, _)| *known == name).unwrap_or(COLUMNS.len())
}

fn text(row: &mut Row, name: &str, bytes: &[u8]) -> Result<(), Invalid> {
    let text = utf8(bytes).map_err(|e| crate::values::blame(e, name))?;
    if text.is_empty() { Ok(()) } else { row.set(column(name), Cell::Text(text)) }
}

/// Returns the word of an enumeration, or its number if a later version added it.
fn word(row: &mut Row, name: &str, words: &[&str], n: u64) -> Result<(), Invalid> {
    let known = usize::try_from(n).ok().and_then(|n| words.get(n));
    row.set(column(name), Cell::Text(known.copied().unwrap_or(&n.to_string())))
}
