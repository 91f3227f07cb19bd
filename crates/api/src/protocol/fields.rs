//! Looks up header fields by comparison, and splits lists.
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

/// Returns the elements of a field that is a list, of all its lines (RFC 9110, 5.3), without the empty ones (5.6.1). A
/// comma within quotes separates nothing. A quote that is not closed reaches to the end of its line.
pub fn elements<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(name).into_iter();
    lines.flat_map(|line| split(line.as_bytes())).map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

fn split(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    list.split(move |&byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        !quoted && byte == b','
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header;
    use proptest::prelude::*;

    #[test]
    fn a_list_has_no_empty_elements_and_is_not_split_within_quotes() {
        let of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for &line in lines {
                headers.append(header::UPGRADE, HeaderValue::from_static(line));
            }
            let text = |element: &[u8]| String::from_utf8_lossy(element).into_owned();
            elements(&headers, &header::UPGRADE).map(text).collect::<Vec<_>>()
        };
        for (lines, expected) in [
            (&["a"][..], &["a"][..]),
            (&[], &[]),
            (&["", " , ,"], &[]),
            (&[",a , b,\t"], &["a", "b"]),
            (&["a, b", "", "c"], &["a", "b", "c"]),
            (&["\"a,b\", c"], &["\"a,b\"", "c"]),
            (&["\"a\\\",b\",c"], &["\"a\\\",b\"", "c"]),
            // A backslash escapes within quotes alone.
            (&["a\\,b"], &["a\\", "b"]),
            (&["\"a,b", "c"], &["\"a,b", "c"]),
        ] {
            assert_eq!(of(lines), expected, "{lines:?}");
        }
    }

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
