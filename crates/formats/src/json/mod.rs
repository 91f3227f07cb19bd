//! A pull parser for one JSON text held in memory.
//!
//! Hand-written because it is the hot path of every JSON format: values go from the text straight into columns,
//! without an intermediate tree. Property tests compare it with serde_json.

mod strings;

use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::borrow::Cow;

/// Max nesting depth.
pub(crate) const DEPTH_MAX: u32 = 64;

/// A position in a JSON text. Copies are cheap: keep one to return to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

/// A number as written: a 64-bit integer, or any other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }
}

/// A scalar value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
}

impl<'a> Json<'a> {
    pub(crate) fn new(text: &'a str) -> Json<'a> {
        Json { text, at: 0, depth: 0 }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Returns the offset in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the text between two offsets that this parser returned.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'a str {
        &self.text[from..to]
    }

    #[cold]
    pub(crate) fn wrong(&self, expected: &str) -> Invalid {
        let before = self.text.get(..self.at).unwrap_or("");
        // In several lines it would be a character of one of them, while the reader names the line of the event.
        let place = match self.text.trim_ascii_end().contains('\n') {
            true => String::new(),
            false => format!(" at character {}", before.chars().count() + 1),
        };
        let detail = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => format!("not JSON: {expected} was expected{place}, found {found:?}"),
            None => format!("not JSON: {expected} was expected{place}, where the text ends"),
        };
        Invalid::new(detail)
    }

    /// Returns the next byte that is not whitespace, without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn open(&mut self, byte: u8, name: &str) -> Result<(), Invalid> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(name));
        }
        // `skip` recurses once for each level: without a limit, a few kilobytes of brackets would overflow the stack.
        if self.depth == DEPTH_MAX {
            return Err(Invalid::new(format!("JSON nested deeper than {DEPTH_MAX} levels is not supported")));
        }
        self.at += 1;
        self.depth += 1;
        Ok(())
    }

    /// Enters an object; follow with [`Json::key`] until it returns `None`.
    pub(crate) fn open_object(&mut self) -> Result<(), Invalid> {
        self.open(b'{', "'{'")
    }

    /// Enters an array; follow with [`Json::element`] until it returns `false`.
    pub(crate) fn open_array(&mut self) -> Result<(), Invalid> {
        self.open(b'[', "'['")
    }

    /// Returns the next key of an object and takes its colon; `None` after the last one. `first` starts as `true`.
    #[inline]
    pub(crate) fn key(&mut self, first: &mut bool) -> Result<Option<Cow<'a, str>>, Invalid> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                self.depth -= 1;
                return Ok(None);
            }
            Some(b',') if !*first => self.at += 1,
            Some(_) if *first => {}
            _ => return Err(self.wrong("',' or '}'")),
        }
        *first = false;
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a key in double quotes"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.wrong("':'"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Returns whether an array has another element, and takes its comma. `first` starts as `true`.
    #[inline]
    pub(crate) fn element(&mut self, first: &mut bool) -> Result<bool, Invalid> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if !*first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if *first => {
                *first = false;
                Ok(true)
            }
            _ => Err(self.wrong("',' or ']'")),
        }
    }

    /// Reads a number.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number, Invalid> {
        self.peek();
        let bytes = self.bytes();
        let from = self.at;
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut end = from + usize::from(bytes.get(from) == Some(&b'-'));
        let whole = end;
        end = digits(end);
        // JSON allows no leading zeros. Other readers take them as octal, so the number would be ambiguous.
        if end == whole || (bytes[whole] == b'0' && end > whole + 1) {
            return Err(self.wrong("a number"));
        }
        let mut is_whole = true;
        if bytes.get(end) == Some(&b'.') {
            let fraction = end + 1;
            end = digits(fraction);
            is_whole = false;
            if end == fraction {
                return Err(self.wrong("a number"));
            }
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let exponent = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            end = digits(exponent);
            is_whole = false;
            if end == exponent {
                return Err(self.wrong("a number"));
            }
        }
        let text = &self.text[from..end];
        if is_whole && let Ok(n) = text.parse::<i64>() {
            // Minus zero is a float: an integer cannot keep the sign.
            self.at = end;
            return Ok(if n == 0 && text.len() > 1 { Number::Float(-0.0) } else { Number::Int(n) });
        }
        match text.parse::<f64>() {
            // `parse` turns an overflow into infinity, which no column may hold: it would destroy the sums and ranges
            // of a whole node.
            Ok(x) if x.is_finite() => {
                self.at = end;
                Ok(Number::Float(x))
            }
            _ => Err(Invalid::new(format!("the number {} is too large for 64 bits", shorten(text)))),
        }
    }

    fn literal<T>(&mut self, word: &str, value: T) -> Result<T, Invalid> {
        if self.bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.wrong("a value"))
        }
    }

    /// Reads a value that is neither object nor array.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Result<Scalar<'a>, Invalid> {
        match self.peek() {
            Some(b'"') => Ok(Scalar::Text(self.string()?)),
            Some(b'n') => self.literal("null", Scalar::Null),
            Some(b't') => self.literal("true", Scalar::Bool(true)),
            Some(b'f') => self.literal("false", Scalar::Bool(false)),
            Some(b'-' | b'0'..=b'9') => Ok(Scalar::Number(self.number()?)),
            _ => Err(self.wrong("a value")),
        }
    }

    /// Takes a null, if present.
    #[inline]
    pub(crate) fn null(&mut self) -> Result<bool, Invalid> {
        if self.peek() == Some(b'n') { self.literal("null", true) } else { Ok(false) }
    }

    /// Checks and skips any value.
    pub(crate) fn skip(&mut self) -> Result<(), Invalid> {
        match self.peek() {
            Some(b'{') => {
                self.open_object()?;
                let mut first = true;
                while self.key(&mut first)?.is_some() {
                    self.skip()?;
                }
            }
            Some(b'[') => {
                self.open_array()?;
                let mut first = true;
                while self.element(&mut first)? {
                    self.skip()?;
                }
            }
            _ => {
                self.scalar()?;
            }
        }
        Ok(())
    }

    /// Checks that nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), Invalid> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("the end")),
        }
    }
}

#[cfg(test)]
mod tests;
