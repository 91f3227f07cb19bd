//! Strings of a JSON text, and their escapes.

use super::Json;
use meridian_model::Invalid;
use std::borrow::Cow;

impl<'a> Json<'a> {
    /// Reads a string in double quotes, borrowed if nothing in it is escaped.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, Invalid> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a string"));
        }
        let from = self.at + 1;
        let mut end = from;
        loop {
            match self.bytes().get(end) {
                Some(b'"') => {
                    self.at = end + 1;
                    return Ok(Cow::Borrowed(&self.text[from..end]));
                }
                // Most strings have no escape, and are borrowed from the text without a copy.
                Some(b'\\') => return self.string_with_escapes(from, end),
                Some(0..=0x1f) => {
                    self.at = end;
                    return Err(self.wrong("a string without control characters"));
                }
                Some(_) => end += 1,
                None => {
                    self.at = end;
                    return Err(self.wrong("the string's closing quote"));
                }
            }
        }
    }

    fn string_with_escapes(&mut self, from: usize, first_escape: usize) -> Result<Cow<'a, str>, Invalid> {
        let mut out = String::with_capacity(first_escape - from + 32);
        let (mut plain, mut end) = (from, first_escape);
        loop {
            match self.bytes().get(end) {
                Some(b'"') => {
                    out.push_str(&self.text[plain..end]);
                    self.at = end + 1;
                    return Ok(Cow::Owned(out));
                }
                Some(b'\\') => {
                    out.push_str(&self.text[plain..end]);
                    self.at = end;
                    out.push(self.escape()?);
                    plain = self.at;
                    end = self.at;
                }
                Some(0..=0x1f) => {
                    self.at = end;
                    return Err(self.wrong("a string without control characters"));
                }
                Some(_) => end += 1,
                None => {
                    self.at = end;
                    return Err(self.wrong("the string's closing quote"));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Invalid> {
        let kind = self.bytes().get(self.at + 1).copied();
        let plain = match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex(self.at + 2)?;
                if !(0xd800..0xe000).contains(&high) {
                    self.at += 6;
                    // Not a surrogate, so it is a character.
                    return Ok(char::from_u32(high).unwrap_or('\u{fffd}'));
                }
                // A character beyond 16 bits is written as two escapes. Half of such a pair is not a character, and
                // Rust text cannot hold it.
                if high < 0xdc00 && self.bytes().get(self.at + 6..self.at + 8) == Some(b"\\u") {
                    let low = self.hex(self.at + 8)?;
                    if (0xdc00..0xe000).contains(&low) {
                        self.at += 12;
                        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                }
                return Err(self.wrong("a pair of surrogates"));
            }
            _ => return Err(self.wrong("an escape such as \\n or \\u00e9")),
        };
        self.at += 2;
        Ok(plain)
    }

    fn hex(&self, from: usize) -> Result<u32, Invalid> {
        let digits = self.bytes().get(from..from + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u32::from_str_radix(d, 16).ok());
        digits.ok_or_else(|| self.wrong("four hexadecimal digits after \\u"))
    }
}
