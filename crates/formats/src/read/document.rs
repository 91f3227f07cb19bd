//! A GeoJSON document: one feature, a collection followed feature by feature, or an array of features or flat objects.

use super::feature::{FeatureSetter, check_crs};
use super::{Records, Step, json_or_text};
use crate::error::Fault;
use crate::input::{Input, RecordEnd, utf8};
use crate::json::Json;
use crate::options::ReadOptions;
use crate::survey::EventNotes;
use meridian_model::{BatchBuilder, Crs, Invalid, Schema};
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

/// Events of a GeoJSON document, of which one feature is held at a time.
pub(crate) struct Document {
    features: Features,
    setter: FeatureSetter,
}

impl Document {
    pub(crate) fn new(source: Box<dyn Read + Send>, schema: Arc<Schema>, options: &ReadOptions) -> Document {
        Document { features: Features::new(source, options), setter: FeatureSetter::new(schema, options) }
    }
}

impl Records for Document {
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault> {
        let setter = &mut self.setter;
        let set = |text: &str, is_element| match is_element {
            true => setter.object(text, builder).map_err(Fault::from),
            false => setter.feature(text, builder).map_err(Fault::from),
        };
        match self.features.next_with(set)? {
            Some(()) => Ok(Step::Event),
            None => Ok(Step::End),
        }
    }

    fn line(&self) -> u64 {
        self.features.ordinal
    }

    fn noted(&mut self) -> EventNotes {
        self.setter.survey.take()
    }

    fn raw(&self) -> Option<String> {
        Some(json_or_text(self.features.last()))
    }
}

/// Cuts a GeoJSON document, or an array, into the texts of its features or objects.
pub(crate) struct Features {
    input: Input,
    place: State,
    /// Whether the document is an array, as many services return it, and no GeoJSON object.
    is_array: bool,
    /// Ordinal of the last feature returned, from 1.
    pub(crate) ordinal: u64,
    /// Members before `features`, kept because the document may itself be a feature.
    head: Vec<u8>,
    kind: Option<String>,
    record_bytes: usize,
    crs: Crs,
    /// Position in the input of the last feature returned; `None` if it is the head.
    last: Option<Range<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Features { first: bool },
    End,
}

impl Features {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> Features {
        Features {
            input: Input::new(source, options).with_lines(),
            place: State::Start,
            is_array: false,
            ordinal: 0,
            head: Vec::new(),
            kind: None,
            record_bytes: options.record_bytes,
            crs: options.crs,
            last: None,
        }
    }

    /// Passes the text of the next feature to `take`, with whether it is an element of an array, which may be a flat
    /// object too; `None` after the last one.
    pub(crate) fn next_with<T>(
        &mut self,
        take: impl FnOnce(&str, bool) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        if self.place == State::Start {
            if !self.open()? {
                // A document without features is one feature, made of the members seen so far.
                self.place = State::End;
                self.ordinal = 1;
                return take(utf8(&self.head)?, false).map(Some);
            }
            self.place = State::Features { first: true };
        }
        let State::Features { first } = self.place else { return Ok(None) };
        match self.next_byte("',' or ']'")? {
            b']' => {
                self.input.consume(1);
                self.place = State::End;
                if !self.is_array {
                    self.close()?;
                }
                self.finish()?;
                return Ok(None);
            }
            b',' if !first => self.input.consume(1),
            _ if first => {}
            found => return Err(self.wrong("',' or ']' after a feature", found)),
        }
        self.place = State::Features { first: false };
        self.ordinal += 1;
        let range = self.value()?;
        self.last = Some(range.clone());
        let text = utf8(self.input.bytes(range.clone())).map_err(Fault::from);
        text.and_then(|text| take(text, self.is_array)).map(Some).map_err(|fault| placed(fault, &self.input, range))
    }

    /// Returns the bytes of the last feature returned.
    fn last(&self) -> &[u8] {
        self.last.clone().map_or(&self.head, |range| self.input.bytes(range))
    }

