//! Byte ranges in requests (RFC 9110, 14).

use axum::http::HeaderValue;

/// A byte range, as requested by a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// From the first byte to the last, inclusive; to the end if no last byte is named.
    From(u64, Option<u64>),
    /// The last bytes, this many.
    Last(u64),
}

impl Range {
    /// Parses a header that names one range. Returns `None` for several ranges, another unit or a malformed value,
    /// which a server may ignore (RFC 9110, 14.2).
    pub fn of(value: &HeaderValue) -> Option<Range> {
        let (unit, spec) = value.to_str().ok()?.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (first, last) = spec.trim().split_once('-')?;
        let number = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().unwrap_or(u64::MAX))
        };
        match (first, last) {
            ("", "") => None,
            ("", last) => number(last).map(Range::Last),
            (first, "") => number(first).map(|first| Range::From(first, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Range::From(first, Some(last)))
            }
        }
    }

    /// Returns the first byte and the one after the last; `None` if the range contains no byte.
    pub fn within(self, length: u64) -> Option<(u64, u64)> {
        let (from, to) = match self {
            Range::From(first, last) => (first, last.map_or(length, |last| last.saturating_add(1)).min(length)),
            Range::Last(count) => (length.saturating_sub(count), length),
        };
        (from < to).then_some((from, to))
    }
}
