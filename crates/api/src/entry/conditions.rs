//! Conditional reads, and ranges of files (RFC 9110, 13 and 14).
//!
//! Handlers respond as if there were no conditions. Their responses name the state that they show (`ETag`,
//! `Last-Modified`) and whether parts of it are served (`Accept-Ranges`). Handlers evaluate the conditions of writes
//! themselves, since these must hold at the moment of the write.

use super::coding::{self, Accepted};
use crate::protocol::fields;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::range::Range;
use crate::protocol::tags::{self, Tags};
use crate::request::route::Route;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use httpdate::parse_http_date;

/// Max bytes of a file that is served in parts.
const FILE_BYTES_MAX: usize = 64 << 20;

/// The conditions of a read.
pub struct Conditions {
    matches: Option<Tags>,
    none: Option<Tags>,
    modified_since: Option<HeaderValue>,
    unmodified_since: Option<HeaderValue>,
    range: Option<HeaderValue>,
    if_range: Option<HeaderValue>,
}

/// The headers that state conditions, those on tags first.
static HEADERS: [HeaderName; 4] =
    [header::IF_NONE_MATCH, header::IF_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE];

/// Refuses a write with a condition that its route does not support: the write must not be done as if there were none.
/// A condition on a date is ignored: nothing that can be written has one (RFC 9110, 13.1.3 and 13.1.4).
///
/// # Errors
/// 501. 400 for a PUT of a part, which would otherwise replace the whole (RFC 9110, 14.5).
pub fn check(route: &Route, headers: &HeaderMap) -> Result<()> {
    if matches!(route.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if route.method == Method::PUT && headers.contains_key(header::CONTENT_RANGE) {
        return Err(Problem::parameter("Content-Range", "a PUT replaces the whole: expected a request without it"));
    }
    let takes = |name: &HeaderName| route.parameters.iter().any(|one| name.as_str().eq_ignore_ascii_case(one));
    match HEADERS[..2].iter().find(|name| headers.contains_key(*name) && !takes(name)) {
        None => Ok(()),
        Some(name) => {
            let detail = format!("the condition {name} is not supported here: send the request without it");
            Err(Problem::new(Kind::NotImplemented, detail).with("field", name.as_str()))
        }
    }
}

impl Conditions {
    /// Parses the conditions of a read; `None` if it has no conditions.
    pub fn of(method: &Method, headers: &HeaderMap) -> Option<Conditions> {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        if !is_read || !(fields::has_any(headers, &HEADERS) || fields::has(headers, &header::RANGE)) {
            return None;
        }
        Some(Conditions {
            // A malformed header matches no state.
            matches: Tags::of(headers, &header::IF_MATCH).unwrap_or(Some(Tags::Listed(Vec::new()))),
            none: Tags::of(headers, &header::IF_NONE_MATCH).unwrap_or_default(),
            modified_since: headers.get(header::IF_MODIFIED_SINCE).cloned(),
            unmodified_since: headers.get(header::IF_UNMODIFIED_SINCE).cloned(),
            // Only for GET (RFC 9110, 14.2).
            range: headers.get(header::RANGE).filter(|_| *method == Method::GET).cloned(),
            if_range: headers.get(header::IF_RANGE).cloned(),
        })
    }

    /// Returns the response under these conditions, to a client that accepts these codings.
    pub async fn apply(self, response: Response, accepted: &Accepted) -> Response {
        if response.status() != StatusCode::OK {
            return response;
        }
        let headers = response.headers();
        if let Some(matches) = &self.matches {
            let is_state = |tag: &HeaderValue| {
                tag.as_bytes().starts_with(b"\"")
                    && tags::opaque(tag).is_some_and(|tag| matches.have_strong(|one| one == tag))
            };
            if *matches != Tags::Any && !headers.get(header::ETAG).is_some_and(is_state) {
                let detail = "this is in another state than If-Match names";
                return Problem::new(Kind::PreconditionFailed, detail).into_response();
            }
        } else if is_modified_since(headers, self.unmodified_since.as_ref()) == Some(true) {
            // The date counts only without the other header, and if the state has one (RFC 9110, 13.1.4).
            let detail = "this has changed since the date of If-Unmodified-Since";
            return Problem::new(Kind::PreconditionFailed, detail).into_response();
        }
        let is_known = match &self.none {
            Some(none) => headers.get(header::ETAG).is_some_and(|tag| none.name(tag)),
            // The date counts only without the other header (RFC 9110, 13.1.3).
            None => is_modified_since(headers, self.modified_since.as_ref()) == Some(false),
        };
        if is_known {
            return not_modified(response, accepted);
        }
        match &self.range {
            Some(range) if self.range_counts(headers) => part(response, range).await,
            _ => response,
        }
    }

    /// Returns whether parts of the response are served and the client's part belongs to the same state.
    fn range_counts(&self, headers: &HeaderMap) -> bool {
        let is_same = |value: &HeaderValue| match value.as_bytes().starts_with(b"\"") {
            // A compressed response has another tag, and other bytes.
            true => headers.get(header::ETAG) == Some(value),
            false => headers.get(header::LAST_MODIFIED) == Some(value),
        };
        headers.get(header::ACCEPT_RANGES).is_some_and(|unit| unit == "bytes")
            && self.if_range.as_ref().is_none_or(is_same)
    }
}

/// Returns whether the state of a response is later than a date; `None` if either has no valid date.
fn is_modified_since(headers: &HeaderMap, since: Option<&HeaderValue>) -> Option<bool> {
    let date = |value: &HeaderValue| parse_http_date(value.to_str().ok()?).ok();
    Some(headers.get(header::LAST_MODIFIED).and_then(date)? > since.and_then(date)?)
}

/// Builds a 304: the client already has the current state. Its tag is that of the 200, which may be compressed
/// (RFC 9110, 15.4.5).
fn not_modified(response: Response, accepted: &Accepted) -> Response {
    let coding = coding::chosen(&response, accepted);
    let (mut parts, _) = response.into_parts();
    parts.status = StatusCode::NOT_MODIFIED;
    parts.headers.remove(header::CONTENT_LENGTH);
    if let Some(coding) = coding {
        tags::mark(&mut parts.headers, coding.name());
    }
    Response::from_parts(parts, Body::empty())
}

/// Returns the requested part of a complete response.
async fn part(response: Response, asked: &HeaderValue) -> Response {
    let (Some(range), Some(length)) = (Range::of(asked), response.body().size_hint().exact()) else { return response };
    let Some((from, to)) = range.within(length) else {
        let detail = format!("the file has {length} bytes, none of them in the range");
        let problem = Problem::new(Kind::RangeNotSatisfiable, detail);
        return match HeaderValue::from_str(&format!("bytes */{length}")) {
            Ok(whole) => problem.header(header::CONTENT_RANGE, whole).into_response(),
            Err(_) => problem.into_response(),
        };
    };
    let (mut parts, body) = response.into_parts();
    // Already in memory, so this does not wait.
    let Ok(whole) = axum::body::to_bytes(body, FILE_BYTES_MAX).await else {
        return Problem::internal("a file that parts are served of is too large").into_response();
    };
    parts.status = StatusCode::PARTIAL_CONTENT;
    parts.headers.remove(header::CONTENT_LENGTH);
    if let Ok(range) = HeaderValue::from_str(&format!("bytes {from}-{}/{length}", to - 1)) {
        parts.headers.insert(header::CONTENT_RANGE, range);
    }
    Response::from_parts(parts, Body::from(whole.slice(from as usize..to as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(text: &str) -> Option<Range> {
        Range::of(&HeaderValue::from_str(text).unwrap())
    }

    #[test]
    fn one_range_is_read_and_anything_else_is_no_range() {
        for (text, expected) in [
            ("bytes=0-0", Some((0, 1))),
            ("bytes=2-5", Some((2, 6))),
            ("Bytes = 2-", Some((2, 10))),
            ("bytes=-3", Some((7, 10))),
            ("bytes=-30", Some((0, 10))),
            ("bytes=8-99999999999999999999999", Some((8, 10))),
            ("bytes=10-", None),
            ("bytes=10-20", None),
            ("bytes=-0", None),
        ] {
            assert_eq!(range(text).unwrap().within(10), expected, "{text}");
        }
        for text in
            ["bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "items=0-1", "bytes", "bytes=a-b", "bytes=+1-2", "0-1"]
        {
            assert_eq!(range(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn a_read_of_what_changed_since_a_date_is_refused() {
        const CHANGED: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
        for (conditions, changed, expected) in [
            (&[(header::IF_UNMODIFIED_SINCE, "Wed, 21 Oct 2015 07:27:59 GMT")][..], Some(CHANGED), 412),
            (&[(header::IF_UNMODIFIED_SINCE, CHANGED)], Some(CHANGED), 200),
            (&[(header::IF_UNMODIFIED_SINCE, "yesterday")], Some(CHANGED), 200),
            (&[(header::IF_UNMODIFIED_SINCE, "Wed, 21 Oct 2015 07:27:59 GMT")], None, 200),
            // The tag goes before the date.
            (
                &[(header::IF_UNMODIFIED_SINCE, "Wed, 21 Oct 2015 07:27:59 GMT"), (header::IF_MATCH, "*")],
                Some(CHANGED),
                200,
            ),
            (&[(header::IF_MODIFIED_SINCE, CHANGED)], Some(CHANGED), 304),
            (&[(header::IF_MODIFIED_SINCE, "Wed, 21 Oct 2015 07:27:59 GMT")], Some(CHANGED), 200),
        ] {
            let asked: HeaderMap =
                conditions.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            let conditions = Conditions::of(&Method::GET, &asked).unwrap();
            let mut response = Response::new(Body::empty());
            if let Some(changed) = changed {
                response.headers_mut().insert(header::LAST_MODIFIED, HeaderValue::from_static(changed));
            }
            let response = conditions.apply(response, &Accepted::default()).await;
            assert_eq!(response.status(), expected, "{asked:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_is_those_bytes_of_the_whole(length in 1u64..200, first in 0u64..250, last in proptest::option::of(0u64..250)) {
            let asked = format!("bytes={first}-{}", last.map_or(String::new(), |last| last.to_string()));
            let expected: Vec<u64> = (0..length).filter(|at| *at >= first && last.is_none_or(|last| *at <= last)).collect();
            match range(&asked) {
                None => prop_assert!(last.is_some_and(|last| last < first)),
                Some(range) => {
                    let found: Vec<u64> = range.within(length).map_or(Vec::new(), |(from, to)| (from..to).collect());
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
