//! Generators: sources of the values of `{name}`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A seeded source of values. Each request draws once from each generator that it names; fields of one draw belong
/// together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Generator {
    /// Points evenly over longitude and latitude of a box. Fields `lon`, `lat`.
    Box {
        /// West, south, east, north in degrees; west above east crosses the antimeridian.
        #[serde(rename = "box")]
        bounds: [f64; 4],
    },
    /// Points near populated places, weighted by population. Fields `lon`, `lat`, `name`.
    Populated {
        /// A GeoNames dump (`cities15000.txt` and the like, tab-separated).
        file: PathBuf,
        /// Scatter around the place, in kilometres (standard deviation).
        #[serde(default)]
        spread_km: f64,
    },
    /// City buffers: a centre and a radius in Web Mercator metres, reprojected. Fields `name`, `lon`, `lat`,
    /// `radius_m`, `west`, `south`, `east`, `north`, `bbox`, `wkt`.
    Cities {
        /// Radii in kilometres.
        #[serde(default = "buffer_sizes")]
        sizes_km: Vec<f64>,
        /// `name`, lon, lat of each; by default the ten cities of the GeoWave/GeoMesa study.
        #[serde(default = "ten_cities")]
        cities: Vec<(String, f64, f64)>,
    },
    /// Polygons of a GeoJSON file. Fields `name`, `wkt`, `bbox`, `west`, `south`, `east`, `north`.
    Polygons {
        /// A FeatureCollection.
        file: PathBuf,
        /// The property that names each polygon.
        #[serde(default = "name_property")]
        name: String,
    },
    /// Cells of a pyramid over a box: level z has 2^z columns by 2^(z-1) rows; levels are drawn by their count of
    /// cells. Fields `z`, `col`, `row`, `west`, `south`, `east`, `north`, `bbox`.
    Cells {
        /// West, south, east, north in degrees.
        #[serde(rename = "box")]
        bounds: [f64; 4],
        /// First level.
        from: u8,
        /// Last level.
        to: u8,
    },
    /// Time windows. Fields `start`, `end`, `interval` (RFC 3339), `days`, `position`.
    Window {
        /// Start of the first window (RFC 3339).
        start: String,
        /// Lengths in days, each with its number of consecutive positions. A length is drawn evenly, then a position.
        lengths: Vec<(f64, u32)>,
    },
    /// Integers, evenly.
    Id {
        /// Min.
        #[serde(default)]
        from: u64,
        /// Max.
        to: u64,
        /// Text before the number.
        #[serde(default)]
        prefix: String,
        /// Whether numbers are consecutive instead of random.
        #[serde(default)]
        sequence: bool,
    },
    /// Keys 1 to `keys`, the k-th with a probability in proportion to k^-exponent.
    Zipf {
        /// Number of keys.
        keys: u64,
        /// Exponent; 0 is even.
        exponent: f64,
        /// Text before the number.
        #[serde(default)]
        prefix: String,
    },
    /// One of several texts.
    Choice {
        /// The texts.
        values: Vec<String>,
        /// Their weights; equal by default.
        #[serde(default)]
        weights: Vec<f64>,
    },
    /// Numbers, evenly.
    Number {
        /// Min.
        from: f64,
        /// Max.
        to: f64,
        /// Digits after the point.
        #[serde(default = "six")]
        decimals: u8,
    },
    /// Events as GeoJSON features: a point in a box, a time in an interval, an object's name, a value. The value of the
    /// generator is one feature, or a FeatureCollection of `batch`; fields `feature`, `collection`, `ndjson`.
    Event {
        /// West, south, east, north in degrees.
        #[serde(rename = "box")]
        bounds: [f64; 4],
        /// Earliest (RFC 3339).
        start: String,
        /// Latest (RFC 3339).
        end: String,
        /// Number of objects that the events belong to.
        #[serde(default = "thousand")]
        objects: u64,
        /// Events per draw.
        #[serde(default = "one")]
        batch: u32,
        /// Name of the time property.
        #[serde(default = "time_property")]
        time: String,
    },
}

fn buffer_sizes() -> Vec<f64> {
    vec![10.0, 50.0, 150.0, 250.0, 350.0, 450.0, 550.0, 650.0]
}

/// Study 1 of studies.md (azavea/geowave-geomesa-comparative-analysis), section 1.4.
fn ten_cities() -> Vec<(String, f64, f64)> {
    [
        ("Paris", 2.333, 48.867),
        ("Philadelphia", -75.167, 39.95),
        ("Istanbul", 28.967, 41.0),
        ("Baghdad", 44.417, 33.317),
        ("Tehran", 51.417, 35.683),
        ("Beijing", 116.4, 39.9),
        ("Tokyo", 139.767, 35.683),
        ("Oslo", 10.75, 59.95),
        ("Khartoum", 32.533, 15.633),
        ("Johannesburg", 28.033, -26.2),
    ]
    .map(|(name, lon, lat)| (name.to_owned(), lon, lat))
    .to_vec()
}

fn name_property() -> String {
    "name".to_owned()
}
fn time_property() -> String {
    "time".to_owned()
}
fn six() -> u8 {
    6
}
fn thousand() -> u64 {
    1000
}
fn one() -> u32 {
    1
}
