//! KML as GeoJSON features, one per line: placemarks, and the positions of tracks (`gx:Track`).
//!
//! Placemarks have fields of their own, so no list of columns is known in advance; the reader of features handles
//! that.

use super::lines::FAULT;
use super::xml::{Part, Xml, attribute};
use crate::error::{Fault, ReadError};
use crate::options::ReadOptions;
use crate::report::SharedUnread;
use crate::values::float;
use meridian_model::Invalid;
use meridian_model::error::shorten;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};

/// Max fields that the schemas of a document may type.
const TYPED_MAX: usize = 10_000;

/// Placemarks of a document as bytes: newline-delimited features.
pub(crate) struct Kml {
    xml: Xml,
    begun: bool,
    /// Names of the open folders and documents.
    folders: Vec<Option<String>>,
    /// Names of the open elements.
    path: Vec<String>,
    /// Types of the fields that schemas describe.
    types: HashMap<String, String>,
    /// Places and times that are not taken.
    unread: SharedUnread,
    /// Features, or the fault of a placemark, after which the next one can be read.
    ready: VecDeque<Result<Value, Invalid>>,
    line: io::Cursor<Vec<u8>>,
}

/// A placemark being read.
#[derive(Default)]
struct Placemark {
    properties: Map<String, Value>,
    shapes: Vec<Value>,
    /// Whether the shapes form one.
    several: bool,
    rings: Vec<Value>,
    coordinates: Option<Value>,
    tracks: Vec<Track>,
    field: Option<String>,
    /// Whether a view of it is open: its time is that of the globe's time line, and not of the placemark.
    in_view: bool,
}

/// The positions of a track, with the values beside them.
#[derive(Default)]
struct Track {
    times: Vec<String>,
    places: Vec<Value>,
    /// The values of each field, one for each position.
    arrays: Vec<(String, Vec<Value>)>,
}

impl Kml {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions, unread: &SharedUnread) -> Kml {
        Kml {
            xml: Xml::new(source, options),
            begun: false,
            folders: Vec::new(),
            path: Vec::new(),
            types: HashMap::new(),
            unread: unread.clone(),
            ready: VecDeque::new(),
            line: io::Cursor::default(),
        }
    }

    /// Returns the next feature; `None` at the end.
    fn feature(&mut self) -> Result<Option<Result<Value, Invalid>>, Fault> {
        loop {
            if let Some(feature) = self.ready.pop_front() {
                return Ok(Some(feature));
            }
            match self.xml.next()? {
                Part::Open(name, attributes) => {
                    if !std::mem::replace(&mut self.begun, true) && name != "kml" {
                        let detail = format!("the root element is {}: expected kml", shorten(&name));
                        return Err(Fault::stop(Invalid::new(detail)));
                    }
                    match name.as_str() {
                        "Placemark" => {
                            self.placemark(&attributes)?;
                            self.xml.record_ends();
                            continue;
                        }
                        "Folder" | "Document" => self.folders.push(None),
                        "SimpleField" | "SimpleArrayField" if self.types.len() < TYPED_MAX => {
                            if let Some((name, kind)) =
                                attribute(&attributes, "name").zip(attribute(&attributes, "type"))
                            {
                                self.types.insert(name.to_owned(), kind.to_owned());
                            }
                        }
                        "GroundOverlay" | "PhotoOverlay" | "ScreenOverlay" | "NetworkLink" => self.unread.add(&name),
                        // Placemarks do not inherit it here.
                        "TimeStamp" | "TimeSpan" => {
                            if let Some(parent @ ("Folder" | "Document")) = self.path.last().map(String::as_str) {
                                self.unread.add(&format!("{name} of {parent}"));
                            }
                        }
                        _ => {}
                    }
                    self.path.push(name);
                }
                Part::Close(name, text) => {
                    self.path.pop();
                    let parent = self.path.last().map(String::as_str);
                    match (name.as_str(), parent) {
                        ("Folder" | "Document", _) => drop(self.folders.pop()),
                        ("name", Some("Folder")) if !text.is_empty() => {
                            self.folders.last_mut().into_iter().for_each(|folder| *folder = Some(text.clone()));
                        }
                        _ => {}
                    }
                    // Styles may be long, and are not part of a placemark.
                    if parent.is_some_and(|parent| matches!(parent, "kml" | "Document" | "Folder")) {
                        self.xml.record_ends();
                    }
                }
                Part::End if self.begun => return Ok(None),
                Part::End => return Err(Fault::stop(Invalid::new("the input is empty: expected a KML document"))),
            }
        }
    }

    /// Reads a placemark to its end, and returns its features.
    fn placemark(&mut self, attributes: &[(String, String)]) -> Result<(), Fault> {
        let mut mark = Placemark::default();
        let mut path = vec!["Placemark".to_owned()];
        let mut mistake = None;
        while !path.is_empty() {
            match self.xml.next()? {
                Part::Open(name, attributes) => {
                    if name == "Model" {
                        self.unread.add(&name);
                    }
                    mark.opens(&name, &attributes);
                    path.push(name);
                }
                Part::Close(name, text) => {
                    path.pop();
                    let parent = path.last().map_or("", String::as_str);
                    // The placemark is read to its end before its mistake is reported, so that the next one can be
                    // read.
                    let closed = mark.closes(&name, parent, text, &self.types);
                    mistake = mistake.or(closed.err());
                }
                Part::End => break,
            }
        }
        if let Some(folder) = self.folders.iter().rev().flatten().next() {
            mark.properties.entry("folder").or_insert_with(|| folder.clone().into());
        }
        let id = attribute(attributes, "id").filter(|id| !id.is_empty());
        match mistake.map_or_else(|| mark.features(id), Err) {
            Ok(features) => self.ready.extend(features.into_iter().map(Ok)),
            Err(mistake) => self.ready.push_back(Err(mistake)),
        }
        Ok(())
    }
}

