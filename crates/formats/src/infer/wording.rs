//! Examples and wording that notes share.

use super::column::{Column, FEW};
use meridian_model::error::shorten;

/// Quotes the name of a column for a shell.
pub(super) fn shell(name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.:@".contains(c));
    if plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// Counts the texts among the values of a column, and shows one.
pub(super) fn misfits(column: &Column, one: &str, several: &str) -> String {
    let example = shorten(column.texts.first().map_or("", String::as_str));
    let (are, noun) = if column.plain == 1 { ("is", one) } else { ("are", several) };
    format!("{} of {} values {are} no {noun}, such as {example:?}", column.plain, column.values)
}

/// Returns the first value that passes, if all but a few pass.
pub(super) fn mostly<T: Copy>(values: &[T], passes: impl Fn(T) -> bool) -> Option<T> {
    let failed = values.iter().filter(|value| !passes(**value)).count();
    values.iter().copied().find(|value| passes(*value)).filter(|_| failed <= values.len() / FEW)
}

/// Counts and shows the texts that do not pass; returns nothing if all do.
pub(super) fn but(texts: &[&str], passes: impl Fn(&str) -> bool) -> String {
    let mut failed = texts.iter().filter(|text| !passes(text)).peekable();
    match failed.peek().map(|first| shorten(first)) {
        Some(first) => format!(" (but not {} of {} texts looked at: {first:?})", failed.count(), texts.len()),
        None => String::new(),
    }
}
