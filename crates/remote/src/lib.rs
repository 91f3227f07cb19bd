//! A backend whose collections are in another process: the client in a gateway, and the server in an owner.
//!
//! The partitions of a cluster may have several owners, each of some groups of them: [`GroupsBackend`] assembles
//! collections from these.
//!
//! [`serve`] answers the calls of [`meridian_backend::Backend`] over Arrow Flight, for any backend. [`RemoteBackend`]
//! makes these calls. So everything above `backend` runs on a gateway as it runs beside the store (decision 044).
//!
//! # Contract
//! - A response equals that of the owner's backend, errors included: their kind, field and text cross the wire.
//! - Rows are a stream of bounded pieces. A stream that ends without its last message is an error, never a short
//!   result.
//! - Every call carries the time left, and ends with it. A caller that goes away stops the work at the owner.
//! - A read that has not begun is retried. A write is resent with its number, and the owner applies it once. If that
//!   owner is gone, the outcome is [`meridian_backend::WriteError::Unknown`] unless the client's key settles it.
//! - With [`RoleTls`] a server answers only callers with an allowed certificate, and a gateway calls only servers with
//!   one (decision 057).
//!
//! Start reading at `wire/call.rs`; then `owner/` and `gateway/`, which mirror each other.

#[doc(hidden)]
pub mod fuzzed;
mod gateway;
mod owner;
mod tls;
mod wire;

pub use gateway::{GroupsBackend, OwnerLocation, RemoteBackend, RemoteOptions, ScanOptions, ScanServerLocation};
pub use owner::{
    Controls, MountedGroup, OwnershipCheck, Pace, ScanExecutor, ScanLoad, ServeOptions, ServedGroups, serve,
    serve_groups,
};
pub use tls::{RoleTls, RoleTlsFault, Security};
