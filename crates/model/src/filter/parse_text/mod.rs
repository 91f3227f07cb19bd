//! CQL2 text: a recursive-descent parser.

mod geometry;
mod operand;
mod tokens;

use super::expr::{ArrayOp, Comparison, Expr, Operand, SpatialOp, TemporalOp};
use super::lexer::{Token, is_word, tokens, wrong};
use crate::error::Invalid;

/// Max nesting of a filter, in text and in JSON.
pub const DEPTH_MAX: usize = 64;

/// Parses CQL2 text. An error carries its position (characters from 1), the token found and the one expected.
///
/// Accepted beyond the standard: keywords and functions in any case, `!=` for `<>`, `[…]` or `(…)` around arrays, and
/// numbers with a leading `+`. So are `ENVELOPE` for `BBOX`, and `ILIKE` for `LIKE` with `CASEI` on both sides.
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

/// Words that need double quotes as names, besides `TRUE` and `FALSE`.
const KEYWORDS: [&str; 8] = ["AND", "OR", "NOT", "LIKE", "BETWEEN", "IN", "IS", "NULL"];

/// Whether CQL2 text may name this property without double quotes.
pub fn is_bare_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    is_word(name) && !KEYWORDS.contains(&upper.as_str()) && !["TRUE", "FALSE"].contains(&upper.as_str())
}

impl Parser {
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
        // Functions are not keywords: without a bracket after it, `s_within` is a property name.
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
            // TRUE is a complete condition, but `TRUE = flag` is a comparison: one token ahead decides.
            Operand::Bool(value) if !self.condition_follows() => Ok(Expr::Bool(value)),
            value => self.condition(value),
        }
    }

    /// Whether the next token continues the value before it to a condition.
    fn condition_follows(&self) -> bool {
        match self.peek() {
            Token::Symbol(symbol) => *symbol == "!=" || Comparison::from_text(symbol).is_some(),
            next => ["IS", "NOT", "LIKE", "ILIKE", "BETWEEN", "IN"].iter().any(|word| next.is_word(word)),
        }
    }

    /// Parses the part after the left side of a comparison.
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
            // Not in the standard, but in every database with LIKE. Equivalent to CASEI on both sides.
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
}

fn negated(not: bool, expr: Expr) -> Expr {
    if not { Expr::Not(Box::new(expr)) } else { expr }
}
