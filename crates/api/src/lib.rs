//! The HTTP face of Meridian: OGC API - Features and Tiles, aggregates, the places profile, pages and metrics.
//!
//! The crate is a library around one function, [`serve`]: it takes a listener, an [`AppState`] over an open store
//! and a future that says when to stop. It promises that
//! - every refusal is an RFC 9457 problem that names the parameter, field or line to blame;
//! - answers stream, and stop costing anything as soon as their client has gone or their time is over;
//! - the number of requests at work and the memory of bodies and answers in flight are bounded by
//!   [`ServerConfig`], and what is over is refused early with 503;
//! - no page of another origin changes anything, and no name but the server's own is answered (`doors`);
//! - a transfer that breaks off never looks whole.
//!
//! Start reading at `entry/mod.rs` (what happens to every request) and `routes.rs` (what there is), then `items/mod.rs` (the life of a question) and `stream.rs` (how
//! its answer leaves). It knows HTTP; what a question means is the query crate's matter.

mod analysis;
mod backup;
mod body;
mod collections;
mod config;
mod conformance;
mod contract;
mod doors;
mod entry;
mod files;
mod groups;
mod html;
mod items;
mod landing;
mod limiter;
mod links;
mod live;
mod metrics;
mod openapi;
mod operation;
mod pages;
mod params;
mod passages;
mod places;
mod problem;
mod reproject;
mod request;
mod respond;
mod routes;
mod searches;
mod server;
mod snapshot;
mod socket;
mod state;
mod stream;
mod text;
mod tiles;
mod tilesets;
mod wire;

pub use config::ServerConfig;
pub use doors::{HostName, Hosts, WebOrigin};
pub use server::serve;
pub use state::{AppState, Shared};
