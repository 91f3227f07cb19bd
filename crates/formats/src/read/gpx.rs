//! GPX: the points of tracks and routes, and waypoints, each an event.

use super::table::{Cell, Kind, Row, Source};
use super::xml::{Part, Xml, attribute};
use crate::error::Fault;
use crate::instant;
use crate::options::ReadOptions;
use crate::report::Unread;
use crate::roles::list;
use crate::values::float;
use crate::wkb_out::{Parts, Position};
use jiff::tz::TimeZone;
use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::io::Read;

/// Columns after the geometry, with the element of each number or text.
const COLUMNS: [(&str, Kind); 24] = [
    ("kind", Kind::Text),
    ("track", Kind::Text),
    ("segment", Kind::Int),
    ("time", Kind::Time),
    ("ele", Kind::Float),
    ("name", Kind::Text),
    ("desc", Kind::Text),
    ("sym", Kind::Text),
    ("type", Kind::Text),
    ("course", Kind::Float),
    ("speed", Kind::Float),
    ("sat", Kind::Int),
    ("hdop", Kind::Float),
    ("vdop", Kind::Float),
    ("pdop", Kind::Float),
    ("cmt", Kind::Text),
    ("src", Kind::Text),
    ("fix", Kind::Text),
    ("magvar", Kind::Float),
    ("geoidheight", Kind::Float),
    ("ageofdgpsdata", Kind::Float),
    ("dgpsid", Kind::Int),
    ("hr", Kind::Float),
    ("cad", Kind::Float),
];
const KIND: usize = 1;
const TRACK: usize = 2;
const SEGMENT: usize = 3;
const TIME: usize = 4;
/// Columns from here on have the name of their element.
const ELEMENTS: usize = 5;

/// Points of a GPX document.
pub(crate) struct Gpx {
    xml: Xml,
    /// Whether the root element has been seen.
    begun: bool,
    /// The enclosing track or route: its name, and its number in the document.
    name: Option<String>,
    tracks: u64,
    segment: i64,
    /// Names of the open elements.
    path: Vec<String>,
    /// Elements of points, tracks and routes that have content but no column.
    unread: Unread,
}

impl Gpx {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> Gpx {
        Gpx {
            xml: Xml::new(source, options),
            begun: false,
            name: None,
            tracks: 0,
            segment: 0,
            path: Vec::new(),
            unread: Unread::default(),
        }
    }

    fn track(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.tracks.to_string())
    }

    /// Reads a point to its end.
    fn point(&mut self, kind: &str, attributes: &[(String, String)], row: &mut Row) -> Result<(), Fault> {
        let mut fault = position(attributes).and_then(|at| row.set(0, Cell::Shape(&Parts::Point(at).wkb()))).err();
        let mut keep = |done: Result<(), Invalid>| fault = fault.take().or(done.err());
        keep(row.set(KIND, Cell::Text(kind)));
        if kind != "wpt" {
            keep(row.set(TRACK, Cell::Text(&self.track())));
        }
        if kind == "trkpt" {
            keep(row.set(SEGMENT, Cell::Int(self.segment)));
        }
        // The point is read to its end before its mistakes are reported, so that the next one can be read.
        let (mut depth, mut link) = (1, None);
        while depth > 0 {
            match self.xml.next()? {
                Part::Open(name, _) => {
                    // The text and type of a link are not the point's.
                    if name == "link" && link.is_none() {
                        link = Some(depth);
                        self.unread.add(&name, 1);
                    }
                    depth += 1;
                }
                Part::Close(name, text) => {
                    depth -= 1;
                    if link.is_some() {
                        link = link.filter(|link| *link < depth);
                    } else if depth > 0 && !text.is_empty() {
                        match value(&name, &text, row) {
                            Ok(true) => {}
                            Ok(false) => self.unread.add(&name, 1),
                            Err(mistake) => keep(Err(mistake)),
                        }
                    }
                }
                Part::End => break,
            }
        }
        self.xml.record_ends();
        self.path.pop();
        fault.map_or(Ok(()), |mistake| Err(mistake.into()))
    }
}

fn position(attributes: &[(String, String)]) -> Result<Position, Invalid> {
    let degrees = |name: &str| {
        let text =
            attribute(attributes, name).ok_or_else(|| Invalid::field(name, "the point has no such attribute"))?;
        let wrong = || Invalid::field(name, format!("{:?} where a number of degrees was expected", shorten(text)));
        float(text.trim()).ok_or_else(wrong)
    };
    Ok(Position { x: degrees("lon")?, y: degrees("lat")?, z: None })
}

/// Sets the value of an element; returns false if it has no column.
fn value(name: &str, text: &str, row: &mut Row) -> Result<bool, Invalid> {
    if name == "time" {
        // Times of GPX are in UTC; a few writers leave the letter out.
        let micros = instant::parse(text, Some(&TimeZone::UTC)).map_err(|e| crate::values::blame(e, name))?;
        return row.set(TIME, Cell::Time(micros)).map(|()| true);
    }
    let Some(at) = COLUMNS.iter().skip(ELEMENTS - 1).position(|(known, _)| *known == name) else { return Ok(false) };
    let column = ELEMENTS + at;
    let wrong = |expected: &str| Invalid::field(name, format!("{:?} where {expected} was expected", shorten(text)));
    let cell = match COLUMNS[column - 1].1 {
        Kind::Int => Cell::Int(text.parse().map_err(|_| wrong("an integer"))?),
        Kind::Float => Cell::Float(float(text).ok_or_else(|| wrong("a number"))?),
        _ => Cell::Text(text),
    };
    row.set(column, cell).map(|()| true)
}

impl Source for Gpx {
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        let columns = COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
        Ok(std::iter::once(("geometry".to_owned(), Kind::Shape)).chain(columns).collect())
    }

    fn notes(&self) -> Vec<String> {
        let names: Vec<String> = self.unread.named.keys().cloned().collect();
        let note =
            (!names.is_empty()).then(|| format!("elements that have no column and are not read: {}", list(&names)));
        note.into_iter().collect()
    }

    fn unread(&self) -> Unread {
        self.unread.clone()
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, Fault> {
        loop {
            match self.xml.next()? {
                Part::Open(name, attributes) => {
                    if !std::mem::replace(&mut self.begun, true) && name != "gpx" {
                        let detail = format!("the root element is {}: expected gpx", shorten(&name));
                        return Err(Fault::stop(Invalid::new(detail)));
                    }
                    self.path.push(name);
                    match self.path.last().map(String::as_str) {
                        Some("trk" | "rte") => {
                            self.tracks += 1;
                            (self.name, self.segment) = (None, 0);
                        }
                        Some("trkseg") => self.segment += 1,
                        Some(kind @ ("wpt" | "trkpt" | "rtept")) => {
                            let kind = kind.to_owned();
                            return self.point(&kind, &attributes, row).map(|()| true);
                        }
                        _ => {}
                    }
                }
                Part::Close(name, text) => {
                    self.path.pop();
                    let parent = self.path.last().map(String::as_str);
                    let of_track = self.path.iter().rev().find(|name| matches!(name.as_str(), "trk" | "rte"));
                    if name == "name" && matches!(parent, Some("trk" | "rte")) && !text.is_empty() {
                        self.name = Some(text);
                    } else if let Some(track) = of_track
                        && (!text.is_empty() || name == "link")
                    {
                        self.unread.add(&format!("{name} of {track}"), 1);
                    }
                }
                Part::End if self.begun => return Ok(false),
                Part::End => return Err(Fault::stop(Invalid::new("the input is empty: expected a GPX document"))),
            }
        }
    }
}
