//! Events as GeoJSON, and the outcome of writes.

use super::Link;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// One event as GeoJSON (RFC 7946).
#[derive(Debug, Serialize, JsonSchema)]
pub struct Feature {
    /// `Feature`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Feature"]))]
    pub kind: String,
    /// Its id. A body may leave it out, and may give a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A geometry, or null.
    pub geometry: Option<Map<String, Value>>,
    /// Values by their names.
    pub properties: Map<String, Value>,
    /// Distance in metres from the position in `near`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Where it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// Events as GeoJSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FeatureCollection {
    /// `FeatureCollection`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["FeatureCollection"]))]
    pub kind: String,
    /// The events.
    pub features: Vec<Feature>,
    /// The members after them.
    #[serde(flatten)]
    pub tail: Option<PageTail>,
}

/// The members after the events of a page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageTail {
    /// This page in other formats, and the next one.
    pub links: Vec<Link>,
    /// When the response was made.
    #[schemars(extend("format" = "date-time"))]
    pub time_stamp: String,
    /// Events of this page.
    pub number_returned: u64,
    /// Events of all pages, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_matched: Option<u64>,
    /// Parts that may be missing because files are damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Something that is missing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Missing {
    /// The damage.
    pub detail: String,
}

/// The outcome of a write.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    /// Events stored.
    pub written: u64,
    /// Events that they replaced.
    pub replaced: u64,
    /// Events of a repeated batch, known by its key.
    pub duplicates: u64,
    /// Position of the write in the log.
    pub position: String,
    /// The values dropped by a lenient write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Numbers of events that were written without something.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Events written without their heights.
    pub heights: u64,
    /// Events written without their ids.
    pub ids: u64,
}

/// The outcome of a deletion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// Events deleted.
    pub deleted: u64,
    /// Position of the deletion in the log.
    pub position: String,
}
