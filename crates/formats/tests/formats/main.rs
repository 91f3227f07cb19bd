//! Every format read and written, as one test program.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panics, run programs and read files")]

mod bad_input;
mod columns;
mod common;
#[cfg(all(feature = "flatgeobuf", feature = "geopackage"))]
mod exports;
mod foreign;
mod gpx;
mod gpx_values;
mod gtfs_rt_values;
mod guesses;
mod hostile;
mod json;
mod kml_values;
#[cfg(feature = "geopackage")]
mod lacking;
mod left_out;
mod nmea_parts;
mod nmea_values;
mod notes;
mod ogr2ogr;
mod real_data;
mod round_trips;
