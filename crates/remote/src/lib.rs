//! A backend whose collections are in another process: what a gateway holds, and the server that the owner runs.
//!
//! The partitions of a cluster may have several owners, each of some groups of them: [`GroupsBackend`] puts collections together from these.
//!
//! [`serve`] answers the calls of [`meridian_backend::Backend`] over Arrow Flight, for any backend. [`RemoteBackend`]
//! makes these calls, so that everything above `backend` runs on a gateway as it runs beside the store (decision 044).
//!
//! # Contract
//! - An answer equals that of the owner's backend, errors included: their kind, field and text cross the wire.
//! - Rows are a stream in bounded pieces. A stream that ends without its last message is an error, never a short answer.
//! - Every call carries the time that is left, and ends with it; a caller that goes away stops the work at the owner.
//! - A read that has not begun is asked again. A write is sent again with its number, which the owner applies once. Where
//!   that owner is gone, the outcome is [`meridian_backend::WriteError::Unknown`] unless a key of the client's tells it.
//! - With [`RoleTls`] a server answers only callers with an allowed certificate, and a gateway asks only servers with one (decision 057).
//!
//! Start reading at `wire/call.rs`; then `owner/` and `gateway/`, which mirror each other.

#[doc(hidden)]
pub mod fuzzed;
mod gateway;
mod owner;
mod tls;
mod wire;

pub use gateway::{GroupsBackend, OwnerAt, RemoteBackend, RemoteOptions, ScanAt, ScanOptions};
pub use owner::{Controls, Mounted, Owns, Pace, ScanExecutor, ScanLoad, ServeOptions, Served, serve, serve_groups};
pub use tls::{RoleTls, RoleTlsFault, Security};
