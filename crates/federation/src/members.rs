//! Readers for the members of a question's JSON object, one for each kind of value.

use meridian_model::Invalid;
use serde_json::{Map, Value};

/// Max length of an author, address or language, in bytes.
pub const TEXT_BYTES_MAX: usize = 200;

/// Reads a text of 1 to `bytes_max` bytes, without surrounding blanks; `None` if absent or null.
pub fn text(members: &Map<String, Value>, name: &str, bytes_max: usize) -> Result<Option<String>, Invalid> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => {
            Err(Invalid::field(name, "it is empty: expected a text, or leave it out"))
        }
        Some(Value::String(text)) if text.len() <= bytes_max => Ok(Some(text.trim().to_owned())),
        Some(Value::String(_)) => {
            Err(Invalid::field(name, format_args!("too long: expected at most {bytes_max} bytes")))
        }
        Some(_) => Err(Invalid::field(name, "expected a text")),
    }
}

/// Reads an integer from `min` to `max`; `None` if absent or null.
pub fn whole(members: &Map<String, Value>, name: &str, min: u64, max: u64) -> Result<Option<u64>, Invalid> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(n) if (min..=max).contains(&n) => Ok(Some(n)),
            _ => Err(Invalid::field(name, format_args!("{value}: expected a whole number from {min} to {max}"))),
        },
    }
}

/// Reads one of the `known` words and returns its value; `None` if absent or null.
pub fn word<T: Copy>(members: &Map<String, Value>, name: &str, known: &[(&str, T)]) -> Result<Option<T>, Invalid> {
    let Some(given) = text(members, name, TEXT_BYTES_MAX)? else { return Ok(None) };
    match known.iter().find(|(word, _)| *word == given) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(Invalid::field(name, format_args!("{given:?}: expected {}", words.join(", "))))
        }
    }
}

/// Reads an array of exactly `N` numbers; `None` for anything else.
pub fn numbers<const N: usize>(value: &Value) -> Option<[f64; N]> {
    let list = value.as_array().filter(|list| list.len() == N)?;
    let mut out = [0.0; N];
    for (place, number) in out.iter_mut().zip(list) {
        *place = number.as_f64()?;
    }
    Some(out)
}
