//! The parsers of outside bytes, each as a function of bytes that must neither panic nor hang nor hold much memory.
//!
//! [`TARGETS`] lists them. `fuzz/fuzz_targets` has a program of libFuzzer for each, and `tests/replay.rs` runs them
//! with all inputs in `fuzz/corpus` and `fuzz/regressions`, on stable Rust. Checksums are corrected before the bytes
//! are read: a fuzzer that has to guess them would only test the checksum.

// A target asserts, and a failed assertion is a finding.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "a tool of developers, outside the server")]

mod callers;
mod cluster;
mod connection;
mod files;
mod flights;
mod folder;
mod formats;
mod heads;
mod issuers;
mod lab;
mod languages;
mod named;
mod partials;
mod people;
mod questions;
mod runtime;
mod saved;
mod sealed;
mod searches;
mod wire;
pub mod world;

pub use cluster::seeds as objects_of_cluster;
pub use connection::seeds as connections;
pub use files::seeds as trees;
pub use folder::seeds as files_of_store;
pub use issuers::signed;
pub use lab::{SCENARIO, seeds as results_of_lab};
pub use partials::{grouped, seeds as partials_of_store};
pub use people::seeds as records_of_people;
pub use saved::seeds as records_of_searches;
pub use wire::seeds as wire_of_roles;

use std::sync::atomic::Ordering;

/// A parser: its name, which is also that of its program and its input folder, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("arrow", formats::arrow),
    ("audit_log", folder::audit_log),
    ("backup", folder::backup),
    ("cluster_object", cluster::cluster_object),
    ("collection_object", cluster::collection_object),
    ("conditions", heads::conditions),
    ("connection", connection::connection),
    ("cookie", heads::cookie),
    ("cql2_json", languages::cql2_json),
    ("cql2_text", languages::cql2_text),
    ("credential", callers::credential),
    ("csv", formats::csv),
    ("discovery", issuers::discovery),
    ("flatgeobuf", formats::flatgeobuf),
    ("flight_command", flights::flight_command),
    ("flight_ticket", flights::flight_ticket),
    ("forwarded", heads::forwarded),
    ("gdelt", formats::gdelt),
    ("geojson", formats::geojson),
    ("geojson_seq", formats::geojson_seq),
    ("geopackage", formats::geopackage),
    ("geoparquet", formats::geoparquet),
    ("gpx", formats::gpx),
    ("gtfs_rt", formats::gtfs_rt),
    ("json_schema", languages::json_schema),
    ("jwt", issuers::jwt),
    ("key_set", issuers::key_set),
    ("kml", formats::kml),
    ("lab_file", lab::lab_file),
    ("lab_http", lab::lab_http),
    ("lab_nats", lab::lab_nats),
    ("lab_postgres", lab::lab_postgres),
    ("lab_resp", lab::lab_resp),
    ("lab_results", lab::lab_results),
    ("lab_websocket", lab::lab_websocket),
    ("log", folder::log),
    ("manifest", folder::manifest),
    ("nats_monitor", lab::nats_monitor),
    ("ndjson", formats::ndjson),
    ("nmea", formats::nmea),
    ("origin", heads::origin),
    ("owner_call", wire::owner_call),
    ("page_token", questions::page_token),
    ("parameters", languages::parameters),
    ("partial", partials::partial),
    ("provider", searches::provider),
    ("provider_answer", searches::provider_answer),
    ("query_string", languages::query_string),
    ("rows", folder::rows),
    ("saved_record", saved::saved_record),
    ("saved_search", searches::saved_search),
    ("schema_spec", languages::schema_spec),
    ("search", searches::search),
    ("segment", folder::segment),
    ("shapefile", formats::shapefile),
    ("sidecar", folder::sidecar),
    ("stream", cluster::stream),
    ("token_record", callers::token_record),
    ("tree", files::tree),
    ("user_record", people::user_record),
    ("wire_answer", wire::wire_answer),
    ("wire_call", wire::wire_call),
    ("wire_events", wire::wire_events),
    ("wire_question", questions::wire_question),
    ("wkb", formats::wkb),
    ("wkt", formats::wkt),
];

/// Runs a target.
///
/// # Panics
/// If there is no target of this name, or if the target finds a fault.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no target {name:?}"));
    // A parser may catch panics of decoders of other formats. libFuzzer's hook would end the process at these. The
    // default hook may print a backtrace, which takes more memory than any parser. An uncaught panic still ends the
    // run.
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            runtime::PANICS.fetch_add(1, Ordering::Relaxed);
            eprintln!("{panic}");
        }));
    });
    run(bytes);
}
