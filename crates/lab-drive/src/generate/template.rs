//! Text with placeholders `{name}` and `{name.field}`.

use super::draw::Source;
use super::value::Value;
use std::io::Write;

/// A text split at its placeholders. A brace that does not enclose a name is literal, so that JSON needs no escapes.
#[derive(Debug, Clone, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Slot { generator: usize, field: usize },
}

impl Template {
    /// Splits a text. `sources` are the generators by name; errors name the placeholder.
    pub fn parse(text: &str, sources: &[(String, Source)]) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let inner = &rest[open + 1..];
            let name = inner.find('}').map(|close| &inner[..close]).filter(|name| is_name(name));
            let Some(name) = name else {
                plain.push_str(&rest[..=open]);
                rest = inner;
                continue;
            };
            plain.push_str(&rest[..open]);
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(slot(name, sources)?);
            rest = &inner[name.len() + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template { pieces })
    }

    /// Returns a text without placeholders, whatever braces it has.
    pub fn plain(text: String) -> Template {
        Template { pieces: vec![Piece::Text(text)] }
    }

    /// Returns the generators that it names.
    pub fn generators(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Slot { generator, .. } => Some(*generator),
            Piece::Text(_) => None,
        })
    }

    /// Returns the text as a statement with `$1`, `$2`, … in place of its placeholders. A placeholder within quotes
    /// would be text there.
    pub fn statement(&self) -> Result<String, String> {
        let mut text = String::new();
        let mut parameters = 0_u16;
        for piece in &self.pieces {
            match piece {
                Piece::Text(own) => text.push_str(own),
                Piece::Slot { .. } if text.matches('\'').count() % 2 == 1 || text.matches('"').count() % 2 == 1 => {
                    return Err(format!(
                        "body: placeholder {} lies within quotes: in a statement it is a parameter, expected without them",
                        parameters + 1
                    ));
                }
                Piece::Slot { .. } => {
                    parameters = parameters.checked_add(1).ok_or("body: there are too many placeholders")?;
                    text.push_str(&format!("${parameters}"));
                }
            }
        }
        Ok(text)
    }

    /// Writes the values of this draw as the parameters of [`Template::statement`]: their number (16 bits), then each
    /// preceded by its length (32 bits).
    pub fn parameters(&self, drawn: &[Vec<Value>], out: &mut Vec<u8>) {
        let count = u16::try_from(self.generators().count()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        for piece in &self.pieces {
            if let Piece::Slot { generator, field } = piece {
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                if let Some(value) = drawn.get(*generator).and_then(|fields| fields.get(*field)) {
                    put(value, false, out);
                }
                let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Writes the text with the values of this draw. `encode` percent-encodes them: a path requires that, and so does
    /// a header, which no value may break.
    pub fn render(&self, drawn: &[Vec<Value>], encode: bool, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Slot { generator, field } => {
                    if let Some(value) = drawn.get(*generator).and_then(|fields| fields.get(*field)) {
                        put(value, encode, out);
                    }
                }
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

fn slot(name: &str, sources: &[(String, Source)]) -> Result<Piece, String> {
    let (own, field) = name.split_once('.').unwrap_or((name, ""));
    let Some(generator) = sources.iter().position(|(known, _)| known == own) else {
        return Err(format!("{{{name}}} names no generator: expected a table [generate.{own}]"));
    };
    let fields = sources[generator].1.fields();
    let found = if field.is_empty() { Some(0) } else { fields.iter().position(|known| *known == field) };
    match found {
        Some(field) => Ok(Piece::Slot { generator, field }),
        None => Err(format!("{{{name}}}: generator {own} has no such field: expected one of {}", fields.join(", "))),
    }
}

fn put(value: &Value, encode: bool, out: &mut Vec<u8>) {
    // Writing into a vector cannot fail.
    let _ = match value {
        Value::Number(number, decimals) => write!(out, "{number:.*}", usize::from(*decimals)),
        Value::Whole(number) => write!(out, "{number}"),
        Value::Text(text) if encode => {
            write!(out, "{}", percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC))
        }
        Value::Text(text) => out.write_all(text.as_bytes()),
    };
}
