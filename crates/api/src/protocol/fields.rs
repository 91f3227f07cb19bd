//! Looks up header fields by comparison.
//!
//! Every step of the entry point checks for fields that most requests do not have. A lookup in the map hashes the name,
//! which costs more than comparing it with the few names of a head.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Max number of names that are compared; browsers send more.
const NAMES_MAX: usize = 8;

/// Returns whether a head has a field.
pub fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    has_any(headers, std::slice::from_ref(name))
}

/// Returns whether a head has one of these fields.
pub fn has_any(headers: &HeaderMap, names: &[HeaderName]) -> bool {
    match headers.keys_len() <= NAMES_MAX {
        true => headers.keys().any(|one| names.contains(one)),
        false => names.iter().any(|name| headers.contains_key(name)),
    }
}

/// Returns the first value of a field.
pub fn first<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    if has(headers, name) { headers.get(name) } else { None }
}

/// Returns the first value of a field, and whether there are more.
pub fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<(&'h HeaderValue, bool)> {
    if !has(headers, name) {
        return None;
    }
    let mut values = headers.get_all(name).iter();
    values.next().map(|value| (value, values.next().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header;
    use proptest::prelude::*;

    proptest! {
        /// Fields are found exactly as in the map, however many a head has.
        #[test]
        fn a_field_is_found_as_in_the_map(fields in prop::collection::vec((0..14usize, "[a-z]{1,3}"), 0..16), asked in 0..14usize) {
            let name = |number: usize| match number {
                0 => header::HOST,
                1 => header::ACCEPT,
                _ => HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap(),
            };
            let mut headers = HeaderMap::new();
            for (number, value) in fields {
                headers.append(name(number), HeaderValue::from_str(&value).unwrap());
            }
            let name = name(asked);
            prop_assert_eq!(has(&headers, &name), headers.contains_key(&name));
            prop_assert_eq!(first(&headers, &name), headers.get(&name));
            let values: Vec<_> = headers.get_all(&name).iter().collect();
            prop_assert_eq!(only(&headers, &name), values.first().map(|value| (*value, values.len() > 1)));
        }
    }
}
