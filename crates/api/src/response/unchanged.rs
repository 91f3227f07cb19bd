//! Skips reads whose result the client already has (RFC 9110, 13.1.2).
//!
//! The tag of a read names its snapshot, its media type and its target, so it can be computed without running the
//! query.

use crate::protocol::tags::{self, Tags};
use crate::request::context::Context;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_backend::{Collection, Head, ReadPoint};

/// Returns a 304 if the client names the tag of a read of the snapshot `at` in `If-None-Match`; `None` if the read must
/// run. `show` builds the headers of the read, with its tag. Call it after [`Context::read`], which waits for the write
/// that `Meridian-After` names: the snapshot must include it.
pub fn response(
    context: &Context,
    collection: &dyn Collection,
    at: &ReadPoint,
    show: impl FnOnce(&Head) -> HeaderMap,
) -> Option<Response> {
    // `If-Match` takes precedence, and needs the response to be decided.
    if context.headers.contains_key(header::IF_MATCH) {
        return None;
    }
    // For `*` any response matches, and whether there is one is known only once the read has run.
    let Ok(Some(named @ Tags::Listed(_))) = Tags::of(&context.headers, &header::IF_NONE_MATCH) else { return None };
    let headers = show(&collection.head(at)?);
    // The entry point adds the target to the tag of every response.
    let mut complete = headers.clone();
    tags::of_path(&mut complete, &context.path, context.query.as_deref().unwrap_or_default());
    named.name(complete.get(header::ETAG)?).then(|| (StatusCode::NOT_MODIFIED, headers).into_response())
}
