//! Three spots as CSV, and a folder that holds them.

use super::meridian_with_input;
use std::path::Path;

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub const SPOTS: &str = "id,lon,lat,time,name,size\n\
    a,2.35,48.86,2026-01-01T00:00:00Z,Paris,2.5\n\
    b,13.4,52.52,2026-01-02T00:00:00Z,\"Berlin, Mitte\",3.5\n\
    c,-74.0,40.71,2026-01-03T00:00:00Z,New York,\n";

pub fn spots(folder: &Path) {
    let args = ["load", "spots", "-", "--format", "csv", "--data", text(folder)];
    meridian_with_input(&args, SPOTS.as_bytes()).ended(0);
}
