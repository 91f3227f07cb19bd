//! Formats that are not read, by content and name, and the command that converts each: of ogr2ogr, or of a script where
//! ogr2ogr does not read them.

mod conversion;

use super::{Format, bare_name, magic, without_mark};
use crate::json::{Json, Scalar};
use conversion::Content;
use memchr::memmem::find;
use std::borrow::Cow;

/// Bytes that are searched for the marks of a format.
const HEAD: usize = 8 << 10;

/// A format that is not read, and that another program converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignFormat {
    /// Its name in messages.
    pub name: &'static str,
    content: Content,
}

const GML: ForeignFormat = of("GML", Content::Layers);
const XML: ForeignFormat = of("XML of another kind", Content::Layers);
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
const NETCDF: ForeignFormat = of("NetCDF", Content::GRID);
const HDF5: ForeignFormat = of("HDF5", Content::GRID);
const ORC: ForeignFormat = of("ORC", Content::ORC);
const AVRO: ForeignFormat = of("Avro", Content::AVRO);
const WKT: ForeignFormat = of("WKT without a header", Content::Shapes);
const MBTILES: ForeignFormat = of("MBTiles", Content::Layers);
const PMTILES: ForeignFormat = of("PMTiles", Content::Tiles);
const SQLITE: ForeignFormat = of("an SQLite database", Content::Database);
const E00: ForeignFormat = of("an Arc/Info export", Content::Layers);

const fn of(name: &'static str, content: Content) -> ForeignFormat {
    ForeignFormat { name, content }
}

impl ForeignFormat {
    /// Returns how an input is converted into one that is read: a phrase with a command, which names it
    /// [`crate::INPUT`], and a table of it `TABLE`.
    pub fn conversion(self) -> String {
        self.content.conversion()
    }

    /// Returns the extension without which GDAL does not know a file of the format, if there is one.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            ODS => Some("ods"),
            DBASE => Some("dbf"),
            _ => None,
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
    } else if first.starts_with(b"\x89HDF\r\n\x1a\n") {
        // NetCDF of version 4 is HDF5 within.
        Some(if matches!(ending, "nc" | "nc4") { NETCDF } else { HDF5 })
    } else if first.starts_with(b"PMTiles") {
        Some(PMTILES)
    } else if first.starts_with(b"Obj\x01") {
        Some(AVRO)
    } else if first.starts_with(b"ORC") && head.contains(&0) {
        Some(ORC)
    } else if !matches!(ending, "csv" | "tsv") && is_shape(text) {
        Some(WKT)
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
        "nc" | "nc4" => NETCDF,
        "h5" | "he5" | "hdf5" => HDF5,
        "orc" => ORC,
        "avro" => AVRO,
        "pmtiles" => PMTILES,
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

/// Returns whether a text begins with a shape in WKT: its type and a bracket, before a number or another bracket.
fn is_shape(text: &[u8]) -> bool {
    let Some(at) = text.iter().take(32).position(|&b| b == b'(') else { return false };
    let name = text[..at].trim_ascii_end().to_ascii_uppercase();
    let plain = [&b" ZM"[..], b" Z", b" M"].into_iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let types = ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"];
    let begins = text[at + 1..].trim_ascii_start().first();
    types.iter().any(|kind| kind.as_bytes() == plain)
        && begins.is_some_and(|b| b.is_ascii_digit() || b"(-+.".contains(b))
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
    use crate::reference::LAYERS;

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
            ("a.nc", b"\x89HDF\r\n\x1a\n\0\0", NETCDF),
            ("", b"\x89HDF\r\n\x1a\n\0\0", HDF5),
            ("", b"PMTiles\x03\x7f\0", PMTILES),
            ("", b"Obj\x01\x04\x14avro.codec", AVRO),
            ("", b"ORC\x0a\0\x01,", ORC),
            ("a.wkt", b"POLYGON ((0 0, 1 1, 1 0, 0 0))\nPOINT (1 2)\n", WKT),
            ("", b"multipoint zm(-1 2 3 4)", WKT),
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
            ("tiles.pmtiles", b"\0", Some(PMTILES)),
            ("a.orc", b"\0", Some(ORC)),
            ("a.wkt", b"wkt,name\n\"POINT (1 2)\",a\n", None),
            ("a.csv", b"POINT (1 2),a\n", None),
            ("a.txt", b"point(wgs84),name\n", None),
            ("a.csv", b"ORC,lon,lat\n", None),
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
        // In a file of one layer only the first type of features would be left, and would load without complaint.
        let layers = format!("convert it: ogr2ogr -t_srs EPSG:4326 converted.{LAYERS} INPUT");
        for (format, expected) in [
            (EXCEL, "convert it: ogr2ogr converted.csv INPUT"),
            (DBASE, "convert it: ogr2ogr converted.csv INPUT"),
            (ESRI_ROWS, "convert it: ogr2ogr converted.csv INPUT"),
            (SQLITE, "ogr2ogr -t_srs EPSG:4326 -lco GEOMETRY=AS_WKT converted.csv INPUT TABLE"),
            (DXF, "ogr2ogr -s_srs EPSG:CODE -t_srs EPSG:4326 converted."),
            (TOPOJSON, "convert it: ogr2ogr -a_srs EPSG:4326 converted."),
            (GML, layers.as_str()),
            (MAPINFO, "convert it: ogr2ogr -t_srs EPSG:4326 converted."),
            (PMTILES, "GDAL 3.8 or newer: ogr2ogr -t_srs EPSG:4326 converted."),
            (NETCDF, "to_dataframe().to_csv('converted.csv')\" INPUT"),
            (ORC, "'converted.parquet')\" INPUT"),
            (AVRO, "'converted.parquet')\" INPUT"),
            (WKT, "(echo wkt; sed -n 's/..*/\"&\"/p' INPUT) > converted.csv"),
        ] {
            assert!(format.conversion().contains(expected), "{}", format.conversion());
        }
    }
}
