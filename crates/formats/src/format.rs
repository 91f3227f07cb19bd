//! Formats by name, media type and content.

mod foreign;
mod magic;

use crate::json::Json;
use crate::utf16::as_utf8;
use std::fmt;

pub use foreign::ForeignFormat;

/// A format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One GeoJSON Feature or FeatureCollection (RFC 7946), or an array of features or flat objects.
    GeoJson,
    /// GeoJSON text sequence (RFC 8142): features, each after a record separator.
    GeoJsonSeq,
    /// One GeoJSON feature or flat JSON object per line.
    NdJson,
    /// Comma- or tab-separated values with a header line.
    Csv,
    /// An event export of GDELT 1.0 or 2.0: tab-separated, without a header.
    Gdelt,
    /// GeoParquet 1.0 or 1.1, or Parquet with columns found by name.
    GeoParquet,
    /// Arrow IPC, stream or file.
    Arrow,
    /// FlatGeobuf.
    FlatGeobuf,
    /// GeoPackage: one layer of it.
    GeoPackage,
    /// Shapefile: `.shp` with its companion files, or a zip archive of them.
    Shapefile,
    /// KML, or KMZ.
    Kml,
    /// GPX: tracks, routes and waypoints, one event per point.
    Gpx,
    /// NMEA 0183 sentences with AIS messages.
    Nmea,
    /// GTFS-Realtime: positions of vehicles.
    GtfsRt,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 14] = [
        Format::GeoJson,
        Format::GeoJsonSeq,
        Format::NdJson,
        Format::Csv,
        Format::Gdelt,
        Format::GeoParquet,
        Format::Arrow,
        Format::FlatGeobuf,
        Format::GeoPackage,
        Format::Shapefile,
        Format::Kml,
        Format::Gpx,
        Format::Nmea,
        Format::GtfsRt,
    ];

    /// Returns the name on command lines and in `f=`.
    pub fn name(self) -> &'static str {
        match self {
            Format::GeoJson => "geojson",
            Format::GeoJsonSeq => "geojsonseq",
            Format::NdJson => "ndjson",
            Format::Csv => "csv",
            Format::Gdelt => "gdelt",
            Format::GeoParquet => "geoparquet",
            Format::Arrow => "arrow",
            Format::FlatGeobuf => "flatgeobuf",
            Format::GeoPackage => "geopackage",
            Format::Shapefile => "shapefile",
            Format::Kml => "kml",
            Format::Gpx => "gpx",
            Format::Nmea => "nmea",
            Format::GtfsRt => "gtfs-rt",
        }
    }

    /// Returns the format with this name; also accepts file extensions and `ais`.
    pub fn from_name(name: &str) -> Option<Format> {
        Some(match name.to_ascii_lowercase().as_str() {
            "geojson" | "json" => Format::GeoJson,
            "geojsonseq" | "geojsons" => Format::GeoJsonSeq,
            "ndjson" | "jsonl" | "geojsonl" | "ndgeojson" => Format::NdJson,
            "csv" | "tsv" => Format::Csv,
            "gdelt" => Format::Gdelt,
            "geoparquet" | "parquet" => Format::GeoParquet,
            "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
            "flatgeobuf" | "fgb" => Format::FlatGeobuf,
            "geopackage" | "gpkg" => Format::GeoPackage,
            "shapefile" | "shp" | "shz" => Format::Shapefile,
            "kml" | "kmz" => Format::Kml,
            "gpx" => Format::Gpx,
            "nmea" | "ais" | "aivdm" => Format::Nmea,
            "gtfs-rt" | "gtfs-realtime" | "gtfsrt" | "pb" => Format::GtfsRt,
            _ => return None,
        })
    }

    /// Returns the media type of responses.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::GeoJson => "application/geo+json",
            Format::GeoJsonSeq => "application/geo+json-seq",
            Format::NdJson => "application/x-ndjson",
            Format::Csv => "text/csv",
            Format::Gdelt => "text/tab-separated-values",
            Format::GeoParquet => "application/vnd.apache.parquet",
            Format::Arrow => "application/vnd.apache.arrow.stream",
            Format::FlatGeobuf => "application/flatgeobuf",
            Format::GeoPackage => "application/geopackage+sqlite3",
            Format::Shapefile => "application/vnd.shp",
            Format::Kml => "application/vnd.google-earth.kml+xml",
            Format::Gpx => "application/gpx+xml",
            Format::Nmea => "text/plain",
            Format::GtfsRt => "application/x-protobuf",
        }
    }

    /// Returns the format of a `Content-Type` or of one entry of `Accept`; parameters are ignored.
    pub fn from_media_type(media_type: &str) -> Option<Format> {
        let essence = media_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        Some(match essence.as_str() {
            "application/geo+json" | "application/json" | "application/vnd.geo+json" => Format::GeoJson,
            "application/geo+json-seq" | "application/json-seq" => Format::GeoJsonSeq,
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/geo+json-l" => Format::NdJson,
            "text/csv" | "text/tab-separated-values" => Format::Csv,
            "application/vnd.apache.parquet" | "application/x-parquet" => Format::GeoParquet,
            "application/vnd.apache.arrow.stream" | "application/vnd.apache.arrow.file" => Format::Arrow,
            "application/flatgeobuf" | "application/vnd.flatgeobuf" => Format::FlatGeobuf,
            "application/geopackage+sqlite3" => Format::GeoPackage,
            "application/vnd.shp" => Format::Shapefile,
            "application/vnd.google-earth.kml+xml" | "application/vnd.google-earth.kmz" => Format::Kml,
            "application/gpx+xml" => Format::Gpx,
            "application/x-protobuf" => Format::GtfsRt,
            _ => return None,
        })
    }

    /// Returns the file extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::GeoJson => "geojson",
            Format::GeoJsonSeq => "geojsons",
            Format::NdJson => "ndjson",
            Format::Csv => "csv",
            Format::Gdelt => "csv",
            Format::GeoParquet => "parquet",
            Format::Arrow => "arrows",
            Format::FlatGeobuf => "fgb",
            Format::GeoPackage => "gpkg",
            Format::Shapefile => "shp",
            Format::Kml => "kml",
            Format::Gpx => "gpx",
            Format::Nmea => "nmea",
            Format::GtfsRt => "pb",
        }
    }

    /// Guesses the format of a file from its first bytes (decompressed, some KiB are enough) and, if these are
    /// ambiguous, from its name. `None` if nothing fits. A text in UTF-16 has the format of the same text in UTF-8: its
    /// reader decodes it, or names the encoding.
    pub fn detect(name: &str, first: &[u8]) -> Option<Format> {
        let text = as_utf8(first);
        let first = without_mark(&text);
        if first.starts_with(b"PAR1") {
            return Some(Format::GeoParquet);
        }
        // A file has a magic, a stream begins with a continuation marker.
        if first.starts_with(b"ARROW1") || first.starts_with(&[0xff; 4]) {
            return Some(Format::Arrow);
        }
        if let Some(found) = magic::binary(name, first) {
            return found;
        }
        let named = name_hint(name);
        let start = first.iter().position(|b| !b.is_ascii_whitespace());
        match start.map(|at| first[at]) {
            Some(0x1e) => Some(Format::GeoJsonSeq),
            Some(b'<') => magic::xml(first),
            Some(_) if magic::is_sentence(first) => Some(Format::Nmea),
            Some(b'{') => Some(match named {
                Some(Format::NdJson | Format::GeoJsonSeq) => Format::NdJson,
                _ => json_kind(&first[start.unwrap_or(0)..]),
            }),
            Some(b'[') if magic::is_array_of_objects(&first[start.unwrap_or(0)..]) => Some(Format::GeoJson),
            None | Some(0) => named.filter(|named| !named.has_mark() || start.is_none()),
            Some(_) => match named {
                Some(Format::Csv) | None if looks_like_gdelt(first) => Some(Format::Gdelt),
                Some(Format::Csv | Format::Gdelt) => named,
                _ if looks_like_a_table(first) => Some(Format::Csv),
                _ => None,
            },
        }
    }

    /// Returns the format of a file that is not read, by its content and name. Ask before [`Format::detect`], which
    /// takes some of these files for tables or lines of JSON.
    pub fn foreign(name: &str, first: &[u8]) -> Option<ForeignFormat> {
        foreign::foreign(name, &as_utf8(first))
    }

    /// Returns whether a file is read in place, by its name: it is read from its end, or has companion files.
    pub fn reads_in_place(self) -> bool {
        matches!(self, Format::GeoParquet | Format::GeoPackage | Format::Shapefile)
    }

    /// Returns whether files of the format begin with a mark, so that a file without it has another format.
    fn has_mark(self) -> bool {
        matches!(self, Format::FlatGeobuf | Format::GeoPackage | Format::Shapefile | Format::GeoParquet | Format::Arrow)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns bytes without the byte order mark of UTF-8, which spreadsheets write before CSV.
fn without_mark(first: &[u8]) -> &[u8] {
    first.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(first)
}

/// Returns the name of a file in lower case, without its folder and the extension of its compression.
fn bare_name(name: &str) -> String {
    let mut name = name.rsplit('/').next().unwrap_or("").to_ascii_lowercase();
    for packed in [".gz", ".zst", ".zstd"] {
        if let Some(bare) = name.strip_suffix(packed) {
            name = bare.to_owned();
        }
    }
    name
}

pub(crate) fn name_hint(name: &str) -> Option<Format> {
    let name = bare_name(name);
    let (stem, ending) = name.rsplit_once('.')?;
    match ending {
        // GDELT names its exports `20260131.export.CSV`.
        "csv" if stem.ends_with(".export") => Some(Format::Gdelt),
        "tab" | "txt" => Some(Format::Csv),
        _ => Format::from_name(ending),
    }
}

/// Distinguishes one document from one object per line. A line that is a complete object, followed by another, means
/// the latter.
fn json_kind(first: &[u8]) -> Format {
    let (line, rest) = match memchr::memchr(b'\n', first) {
        Some(at) => (&first[..at], &first[at + 1..]),
        None => (first, &[][..]),
    };
    let whole = std::str::from_utf8(line).is_ok_and(|line| {
        let mut json = Json::new(line);
        json.skip().and_then(|()| json.end()).is_ok()
    });
    let followed = rest.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
    let geojson = |line: &[u8]| {
        let head = &line[..line.len().min(4096)];
        memchr::memmem::find(head, b"\"Feature").is_some()
    };
    if whole && (followed || !geojson(line)) { Format::NdJson } else { Format::GeoJson }
}

fn looks_like_gdelt(first: &[u8]) -> bool {
    let line = first.split(|&b| b == b'\n').next().unwrap_or(&[]);
    let fields: Vec<&[u8]> = line.split(|&b| b == b'\t').collect();
    let digits = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    // Detected by shape, as exports have no header: a number, then a day of eight digits.
    matches!(fields.len(), 57 | 58 | 61) && digits(fields[0]) && fields[1].len() == 8 && digits(fields[1])
}

fn looks_like_a_table(first: &[u8]) -> bool {
    let line = first.split(|&b| b == b'\n').next().unwrap_or(&[]);
    line.iter().any(|b| b",\t;|".contains(b)) && !line.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// A file that begins like a binary format has that format, whatever its name and the rest of its content.
        #[test]
        fn first_bytes_go_before_the_name(
            (magic, format) in select(vec![
                (&b"PAR1"[..], Format::GeoParquet),
                (&b"ARROW1"[..], Format::Arrow),
                (&[0xff; 4][..], Format::Arrow),
                (&b"\x1e{"[..], Format::GeoJsonSeq),
                (&b"fgb\x03fgb\x00"[..], Format::FlatGeobuf),
                (&b"<?xml version=\"1.0\"?>\n<gpx version=\"1.1\">"[..], Format::Gpx),
                (&b"<kml xmlns=\"http://www.opengis.net/kml/2.2\">"[..], Format::Kml),
                (&b"!AIVDM,1,1,,B,13u?etPv2;0n:dDPwUM1U1Cb069D,0*24\r\n"[..], Format::Nmea),
                (&b"$GPRMC,081836,A,3751.65,S,14507.36,E,000.0,360.0,130998,011.3,E*62\n"[..], Format::Nmea),
                (&b"\x0a\x0d\x0a\x032.0\x10\x00"[..], Format::GtfsRt),
            ]),
            name in "[a-z]{0,4}(\\.(csv|geojson|ndjson|parquet|arrow|export\\.CSV|txt))?(\\.gz)?",
            marked: bool,
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mark = if marked { &[0xef, 0xbb, 0xbf][..] } else { &[] };
            prop_assert_eq!(Format::detect(&name, &[mark, magic, &rest].concat()), Some(format));
        }

        /// If the bytes are inconclusive, the name decides, compressed or not, in any case and folder.
        #[test]
        fn names_tell_the_format_of_nothing(
            format in select(Format::ALL.to_vec()),
            folder in "([a-z.]{0,4}/)?",
            packed in select(vec!["", ".gz", ".zst", ".ZSTD"]),
            upper: bool,
            space in "[ \t\r\n]{0,3}",
        ) {
            let ending = if format == Format::Gdelt { "export.csv" } else { format.extension() };
            let name = format!("{folder}x.{}{packed}", if upper { ending.to_uppercase() } else { ending.to_owned() });
            prop_assert_eq!(Format::detect(&name, space.as_bytes()), Some(format));
            prop_assert_eq!(Format::detect("x.unknown", space.as_bytes()), None);
        }

        /// Tables are detected by their first line, if it does not begin with an object.
        #[test]
        fn a_first_line_with_a_separator_is_a_table(
            cells in prop::collection::vec("[a-zA-Z_]{1,6}", 2..6),
            separator in select(vec![",", "\t", ";", "|"]),
            rest in "[ -~\n]{0,40}",
        ) {
            let text = format!("{}\n{rest}", cells.join(separator));
            prop_assert_eq!(Format::detect("", text.as_bytes()), Some(Format::Csv));
            prop_assert_eq!(Format::detect("", format!("{}\n{text}", cells.concat()).as_bytes()), None);
        }

        #[test]
        fn any_bytes_and_any_name_are_some_format_or_none(name in "\\PC{0,12}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Format::detect(&name, &bytes);
            let object = [b"{", bytes.as_slice()].concat();
            let _ = (Format::detect(&name, &object), Format::foreign(&name, &object), Format::foreign(&name, &bytes));
        }
    }

    #[test]
    fn names_and_media_types_come_back() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            if !matches!(format, Format::Gdelt | Format::Nmea) {
                assert_eq!(Format::from_media_type(format.media_type()), Some(format));
            }
        }
        assert_eq!(Format::from_media_type("Text/CSV; charset=utf-8"), Some(Format::Csv));
        assert_eq!(Format::from_media_type("image/png"), None);
    }

    #[test]
    fn content_tells_the_format() {
        let feature = r#"{"type":"Feature","geometry":null,"properties":{}}"#;
        let gdelt = format!("1\t20260131\t{}\n", "\t".repeat(55));
        for (name, first, expected) in [
            ("", "PAR1....", Some(Format::GeoParquet)),
            ("x.csv", "ARROW1..", Some(Format::Arrow)),
            ("", "\u{1e}{\"type\":\"Feature\"", Some(Format::GeoJsonSeq)),
            ("", feature, Some(Format::GeoJson)),
            ("", &format!("{feature}\n{feature}\n"), Some(Format::NdJson)),
            ("a/b.geojsonl.zst", feature, Some(Format::NdJson)),
            ("", "{\"lon\":1,\"lat\":2}\n", Some(Format::NdJson)),
            ("", "{\n \"type\": \"FeatureCollection\",\n \"features\": [", Some(Format::GeoJson)),
            ("", "\u{feff}id,lon,lat\n1,2,3\n", Some(Format::Csv)),
            ("", "id\tlon\tlat\n", Some(Format::Csv)),
            ("", &gdelt, Some(Format::Gdelt)),
            ("20260131.export.CSV.gz", "x\ty\n", Some(Format::Gdelt)),
            ("empty.csv", "", Some(Format::Csv)),
            ("", "", None),
            ("", "hello world", None),
            ("", "\0\u{1}\u{2},", None),
            ("roads.gml", "<?xml version=\"1.0\"?><ogr:FeatureCollection>", None),
            ("x.gpkg", "\0\u{1}", None),
            ("x.zip", "PK\u{3}\u{4}......roads.shp...", Some(Format::Shapefile)),
            ("x.zip", "PK\u{3}\u{4}......doc.kml...", Some(Format::Kml)),
            ("x.xlsx", "PK\u{3}\u{4}......xl/workbook.xml", None),
            ("log.txt", "\\s:st1,c:1641168000*00\\!AIVDM,1,1,,A,1,0*00\n", Some(Format::Nmea)),
            ("prices.csv", "$USD,1\n", Some(Format::Csv)),
            ("", "[{\"a\":1},\n{\"a\":2}]", Some(Format::GeoJson)),
            ("x.ndjson", "\n[\n  {\"a\":1}", Some(Format::GeoJson)),
            ("", "[id],[lon],[lat]\n1,2,3\n", Some(Format::Csv)),
        ] {
            assert_eq!(Format::detect(name, first.as_bytes()), expected, "{name} {first}");
        }
    }
}