    /// Reads members up to the array of features; returns false if there is none.
    fn open(&mut self) -> Result<bool, Fault> {
        let Some(found) = self.input.next_byte()? else {
            return Err(Fault::stop(Invalid::new("the input is empty: expected a GeoJSON object").at_line(1)));
        };
        if !matches!(found, b'{' | b'[') {
            return Err(self.wrong("a GeoJSON object", found));
        }
        self.input.consume(1);
        if found == b'[' {
            self.is_array = true;
            return Ok(true);
        }
        self.head.push(b'{');
        let (mut first, mut listed) = (true, false);
        while let Some(key) = self.member(&mut first)? {
            // A single feature may carry a foreign member `features`, which is not a collection.
            if key == "features" && self.kind.as_deref() != Some("Feature") {
                if std::mem::replace(&mut listed, true) {
                    return Err(listed_twice());
                }
                if self.next_byte("a value")? == b'[' {
                    self.input.consume(1);
                    return Ok(true);
                }
            }
            let range = self.value()?;
            let value = self.input.bytes(range);
            // Members before the features are kept, since the document may turn out to be one feature. That memory has
            // the same bound as a feature.
            if self.head.len() + value.len() > self.record_bytes {
                return Err(Fault::stop(
                    Invalid::new(format!("a feature of more than {} bytes is too long", self.record_bytes)).at_line(1),
                ));
            }
            look_at_member(&key, value, &mut self.kind, self.crs)?;
            if self.head.len() > 1 {
                self.head.push(b',');
            }
            crate::json_text::escape(&key, &mut self.head);
            self.head.push(b':');
            self.head.extend_from_slice(value);
        }
        self.head.push(b'}');
        if self.kind.as_deref() == Some("FeatureCollection") {
            return Err(Fault::stop(Invalid::field("features", "the FeatureCollection has no array of features")));
        }
        self.finish()?;
        Ok(false)
    }

