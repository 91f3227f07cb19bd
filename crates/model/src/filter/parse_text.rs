//! CQL2 text, by recursive descent.

use super::expr::{ArrayOp, Comparison, Expr, IntervalEnd, Operand, SpatialOp, TemporalOp};
use super::lexer::{Token, is_word, tokens, wrong};
use super::literal;
use crate::error::Invalid;
use geo_types::{Coord, Geometry, GeometryCollection, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};

/// Deepest nesting of a filter, in text and in JSON.
pub const DEPTH_MAX: usize = 64;

/// Parses CQL2 text. An error has its position (characters from 1), what was found and what was expected.
///
/// Beyond the letter of the standard: keywords and functions in any case; `!=` for `<>`; `[…]` or `(…)` around
/// arrays; `ENVELOPE` for `BBOX`; numbers with a leading `+`; `ILIKE` for `LIKE` with `CASEI` on both sides.
pub fn parse_text(text: &str) -> Result<Expr, Invalid> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    if parser.peek() == &Token::End {
        return Err(wrong(1, "the filter is empty, expected a condition such as name = 'x'"));
    }
    let expr = parser.disjunction()?;
    match parser.peek() {
        Token::End => Ok(expr),
        Token::Symbol(")") => Err(parser.unexpected("AND, OR or the end of the filter: no bracket is open here")),
        _ => Err(parser.unexpected("AND, OR or the end of the filter")),
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
}

const GEOMETRIES: [&str; 7] =
    ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"];

/// Words that are names only in double quotes, beside `TRUE` and `FALSE`.
const KEYWORDS: [&str; 8] = ["AND", "OR", "NOT", "LIKE", "BETWEEN", "IN", "IS", "NULL"];

/// Whether CQL2 text may name a property so without double quotes.
pub fn is_bare_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    is_word(name) && !KEYWORDS.contains(&upper.as_str()) && !["TRUE", "FALSE"].contains(&upper.as_str())
}

