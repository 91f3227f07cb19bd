//! XML read element by element; at most one record is held.

use super::xml_text::XmlText;
use crate::error::{Fault, Halt, ReadError};
use crate::options::ReadOptions;
use meridian_model::Invalid;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::io::{self, BufRead, BufReader, Read};

/// Max nesting of elements.
const DEPTH_MAX: usize = 64;

/// The next item of a document.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    /// Start of an element, with its name without a prefix.
    Open(String, Vec<(String, String)>),
    /// End of an element: its name, and its own text outside child elements, without surrounding blanks.
    Close(String, String),
    End,
}

/// A document.
pub(crate) struct Xml {
    reader: Reader<LimitedSource>,
    buffer: Vec<u8>,
    /// The open elements, each with its text so far.
    open: Vec<(String, String)>,
    /// Whether an element without content has begun, and ends next.
    empty: bool,
}

impl Xml {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> Xml {
        let source = BufReader::with_capacity(64 << 10, XmlText::new(source));
        let limited = LimitedSource { source, used: 0, most: options.record_bytes };
        Xml { reader: Reader::from_reader(limited), buffer: Vec::new(), open: Vec::new(), empty: false }
    }

    /// Marks the end of a record: the following input may again be as long as a record.
    pub(crate) fn record_ends(&mut self) {
        self.reader.get_mut().used = 0;
    }

    /// Returns the next item.
    pub(crate) fn next(&mut self) -> Result<Part, Fault> {
        if std::mem::take(&mut self.empty) {
            return Ok(self.close());
        }
        loop {
            self.buffer.clear();
            let event = self.reader.read_event_into(&mut self.buffer).map_err(failed)?;
            match event {
                Event::Start(start) | Event::Empty(start) if self.open.len() >= DEPTH_MAX => {
                    let name = name(start.local_name().as_ref());
                    return Err(wrong(format!("the element {name} is nested more than {DEPTH_MAX} deep")));
                }
                Event::Start(start) => return opened(&mut self.open, &start),
                Event::Empty(start) => {
                    self.empty = true;
                    return opened(&mut self.open, &start);
                }
                Event::End(_) => return Ok(self.close()),
                Event::Eof if self.open.is_empty() => return Ok(Part::End),
                Event::Eof => {
                    return Err(wrong("it ends before its last element is closed: was it cut off?".to_owned()));
                }
                Event::Text(text) => {
                    let text = text.decode().map_err(|_| not_utf8())?;
                    say(&mut self.open, &text);
                }
                Event::CData(text) => {
                    let text = text.decode().map_err(|_| not_utf8())?;
                    say(&mut self.open, &text);
                }
                Event::GeneralRef(reference) => {
                    // No entity is ever declared here, so none can expand. Unknown ones stay as written.
                    let name = reference.decode().map_err(|_| not_utf8())?;
                    match (reference.resolve_char_ref(), quick_xml::escape::resolve_predefined_entity(&name)) {
                        (Ok(Some(sign)), _) => say(&mut self.open, sign.encode_utf8(&mut [0; 4])),
                        (_, Some(known)) => say(&mut self.open, known),
                        _ => say(&mut self.open, &format!("&{name};")),
                    }
                }
                _ => {}
            }
        }
    }

    fn close(&mut self) -> Part {
        let (name, text) = self.open.pop().unwrap_or_default();
        Part::Close(name, text.trim().to_owned())
    }
}

/// Adds to the text of the innermost element.
fn say(open: &mut [(String, String)], text: &str) {
    if let Some((_, inside)) = open.last_mut() {
        inside.push_str(text);
    }
}

fn opened(open: &mut Vec<(String, String)>, start: &BytesStart<'_>) -> Result<Part, Fault> {
    let own = name(start.local_name().as_ref());
    let mut attributes = Vec::new();
    // The parser's own check compares each name with all earlier ones, which is quadratic.
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|e| wrong(e.to_string()))?;
        let value = attribute.unescape_value().map_or_else(|_| name(&attribute.value), |text| text.into_owned());
        attributes.push((name(attribute.key.local_name().as_ref()), value));
    }
    open.push((own.clone(), String::new()));
    Ok(Part::Open(own, attributes))
}

/// Returns the value of an attribute.
pub(crate) fn attribute<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wrong(what: String) -> Fault {
    Fault::stop(Invalid::new(format!("not well-formed XML: {what}")))
}

fn not_utf8() -> Fault {
    Fault::stop(Invalid::new("the text is not UTF-8: expected UTF-8, or an XML declaration that names the encoding"))
}

/// Converts a parser error: a fault of the byte source, which it wraps, or of the document.
fn failed(error: quick_xml::Error) -> Fault {
    let quick_xml::Error::Io(io) = &error else { return wrong(error.to_string()) };
    let inner = io.get_ref();
    if let Some(halt) = inner.and_then(|inner| inner.downcast_ref::<Halt>()) {
        return io::Error::other(*halt).into();
    }
    match inner.and_then(|inner| inner.downcast_ref::<Invalid>()) {
        Some(mistake) => Fault::stop(mistake.clone()),
        None => Fault::Stop(ReadError::Io(io::Error::new(io.kind(), io.to_string()))),
    }
}

/// A source that fails if too much is read without the end of a record. The parser holds a text or a tag as a whole,
/// whatever its length.
struct LimitedSource {
    source: BufReader<XmlText>,
    used: usize,
    most: usize,
}

impl Read for LimitedSource {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.used += read;
        Ok(read)
    }
}

impl BufRead for LimitedSource {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used > self.most {
            let detail = format!("more than {} bytes without an end: a feature may not be longer", self.most);
            return Err(io::Error::other(Invalid::new(detail)));
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
        self.source.consume(bytes);
    }
}
