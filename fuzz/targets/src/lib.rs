//! The parsers of outside bytes, each as a function of bytes that must neither panic nor hang nor hold much memory.
//!
//! [`TARGETS`] lists them. `fuzz/fuzz_targets` has a program of libFuzzer for each, and `tests/replay.rs` runs them with all
//! inputs in `fuzz/corpus` and `fuzz/regressions`, on stable Rust. Checksums are put right before the bytes are read:
//! a fuzzer that has to guess them tests the checksum.

// A target asserts, and a failed assertion is a finding.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "a tool of developers, outside the server")]

mod callers;
mod files;
mod flights;
mod folder;
mod formats;
mod heads;
mod issuers;
mod languages;
mod partials;
mod questions;
mod sealed;
mod searches;
pub mod world;

pub use files::seeds as trees;
pub use folder::seeds as files_of_store;
pub use issuers::signed;
pub use partials::{grouped, seeds as partials_of_store};

/// A parser: its name, which is that of its program and of its folder of inputs, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("arrow", formats::arrow),
    ("backup", folder::backup),
    ("cookie", heads::cookie),
    ("cql2_json", languages::cql2_json),
    ("cql2_text", languages::cql2_text),
    ("credential", callers::credential),
    ("csv", formats::csv),
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
    ("log", folder::log),
    ("manifest", folder::manifest),
    ("ndjson", formats::ndjson),
    ("nmea", formats::nmea),
    ("page_token", questions::page_token),
    ("parameters", languages::parameters),
    ("partial", partials::partial),
    ("provider", searches::provider),
    ("provider_answer", searches::provider_answer),
    ("rows", folder::rows),
    ("saved_search", searches::saved_search),
    ("schema_spec", languages::schema_spec),
    ("search", searches::search),
    ("segment", folder::segment),
    ("shapefile", formats::shapefile),
    ("sidecar", folder::sidecar),
    ("token_record", callers::token_record),
    ("tree", files::tree),
    ("wire_question", questions::wire_question),
    ("wkb", formats::wkb),
    ("wkt", formats::wkt),
];

/// Runs a target.
///
/// # Panics
/// Where there is no target of this name, and where the target finds a fault.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no target {name:?}"));
    // A parser may catch panics, those of decoders of other formats. libFuzzer's hook would end the process at them, and the
    // usual one may print a backtrace, for which it holds more memory than any parser. A panic that is not caught ends
    // the run all the same.
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    run(bytes);
}
