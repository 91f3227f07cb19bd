//! The entry point's information about a request for its handler: origin, caller, path and permit.
//!
//! The entry point builds it and handlers consume it, so this module depends on neither.

mod arrival;
mod forwarded;
mod lease;
mod path;
mod revocation;

pub use arrival::{Arrival, Connection, Peer};
pub use forwarded::{Client, client, is_forwarded};
pub use lease::Lease;
pub use path::{Path, Segments, decoded};
pub use revocation::{VoidReason, ticks, void};

use axum::http::HeaderValue;
use meridian_admission::identity::Caller;
use std::sync::Arc;

/// The challenge of a refusal. Browsers react to the second by asking for the token, as a password.
pub static CHALLENGE: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"meridian\", Basic realm=\"meridian\", charset=\"UTF-8\"");

/// Data from the entry point for a handler, as an extension of the request.
#[derive(Clone)]
pub struct Dispatch {
    /// Where the request came from, and when.
    pub arrival: Arrival,
    /// Its id.
    pub id: Arc<str>,
    /// Its caller.
    pub caller: Caller,
    /// The variable segments of its path.
    pub segments: Segments,
    /// Its permit to run.
    pub lease: Lease,
    /// Whether an operator administers the server with it, in a small document.
    pub is_administration: bool,
    /// Max bytes of its body.
    pub body_bytes_max: usize,
}
