//! The one tile matrix set, and the descriptions of tilesets on it (OGC API - Tiles part 1, 2-D TMS 2.0).

use crate::entry::Path;
use crate::html;
use crate::links::{self, MVT, link};
use crate::params::Params;
use crate::params::crs::Crs;
use crate::params::format::{self, Format, PAGES};
use crate::problem::{Problem, Result};
use crate::request::Context;
use crate::respond;
use axum::response::Response;
use meridian_model::{FieldType, Schema};
use serde_json::{Map, Value, json};

/// Name of the tile matrix set.
pub const WEB_MERCATOR_QUAD: &str = "WebMercatorQuad";
/// URI of the tile matrix set.
pub const WEB_MERCATOR_QUAD_URI: &str = "http://www.opengis.net/def/tilematrixset/OGC/1.0/WebMercatorQuad";
/// Deepest zoom served.
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
pub async fn list(context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    params.finish()?;
    if format == Format::Html {
        let body = format!("<ul><li><a href=\"/tileMatrixSets/{WEB_MERCATOR_QUAD}\">{WEB_MERCATOR_QUAD}</a></li></ul>");
        return Ok(respond::html(html::page("Tile matrix sets", &[("Meridian", "/".to_owned())], &body)));
    }
    let url = context.url(&format!("/tileMatrixSets/{WEB_MERCATOR_QUAD}"));
    let document = json!({
        "tileMatrixSets": [{
            "id": WEB_MERCATOR_QUAD,
            "title": "Google Maps Compatible for the World",
            "uri": WEB_MERCATOR_QUAD_URI,
            "crs": Crs::Epsg3857.uri(),
            "links": [link(url, links::REL_TILING_SCHEME, "application/json", "Its definition")],
        }],
        "links": links::self_and_alternates(&context.url("/tileMatrixSets"), format, PAGES, "application/json"),
    });
    respond::json("application/json", &document)
}

/// `GET /tileMatrixSets/{tileMatrixSetId}`
pub async fn definition(context: Context, Path(id): Path<String>) -> Result<Response> {
    check(&id)?;
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    params.finish()?;
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
        let trail = [("Meridian", "/".to_owned()), ("Tile matrix sets", "/tileMatrixSets".to_owned())];
        return Ok(respond::html(html::page(WEB_MERCATOR_QUAD, &trail, &body)));
    }
    let matrices: Vec<Value> = (0..=ZOOM_MAX)
        .map(|z| {
            json!({
                "id": z.to_string(),
                "scaleDenominator": scale(z),
                "cellSize": scale(z) * 0.000_28,
                "cornerOfOrigin": "topLeft",
                "pointOfOrigin": [-HALF_SIDE_M, HALF_SIDE_M],
                "matrixWidth": 1u64 << z,
                "matrixHeight": 1u64 << z,
                "tileWidth": 256,
                "tileHeight": 256,
            })
        })
        .collect();
    let document = json!({
        "id": WEB_MERCATOR_QUAD,
        "title": "Google Maps Compatible for the World",
        "uri": WEB_MERCATOR_QUAD_URI,
        "crs": Crs::Epsg3857.uri(),
        "orderedAxes": ["X", "Y"],
        "wellKnownScaleSet": "http://www.opengis.net/def/wkss/OGC/1.0/GoogleMapsCompatible",
        "tileMatrices": matrices,
        "links": links::self_and_alternates(&context.url(&format!("/tileMatrixSets/{id}")), format, PAGES, "application/json"),
    });
    respond::json("application/json", &document)
}

fn scale(zoom: u8) -> f64 {
    SCALE_0 / (1u64 << zoom) as f64
}

/// Describes the vector tileset of a collection. `bbox` is that of its events.
pub fn tileset(context: &Context, collection: &str, schema: &Schema, bbox: Option<[f64; 4]>, whole: bool) -> Value {
    let root = format!("/collections/{}/tiles", links::escape(collection));
    let tiles = context.url(&format!("{root}/{WEB_MERCATOR_QUAD}/{{tileMatrix}}/{{tileRow}}/{{tileCol}}"));
    let itself = context.url(&format!("{root}/{WEB_MERCATOR_QUAD}"));
    let mut item = link(tiles, "item", MVT, "The tiles");
    item["templated"] = json!(true);
    let mut document = json!({
        "title": schema.title.as_deref().unwrap_or(collection),
        "dataType": "vector",
        "crs": Crs::Epsg3857.uri(),
        "tileMatrixSetId": WEB_MERCATOR_QUAD,
        "tileMatrixSetURI": WEB_MERCATOR_QUAD_URI,
        "links": [
            link(itself, "self", "application/json", "This tileset"),
            link(context.url(&format!("/tileMatrixSets/{WEB_MERCATOR_QUAD}")), links::REL_TILING_SCHEME, "application/json", "Its tile matrix set"),
            item,
        ],
    });
    if let Some([west, south, east, north]) = bbox {
        document["boundingBox"] =
            json!({ "lowerLeft": [west, south], "upperRight": [east, north], "crs": Crs::Crs84.uri() });
    }
    if whole {
        document["layers"] = json!([{ "id": collection, "dataType": "vector" }]);
        // What map clients ask for under the name of TileJSON; their {x} is the column, their {y} the row.
        document["tilejson"] = json!("3.0.0");
        document["tiles"] = json!([context.url(&format!("{root}/{WEB_MERCATOR_QUAD}/{{z}}/{{y}}/{{x}}"))]);
        document["minzoom"] = json!(0);
        document["maxzoom"] = json!(ZOOM_MAX);
        document["bounds"] = json!(bbox.unwrap_or(MERCATOR_BOUNDS));
        document["vector_layers"] = json!([{
            "id": collection,
            "description": schema.description.as_deref().unwrap_or_default(),
            "minzoom": 0,
            "maxzoom": ZOOM_MAX,
            "fields": fields(schema),
        }]);
    }
    document
}

/// The properties of a layer, by the words of TileJSON for their types.
fn fields(schema: &Schema) -> Map<String, Value> {
    let word = |kind: FieldType| match kind {
        FieldType::Int | FieldType::Float => "Number",
        FieldType::Bool => "Boolean",
        FieldType::Text | FieldType::Time | FieldType::Date | FieldType::TextList => "String",
    };
    // Tiles of few events carry ids, tiles of many carry counts.
    let id = if schema.field_index("id").is_some() { "@id" } else { "id" };
    let mut fields = Map::new();
    for (name, word) in [(id, "String"), ("count", "Number"), ("density", "Boolean")] {
        fields.insert(name.to_owned(), json!(word));
    }
    fields.extend(schema.fields.iter().map(|field| (field.name.clone(), json!(word(field.kind)))));
    fields
}
