//! The only tile matrix set, and the descriptions of tilesets on it (OGC API - Tiles part 1, 2-D TMS 2.0).

use crate::contract::links::{self, MVT, link};
use crate::contract::{
    BoundingBox, Layer, Link, TileMatrix, TileMatrixSet, TileMatrixSetItem, TileMatrixSetList, TileSet, VectorLayer,
};
use crate::html;
use crate::protocol::params::crs::Crs;
use crate::protocol::params::format::{Format, PAGES};
use crate::protocol::problem::{Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::response::Response;
use meridian_model::{FieldType, Schema};
use serde_json::{Map, Value, json};

/// Name of the tile matrix set.
pub const WEB_MERCATOR_QUAD: &str = "WebMercatorQuad";
/// URI of the tile matrix set.
pub const WEB_MERCATOR_QUAD_URI: &str = "http://www.opengis.net/def/tilematrixset/OGC/1.0/WebMercatorQuad";
/// Max zoom level.
pub const ZOOM_MAX: u8 = 24;
/// West, south, east and north of the square in degrees.
pub const MERCATOR_BOUNDS: [f64; 4] = [-180.0, -85.051_128_779_806_59, 180.0, 85.051_128_779_806_59];

/// Half the side of the Mercator square in metres.
const HALF_SIDE_M: f64 = 20_037_508.342_789_244;
/// Scale denominator of zoom 0 for a pixel of 0.28 mm.
const SCALE_0: f64 = 559_082_264.028_717_9;

/// Refuses any other tile matrix set.
pub fn check(id: &str) -> Result<()> {
    if id == WEB_MERCATOR_QUAD {
        return Ok(());
    }
    Err(Problem::not_found(format!("there is no tile matrix set {id:?}: expected {WEB_MERCATOR_QUAD}")))
}

/// `GET /tileMatrixSets`
pub async fn list(state: Scope, context: Context) -> Result<Response> {
    let format = context.page_format()?;
    if format == Format::Html {
        let body = format!("<ul><li><a href=\"/tileMatrixSets/{WEB_MERCATOR_QUAD}\">{WEB_MERCATOR_QUAD}</a></li></ul>");
        return Ok(respond::page(&state, html::page("Tile matrix sets", &[], &body)));
    }
    let url = context.url(&format!("/tileMatrixSets/{WEB_MERCATOR_QUAD}"));
    let document = TileMatrixSetList {
        tile_matrix_sets: vec![item(vec![link(url, links::REL_TILING_SCHEME, "application/json", "Its definition")])],
        links: links::self_and_alternates(&context.url("/tileMatrixSets"), format, PAGES, "application/json"),
    };
    respond::document("application/json", &document)
}

/// `GET /tileMatrixSets/{tileMatrixSetId}`
pub async fn definition(state: Scope, context: Context, Path(id): Path<String>) -> Result<Response> {
    check(&id)?;
    let format = context.page_format()?;
    if format == Format::Html {
        let rows: String = (0..=ZOOM_MAX)
            .map(|z| {
                format!(
                    "<tr><td>{z}</td><td class=\"num\">{}</td><td class=\"num\">{:.3}</td></tr>",
                    1u64 << z,
                    scale(z)
                )
            })
            .collect();
        let body = format!(
            "<p><code>{WEB_MERCATOR_QUAD_URI}</code></p><table><tr><th>Zoom</th><th class=\"num\">Tiles on a side</th><th class=\"num\">Scale 1 :</th></tr>{rows}</table>"
        );
        let trail = [("Tile matrix sets", "/tileMatrixSets".to_owned())];
        return Ok(respond::page(&state, html::page(WEB_MERCATOR_QUAD, &trail, &body)));
    }
    let matrix = |zoom: u8| TileMatrix {
        id: zoom.to_string(),
        scale_denominator: scale(zoom),
        cell_size: scale(zoom) * 0.000_28,
        corner_of_origin: "topLeft",
        point_of_origin: [-HALF_SIDE_M, HALF_SIDE_M],
        matrix_width: 1 << zoom,
        matrix_height: 1 << zoom,
        tile_width: 256,
        tile_height: 256,
    };
    let url = context.url(&format!("/tileMatrixSets/{id}"));
    let document = TileMatrixSet {
        item: item(links::self_and_alternates(&url, format, PAGES, "application/json")),
        ordered_axes: ["X", "Y"],
        well_known_scale_set: "http://www.opengis.net/def/wkss/OGC/1.0/GoogleMapsCompatible",
        tile_matrices: (0..=ZOOM_MAX).map(matrix).collect(),
    };
    respond::document("application/json", &document)
}

/// Returns the identity of the tile matrix set.
fn item(links: Vec<Link>) -> TileMatrixSetItem {
    TileMatrixSetItem {
        id: WEB_MERCATOR_QUAD,
        title: "Google Maps Compatible for the World",
        uri: WEB_MERCATOR_QUAD_URI,
        crs: Crs::Epsg3857.uri(),
        links,
    }
}

fn scale(zoom: u8) -> f64 {
    SCALE_0 / (1u64 << zoom) as f64
}

/// Describes the vector tileset of a collection. `bbox` is the bounding box of its events.
pub fn tileset(context: &Context, collection: &str, schema: &Schema, bbox: Option<[f64; 4]>, whole: bool) -> TileSet {
    let root = format!("/collections/{}/tiles", links::escape(collection));
    let tiles = context.url(&format!("{root}/{WEB_MERCATOR_QUAD}/{{tileMatrix}}/{{tileRow}}/{{tileCol}}"));
    let itself = context.url(&format!("{root}/{WEB_MERCATOR_QUAD}"));
    let tiles = Link { templated: Some(true), ..link(tiles, "item", MVT, "The tiles") };
    let scheme = context.url(&format!("/tileMatrixSets/{WEB_MERCATOR_QUAD}"));
    let described = TileSet {
        title: schema.title.as_deref().unwrap_or(collection).to_owned(),
        data_type: "vector",
        crs: Crs::Epsg3857.uri(),
        tile_matrix_set_id: WEB_MERCATOR_QUAD,
        tile_matrix_set_uri: WEB_MERCATOR_QUAD_URI,
        links: vec![
            link(itself, "self", "application/json", "This tileset"),
            link(scheme, links::REL_TILING_SCHEME, "application/json", "Its tile matrix set"),
            tiles,
        ],
        bounding_box: bbox.map(|[west, south, east, north]| BoundingBox {
            lower_left: [west, south],
            upper_right: [east, north],
            crs: Crs::Crs84.uri(),
        }),
        ..TileSet::default()
    };
    // In a list, the members of TileJSON would repeat each tileset's document.
    if !whole {
        return described;
    }
    TileSet {
        layers: vec![Layer { id: collection.to_owned(), data_type: "vector" }],
        // The members of TileJSON, for map clients; their {x} is the column, their {y} the row.
        tilejson: Some("3.0.0"),
        tiles: vec![context.url(&format!("{root}/{WEB_MERCATOR_QUAD}/{{z}}/{{y}}/{{x}}"))],
        minzoom: Some(0),
        maxzoom: Some(ZOOM_MAX),
        bounds: Some(bbox.unwrap_or(MERCATOR_BOUNDS)),
        vector_layers: vec![VectorLayer {
            id: collection.to_owned(),
            description: schema.description.clone().unwrap_or_default(),
            minzoom: 0,
            maxzoom: ZOOM_MAX,
            fields: fields(schema),
        }],
        ..described
    }
}

/// Returns the properties of a layer, with TileJSON's names for their types.
fn fields(schema: &Schema) -> Map<String, Value> {
    let word = |kind: FieldType| match kind {
        FieldType::Int | FieldType::Float => "Number",
        FieldType::Bool => "Boolean",
        FieldType::Text | FieldType::Time | FieldType::Date | FieldType::TextList => "String",
    };
    // Tiles with few events carry ids, tiles with many carry counts.
    let id = meridian_query::id_key(schema);
    let mut fields = Map::new();
    for (name, word) in [(id.as_str(), "String"), ("count", "Number"), ("density", "Boolean")] {
        fields.insert(name.to_owned(), json!(word));
    }
    fields.extend(schema.fields.iter().map(|field| (field.name.clone(), json!(word(field.kind)))));
    fields
}
