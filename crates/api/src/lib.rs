//! The HTTP server of Meridian: OGC API - Features and Tiles, aggregates, the places profile, pages and metrics.
//!
//! The crate is a library around one function, [`serve`]. It takes listeners, an [`AppState`] over an open backend and
//! a future that completes when the server is to stop. [`InProcess`] handles the same requests without a network. The
//! crate guarantees that
//! - every refusal is an RFC 9457 problem that names the parameter, field or line at fault;
//! - responses are streamed, and cost nothing once their client disconnects or their deadline passes;
//! - the number of running requests, and the memory of bodies and responses, are bounded by [`ServerConfig`]. Work
//!   beyond a limit is refused early with 503;
//! - no page of another origin changes anything, and requests for other host names are refused (`guard`);
//! - an interrupted transfer never looks complete.
//!
//! Start reading at `entry/mod.rs` (the steps of every request) and `routes.rs` (the routes). Then read `items/mod.rs`
//! (a query) and `stream/mod.rs` (how its response is sent). This crate handles HTTP; the query crate defines the
//! meaning of a query.

mod access;
mod after;
mod analysis;
mod arrow_stream;
mod ask;
mod assembly;
mod audit;
mod audit_log;
mod background;
mod backup;
mod base_map;
mod body;
mod cluster;
mod collections;
mod config;
mod conformance;
mod connection;
mod connection_control;
mod contract;
mod credentials;
mod dispatch;
mod entry;
mod errors;
mod event_streams;
mod exchanges;
mod fields;
mod files;
#[cfg(feature = "flight")]
mod flight;
#[doc(hidden)]
pub mod fuzzed;
mod gateways;
mod groups;
mod guard;
mod html;
mod in_process;
mod issuer_files;
mod issuers;
mod items;
mod landing;
mod links;
mod live;
mod load;
mod member;
mod metrics;
mod monitor;
mod network;
mod openapi;
mod operation;
mod overload;
#[cfg(feature = "map")]
mod pages;
#[cfg(any(test, not(feature = "map")))]
mod pages_absent;
mod params;
mod passages;
mod passwords;
mod places;
mod problem;
mod quota;
mod range;
mod readers;
mod records;
mod relay;
mod reproject;
mod request;
mod respond;
mod route;
mod routes;
mod running;
mod scope;
mod searches;
mod server;
mod sign_in;
mod slow;
mod socket;
mod sse;
mod state;
mod stream;
#[cfg(feature = "flight")]
mod tables;
mod tags;
mod tenant_metrics;
mod text;
mod tiles;
mod tilesets;
mod tracked;
mod unbuilt;
mod unchanged;
mod usage_history;
mod vary;

#[cfg(not(feature = "map"))]
use pages_absent as pages;

pub use config::{BaseMap, ServerConfig};
pub use connection::{Certificate, CertificateFault, Tls};
pub use credentials::RECORD_KINDS;
pub use gateways::{Gateway, Gateways, Runs, advertised};
pub use guard::{HostName, Hosts, WebOrigin};
pub use in_process::InProcess;
pub use items::write::BATCH_TIMES;
pub use member::Member;
pub use meridian_saved::{SLOTS, Slot};
pub use monitor::serve_monitors;
pub use network::Network;
pub use server::{Listeners, serve};
pub use state::{AppState, StateInner};
