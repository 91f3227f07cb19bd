//! Responses: documents, streams of a query, Server-Sent Events, WebSockets and Arrow, and those of other servers.

pub mod arrow_stream;
pub mod charged;
pub mod passed;
pub mod respond;
pub mod socket;
pub mod sse;
pub mod stream;
#[cfg(feature = "flight")]
pub mod tables;
pub mod unchanged;
mod unread;
pub mod whole;
