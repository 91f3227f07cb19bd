//! Lexing of a spec: words, quotes and separators.

use crate::error::Invalid;

pub(super) struct Parser {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    pub(super) fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// A word up to one of the separators, trimmed; or a quoted one, with quotes doubled inside.
    pub(super) fn word(&mut self, separators: &[char]) -> Result<String, Invalid> {
        self.space();
        let mut word = String::new();
        if let Some(quote @ ('\'' | '"')) = self.peek() {
            let from = self.at;
            self.at += 1;
            loop {
                match self.peek() {
                    None => return Err(self.wrong_at(from, "this quote is not closed")),
                    Some(c) if c == quote => {
                        self.at += 1;
                        if self.peek() != Some(quote) {
                            return Ok(word);
                        }
                        word.push(quote);
                        self.at += 1;
                    }
                    Some(c) => {
                        word.push(c);
                        self.at += 1;
                    }
                }
            }
        }
        while let Some(c) = self.peek().filter(|c| !separators.contains(c)) {
            word.push(c);
            self.at += 1;
        }
        Ok(word.trim_end().to_owned())
    }

    pub(super) fn wrong(&self, detail: impl AsRef<str>) -> Invalid {
        self.wrong_at(self.at, detail)
    }

    pub(super) fn wrong_at(&self, at: usize, detail: impl AsRef<str>) -> Invalid {
        Invalid::field("schema", format!("at character {}: {}", at + 1, detail.as_ref()))
    }
}
