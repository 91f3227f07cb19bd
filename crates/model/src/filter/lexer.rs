//! Tokenizes CQL2 text, with positions.

use crate::error::{Invalid, shorten};

/// Max length of a filter in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A name or keyword.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// A text in single quotes.
    Text(String),
    /// An unsigned number as written.
    Number(String),
    /// An operator or bracket.
    Symbol(&'static str),
    End,
}

impl Token {
    /// Formats the token for a message.
    pub(crate) fn shown(&self) -> String {
        match self {
            Token::Word(word) => shorten(word),
            Token::Quoted(name) => format!("{:?}", shorten(name)),
            Token::Text(text) => format!("the text '{}'", shorten(text)),
            Token::Number(number) => format!("the number {}", shorten(number)),
            Token::Symbol(symbol) => format!("{symbol:?}"),
            Token::End => "the end of the filter".to_owned(),
        }
    }

    pub(crate) fn is_word(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// An error at a position, in characters from 1.
pub(crate) fn wrong(at: usize, detail: impl std::fmt::Display) -> Invalid {
    Invalid::field("filter", format!("at character {at}: {detail}"))
}

/// Symbols, with two-character symbols before their first characters.
const SYMBOLS: [&str; 16] = ["<>", "<=", ">=", "!=", "=", "<", ">", "(", ")", "[", "]", ",", "+", "-", "*", "/"];

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == ':' || c == '@'
}

fn continues_name(c: char) -> bool {
    // Combining marks and the two tie characters that the standard lists, besides letters, digits and dots.
    c.is_alphanumeric() || "_:.@".contains(c) || ('\u{300}'..='\u{36f}').contains(&c) || "\u{203f}\u{2040}".contains(c)
}

/// Whether a text is a single name.
pub(crate) fn is_word(text: &str) -> bool {
    text.chars().next().is_some_and(starts_name) && text.chars().all(continues_name)
}

/// Splits a filter into tokens, each with its starting character (from 1); the last one is [`Token::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, Invalid> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Invalid::field(
            "filter",
            format!("a filter of {} bytes is too long: at most {TEXT_BYTES_MAX}", text.len()),
        ));
    }
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut i = 0;
    while let Some(&c) = chars.get(i) {
        let at = i + 1;
        if c.is_whitespace() {
            i += 1;
        } else if starts_name(c) {
            let end = chars[i..].iter().position(|&c| !continues_name(c)).map_or(chars.len(), |n| i + n);
            tokens.push((Token::Word(chars[i..end].iter().collect()), at));
            i = end;
        } else if c == '\'' || c == '"' {
            let (text, end) = quoted(&chars, i)?;
            if c == '"' && text.is_empty() {
                return Err(wrong(at, "found an empty name in double quotes, expected the name of a property"));
            }
            tokens.push((if c == '\'' { Token::Text(text) } else { Token::Quoted(text) }, at));
            i = end;
        // Numbers are unsigned here, or `a -1` would read as two values, unlike `a - 1`.
        } else if c.is_ascii_digit() || c == '.' && chars.get(i + 1).is_some_and(char::is_ascii_digit) {
            let end = number_end(&chars, i);
            tokens.push((Token::Number(chars[i..end].iter().collect()), at));
            i = end;
        } else {
            let symbol = SYMBOLS.into_iter().find(|s| s.chars().enumerate().all(|(n, c)| chars.get(i + n) == Some(&c)));
            let Some(symbol) = symbol else {
                return Err(wrong(at, format!("found {c:?}, which has no place in a filter")));
            };
            tokens.push((Token::Symbol(symbol), at));
            i += symbol.len();
        }
    }
    tokens.push((Token::End, chars.len() + 1));
    Ok(tokens)
}

/// Reads a quoted text from `start`, in which a doubled quote stands for one; returns the text and its end.
fn quoted(chars: &[char], start: usize) -> Result<(String, usize), Invalid> {
    let quote = chars[start];
    let mut text = String::new();
    let mut i = start + 1;
    while let Some(&c) = chars.get(i) {
        if c != quote {
            text.push(c);
            i += 1;
        } else if chars.get(i + 1) == Some(&quote) {
            text.push(quote);
            i += 2;
        } else {
            return Ok((text, i + 1));
        }
    }
    let what = if quote == '\'' { "text" } else { "name" };
    Err(wrong(start + 1, format!("found a {what} that does not end, expected a closing {quote}")))
}

fn number_end(chars: &[char], start: usize) -> usize {
    let digits = |mut i: usize| {
        while chars.get(i).is_some_and(char::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let mut end = digits(start);
    if chars.get(end) == Some(&'.') {
        end = digits(end + 1);
    }
    // Only if digits follow: in `1 eq` the `e` begins a word.
    if matches!(chars.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(end + 1), Some('+' | '-')));
        if chars.get(end + 1 + sign).is_some_and(char::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}