    /// Reads the members after the array of features.
    fn close(&mut self) -> Result<(), Fault> {
        let mut first = false;
        while let Some(key) = self.member(&mut first)? {
            // Its events would be lost: those of the first array are read.
            if key == "features" {
                return Err(listed_twice());
            }
            let range = self.value()?;
            look_at_member(&key, self.input.bytes(range), &mut self.kind, self.crs)?;
        }
        // `type` may be the last member, so it is checked only after the features.
        if self.kind.as_deref() != Some("FeatureCollection") {
            return Err(Fault::stop(Invalid::field(
                "type",
                "expected a GeoJSON object of \"type\":\"FeatureCollection\"",
            )));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        match self.input.next_byte()? {
            None => Ok(()),
            Some(_) => Err(Fault::stop(Invalid::new(
                "something follows the end of the document; objects a line each are read as ndjson",
            ))),
        }
    }

    /// Returns the next key of the document and takes its colon; `None` after the last one.
    fn member(&mut self, first: &mut bool) -> Result<Option<String>, Fault> {
        match self.next_byte("',' or '}'")? {
            b'}' => {
                self.input.consume(1);
                return Ok(None);
            }
            b',' if !*first => self.input.consume(1),
            b'"' if *first => {}
            found => return Err(self.wrong("a member or '}'", found)),
        }
        *first = false;
        match self.next_byte("a key")? {
            b'"' => {}
            found => return Err(self.wrong("a key in double quotes", found)),
        }
        let range = self.value()?;
        let key = Json::new(utf8(self.input.bytes(range))?).string().map_err(Fault::stop)?.into_owned();
        match self.next_byte("':'")? {
            b':' => self.input.consume(1),
            found => return Err(self.wrong("':'", found)),
        }
        Ok(Some(key))
    }

    /// Takes one value whole, following only quotes and brackets.
    fn value(&mut self) -> Result<Range<usize>, Fault> {
        let found = self.next_byte("a value")?;
        if matches!(found, b',' | b':' | b']' | b'}') {
            return Err(self.wrong("a value", found));
        }
        let mut extent = Extent::default();
        let line = self.ordinal.max(1);
        let found = self.input.record(line, |bytes, from| match extent.follow(bytes, from) {
            Some(end) => RecordEnd::At(end),
            None => RecordEnd::More(bytes.len()),
        })?;
        match found {
            Some((range, false)) => Ok(range),
            _ => Err(self.cut_off("the end of a value")),
        }
    }

    fn next_byte(&mut self, expected: &str) -> Result<u8, Fault> {
        match self.input.next_byte()? {
            Some(byte) => Ok(byte),
            None => Err(self.cut_off(expected)),
        }
    }

    fn cut_off(&self, expected: &str) -> Fault {
        self.at(Invalid::new(format!("the document ends where {expected} was expected: was it cut off?")))
    }

    fn wrong(&self, expected: &str, found: u8) -> Fault {
        self.at(Invalid::new(format!("not JSON: {expected} was expected, found {:?}", char::from(found))))
    }

    fn at(&self, mistake: Invalid) -> Fault {
        Fault::stop(on_line(mistake, self.input.line_here()).at_line(self.ordinal.max(1)))
    }
}

/// Adds to a mistake in a feature the line of the feature, or of what is not JSON in it, if the input counts its lines.
pub(crate) fn placed(fault: Fault, input: &Input, feature: Range<usize>) -> Fault {
    let Fault::Event(mistake) = fault else { return fault };
    let not_json = utf8(input.bytes(feature.clone())).ok().and_then(|text| {
        let mut json = Json::new(text);
        json.skip().is_err().then(|| json.at())
    });
    Fault::Event(on_line(mistake, input.line_of(feature.start + not_json.unwrap_or(0))))
}

/// Adds the line in a document of several, to the sentence and beside it. Mistakes are counted by features: a document
/// may be one line.
fn on_line(mistake: Invalid, line: Option<u64>) -> Invalid {
    match line {
        // A command stays last, as the name of the input comes after it.
        Some(line) if line > 1 && !mistake.detail.ends_with(crate::reference::INPUT) => {
            Invalid { detail: format!("{} (on line {line})", mistake.detail), on_line: Some(line), ..mistake }
        }
        _ => mistake,
    }
}

fn listed_twice() -> Fault {
    Fault::stop(Invalid::field("features", "the document has two members named features"))
}

fn look_at_member(key: &str, value: &[u8], kind: &mut Option<String>, crs: Crs) -> Result<(), Fault> {
    match key {
        "type" if kind.is_some() => Err(Fault::stop(Invalid::field("type", "the document has two members named type"))),
        "type" => {
            let name = Json::new(utf8(value)?).string().map(|name| name.into_owned());
            *kind = Some(name.map_err(|_| Fault::stop(Invalid::field("type", "expected a text")))?);
            Ok(())
        }
        "crs" => check_crs(&mut Json::new(utf8(value)?), crs).map_err(Fault::stop),
        _ => Ok(()),
    }
}

/// A search for the end of a value, which it does not interpret.
#[derive(Default)]
struct Extent {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Extent {
    /// Returns the offset after the value, once its end is seen.
    fn follow(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while at < bytes.len() {
            if self.in_string {
                if std::mem::take(&mut self.escaped) {
                    at += 1;
                    continue;
                }
                // Only two bytes matter inside a string. Skipping to them is several times as fast as testing each
                // byte.
                let next = memchr::memchr2(b'"', b'\\', &bytes[at..])?;
                at += next + 1;
                if bytes[at - 1] == b'\\' {
                    self.escaped = true;
                } else {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                continue;
            }
            match bytes[at] {
                b'"' if self.depth == 0 && at > 0 => return Some(at),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                // A bare value (a number, `true`) ends before the bracket of its container, not after.
                b'}' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => return Some(at),
                _ => {}
            }
            at += 1;
        }
        None
    }
}
