//! Exports to PMTiles: the vector tiles that the server draws, zoom by zoom.

use super::ExportArgs;
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::http::Parameter;
use meridian_formats::WriteError;
use meridian_formats::export::{PmTilesWriter, tile_number};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufWriter, Read};
use std::path::Path;

/// The tile matrix set of the web.
const SET: &str = "WebMercatorQuad";
/// Latitude at which that set ends.
const LATITUDE_MAX: f64 = 85.051_128_78;

/// Writes the archive. A tile without events has none below it either.
pub fn write(client: &Client, args: &ExportArgs, parameters: &[Parameter], path: &Path) -> Result<File, Failure> {
    let name = args.collection.as_str();
    let set = client.json(&["collections", name, "tiles", SET], &[])?;
    let schema = client.json(&["collections", name, "schema"], &[])?;
    let unwritable = |e: std::io::Error| Failure::Usage(format!("{}: cannot be written: {e}", args.file.display()));
    let unwritten = |e: WriteError| Failure::Usage(format!("{}: cannot be written: {}", args.file.display(), e.detail));
    let out = BufWriter::with_capacity(1 << 18, File::create(path).map_err(unwritable)?);
    let mut writer = PmTilesWriter::new(out).map_err(unwritten)?;
    let mut level = vec![(0, 0)];
    for zoom in 0..=args.max_zoom {
        let mut below = Vec::new();
        for (column, row) in level {
            let mut tile = Vec::new();
            let place = [zoom.to_string(), row.to_string(), column.to_string()];
            let address = ["collections", name, "tiles", SET, &place[0], &place[1], &place[2]];
            let broken = |e: std::io::Error| Failure::Refused(format!("the answer broke off: {e}"));
            client.stream(&address, parameters)?.read_to_end(&mut tile).map_err(broken)?;
            if !tile.is_empty() {
                writer.add(zoom, column, row, &tile).map_err(unwritten)?;
                below.extend([(0, 0), (1, 0), (0, 1), (1, 1)].map(|(x, y)| (2 * column + x, 2 * row + y)));
            }
        }
        below.sort_by_key(|(column, row)| tile_number(zoom + 1, *column, *row));
        level = below;
    }
    let metadata = metadata(name, args.max_zoom, &schema).to_string();
    let out = writer.finish(&metadata, bounds(&set)).map_err(unwritten)?;
    out.into_inner().map_err(|e| unwritable(e.into_error()))
}

/// Returns the metadata for viewers of the archive: the layer and its fields.
fn metadata(name: &str, max_zoom: u8, schema: &Value) -> Value {
    let mut fields: Map<String, Value> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, property)| !property["format"].as_str().is_some_and(|format| format.starts_with("geometry-")))
        .map(|(field, property)| {
            let kind = match property["type"].as_str() {
                Some("integer" | "number") => "Number",
                Some("boolean") => "Boolean",
                _ => "String",
            };
            (field.clone(), kind.into())
        })
        .collect();
    // Of the cells in tiles of many events.
    for (field, kind) in [("count", "Number"), ("density", "Boolean")] {
        fields.entry(field).or_insert_with(|| kind.into());
    }
    json!({
        "name": name,
        "type": "overlay",
        "generator": concat!("Meridian ", env!("CARGO_PKG_VERSION")),
        "vector_layers": [{"id": name, "fields": fields, "minzoom": 0, "maxzoom": max_zoom}],
    })
}

/// Returns west, south, east and north of the tiles, or of the world if the server does not report them.
fn bounds(set: &Value) -> [f64; 4] {
    let corner = |name: &str, at: usize| set["boundingBox"][name][at].as_f64();
    let sides = (corner("lowerLeft", 0), corner("lowerLeft", 1), corner("upperRight", 0), corner("upperRight", 1));
    match sides {
        (Some(west), Some(south), Some(east), Some(north)) => {
            [west, south.max(-LATITUDE_MAX), east, north.min(LATITUDE_MAX)]
        }
        _ => [-180.0, -LATITUDE_MAX, 180.0, LATITUDE_MAX],
    }
}
