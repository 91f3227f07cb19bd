//! Content negotiation: `f=` first, then `Accept`.

use super::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use axum::http::{HeaderMap, header};

/// A representation of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; GeoJSON for events.
    Json,
    /// An HTML page.
    Html,
    /// Comma-separated values.
    Csv,
    /// One GeoJSON feature per line.
    NdJson,
    /// GeoJSON text sequence (RFC 8142).
    GeoJsonSeq,
    /// Arrow IPC stream.
    Arrow,
    /// GeoParquet 1.1.
    Parquet,
    /// FlatGeobuf without an index.
    FlatGeobuf,
    /// GeoPackage 1.3.
    GeoPackage,
}

/// Formats of resources without events.
pub const PAGES: &[Format] = &[Format::Json, Format::Html];
/// Formats of the groups of an aggregate.
pub const GROUPS: &[Format] = &[Format::Json, Format::Csv, Format::Arrow];
/// Formats of a log.
pub const LINES: &[Format] = &[Format::Json, Format::NdJson];
/// Formats of events.
pub const EVENTS: &[Format] = if cfg!(feature = "geopackage") { ALL } else { ALL.split_at(ALL.len() - 1).0 };
/// Formats of events, with the one that not every program has at the end.
const ALL: &[Format] = &[
    Format::Json,
    Format::Html,
    Format::Csv,
    Format::NdJson,
    Format::GeoJsonSeq,
    Format::Arrow,
    Format::Parquet,
    Format::FlatGeobuf,
    Format::GeoPackage,
];

impl Format {
    /// Returns the value of `f=`.
    pub fn word(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Html => "html",
            Format::Csv => "csv",
            Format::NdJson => "ndjson",
            Format::GeoJsonSeq => "geojsonseq",
            Format::Arrow => "arrow",
            Format::Parquet => "parquet",
            Format::FlatGeobuf => "flatgeobuf",
            Format::GeoPackage => "gpkg",
        }
    }

    /// Returns the extension of a file of events in this format, as `meridian export` has it.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Json => "geojson",
            Format::GeoJsonSeq => "geojsons",
            Format::Arrow => "arrows",
            Format::FlatGeobuf => "fgb",
            same => same.word(),
        }
    }

    /// Returns the media type of events in this format.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/geo+json",
            Format::Html => "text/html; charset=utf-8",
            Format::Csv => "text/csv; charset=utf-8; header=present",
            Format::NdJson => "application/x-ndjson",
            Format::GeoJsonSeq => "application/geo+json-seq",
            Format::Arrow => "application/vnd.apache.arrow.stream",
            Format::Parquet => "application/vnd.apache.parquet",
            Format::FlatGeobuf => "application/flatgeobuf",
            Format::GeoPackage => "application/geopackage+sqlite3",
        }
    }

    /// Returns the media type without its parameters, for links.
    pub fn link_type(self) -> &'static str {
        let whole = self.media_type();
        whole.split_once(';').map_or(whole, |(essence, _)| essence)
    }

    /// Returns whether the format has no links, so that a response is the complete result if no limit is given.
    pub fn is_bulk(self) -> bool {
        !matches!(self, Format::Json | Format::Html)
    }

    /// Returns whether its positions are longitude and latitude always, as its columns or its metadata state.
    pub fn is_crs84_only(self) -> bool {
        matches!(self, Format::Csv | Format::Arrow | Format::Parquet | Format::FlatGeobuf | Format::GeoPackage)
    }

    fn of_media_type(media_type: &str) -> Option<Format> {
        Some(match media_type {
            "application/json" | "*/*" | "application/*" => Format::Json,
            "text/html" | "application/xhtml+xml" | "text/*" => Format::Html,
            "text/csv" => Format::Csv,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => {
                Format::NdJson
            }
            "application/geo+json-seq" | "application/json-seq" => Format::GeoJsonSeq,
            "application/vnd.apache.arrow.stream" => Format::Arrow,
            "application/vnd.apache.parquet" | "application/x-parquet" => Format::Parquet,
            "application/flatgeobuf" | "application/vnd.flatgeobuf" => Format::FlatGeobuf,
            "application/geopackage+sqlite3" => Format::GeoPackage,
            // Clients may name the kind of the resource: OpenAPI, a problem, a schema. All of them are JSON.
            other if other.ends_with("+json") => Format::Json,
            _ => return None,
        })
    }
}

