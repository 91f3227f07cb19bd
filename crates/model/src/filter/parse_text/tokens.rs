//! The token stream of the parser: lookahead, consuming, and expectation errors.

use super::{DEPTH_MAX, Parser};
use crate::error::Invalid;
use crate::filter::lexer::{Token, wrong};

impl Parser {
    pub(super) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &Token {
        // The end token repeats past the end, so that rules need no bounds checks for lookahead.
        self.tokens.get(self.next + ahead).map_or(&Token::End, |t| &t.0)
    }

    /// Position of the next token.
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(1, |t| t.1)
    }

    pub(super) fn unexpected(&self, expected: &str) -> Invalid {
        wrong(self.at(), format!("found {}, expected {expected}", self.peek().shown()))
    }

    /// Consumes the next token if it is this symbol.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.next += usize::from(found);
        found
    }

    pub(super) fn take_word(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_word(keyword);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, symbol: &str, expected: &str) -> Result<(), Invalid> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Runs a rule one nesting level deeper.
    pub(super) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T, Invalid>) -> Result<T, Invalid> {
        // The parser recurses, and so does every walk over the expression: the limit protects the stack of them all.
        if self.depth == DEPTH_MAX {
            return Err(wrong(self.at(), format!("the filter is nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }
}
