//! Wording that notes share.

use super::column::Column;
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
