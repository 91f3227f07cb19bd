//! The encodings of the texts in a dBASE table.

use crate::reference::convert;
use encoding_rs::{Encoding, UTF_8};
use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::borrow::Cow;

/// The encoding of the texts of a table.
pub(super) enum TextEncoding {
    Known(&'static Encoding),
    /// No file names one: mostly UTF-8 today.
    Undeclared,
    /// One that is not decoded here, by its name.
    Other(String),
}

impl TextEncoding {
    /// Returns the encoding that a `.cpg` file names, else that of the language in the header.
    pub(super) fn of(named: Option<&str>, language: u8) -> TextEncoding {
        let label = named.unwrap_or("").trim().trim_matches('\u{feff}').trim();
        if label.is_empty() && language == 0 {
            return TextEncoding::Undeclared;
        }
        if let Some(known) = Encoding::for_label(label.as_bytes()) {
            return TextEncoding::Known(known);
        }
        let digits: String = label.chars().filter(char::is_ascii_digit).collect();
        let page = if label.is_empty() { page_of(language) } else { digits.parse().unwrap_or(0) };
        match encoding_of(page) {
            Some(known) => TextEncoding::Known(known),
            None if !label.is_empty() => TextEncoding::Other(format!("the encoding {:?}", shorten(label))),
            None if page > 0 => TextEncoding::Other(format!("the code page {page}")),
            None => TextEncoding::Other(format!("the encoding of language {language:#04x}")),
        }
    }

    /// Decodes a text. `fills_field`: no byte of its field is left, so its last character may be cut.
    ///
    /// # Errors
    /// A text in another encoding: one with replacement characters would lose letters silently.
    pub(super) fn text<'a>(&self, bytes: &'a [u8], fills_field: bool) -> Result<Cow<'a, str>, Invalid> {
        let decoded = match self {
            TextEncoding::Known(encoding) if *encoding == UTF_8 => utf8(bytes, fills_field),
            TextEncoding::Known(encoding) => encoding.decode_without_bom_handling_and_without_replacement(bytes),
            TextEncoding::Undeclared => utf8(bytes, false),
            // ASCII is the same in all of them.
            TextEncoding::Other(_) => bytes.is_ascii().then(|| String::from_utf8_lossy(bytes)),
        };
        decoded.ok_or_else(|| self.refusal())
    }

    fn refusal(&self) -> Invalid {
        Invalid::new(match self {
            TextEncoding::Known(encoding) => {
                format!("the text is not {}, which the .cpg or .dbf file names: correct the .cpg file", encoding.name())
            }
            TextEncoding::Undeclared => {
                "the text is not UTF-8: name its encoding, such as windows-1252, in a .cpg file beside the .dbf file"
                    .to_owned()
            }
            TextEncoding::Other(name) => format!("a text in {name} is not supported: {}", convert()),
        })
    }
}

/// Decodes UTF-8; `may_be_cut`: writers cut a long text at the width of its field, in the middle of a character.
fn utf8(bytes: &[u8], may_be_cut: bool) -> Option<Cow<'_, str>> {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => return Some(Cow::Borrowed(text)),
        Err(error) if may_be_cut && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return None,
    };
    std::str::from_utf8(&bytes[..whole]).ok().map(Cow::Borrowed)
}

/// Returns the code page of a language in the header of a table; 0 if none is known.
fn page_of(language: u8) -> u32 {
    match language {
        0x01 | 0x09 | 0x0b | 0x0d | 0x0f | 0x11 | 0x15 | 0x18 | 0x19 | 0x1b => 437,
        0x02 | 0x0a | 0x0e | 0x10 | 0x12 | 0x14 | 0x16 | 0x1a | 0x1d | 0x25 | 0x37 => 850,
        0x03 | 0x57 | 0x58 | 0x59 => 1252,
        0x04 => 10_000,
        0x08 | 0x17 | 0x66 => 865,
        0x1c | 0x6c => 863,
        0x1f | 0x22 | 0x23 | 0x40 | 0x64 | 0x87 => 852,
        0x24 => 860,
        0x26 | 0x65 => 866,
        0x67 => 861,
        0x6a | 0x86 => 737,
        0x6b | 0x88 => 857,
        0x13 | 0x7b => 932,
        0x4d | 0x7a => 936,
        0x4e | 0x79 => 949,
        0x4f | 0x78 => 950,
        0x50 | 0x7c => 874,
        0x7d => 1255,
        0x7e => 1256,
        0x96 => 10_007,
        0xc8 => 1250,
        0xc9 => 1251,
        0xca => 1254,
        0xcb => 1253,
        0xcc => 1257,
        _ => 0,
    }
}

