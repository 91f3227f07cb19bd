//! A pull parser for one JSON text held in memory.
//!
//! Hand-written because the hot path of every JSON format runs through it: values go from the text
//! straight into columns, without a tree between. Property tests hold it against serde_json.

use meridian_model::Invalid;
use std::borrow::Cow;

/// Max nesting depth.
pub(crate) const DEPTH_MAX: u32 = 64;

/// A place in a JSON text. Copies are cheap: keep one to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

/// A number as written: whole and in 64 bits, or not.
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

/// A value that holds no others.
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

    /// Offset in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text between two offsets that this parser gave.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'a str {
        &self.text[from..to]
    }

    #[cold]
    pub(crate) fn wrong(&self, expected: &str) -> Invalid {
        let before = self.text.get(..self.at).unwrap_or("");
        let character = before.chars().count() + 1;
        let detail = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => format!("not JSON: {expected} was expected at character {character}, found {found:?}"),
            None => format!("not JSON: {expected} was expected at character {character}, where the text ends"),
        };
        Invalid::new(detail)
    }

    /// The next byte that is not whitespace, without taking it.
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

    /// Enters an object; follow with [`Json::key`] until it gives `None`.
    pub(crate) fn open_object(&mut self) -> Result<(), Invalid> {
        self.open(b'{', "'{'")
    }

    /// Enters an array; follow with [`Json::element`] until it gives `false`.
    pub(crate) fn open_array(&mut self) -> Result<(), Invalid> {
        self.open(b'[', "'['")
    }

    /// The next key of an object, its colon taken; `None` after the last one. `first` starts as `true`.
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

    /// Whether an array has another element, its comma taken. `first` starts as `true`.
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

    /// A string in double quotes, borrowed where nothing in it is escaped.
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
                // A character beyond 16 bits is written as two escapes. Half of a pair is no character, and Rust text
                // cannot hold it.
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

    /// A number.
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
            // Minus zero is a float: an integer has no sign there to keep.
            self.at = end;
            return Ok(if n == 0 && text.len() > 1 { Number::Float(-0.0) } else { Number::Int(n) });
        }
        match text.parse::<f64>() {
            // `parse` turns an overflow into infinity, which no column may hold: sums and ranges would be lost for a
            // whole node.
            Ok(x) if x.is_finite() => {
                self.at = end;
                Ok(Number::Float(x))
            }
            _ => Err(Invalid::new(format!("the number {} is too large for 64 bits", crate::values::shorten(text)))),
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

    /// A value that is neither object nor array.
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

    /// Takes a null, if there is one.
    #[inline]
    pub(crate) fn null(&mut self) -> Result<bool, Invalid> {
        if self.peek() == Some(b'n') { self.literal("null", true) } else { Ok(false) }
    }

    /// Checks and passes over any value.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn tree(json: &mut Json<'_>) -> Result<Value, Invalid> {
        Ok(match json.peek() {
            Some(b'{') => {
                let mut map = serde_json::Map::new();
                json.open_object()?;
                let mut first = true;
                while let Some(key) = json.key(&mut first)? {
                    let value = tree(json)?;
                    map.insert(key.into_owned(), value);
                }
                Value::Object(map)
            }
            Some(b'[') => {
                let mut list = Vec::new();
                json.open_array()?;
                let mut first = true;
                while json.element(&mut first)? {
                    list.push(tree(json)?);
                }
                Value::Array(list)
            }
            _ => match json.scalar()? {
                Scalar::Null => Value::Null,
                Scalar::Bool(b) => Value::Bool(b),
                Scalar::Text(t) => Value::String(t.into_owned()),
                Scalar::Number(Number::Int(n)) => n.into(),
                Scalar::Number(Number::Float(x)) => x.into(),
            },
        })
    }

    fn read(text: &str) -> Result<Value, Invalid> {
        let mut json = Json::new(text);
        let value = tree(&mut json)?;
        json.end()?;
        let mut skipper = Json::new(text);
        skipper.skip().expect("what is read can be skipped");
        skipper.end().expect("to the same end");
        Ok(value)
    }

    fn json_text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|b| b.to_string()),
            any::<i64>().prop_map(|n| n.to_string()),
            any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("{x:e}")),
            any::<String>().prop_map(|t| serde_json::to_string(&t).unwrap()),
            "\"(\\\\u[0-9a-fA-F]{4}|\\\\[nrtbf/\"\\\\]|[a-z])*\"",
            "-?[0-9]{1,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,3})?",
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(|v| format!("[ {} ]", v.join(" ,\n"))),
                prop::collection::vec((any::<String>(), inner), 0..5).prop_map(|v| {
                    let members: Vec<_> =
                        v.iter().map(|(k, v)| format!("{} : {v}", serde_json::to_string(k).unwrap())).collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    /// Equal but for the last bits of floats, which serde_json rounds carelessly unless told otherwise.
    fn close(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(x), Value::Number(y)) => {
                let (p, q) = (x.as_f64().unwrap(), y.as_f64().unwrap());
                x == y || (p - q).abs() <= p.abs() * 16.0 * f64::EPSILON || p.abs() < 1e-300
            }
            (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| close(x, y)),
            (Value::Object(x), Value::Object(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|((k, x), (l, y))| k == l && close(x, y))
            }
            _ => a == b,
        }
    }

    fn same(text: &str) {
        match (read(text), serde_json::from_str::<Value>(text)) {
            (Ok(mine), Ok(theirs)) => assert!(close(&mine, &theirs), "{text}: {mine} is not {theirs}"),
            (Err(_), Err(_)) => {}
            (mine, theirs) => panic!("{text}: {mine:?} but serde_json {theirs:?}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn agrees_with_serde_json(text in json_text()) { same(&text); }

        #[test]
        fn agrees_with_serde_json_on_broken_text(text in json_text(), at in any::<prop::sample::Index>(), with in "[\\[\\]{}\",:0-9a-z\\\\ .-]?") {
            let places: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
            let at = places[at.index(places.len())];
            let next = at + text[at..].chars().next().map_or(0, char::len_utf8);
            same(&format!("{}{with}{}", &text[..at], &text[next..]));
        }
    }

    #[test]
    fn mistakes_name_the_character() {
        for (text, expected) in [
            ("{\"é\":}", "a value was expected at character 6, found '}'"),
            ("[1 2]", "',' or ']' was expected at character 4"),
            ("\"abc", "closing quote was expected at character 5, where the text ends"),
            ("[NaN]", "a value was expected at character 2"),
            ("[01]", "a number was expected at character 2"),
            ("[1e999]", "too large"),
            ("\"\\ud800x\"", "surrogates"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.detail.contains(expected), "{text}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(&deep).unwrap_err().detail.contains("deeper than 64"));
    }
}
