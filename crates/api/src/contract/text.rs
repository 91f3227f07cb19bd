//! Text writers for responses that are encoded by hand.

use meridian_model::schema_json;
use std::time::Duration;

/// Appends a string in double quotes, escaped as JSON.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut from = 0;
    while let Some(at) = next_escaped(bytes, from) {
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match bytes[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(other >> 4)]);
                out.push(HEX[usize::from(other & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Returns the index of the next byte that must be escaped: a quote, a backslash or a control character.
///
/// Most texts have none, so eight bytes are checked at a time, as in Warren, "Hacker's Delight", 6-1. The highest bit
/// of each byte is set if it matches. A carry may set it wrongly for a byte after the first match, never for one before
/// it.
fn next_escaped(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found =
            (control | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')))) & HIGHS;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').map(|found| at + found)
}

/// A retention as an ISO 8601 duration, in days if it is a whole number of them.
pub fn retention_text(retention: Duration) -> String {
    const DAY_S: u64 = 86_400;
    match (retention.as_secs() / DAY_S, retention.as_secs() % DAY_S, retention.subsec_micros()) {
        (days, 0, 0) if days > 0 => format!("P{days}D"),
        _ => schema_json::duration_text(retention.as_micros() as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::write_json_string;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_survive_a_round_trip(text in "(\\PC|[\\x00-\\x7f]|é){0,40}") {
            let mut out = Vec::new();
            write_json_string(&text, &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
