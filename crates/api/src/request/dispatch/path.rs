//! The variable segments of a path, decoded.

use super::Dispatch;
use crate::protocol::problem::{Problem, Result};
use crate::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use matchit::Params;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The variable segments of a path, decoded: one text, or a tuple of them.
pub struct Path<T>(pub T);

/// Segments as they appear in the URL, encoded.
#[derive(Clone, Default)]
pub struct Segments(Vec<Box<str>>);

impl Segments {
    pub fn of(params: &Params<'_, '_>) -> Segments {
        Segments(params.iter().map(|(_, value)| value.into()).collect())
    }

    /// Returns the first segment, decoded.
    pub fn first(&self) -> Result<String> {
        self.text(0)
    }

    fn text(&self, at: usize) -> Result<String> {
        let segment =
            self.0.get(at).ok_or_else(|| Problem::internal("a route with fewer segments than its handler"))?;
        decoded(segment).map(Cow::into_owned)
    }
}

/// Percent-decodes a segment; 404 if it is not UTF-8.
pub fn decoded(segment: &str) -> Result<Cow<'_, str>> {
    // Most names need no decoding, and therefore no allocation.
    if !segment.contains('%') {
        return Ok(segment.into());
    }
    percent_decode_str(segment)
        .decode_utf8()
        .map_err(|_| Problem::not_found(format!("the path segment {segment:?} is not UTF-8 once decoded")))
}

/// Types that a handler can take from a path.
pub trait FromSegments: Sized {
    /// Parses the segments in order.
    fn read(segments: &Segments) -> Result<Self>;
}

impl FromSegments for String {
    fn read(segments: &Segments) -> Result<String> {
        segments.text(0)
    }
}

impl FromSegments for (String, String) {
    fn read(segments: &Segments) -> Result<Self> {
        Ok((segments.text(0)?, segments.text(1)?))
    }
}

impl FromSegments for (String, String, String, String, String) {
    fn read(segments: &Segments) -> Result<Self> {
        let at = |n| segments.text(n);
        Ok((at(0)?, at(1)?, at(2)?, at(3)?, at(4)?))
    }
}

impl<T: FromSegments> FromRequestParts<AppState> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self> {
        match parts.extensions.get::<Dispatch>() {
            Some(dispatch) => T::read(&dispatch.segments).map(Path),
            None => Err(Problem::internal("a request that did not pass the entry point")),
        }
    }
}
