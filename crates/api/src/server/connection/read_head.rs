//! What is kept of a head while it is read, for a refusal by the HTTP/1.1 library: it does not pass on the head.

use axum::http::{HeaderMap, HeaderValue, header};

/// Max bytes kept of a line. An `Origin` of more is no origin that the settings list.
const LINE_BYTES_MAX: usize = 512;
const ORIGIN: &[u8] = b"origin:";

/// The first line of a head, as far as it was read: a method, a target and a version, separated by spaces.
#[derive(Default)]
pub struct RequestLine {
    /// Its length.
    pub bytes: usize,
    start: [u8; 5],
    ended: bool,
    spaces: usize,
    /// The first byte of the target that a URL may contain only in escaped form.
    pub unescaped: Option<u8>,
}

impl RequestLine {
    /// Reads further bytes of the connection.
    pub fn read(&mut self, bytes: &[u8]) {
        if self.ended {
            return;
        }
        let end = memchr::memchr(b'\n', bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        self.ended = end.is_some();
        self.start.iter_mut().skip(self.bytes).zip(part).for_each(|(kept, byte)| *kept = *byte);
        self.bytes += part.len();
        // Branchless counting is fast, and nearly every line is well-formed.
        let spaces = part.iter().filter(|byte| **byte == b' ').count();
        let is_well_formed = part.iter().filter(|byte| is_unescaped(**byte)).count() == 0;
        if is_well_formed && self.spaces + spaces <= 2 {
            self.spaces += spaces;
            return;
        }
        for &byte in part {
            self.spaces += usize::from(byte == b' ');
            let is_wrong = match byte {
                b' ' => self.spaces == 3,
                _ => self.spaces == 1 && is_unescaped(byte),
            };
            if is_wrong {
                self.unescaped = self.unescaped.or(Some(byte));
            }
        }
    }

    /// Returns whether the response has no body (RFC 9110, 9.3.2).
    pub fn is_head(&self) -> bool {
        self.start == *b"HEAD "
    }
}

/// Returns whether a URL may contain this byte, which is not a space, only in escaped form.
fn is_unescaped(byte: u8) -> bool {
    byte < b'\r' || matches!(byte, b'"' | b'<' | b'>' | b'`')
}

/// The field `Origin` of a head, as far as the head was read.
#[derive(Default)]
pub struct OriginField {
    /// The start of the current line.
    line: Vec<u8>,
    begun: bool,
    ended: bool,
    /// At most two values: more than one is as none.
    found: HeaderMap,
}

impl OriginField {
    /// Reads further bytes of the connection.
    pub fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.ended && !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest);
            let part = &rest[..end.unwrap_or(rest.len())];
            let room = LINE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let Some(end) = end else { return };
            rest = &rest[end + 1..];
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = self.line.trim_ascii_end();
        // The library skips empty lines before a head.
        self.ended = self.begun && line.is_empty();
        self.begun |= !line.is_empty();
        if let Some((name, value)) = line.split_at_checked(ORIGIN.len())
            && name.eq_ignore_ascii_case(ORIGIN)
            && self.line.len() < LINE_BYTES_MAX
            && self.found.len() < 2
            && let Ok(value) = HeaderValue::from_bytes(value.trim_ascii())
        {
            self.found.append(header::ORIGIN, value);
        }
        self.line.clear();
    }

    /// Returns the field.
    pub fn found(&self) -> &HeaderMap {
        &self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However a request line is split, its length and the first unescaped byte of its target are detected.
        #[test]
        fn a_line_is_read_in_any_parts(
            text in "(HEAD |HEA|)[GET /a<\"\t`>]{0,12}( |)[/a<> ]{0,6}( HTTP|)\n{0,2}[a< ]{0,4}",
            cuts in prop::collection::vec(0..32usize, 0..4),
        ) {
            let (bytes, mut line, mut from) = (text.as_bytes(), RequestLine::default(), 0);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            for cut in cuts.into_iter().chain([bytes.len()]) {
                line.read(&bytes[from..cut]);
                from = cut;
            }
            let first = text.split('\n').next().unwrap_or_default();
            // The target, plus everything after a third space: the line then has too many parts.
            let mut parts = first.splitn(3, ' ').skip(1);
            let in_target = parts.next().and_then(|target| target.bytes().find(|byte| is_unescaped(*byte)));
            let third = parts.next().and_then(|rest| rest.contains(' ').then_some(b' '));
            prop_assert_eq!((line.bytes, line.unescaped), (first.len(), in_target.or(third)));
            prop_assert_eq!(line.is_head(), first.starts_with("HEAD "));
        }
    }

    #[test]
    fn an_origin_is_found_in_any_parts_of_a_head_and_not_beyond_it() {
        let long = format!("GET / HTTP/1.1\r\nOrigin: a{}\r\n", " ".repeat(LINE_BYTES_MAX));
        for (text, expected) in [
            ("\r\nGET / HTTP/1.1\r\nHost: h\r\noRIGIN:  https://a.example \r\n\r\n", &["https://a.example"][..]),
            ("GET / HTTP/1.1\nOrigin: a\nX-Origin: b\nBad Name: 1\n", &["a"]),
            ("GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: b\r\nOrigin: c\r\n", &["a", "b"]),
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\nOrigin: a\r\n", &[]),
            ("GET / HTTP/1.1\r\nOrigin: https://a.exam", &[]),
            (&*long, &[]),
        ] {
            for part in [1, 7, text.len()] {
                let mut origin = OriginField::default();
                text.as_bytes().chunks(part).for_each(|bytes| origin.read(bytes));
                let found: Vec<_> = origin.found().get_all(header::ORIGIN).iter().collect();
                assert_eq!(found, expected, "{text:?}");
            }
        }
    }
}