/// Returns the encoding of a code page, in the numbers of Windows or in those of ArcGIS (88591 for ISO 8859-1).
fn encoding_of(page: u32) -> Option<&'static Encoding> {
    let label = match page {
        65_001 => "utf-8".to_owned(),
        866 => "ibm866".to_owned(),
        874 | 1250..=1258 => format!("windows-{page}"),
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        10_000 => "macintosh".to_owned(),
        10_007 => "x-mac-cyrillic".to_owned(),
        28_591..=28_606 => format!("iso-8859-{}", page - 28_590),
        88_591..=88_599 => format!("iso-8859-{}", page - 88_590),
        885_910..=885_916 => format!("iso-8859-{}", page - 885_900),
        _ => return None,
    };
    Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(named: Option<&str>, language: u8, bytes: &[u8]) -> Result<String, String> {
        let text = TextEncoding::of(named, language).text(bytes, false);
        text.map(Cow::into_owned).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn texts_are_read_in_the_encoding_that_is_named_and_in_no_other() {
        for (named, language, bytes, expected) in [
            (None, 0, "Café".as_bytes(), "Café"),
            (Some("UTF-8\r\n"), 0x57, "Café".as_bytes(), "Café"),
            (Some("65001"), 0, "Café".as_bytes(), "Café"),
            (None, 0x57, b"Caf\xe9", "Café"),
            (Some("ISO-8859-1"), 0, b"Caf\xe9", "Café"),
            (Some("88591"), 0, b"Caf\xe9", "Café"),
            (Some("885915"), 0, b"\xa4", "€"),
            (Some("28595"), 0, b"\xbc", "М"),
            (Some("ANSI 1251"), 0x57, b"\xcc", "М"),
            (None, 0xc9, b"\xcc", "М"),
            (None, 0x65, b"\x8c", "М"),
            (None, 0x26, b"\x8c", "М"),
            (None, 0xcb, b"\xcc", "Μ"),
            (Some("936"), 0, b"\xd6\xd0", "中"),
            (None, 0x79, b"\xb0\xa1", "가"),
            // ASCII is the same in encodings that are not known.
            (None, 0x02, b"Cafe", "Cafe"),
            (Some("who knows"), 0, b"Cafe", "Cafe"),
        ] {
            assert_eq!(read(named, language, bytes).as_deref(), Ok(expected), "{named:?} {language:#x}");
        }
        for (named, language, bytes, said) in [
            (None, 0, &b"Caf\xe9"[..], "in a .cpg file"),
            (None, 0, b"Caf\xe9 noir", "in a .cpg file"),
            (Some("UTF-8"), 0, b"Caf\xe9", "not UTF-8"),
            (None, 0x02, b"Caf\x82", "the code page 850"),
            (Some("OEM 437"), 0, b"Caf\x82", "the encoding \"OEM 437\""),
            (None, 0xff, b"Caf\x82", "language 0xff"),
        ] {
            let refusal = read(named, language, bytes).unwrap_err();
            assert!(refusal.contains(said), "{named:?} {language:#x}: {refusal}");
        }
    }

    #[test]
    fn a_character_that_the_width_of_the_field_cut_is_left_out() {
        let named = TextEncoding::of(Some("UTF-8"), 0);
        assert_eq!(named.text(b"Caf\xc3", true).as_deref(), Ok("Caf"));
        assert!(named.text(b"Caf\xc3", false).is_err() && named.text(b"C\xc3f", true).is_err());
        // Without a name it is as likely a letter of another encoding.
        assert!(TextEncoding::of(None, 0).text(b"Caf\xc3", true).is_err());
    }
}