impl Parser {
    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.next + ahead).map_or(&Token::End, |t| &t.0)
    }

    /// Position of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(1, |t| t.1)
    }

    fn unexpected(&self, expected: &str) -> Invalid {
        wrong(self.at(), format!("found {}, expected {expected}", self.peek().shown()))
    }

    /// Takes the next token if it is this symbol.
    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.next += usize::from(found);
        found
    }

    fn take_word(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_word(keyword);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str, expected: &str) -> Result<(), Invalid> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Runs a rule one level deeper.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T, Invalid>) -> Result<T, Invalid> {
        // The parser recurses, and so does everything that walks the expression: the limit protects the stack of all
        // of them.
        if self.depth == DEPTH_MAX {
            return Err(wrong(self.at(), format!("the filter is nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    fn disjunction(&mut self) -> Result<Expr, Invalid> {
        let mut parts = vec![self.conjunction()?];
        while self.take_word("OR") {
            parts.push(self.conjunction()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Or(parts) })
    }

    fn conjunction(&mut self) -> Result<Expr, Invalid> {
        let mut parts = vec![self.factor()?];
        while self.take_word("AND") {
            parts.push(self.factor()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) })
    }

    fn factor(&mut self) -> Result<Expr, Invalid> {
        if self.take_word("NOT") {
            return Ok(Expr::Not(Box::new(self.nested(Self::factor)?)));
        }
        if self.take("(") {
            let inner = self.nested(Self::disjunction)?;
            self.expect(")", "AND, OR or a closing bracket")?;
            return Ok(inner);
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<Expr, Invalid> {
        if let (Token::Word(word), Token::Symbol("(")) = (self.peek(), self.peek_at(1)) {
            let (spatial, temporal, array) =
                (SpatialOp::from_text(word), TemporalOp::from_text(word), ArrayOp::from_text(word));
            if spatial.is_some() || temporal.is_some() || array.is_some() {
                self.next += 2;
                let expected = match (spatial, temporal) {
                    (Some(_), _) => "a geometry such as POINT(0 0), a BBOX, or a property",
                    (_, Some(_)) => "a DATE, TIMESTAMP or INTERVAL, or a property",
                    _ => "a list such as ('a', 'b'), or a property",
                };
                let left = self.argument(expected)?;
                self.expect(",", "a comma and a second argument")?;
                let right = self.argument(expected)?;
                self.expect(")", "a closing bracket")?;
                return Ok(match (spatial, temporal, array) {
                    (Some(op), _, _) => Expr::Spatial { op, left, right },
                    (_, Some(op), _) => Expr::Temporal { op, left, right },
                    (_, _, Some(op)) => Expr::Array { op, left, right },
                    _ => Expr::Bool(false), // one of the three was found above
                });
            }
        }
        match self.operand("a condition")? {
            // TRUE is a condition of its own, but `TRUE = flag` is a comparison: one token ahead decides.
            Operand::Bool(value) if !self.condition_follows() => Ok(Expr::Bool(value)),
            value => self.condition(value),
        }
    }

    /// Whether what comes next makes a condition of the value before it.
    fn condition_follows(&self) -> bool {
        match self.peek() {
            Token::Symbol(symbol) => *symbol == "!=" || Comparison::from_text(symbol).is_some(),
            next => ["IS", "NOT", "LIKE", "ILIKE", "BETWEEN", "IN"].iter().any(|word| next.is_word(word)),
        }
    }

    /// What follows the left side of a comparison.
    fn condition(&mut self, value: Operand) -> Result<Expr, Invalid> {
        let comparison = match self.peek() {
            Token::Symbol("!=") => Some(Comparison::Ne),
            Token::Symbol(symbol) => Comparison::from_text(symbol),
            _ => None,
        };
        if let Some(op) = comparison {
            self.next += 1;
            let right = self.operand("a value or a property")?;
            return Ok(Expr::Compare { op, left: value, right });
        }
        if self.take_word("IS") {
            let not = self.take_word("NOT");
            if !self.take_word("NULL") {
                return Err(self.unexpected(if not { "NULL" } else { "NULL or NOT NULL" }));
            }
            return Ok(negated(not, Expr::IsNull(value)));
        }
        let not = self.take_word("NOT");
        if self.take_word("LIKE") {
            let pattern = self.operand("a pattern such as 'a%'")?;
            Ok(negated(not, Expr::Like { value, pattern }))
        } else if self.take_word("ILIKE") {
            let pattern = self.operand("a pattern such as 'a%'")?;
            let folded = |operand| Operand::Casei(Box::new(operand));
            Ok(negated(not, Expr::Like { value: folded(value), pattern: folded(pattern) }))
        } else if self.take_word("BETWEEN") {
            let low = self.operand("the lower bound")?;
            if !self.take_word("AND") {
                return Err(self.unexpected("AND and the upper bound"));
            }
            let high = self.operand("the upper bound")?;
            Ok(negated(not, Expr::Between { value, low, high }))
        } else if self.take_word("IN") {
            self.expect("(", "a list in brackets")?;
            let mut list = vec![self.operand("a value")?];
            while self.take(",") {
                list.push(self.operand("a value")?);
            }
            self.expect(")", "a comma or a closing bracket")?;
            Ok(negated(not, Expr::In { value, list }))
        } else if not {
            Err(self.unexpected("LIKE, BETWEEN or IN"))
        } else if matches!(self.peek(), Token::Symbol("+" | "-" | "*" | "/")) {
            Err(self.unexpected("a comparison: arithmetic is not supported"))
        } else {
            Err(self.unexpected("a comparison such as =, <, LIKE, BETWEEN, IN or IS NULL"))
        }
    }

    /// An argument of a function: an operand, or an array in brackets.
    fn argument(&mut self, expected: &str) -> Result<Operand, Invalid> {
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

    fn operand(&mut self, expected: &str) -> Result<Operand, Invalid> {
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
            return Err(self.unexpected("no arithmetic, which is not supported"));
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
            crate::builder::shorten(word)
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
                // Not in the grammar, but what people write.
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
        let negative = self.take("-");
        if !negative {
            self.take("+");
        }
        let Token::Number(digits) = self.peek().clone() else {
            return Err(self.unexpected("a number"));
        };
        self.next += 1;
        literal::number(negative, &digits).ok_or_else(|| {
            wrong(at, format!("found the number {}, which is too large", crate::builder::shorten(&digits)))
        })
    }

    fn coordinate(&mut self) -> Result<f64, Invalid> {
        if !matches!(self.peek(), Token::Number(_) | Token::Symbol("-" | "+")) {
            return Err(self.unexpected("a number"));
        }
        match self.number()? {
            Operand::Int(n) => Ok(n as f64),
            Operand::Float(x) => Ok(x),
            _ => Err(self.unexpected("a number")),
        }
    }

    /// Well-known text after its keyword.
    fn geometry(&mut self, kind: &str, at: usize) -> Result<Geometry<f64>, Invalid> {
        for tag in ["Z", "M", "ZM"] {
            if self.take_word(tag) {
                break;
            }
        }
        if self.peek().is_word("EMPTY") {
            return Err(self.unexpected("positions: an empty geometry has no place"));
        }
        let made = match kind {
            "POINT" => {
                self.expect("(", "an opening bracket")?;
                let position = self.position()?;
                self.expect(")", "a closing bracket")?;
                Ok(Geometry::Point(Point(position)))
            }
            "LINESTRING" => literal::line(self.positions()?).map(Geometry::LineString),
            "POLYGON" => self.rings()?.map(Geometry::Polygon),
            "MULTIPOINT" => {
                // Both (0 0, 1 1) and ((0 0), (1 1)) are in use.
                let points = self.bracketed(|p| {
                    let bracket = p.take("(");
                    let position = p.position()?;
                    if bracket {
                        p.expect(")", "a closing bracket")?;
                    }
                    Ok(Point(position))
                })?;
                Ok(Geometry::MultiPoint(MultiPoint(points)))
            }
            "MULTILINESTRING" => {
                let lines = self.bracketed(Self::positions)?;
                lines
                    .into_iter()
                    .map(literal::line)
                    .collect::<Result<_, _>>()
                    .map(|l| Geometry::MultiLineString(MultiLineString(l)))
            }
            "MULTIPOLYGON" => {
                let polygons = self.bracketed(Self::rings)?;
                polygons.into_iter().collect::<Result<_, _>>().map(|p| Geometry::MultiPolygon(MultiPolygon(p)))
            }
            _ => {
                let members = self.bracketed(|p| {
                    let at = p.at();
                    match p.peek().clone() {
                        Token::Word(word) if GEOMETRIES.iter().any(|g| g.eq_ignore_ascii_case(&word)) => {
                            p.next += 1;
                            p.nested(|p| p.geometry(&word.to_ascii_uppercase(), at))
                        }
                        _ => Err(p.unexpected("a geometry such as POINT(0 0)")),
                    }
                })?;
                Ok(Geometry::GeometryCollection(GeometryCollection(members)))
            }
        };
        made.map_err(|e| wrong(at, e))
    }

    /// One or more in brackets, separated by commas.
    fn bracketed<T>(&mut self, mut rule: impl FnMut(&mut Self) -> Result<T, Invalid>) -> Result<Vec<T>, Invalid> {
        self.expect("(", "an opening bracket")?;
        let mut items = vec![rule(self)?];
        while self.take(",") {
            items.push(rule(self)?);
        }
        self.expect(")", "a comma or a closing bracket")?;
        Ok(items)
    }

    fn positions(&mut self) -> Result<Vec<Coord<f64>>, Invalid> {
        self.bracketed(Self::position)
    }

    /// The rings of a polygon; an invalid ring is reported at the start of the geometry.
    fn rings(&mut self) -> Result<Result<Polygon<f64>, String>, Invalid> {
        self.bracketed(Self::positions).map(literal::polygon)
    }

    /// Longitude, latitude, and up to two more numbers, which are dropped.
    fn position(&mut self) -> Result<Coord<f64>, Invalid> {
        let (x, y) = (self.coordinate()?, self.coordinate()?);
        for _ in 0..2 {
            if matches!(self.peek(), Token::Number(_) | Token::Symbol("-" | "+")) {
                self.coordinate()?;
            }
        }
        Ok(Coord { x, y })
    }
}

fn negated(not: bool, expr: Expr) -> Expr {
    if not { Expr::Not(Box::new(expr)) } else { expr }
}