impl Placemark {
    fn opens(&mut self, name: &str, attributes: &[(String, String)]) {
        match name {
            "Data" | "SimpleData" => self.field = attribute(attributes, "name").map(str::to_owned),
            "Track" => self.tracks.push(Track::default()),
            "SimpleArrayData" => {
                if let Some((track, name)) = self.tracks.last_mut().zip(attribute(attributes, "name")) {
                    track.arrays.push((name.to_owned(), Vec::new()));
                }
            }
            "LookAt" | "Camera" => self.in_view = true,
            "MultiGeometry" => self.several = true,
            "Polygon" => self.rings.clear(),
            _ => {}
        }
    }

    fn closes(
        &mut self,
        name: &str,
        parent: &str,
        text: String,
        types: &HashMap<String, String>,
    ) -> Result<(), Invalid> {
        match (name, parent) {
            ("name" | "description" | "address", "Placemark") => self.set(name, text.into()),
            ("LookAt" | "Camera", _) => self.in_view = false,
            ("when", "TimeStamp") if !self.in_view => self.set("time", moment(&text).into()),
            ("begin" | "end", "TimeSpan") if !self.in_view => self.set(name, moment(&text).into()),
            ("value", "Data") => {
                if let Some(field) = self.field.take() {
                    let value = typed(&text, types.get(&field).map(String::as_str));
                    self.set(&field, value);
                }
            }
            ("SimpleData", _) => {
                if let Some(field) = self.field.take() {
                    let value = typed(&text, types.get(&field).map(String::as_str));
                    self.set(&field, value);
                }
            }
            ("coordinates", _) => self.coordinates = Some(coordinates(&text)?),
            ("Point", _) => {
                let at = self.coordinates.take().and_then(|all| all.get(0).cloned());
                self.shapes.extend(at.map(|at| json!({"type": "Point", "coordinates": at})));
            }
            ("LineString", _) => {
                let line = self.coordinates.take();
                self.shapes.extend(line.map(|line| json!({"type": "LineString", "coordinates": line})));
            }
            ("LinearRing", "outerBoundaryIs") => {
                let ring = self.coordinates.take();
                // The outer ring comes first, wherever it was written.
                ring.into_iter().for_each(|ring| self.rings.insert(0, ring));
            }
            ("LinearRing", "innerBoundaryIs") => self.rings.extend(self.coordinates.take()),
            ("LinearRing", _) => {
                let line = self.coordinates.take();
                self.shapes.extend(line.map(|line| json!({"type": "LineString", "coordinates": line})));
            }
            ("Polygon", _) if !self.rings.is_empty() => {
                let rings = std::mem::take(&mut self.rings);
                self.shapes.push(json!({"type": "Polygon", "coordinates": rings}));
            }
            ("value", "SimpleArrayData") => {
                if let Some((field, values)) = self.tracks.last_mut().and_then(|track| track.arrays.last_mut()) {
                    values.push(typed(&text, types.get(field.as_str()).map(String::as_str)));
                }
            }
            ("when", "Track") => self.tracks.last_mut().into_iter().for_each(|track| track.times.push(moment(&text))),
            ("coord", "Track") => {
                let at = coordinates(&text.split_whitespace().collect::<Vec<_>>().join(","))?;
                let at = at.get(0).cloned().unwrap_or(Value::Null);
                if let Some(track) = self.tracks.last_mut() {
                    track.places.push(at);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets a field once: the placemark's own elements take precedence over its data.
    fn set(&mut self, name: &str, value: Value) {
        if !value.is_null() && value != "" {
            self.properties.entry(name).or_insert(value);
        }
    }

    fn features(mut self, id: Option<&str>) -> Result<Vec<Value>, Invalid> {
        // Left by an element that is not known: without them the event would have no place.
        if self.coordinates.is_some() {
            let detail = "positions of an element that is no Point, LineString, LinearRing or Polygon";
            return Err(Invalid::field("coordinates", detail));
        }
        let mut features = Vec::new();
        for Track { times, places, arrays } in std::mem::take(&mut self.tracks) {
            if times.len() != places.len() {
                let detail = format!("a track of {} times and {} positions", times.len(), places.len());
                return Err(Invalid::field("Track", detail));
            }
            let is_other = |(_, values): &&(String, Vec<Value>)| !values.is_empty() && values.len() != times.len();
            if let Some((field, values)) = arrays.iter().find(is_other) {
                let detail = format!("a track of {} times and {} values of this field", times.len(), values.len());
                return Err(Invalid::field(shorten(field), detail));
            }
            for (n, (time, at)) in times.into_iter().zip(places).enumerate() {
                let mut properties = self.properties.clone();
                for (field, values) in &arrays {
                    if let Some(value) = values.get(n).filter(|value| **value != "") {
                        properties.insert(field.clone(), value.clone());
                    }
                }
                properties.insert("time".to_owned(), time.into());
                let geometry = if at.is_null() { at } else { json!({"type": "Point", "coordinates": at}) };
                features.push(json!({"type": "Feature", "geometry": geometry, "properties": properties}));
            }
        }
        if features.is_empty() || !self.shapes.is_empty() {
            let geometry = joined(self.shapes, self.several);
            let mut feature = json!({"type": "Feature", "geometry": geometry, "properties": self.properties});
            if let Some(id) = id {
                feature["id"] = id.into();
            }
            features.push(feature);
        }
        Ok(features)
    }
}

/// Combines several shapes into one: a multi form if all are of one kind, else a collection, which the reader of
/// features refuses.
fn joined(mut shapes: Vec<Value>, several: bool) -> Value {
    if shapes.len() < 2 {
        return shapes.pop().unwrap_or(Value::Null);
    }
    let kind = shapes[0]["type"].clone();
    if several && shapes.iter().all(|shape| shape["type"] == kind) {
        let parts: Vec<Value> = shapes.iter_mut().map(|shape| shape["coordinates"].take()).collect();
        return json!({"type": format!("Multi{}", kind.as_str().unwrap_or("")), "coordinates": parts});
    }
    json!({"type": "GeometryCollection", "geometries": shapes})
}

/// Parses positions of `lon,lat[,height]`, separated by blanks. A height of 0 means on the ground, and counts as none.
fn coordinates(text: &str) -> Result<Value, Invalid> {
    let position = |text: &str| {
        let wrong = || Invalid::field("coordinates", format!("{:?} where lon,lat was expected", shorten(text)));
        let numbers: Vec<f64> = text.split(',').map(|n| float(n.trim())).collect::<Option<_>>().ok_or_else(wrong)?;
        if !matches!(numbers.len(), 2 | 3) || numbers.iter().any(|n| !n.is_finite()) {
            return Err(wrong());
        }
        let kept = if numbers.get(2).is_some_and(|z| *z == 0.0) { 2 } else { numbers.len() };
        Ok(Value::from(numbers[..kept].to_vec()))
    };
    let positions = text.split_whitespace().map(position).collect::<Result<Vec<_>, _>>()?;
    Ok(positions.into())
}

/// Parses a time of XML Schema; a year or a month alone means its first day.
fn moment(text: &str) -> String {
    match text.len() {
        4 | 7 if !text.bytes().all(|b| b.is_ascii_digit() || b == b'-') => text.to_owned(),
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    }
}

/// Converts a value to the type that a schema gives it; it stays text if it does not fit.
fn typed(text: &str, kind: Option<&str>) -> Value {
    let value = match kind {
        Some("int" | "uint" | "short" | "ushort") => text.parse::<i64>().ok().map(Value::from),
        Some("float" | "double") => float(text).filter(|x| x.is_finite()).map(Value::from),
        Some("bool") => match text {
            "1" | "true" => Some(true.into()),
            "0" | "false" => Some(false.into()),
            _ => None,
        },
        _ => None,
    };
    value.unwrap_or_else(|| text.into())
}

impl Read for Kml {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.line.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            match self.feature() {
                Ok(Some(Ok(feature))) => self.line = io::Cursor::new(format!("{feature}\n").into_bytes()),
                Ok(Some(Err(mistake))) => {
                    let reason = mistake.to_string().replace('\n', " ");
                    self.line = io::Cursor::new(format!("{FAULT}{reason}\n").into_bytes());
                }
                Ok(None) => return Ok(0),
                Err(Fault::Event(mistake)) => return Err(io::Error::other(mistake)),
                Err(Fault::Stop(error)) => return Err(io_error(error)),
            }
        }
    }
}

/// A read error on its way through the reader of features, which unwraps it.
pub(super) fn io_error(error: ReadError) -> io::Error {
    match error {
        ReadError::Invalid(mut mistakes) if !mistakes.is_empty() => io::Error::other(mistakes.remove(0)),
        ReadError::Io(error) => error,
        ReadError::TooLong(bytes) => io::Error::other(crate::error::Halt::TooLong(bytes)),
        ReadError::Stopped => io::Error::other(crate::error::Halt::Stopped),
        other => io::Error::other(other.to_string()),
    }
}