/// Chooses among `offered`: the value of `f`, else the best match of `Accept`, else the first offered.
pub fn choose(f: Option<String>, headers: &HeaderMap, offered: &[Format]) -> Result<Format> {
    let words = || offered.iter().map(|f| f.word()).collect::<Vec<_>>().join(", ");
    if let Some(word) = f {
        return offered
            .iter()
            .copied()
            .find(|f| f.word() == word || (*f == Format::Json && word == "geojson"))
            .ok_or_else(|| {
                // A program that lacks a format on purpose names what it lacks.
                let why = match word == Format::GeoPackage.word() && cfg!(not(feature = "geopackage")) {
                    true => "needs the feature `geopackage`, without which this program was built",
                    false => "is not served here",
                };
                Problem::parameter("f", format!("{word:?} {why}: expected one of {}", words()))
            });
    }
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    if accept.is_empty() {
        return Ok(offered[0]);
    }
    let mut best: Option<(f32, Format)> = None;
    for range in accept.iter().flat_map(|v| v.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts
            .find_map(|p| p.strip_prefix("q="))
            .and_then(|q| q.parse::<f32>().ok())
            .filter(|q| (0.0..=1.0).contains(q))
            .unwrap_or(1.0);
        let wildcard = media_type.contains('*');
        let format =
            if wildcard && media_type != "text/*" { Some(offered[0]) } else { Format::of_media_type(&media_type) };
        // A wildcard is the client's last choice, whatever its weight: browsers send it besides text/html.
        let weight = if wildcard { quality * 0.5 } else { quality };
        if let Some(format) = format.filter(|f| offered.contains(f))
            && quality > 0.0
            && best.is_none_or(|(w, _)| weight > w)
        {
            best = Some((weight, format));
        }
    }
    best.map(|(_, f)| f).ok_or_else(|| {
        Problem::new(
            Kind::NotAcceptable,
            format!("none of {:?} is served here: use f= with one of {}", accept.join(","), words()),
        )
    })
}

/// Takes the parameter `f` of a resource that has only one format.
pub fn only(word: &str, params: &mut Params) -> Result<()> {
    match params.take("f") {
        Some(other) if other != word => {
            Err(Problem::parameter("f", format!("{other:?} is not served here: expected {word}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        headers
    }

    #[test]
    fn the_parameter_wins_over_the_header() {
        assert_eq!(choose(Some("csv".into()), &accept("text/html"), EVENTS).unwrap(), Format::Csv);
        assert_eq!(choose(Some("xml".into()), &accept("*/*"), EVENTS).unwrap_err().kind(), Kind::InvalidParameter);
        assert_eq!(choose(Some("csv".into()), &accept("*/*"), PAGES).unwrap_err().kind(), Kind::InvalidParameter);
        match choose(Some("gpkg".into()), &accept("*/*"), EVENTS) {
            Ok(format) => assert_eq!((format, cfg!(feature = "geopackage")), (Format::GeoPackage, true)),
            Err(problem) => assert!(problem.detail().contains("`geopackage`"), "{}", problem.detail()),
        }
    }

    #[test]
    fn the_header_is_weighed() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        assert_eq!(choose(None, &accept(browser), EVENTS).unwrap(), Format::Html);
        assert_eq!(choose(None, &accept("*/*"), EVENTS).unwrap(), Format::Json);
        assert_eq!(choose(None, &HeaderMap::new(), EVENTS).unwrap(), Format::Json);
        assert_eq!(choose(None, &accept("text/csv;q=0.5, application/geo+json;q=0.9"), EVENTS).unwrap(), Format::Json);
        assert_eq!(choose(None, &accept("text/csv, */*"), EVENTS).unwrap(), Format::Csv);
        assert_eq!(choose(None, &accept("application/flatgeobuf, */*"), EVENTS).unwrap(), Format::FlatGeobuf);
        assert_eq!(choose(None, &accept("image/png"), EVENTS).unwrap_err().kind(), Kind::NotAcceptable);
        let geopackage = choose(None, &accept("application/geopackage+sqlite3;q=0.9, */*"), EVENTS).unwrap();
        assert_eq!(geopackage == Format::GeoPackage, cfg!(feature = "geopackage"));
        assert_eq!(choose(None, &accept("text/html;q=0, */*;q=0.1"), PAGES).unwrap(), Format::Json);
    }
}
