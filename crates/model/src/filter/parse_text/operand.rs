//! Values: literals, properties and functions that return a value.

use super::geometry::GEOMETRIES;
use super::{KEYWORDS, Parser};
use crate::error::Invalid;
use crate::filter::expr::{ArrayOp, IntervalEnd, Operand, SpatialOp, TemporalOp};
use crate::filter::lexer::{Token, wrong};
use crate::filter::literal;

impl Parser {
    /// Parses a function argument: an operand, or an array in brackets.
    pub(super) fn argument(&mut self, expected: &str) -> Result<Operand, Invalid> {
        let close = match self.peek() {
            Token::Symbol("(") => ")",
            Token::Symbol("[") => "]",
            _ => return self.operand(expected),
        };
        self.next += 1;
        let mut list = Vec::new();
        if self.take(close) {
            return Ok(Operand::List(list));
        }
        loop {
            list.push(self.nested(|p| p.argument("a value"))?);
            if !self.take(",") {
                self.expect(close, &format!("a comma or {close:?}"))?;
                return Ok(Operand::List(list));
            }
        }
    }

    pub(super) fn operand(&mut self, expected: &str) -> Result<Operand, Invalid> {
        let at = self.at();
        let operand = match self.peek().clone() {
            Token::Text(text) => {
                self.next += 1;
                Operand::Text(text)
            }
            Token::Quoted(name) => {
                self.next += 1;
                Operand::Property(name)
            }
            Token::Number(_) | Token::Symbol("-" | "+") => self.number()?,
            // Before names: a property may be called `date`, and only a bracket marks the function.
            Token::Word(word) if self.peek_at(1) == &Token::Symbol("(") || self.is_tagged_geometry(&word) => {
                self.function(&word, at)?
            }
            Token::Word(word) => {
                let upper = word.to_ascii_uppercase();
                match upper.as_str() {
                    "TRUE" | "FALSE" => {
                        self.next += 1;
                        Operand::Bool(upper == "TRUE")
                    }
                    keyword if KEYWORDS.contains(&keyword) => {
                        return Err(self.unexpected(expected));
                    }
                    _ => {
                        self.next += 1;
                        Operand::Property(word)
                    }
                }
            }
            _ => return Err(self.unexpected(expected)),
        };
        if matches!(self.peek(), Token::Symbol("+" | "-" | "*" | "/")) {
            return Err(self.unexpected("a comparison: arithmetic is not supported"));
        }
        Ok(operand)
    }

    /// Whether a word begins a geometry such as `POINT Z (1 2 3)` or `POINT EMPTY`.
    fn is_tagged_geometry(&self, word: &str) -> bool {
        GEOMETRIES.iter().any(|g| g.eq_ignore_ascii_case(word))
            && ["Z", "M", "ZM", "EMPTY"].iter().any(|tag| self.peek_at(1).is_word(tag))
    }

    fn function(&mut self, word: &str, at: usize) -> Result<Operand, Invalid> {
        let upper = word.to_ascii_uppercase();
        self.next += 1;
        if GEOMETRIES.contains(&upper.as_str()) {
            return self.geometry(&upper, at).map(Operand::Geometry);
        }
        self.expect("(", "an opening bracket")?;
        let operand = match upper.as_str() {
            "CASEI" => Operand::Casei(Box::new(self.nested(|p| p.operand("a text or a property"))?)),
            "DATE" => self.quoted("a date such as '2026-01-31'", literal::date).map(Operand::Date)?,
            "TIMESTAMP" => {
                self.quoted("an instant such as '2026-01-31T12:00:00Z'", literal::timestamp).map(Operand::Timestamp)?
            }
            "INTERVAL" => {
                let start = self.interval_end()?;
                self.expect(",", "a comma and the end of the interval")?;
                let end = self.interval_end()?;
                literal::check_interval(&start, &end).map_err(|e| wrong(at, e))?;
                Operand::Interval(start, end)
            }
            "BBOX" | "ENVELOPE" => {
                let mut numbers = vec![self.coordinate()?];
                while self.take(",") {
                    numbers.push(self.coordinate()?);
                }
                literal::bbox(&numbers).map(Operand::Bbox).map_err(|e| wrong(at, e))?
            }
            _ => return Err(wrong(at, self.unknown_function(word))),
        };
        self.expect(")", "a closing bracket")?;
        Ok(operand)
    }

    fn unknown_function(&self, word: &str) -> String {
        let is_condition = SpatialOp::from_text(word).is_some()
            || TemporalOp::from_text(word).is_some()
            || ArrayOp::from_text(word).is_some();
        if is_condition {
            return format!("found the condition {word}, expected a value");
        }
        format!(
            "found the function {}, which is not supported: expected CASEI, DATE, TIMESTAMP, INTERVAL, BBOX, a geometry, or a function that begins with S_, T_ or A_",
            crate::error::shorten(word)
        )
    }

    /// Parses a quoted text with a function that describes its errors.
    fn quoted<T>(&mut self, expected: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Invalid> {
        let Token::Text(text) = self.peek() else {
            return Err(self.unexpected(expected));
        };
        let value = read(text).map_err(|e| wrong(self.at(), e))?;
        self.next += 1;
        Ok(value)
    }

    fn interval_end(&mut self) -> Result<IntervalEnd, Invalid> {
        let expected = "a date or an instant in quotes, '..' for an open end, or a property";
        match self.peek().clone() {
            Token::Quoted(name) => {
                self.next += 1;
                Ok(IntervalEnd::Property(name))
            }
            Token::Word(word) if self.peek_at(1) == &Token::Symbol("(") => {
                // Not in the grammar, but common.
                let at = self.at();
                match self.function(&word, at)? {
                    Operand::Date(date) => Ok(IntervalEnd::Date(date)),
                    Operand::Timestamp(t) => Ok(IntervalEnd::Timestamp(t)),
                    _ => Err(wrong(at, format!("found {word}, expected {expected}"))),
                }
            }
            Token::Word(name) => {
                self.next += 1;
                Ok(IntervalEnd::Property(name))
            }
            _ => self.quoted(expected, literal::interval_end),
        }
    }

    fn number(&mut self) -> Result<Operand, Invalid> {
        let at = self.at();
        // The sign is parsed with its number: -9223372036854775808 has no positive counterpart in 64 bits.
        let negative = self.take("-");
        if !negative {
            self.take("+");
        }
        let Token::Number(digits) = self.peek().clone() else {
            return Err(self.unexpected("a number"));
        };
        self.next += 1;
        literal::number(negative, &digits).ok_or_else(|| {
            wrong(at, format!("found the number {}, which is too large", crate::error::shorten(&digits)))
        })
    }

    pub(super) fn coordinate(&mut self) -> Result<f64, Invalid> {
        if !matches!(self.peek(), Token::Number(_) | Token::Symbol("-" | "+")) {
            return Err(self.unexpected("a number"));
        }
        match self.number()? {
            Operand::Int(n) => Ok(n as f64),
            Operand::Float(x) => Ok(x),
            _ => Err(self.unexpected("a number")),
        }
    }
}
