//! The text of an XML document as UTF-8, which the parser expects.

use crate::compress::peek;
use crate::utf16;
use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};
use memchr::memmem;
use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::io::{self, Cursor, Read};

/// First bytes of a document, among which its declaration is.
const HEAD_BYTES: usize = 256;
/// Bytes decoded at a time.
const CHUNK: usize = 32 << 10;

/// A document in the encoding that its byte order mark or its declaration names.
pub(super) struct XmlText {
    source: Box<dyn Read + Send>,
    begun: bool,
    /// `None` for UTF-8, which passes unchanged.
    decoder: Option<Decoder>,
    raw: Vec<u8>,
    text: Cursor<Vec<u8>>,
    ended: bool,
}

impl XmlText {
    pub(super) fn new(source: Box<dyn Read + Send>) -> XmlText {
        XmlText { source, begun: false, decoder: None, raw: Vec::new(), text: Cursor::default(), ended: false }
    }
}

impl Read for XmlText {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.begun, true) {
            let (head, source) = peek(std::mem::replace(&mut self.source, Box::new(io::empty())), HEAD_BYTES)?;
            self.source = source;
            let encoding = encoding_of(&head).map_err(io::Error::other)?;
            self.decoder = (encoding != UTF_8).then(|| encoding.new_decoder());
        }
        let Some(decoder) = &mut self.decoder else { return self.source.read(out) };
        loop {
            let read = self.text.read(out)?;
            if read > 0 || self.ended || out.is_empty() {
                return Ok(read);
            }
            self.raw.clear();
            let got = self.source.by_ref().take(CHUNK as u64).read_to_end(&mut self.raw)?;
            self.ended = got < CHUNK;
            let room = decoder.max_utf8_buffer_length_without_replacement(got).unwrap_or(4 * CHUNK);
            let mut text = String::with_capacity(room);
            let (result, _) = decoder.decode_to_string_without_replacement(&self.raw, &mut text, self.ended);
            if result != DecoderResult::InputEmpty {
                let detail = format!("the text is not {}, the encoding that it names", decoder.encoding().name());
                return Err(io::Error::other(Invalid::new(detail)));
            }
            self.text = Cursor::new(text.into_bytes());
        }
    }
}

/// Returns the encoding of a document by its first bytes: that of a byte order mark, else that of the declaration.
fn encoding_of(head: &[u8]) -> Result<&'static Encoding, Invalid> {
    if let Some((marked, _)) = Encoding::for_bom(head) {
        return Ok(marked);
    }
    // XML 1.0, appendix F: the first two characters, "<?" or the first of an element, show the order of the bytes.
    if let Some(shown) = utf16::unmarked(head) {
        return Ok(shown);
    }
    let Some(label) = declared(head) else { return Ok(UTF_8) };
    // A declaration that reads as ASCII is not in UTF-16, whatever it says: such a document counts as UTF-8.
    Encoding::for_label_no_replacement(label).map(Encoding::output_encoding).ok_or_else(|| {
        let label = String::from_utf8_lossy(label);
        Invalid::new(format!(
            "the encoding {:?} is not read: convert it with iconv -t utf-8, and leave it out of the XML declaration",
            shorten(&label)
        ))
    })
}

/// Returns the encoding that an XML declaration names.
fn declared(head: &[u8]) -> Option<&[u8]> {
    let rest = head.strip_prefix(b"<?xml")?;
    let declaration = &rest[..memmem::find(rest, b"?>")?];
    let named = &declaration[memmem::find(declaration, b"encoding")? + b"encoding".len()..];
    let (quote, label) = named.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start().split_first()?;
    label.split(|byte| byte == quote).next()
}
