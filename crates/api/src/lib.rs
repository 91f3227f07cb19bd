//! The HTTP server of Meridian: OGC API - Features and Tiles, aggregates, the places profile, pages and metrics.
//!
//! The crate is a library around one function, [`serve`]. It takes listeners, an [`AppState`] over an open backend and
//! a future that completes when the server is to stop. [`InProcess`] handles the same requests without a network. The
//! crate guarantees that
//! - every refusal is an RFC 9457 problem that names the parameter, field or line at fault;
//! - responses are streamed, and cost nothing once their client disconnects or their deadline passes;
//! - the number of running requests, and the memory of bodies and responses, are bounded by [`ServerConfig`]. Work
//!   beyond a limit is refused early with 503;
//! - no page of another origin changes anything, and requests for other host names are refused (`entry/guard`);
//! - an interrupted transfer never looks complete.
//!
//! Start reading at `entry/mod.rs` (the steps of every request) and `routes/mod.rs` (the routes). Then read
//! `collections/items/mod.rs` (a query) and `response/stream/mod.rs` (how its response is sent). This crate
//! handles HTTP; the query crate defines the meaning of a query.

mod access;
mod cluster;
mod collections;
mod config;
mod contract;
mod entry;
#[cfg(feature = "flight")]
mod flight;
#[doc(hidden)]
pub mod fuzzed;
mod html;
mod operation;
mod pages;
mod protocol;
mod request;
mod response;
mod routes;
mod searches;
mod server;
mod state;

pub use access::credentials::RECORD_KINDS;
pub use cluster::gateways::{Gateway, Gateways, SlotRunner, advertised};
pub use cluster::member::Member;
pub use collections::items::write::BATCH_TIMES;
pub use config::network::Network;
pub use config::{ADMINISTRATION_BYTES, BaseMap, ServerConfig};
pub use entry::guard::Hosts;
pub use meridian_saved::{SLOTS, Slot};
pub use protocol::host_name::HostName;
pub use protocol::web_origin::WebOrigin;
pub use server::connection::{Certificate, CertificateFault, Tls};
pub use server::in_process::InProcess;
pub use server::monitor::serve_monitors;
pub use server::{Listeners, serve};
pub use state::brief_runs::runtime;
pub use state::{AppState, StateInner};
