//! Texts in UTF-16, known by their first bytes.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// First bytes that show the encoding.
pub(crate) const HEAD_BYTES: usize = 4;

/// Returns the encoding of a text without a byte order mark whose first two characters are below U+0100. Of control
/// characters a text begins with white space alone, or with the separator of a sequence (RFC 8142).
pub(crate) fn unmarked(first: &[u8]) -> Option<&'static Encoding> {
    let is_text = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x1e | b' '..=b'~' | 0xa0..);
    match *first {
        [a, 0, b, 0, ..] if is_text(a) && is_text(b) => Some(UTF_16LE),
        [0, a, 0, b, ..] if is_text(a) && is_text(b) => Some(UTF_16BE),
        _ => None,
    }
}

/// Returns the encoding of a text by its byte order mark.
pub(crate) fn marked(first: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(first).map(|(encoding, _)| encoding).filter(|encoding| *encoding != UTF_8)
}

/// Returns the beginning of an input as UTF-8 if it is in UTF-16, else unchanged.
pub(crate) fn as_utf8(first: &[u8]) -> Cow<'_, [u8]> {
    match marked(first).or_else(|| unmarked(first)) {
        None => Cow::Borrowed(first),
        Some(encoding) => Cow::Owned(encoding.decode_with_bom_removal(first).0.into_owned().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_order_is_known_with_a_mark_and_without() {
        for text in ["<?xml version=\"1.0\"?>", "<kml>", "{\"a\":\"é\"}", "é,b\n", "a\n", "\u{1e}{}"] {
            for mark in ["\u{feff}", ""] {
                let units = || mark.encode_utf16().chain(text.encode_utf16());
                let (low, high): (Vec<u8>, Vec<u8>) =
                    (units().flat_map(u16::to_le_bytes).collect(), units().flat_map(u16::to_be_bytes).collect());
                let known = |bytes: &[u8]| if mark.is_empty() { unmarked(bytes) } else { marked(bytes) };
                assert_eq!((known(&low), known(&high)), (Some(UTF_16LE), Some(UTF_16BE)), "{mark:?} {text}");
                for bytes in [low, high] {
                    assert_eq!(&*as_utf8(&bytes), text.as_bytes(), "{mark:?} {text}");
                }
            }
        }
        for bytes in [
            &b"a\0b"[..],
            b"a\0\0\0",
            b"\0\0\0a",
            b"a,b\n",
            b"\xef\xbb\xbfa",
            b"\0\0\x27\x0a",
            b"a\0bc",
            b"\x03\0\x01\0",
        ] {
            assert_eq!(&*as_utf8(bytes), bytes);
        }
    }
}
