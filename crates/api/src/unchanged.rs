//! Reads that need not run, as the client has what they would show (RFC 9110, 13.1.2).
//!
//! The tag of a read names its snapshot, its media type and its target, so no query is needed to make it.

use crate::request::Context;
use crate::tags::{self, Tags};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_backend::{At, Collection, Head};

/// The response to a read of the snapshot `at` whose tag the client names in `If-None-Match`; `None` if the read must run.
/// `show` makes the headers of the read, with its tag.
pub fn response(
    context: &Context,
    collection: &dyn Collection,
    at: &At,
    show: impl FnOnce(&Head) -> HeaderMap,
) -> Option<Response> {
    // Its precondition comes first, and it decides by the response.
    if context.headers.contains_key(header::IF_MATCH) {
        return None;
    }
    // For `*` any response will do, and whether there is one is known once the read has run.
    let Ok(Some(named @ Tags::Listed(_))) = Tags::of(&context.headers, &header::IF_NONE_MATCH) else { return None };
    let headers = show(&collection.head(at)?);
    // The entry point adds the target to the tag of every response.
    let mut complete = headers.clone();
    tags::of_path(&mut complete, &context.path, context.query.as_deref().unwrap_or_default());
    named.same_as(complete.get(header::ETAG)?)?;
    Some((StatusCode::NOT_MODIFIED, headers).into_response())
}
