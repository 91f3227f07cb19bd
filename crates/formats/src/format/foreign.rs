//! Formats that are not read, by content and name, and the ogr2ogr command that converts each.

use super::{Format, bare_name, magic, without_mark};
use crate::json::{Json, Scalar};
use memchr::memmem::find;
use std::borrow::Cow;

/// Bytes that are searched for the marks of a format.
const HEAD: usize = 8 << 10;

/// A format that is not read, and that ogr2ogr converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignFormat {
    /// Its name in messages.
    pub name: &'static str,
    content: Content,
}

/// The content of a format, which decides how it is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Places in a reference system that the file names.
    Places,
    /// Places in several layers.
    Layers,
    /// Places in longitude and latitude by definition, so that files name no reference system.
    Degrees,
    /// Places in a reference system that the file does not name.
    Unreferenced,
    /// Rows without geometry.
    Rows,
    /// Tables, with geometry or without.
    Database,
}

const GML: ForeignFormat = of("GML", Content::Places);
const XML: ForeignFormat = of("XML of another kind", Content::Places);
const OPENJUMP: ForeignFormat = of("OpenJUMP GML", Content::Places);
const MAPINFO: ForeignFormat = of("MapInfo", Content::Places);
const GEODATABASE: ForeignFormat = of("a file geodatabase", Content::Layers);
const OSM_XML: ForeignFormat = of("OpenStreetMap XML", Content::Layers);
const OSM_PBF: ForeignFormat = of("OpenStreetMap PBF", Content::Layers);
const DXF: ForeignFormat = of("DXF", Content::Unreferenced);
const DGN: ForeignFormat = of("DGN", Content::Unreferenced);
const EXCEL: ForeignFormat = of("an Excel workbook", Content::Rows);
const ODS: ForeignFormat = of("an OpenDocument spreadsheet", Content::Rows);
const DBASE: ForeignFormat = of("a dBASE table", Content::Rows);
const TOPOJSON: ForeignFormat = of("TopoJSON", Content::Degrees);
const ESRI_JSON: ForeignFormat = of("Esri JSON", Content::Places);
const ESRI_ROWS: ForeignFormat = of("Esri JSON", Content::Rows);
const NETCDF: ForeignFormat = of("NetCDF", Content::Places);
const MBTILES: ForeignFormat = of("MBTiles", Content::Places);
const SQLITE: ForeignFormat = of("an SQLite database", Content::Database);
const E00: ForeignFormat = of("an Arc/Info export", Content::Places);

const fn of(name: &'static str, content: Content) -> ForeignFormat {
    ForeignFormat { name, content }
}

impl ForeignFormat {
    /// Returns how an input is converted into one that is read: a phrase that ends with the command. `input` is quoted
    /// for a shell.
    pub fn conversion(self, input: &str) -> String {
        let places = if cfg!(feature = "flatgeobuf") { "fgb" } else { "geojsonl" };
        // FlatGeobuf holds one layer. A GeoPackage holds all, and the load asks for one of them.
        let layers = if cfg!(feature = "geopackage") { "gpkg" } else { "geojsonl" };
        match self.content {
            Content::Places => format!("convert it: ogr2ogr -t_srs EPSG:4326 converted.{places} {input}"),
            Content::Layers => format!("convert it: ogr2ogr -t_srs EPSG:4326 converted.{layers} {input}"),
            Content::Degrees => format!("convert it: ogr2ogr -a_srs EPSG:4326 converted.{places} {input}"),
            Content::Unreferenced => format!(
                "convert it, with the code of its reference system: \
                 ogr2ogr -s_srs EPSG:CODE -t_srs EPSG:4326 converted.{places} {input}"
            ),
            Content::Rows => format!("convert it: ogr2ogr converted.csv {input}"),
            // GDAL does not list tables without geometry in some databases, so the command names the table.
            Content::Database => format!(
                "convert a table of it: ogr2ogr -t_srs EPSG:4326 -lco GEOMETRY=AS_WKT converted.csv {input} TABLE"
            ),
        }
    }
}

