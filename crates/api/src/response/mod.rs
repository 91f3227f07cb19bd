//! Responses: documents, streams of a query, Server-Sent Events, WebSockets and Arrow.

pub mod arrow_stream;
pub mod respond;
pub mod socket;
pub mod sse;
pub mod stream;
#[cfg(feature = "flight")]
pub mod tables;
pub mod unchanged;
pub mod whole;
