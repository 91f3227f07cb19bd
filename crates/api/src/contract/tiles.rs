//! Tilesets and the grid that they are on (OGC API - Tiles part 1, 2-D TMS 2.0, TileJSON 3.0).

use super::Link;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The tile matrix sets.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TileMatrixSetList {
    /// Each of them.
    pub tile_matrix_sets: Vec<TileMatrixSetItem>,
    /// This document in other formats.
    pub links: Vec<Link>,
}

/// A tile matrix set by its name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TileMatrixSetItem {
    /// Its name.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its URI.
    pub uri: &'static str,
    /// Its system of coordinates.
    pub crs: &'static str,
    /// Its definition.
    pub links: Vec<Link>,
}

/// A tile matrix set.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TileMatrixSet {
    /// Its name, title, URI and system of coordinates.
    #[serde(flatten)]
    pub item: TileMatrixSetItem,
    /// Order of the coordinates.
    pub ordered_axes: [&'static str; 2],
    /// URI of its well-known set of scales.
    pub well_known_scale_set: &'static str,
    /// The grid of each zoom level.
    pub tile_matrices: Vec<TileMatrix>,
}

/// The grid of a zoom level.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TileMatrix {
    /// The zoom level.
    pub id: String,
    /// Scale for a pixel of 0.28 mm.
    pub scale_denominator: f64,
    /// Metres of a pixel.
    pub cell_size: f64,
    /// `topLeft`.
    pub corner_of_origin: &'static str,
    /// That corner in metres.
    pub point_of_origin: [f64; 2],
    /// Tiles on a side.
    pub matrix_width: u64,
    /// Tiles on a side.
    pub matrix_height: u64,
    /// Pixels of a tile.
    pub tile_width: u32,
    /// Pixels of a tile.
    pub tile_height: u32,
}

/// The tilesets of a collection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TileSetList {
    /// Each of them.
    pub tilesets: Vec<TileSet>,
    /// This document in other formats.
    pub links: Vec<Link>,
}

/// A tileset. Requested alone, it is TileJSON as well.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TileSet {
    /// Its title.
    pub title: String,
    /// `vector`.
    #[serde(rename = "dataType")]
    pub data_type: &'static str,
    /// Its system of coordinates.
    pub crs: &'static str,
    /// Name of its tile matrix set.
    #[serde(rename = "tileMatrixSetId")]
    pub tile_matrix_set_id: &'static str,
    /// URI of its tile matrix set.
    #[serde(rename = "tileMatrixSetURI")]
    pub tile_matrix_set_uri: &'static str,
    /// Its tiles and its tile matrix set.
    pub links: Vec<Link>,
    /// Where its events are.
    #[serde(rename = "boundingBox", skip_serializing_if = "Option::is_none")]
    pub bounding_box: Option<BoundingBox>,
    /// Its layers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Version of TileJSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tilejson: Option<&'static str>,
    /// URLs of its tiles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiles: Vec<String>,
    /// Min zoom level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minzoom: Option<u8>,
    /// Max zoom level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxzoom: Option<u8>,
    /// West, south, east, north in degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 4]>,
    /// Its layers, as TileJSON describes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vector_layers: Vec<VectorLayer>,
}

/// Where the events of a tileset are.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundingBox {
    /// West and south.
    pub lower_left: [f64; 2],
    /// East and north.
    pub upper_right: [f64; 2],
    /// Their system of coordinates.
    pub crs: &'static str,
}

/// A layer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Layer {
    /// Its name.
    pub id: String,
    /// `vector`.
    #[serde(rename = "dataType")]
    pub data_type: &'static str,
}

/// A layer, as TileJSON describes it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VectorLayer {
    /// Its name.
    pub id: String,
    /// Its subject.
    pub description: String,
    /// Min zoom level.
    pub minzoom: u8,
    /// Max zoom level.
    pub maxzoom: u8,
    /// Types of its properties by their names.
    pub fields: Map<String, Value>,
}