/// Returns the format of a file that is not read.
pub(super) fn foreign(name: &str, first: &[u8]) -> Option<ForeignFormat> {
    let (name, first) = (bare_name(name), without_mark(first));
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    by_content(&name, ending, first).or_else(|| {
        // Readable content goes before the name, except that any text with commas may be a table.
        match Format::detect(&name, first) {
            None | Some(Format::Csv) => by_name(ending),
            Some(_) => None,
        }
    })
}

fn by_content(name: &str, ending: &str, first: &[u8]) -> Option<ForeignFormat> {
    let head = &first[..first.len().min(HEAD)];
    let text = head.trim_ascii_start();
    let begins = |mark: &[u8]| text.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark));
    match text.first()? {
        b'{' => return json(ending, first.trim_ascii_start()),
        b'<' if magic::xml(first).is_none() => return xml(ending, head),
        b'<' => return None,
        _ => {}
    }
    // A database or an archive of no format that is read.
    if magic::binary(name, first) == Some(None) {
        return match ending {
            "mbtiles" => Some(MBTILES),
            _ if first.starts_with(b"SQLite") => Some(SQLITE),
            "xlsx" | "xlsm" => Some(EXCEL),
            "ods" => Some(ODS),
            _ if name.ends_with(".gdb.zip") => Some(GEODATABASE),
            _ if find(first, b"xl/workbook").is_some() => Some(EXCEL),
            _ if find(head, b"application/vnd.oasis.opendocument.spreadsheet").is_some() => Some(ODS),
            _ => None,
        };
    }
    let has_columns = find(head, b"Columns ").is_some() || find(head, b"COLUMNS ").is_some();
    if begins(b"!table") || begins(b"version ") && has_columns {
        Some(MAPINFO)
    } else if begins(b"AutoCAD Binary DXF") || is_drawing(text) {
        Some(DXF)
    } else if begins(b"EXP  0 ") {
        Some(E00)
    } else if matches!(first, [b'C', b'D', b'F', 1 | 2 | 5, ..]) {
        Some(NETCDF)
    } else if find(&head[..head.len().min(64)], b"OSMHeader").is_some() {
        Some(OSM_PBF)
    } else if is_dbase(first) {
        Some(DBASE)
    } else {
        None
    }
}

/// Returns the format of a name, for content that shows none.
fn by_name(ending: &str) -> Option<ForeignFormat> {
    Some(match ending {
        "gml" => GML,
        "jml" => OPENJUMP,
        "mif" | "mid" => MAPINFO,
        "gdb" => GEODATABASE,
        "osm" => OSM_XML,
        "dxf" => DXF,
        "dgn" => DGN,
        "xls" | "xlsx" | "xlsm" => EXCEL,
        "ods" => ODS,
        "dbf" => DBASE,
        "topojson" => TOPOJSON,
        "nc" => NETCDF,
        "e00" => E00,
        _ => return None,
    })
}

/// Returns the format of an XML document that is neither GPX nor KML.
fn xml(ending: &str, head: &[u8]) -> Option<ForeignFormat> {
    let has = |mark: &[u8]| find(head, mark).is_some();
    // A page, often of an error, holds no events.
    if has(b"<html") || has(b"<HTML") || has(b"<!DOCTYPE html") || has(b"<!doctype html") {
        return None;
    }
    Some(match ending {
        "jml" => OPENJUMP,
        _ if has(b"<JCSDataFile") => OPENJUMP,
        "gml" => GML,
        _ if has(b"opengis.net/gml") => GML,
        _ if has(b"<osm") => OSM_XML,
        _ => XML,
    })
}

/// Returns the format of a JSON object that is not GeoJSON and no event, by its members. It may be cut off.
fn json(ending: &str, first: &[u8]) -> Option<ForeignFormat> {
    if ending == "topojson" && find(first, b"\"Feature").is_none() {
        return Some(TOPOJSON);
    }
    let text = match std::str::from_utf8(first) {
        Ok(text) => text,
        // The end may be within a character.
        Err(e) => std::str::from_utf8(&first[..e.valid_up_to()]).unwrap_or_default(),
    };
    let mut json = Json::new(text);
    json.open_object().ok()?;
    let mut first = true;
    while let Ok(Some(key)) = json.key(&mut first) {
        match key.as_ref() {
            "type" if text_of(json).is_some_and(|kind| kind == "Topology") => return Some(TOPOJSON),
            "geometryType" if text_of(json).is_some_and(|kind| kind.starts_with("esriGeometry")) => {
                return Some(ESRI_JSON);
            }
            "features" => {
                if let Some(placed) = is_placed_by_esri(json) {
                    return Some(if placed { ESRI_JSON } else { ESRI_ROWS });
                }
            }
            _ => {}
        }
        json.skip().ok()?;
    }
    None
}

/// Returns the text at a position of a document.
fn text_of(mut json: Json<'_>) -> Option<Cow<'_, str>> {
    match json.scalar() {
        Ok(Scalar::Text(text)) => Some(text),
        _ => None,
    }
}

/// Returns whether the first feature of an array has a geometry; `None` unless it has Esri's attributes.
fn is_placed_by_esri(mut json: Json<'_>) -> Option<bool> {
    json.open_array().ok()?;
    json.open_object().ok()?;
    let (mut first, mut attributes, mut geometry) = (true, false, false);
    while let Ok(Some(key)) = json.key(&mut first) {
        match key.as_ref() {
            "attributes" => attributes = true,
            "geometry" => geometry = true,
            // GeoJSON, which may have attributes of its own.
            "type" | "properties" => return None,
            _ => {}
        }
        if json.skip().is_err() {
            break;
        }
    }
    attributes.then_some(geometry)
}

/// Returns whether a text begins as a DXF drawing does: group 0, a section.
fn is_drawing(text: &[u8]) -> bool {
    let mut lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    lines.next() == Some(&b"0"[..]) && lines.next() == Some(&b"SECTION"[..])
}

/// Returns whether a file begins with the header of a dBASE table: version, date, number of rows, sizes.
fn is_dbase(first: &[u8]) -> bool {
    // Versions that are ASCII digits, of Visual FoxPro, are known by the name only.
    let [0x03 | 0x83 | 0x8b | 0xf5, _, month, day, _, _, _, _, sizes @ ..] = first else { return false };
    let [header_low, header_high, row_low, row_high, ..] = sizes else { return false };
    let header_bytes = u16::from_le_bytes([*header_low, *header_high]);
    let row_bytes = u16::from_le_bytes([*row_low, *row_high]);
    (1..=12).contains(month) && (1..=31).contains(day) && header_bytes > 32 && row_bytes > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First bytes of a dBASE table: 2 rows of 87 bytes, as GDAL writes them.
    const DBF: &[u8] = b"\x03\x7e\x0b\x1d\x02\0\0\0\xa1\0\x57\0\0\0\0\0";

    #[test]
    fn content_tells_a_foreign_format_before_it_is_taken_for_another() {
        for (name, first, expected) in [
            ("s.tab", &b"!table\n!version 900\n!charset Neutral\n\nDefinition Table\n"[..], MAPINFO),
            ("", b"Version 900\nCharset \"Neutral\"\nDelimiter \",\"\nColumns 4\n  name Char(254)\nData\n", MAPINFO),
            ("", b"{\"type\":\"Topology\"}", TOPOJSON),
            ("a.json", b"{\"arcs\":[],\"type\": \"Topology\",\"objects\":{\"a\":{}}}\n", TOPOJSON),
            ("a.json", b"{\"geometryType\":\"esriGeometryPoint\",\"features\":[", ESRI_JSON),
            ("", b"{\"features\":[{\"geometry\":{\"x\":1,\"y\":2},\"attributes\":{\"a\":1}},", ESRI_JSON),
            ("", b"{\"fields\":[],\"features\":[{\"attributes\":{\"a\":1}}]}", ESRI_ROWS),
            ("x", b"SQLite format 3\0", SQLITE),
            ("x.mbtiles", b"SQLite format 3\0", MBTILES),
            ("", b"PK\x03\x04......xl/workbook.xml", EXCEL),
            ("", b"PK\x03\x04......mimetypeapplication/vnd.oasis.opendocument.spreadsheet", ODS),
            ("", b"  0\r\nSECTION\r\n  2\r\nHEADER\r\n", DXF),
            ("", b"\0\0\0\x0d\x0a\x09OSMHeader", OSM_PBF),
            ("", b"CDF\x01\0", NETCDF),
            ("", b"EXP  0 /roads.e00\n", E00),
            ("", DBF, DBASE),
            ("", b"<?xml version=\"1.0\"?><osm version=\"0.6\">", OSM_XML),
            ("", b"<ogr:FeatureCollection xmlns:gml=\"http://www.opengis.net/gml\"/>", GML),
            ("x.rss", b"<rss version=\"2.0\">", XML),
        ] {
            assert_eq!(foreign(name, first), Some(expected), "{name} {}", String::from_utf8_lossy(first));
            let marked = [&[0xef, 0xbb, 0xbf], first].concat();
            assert_eq!(foreign(&format!("a/{name}"), &marked), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_name_tells_a_foreign_format_unless_the_content_is_read() {
        let point = b"{\"type\":\"Feature\",\"geometry\":null,\"properties\":{}}";
        let packed = [&b"SQLite format 3\0"[..], &[0; 52], b"GPKG"].concat();
        for (name, first, expected) in [
            ("s.mid", &b"\"a\",13.4,52.5\n"[..], Some(MAPINFO)),
            ("B/S.DBF", b"\x30\x7e", Some(DBASE)),
            ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Some(EXCEL)),
            ("a.gdb", b"", Some(GEODATABASE)),
            ("roads.gml.gz", b"", Some(GML)),
            ("a.topojson", b"{\"arcs\":[[[1,2],", Some(TOPOJSON)),
            ("a.topojson", point, None),
            ("a.mid", point, None),
            ("a.db", &packed, None),
            ("a.dbf", b"PAR1", None),
            ("a.tab", b"name\tlon\tlat\n", None),
            ("a.tab", b"name,lon,lat\n", None),
            ("a.gml", b"<kml xmlns=\"http://www.opengis.net/kml/2.2\">", None),
            ("a.xml", b"<gpx version=\"1.1\">", None),
            ("a.csv", b"version ,lon,lat\n1,2,3\n", None),
            ("a.csv", b"type,lon,lat\nTopology,2,3\n", None),
            ("page", b"<!DOCTYPE html><html>", None),
            ("a.ndjson", b"{\"type\":\"bird\",\"features\":[\"wing\"]}\n", None),
            ("a.json", b"{\"features\":[{\"attributes\":{},\"type\":\"Feature\",\"geometry\":null}]}", None),
            ("a.json", b"[{\"type\":\"Topology\"}]", None),
        ] {
            assert_eq!(foreign(name, first), expected, "{name} {}", String::from_utf8_lossy(first));
        }
    }

    #[test]
    fn tables_become_tables_and_places_become_degrees() {
        for (format, expected) in [
            (EXCEL, "convert it: ogr2ogr converted.csv a"),
            (DBASE, "convert it: ogr2ogr converted.csv a"),
            (ESRI_ROWS, "convert it: ogr2ogr converted.csv a"),
            (SQLITE, "ogr2ogr -t_srs EPSG:4326 -lco GEOMETRY=AS_WKT converted.csv a TABLE"),
            (DXF, "ogr2ogr -s_srs EPSG:CODE -t_srs EPSG:4326 converted."),
            (TOPOJSON, "convert it: ogr2ogr -a_srs EPSG:4326 converted."),
            (MAPINFO, "convert it: ogr2ogr -t_srs EPSG:4326 converted."),
        ] {
            assert!(format.conversion("a").contains(expected), "{}", format.conversion("a"));
        }
    }
}
