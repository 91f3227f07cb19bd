//! Links, as carried by every OGC resource.

use crate::contract::Link;
use crate::protocol::params::format::Format;
use std::borrow::Cow;

/// Link relation of a collection's queryables.
pub const REL_QUERYABLES: &str = "http://www.opengis.net/def/rel/ogc/1.0/queryables";
/// Link relation of a collection's schema.
pub const REL_SCHEMA: &str = "http://www.opengis.net/def/rel/ogc/1.0/schema";
/// Link relation of a collection's vector tilesets.
pub const REL_TILESETS_VECTOR: &str = "http://www.opengis.net/def/rel/ogc/1.0/tilesets-vector";
/// Link relation of the conformance declaration, besides the plain `conformance`.
pub const REL_CONFORMANCE: &str = "http://www.opengis.net/def/rel/ogc/1.0/conformance";
/// Link relation of the list of collections, besides the plain `data`.
pub const REL_DATA: &str = "http://www.opengis.net/def/rel/ogc/1.0/data";
/// Link relation of the list of tile matrix sets.
pub const REL_TILING_SCHEMES: &str = "http://www.opengis.net/def/rel/ogc/1.0/tiling-schemes";
/// Link relation of a tile matrix set's definition.
pub const REL_TILING_SCHEME: &str = "http://www.opengis.net/def/rel/ogc/1.0/tiling-scheme";

/// Media type of an OpenAPI 3.0 document in JSON.
pub const OPENAPI_30: &str = "application/vnd.oai.openapi+json;version=3.0";
/// Media type of an OpenAPI 3.1 document in JSON.
pub const OPENAPI_31: &str = "application/vnd.oai.openapi+json;version=3.1";
/// Media type of a vector tile.
pub const MVT: &str = "application/vnd.mapbox-vector-tile";

/// Builds a link.
pub fn link(
    href: impl Into<String>,
    rel: &'static str,
    media_type: &'static str,
    title: impl Into<Cow<'static, str>>,
) -> Link {
    Link { href: href.into(), rel: rel.into(), media_type: media_type.into(), title: title.into(), templated: None }
}

/// Returns a URL with `name=value` added to its query.
pub fn with(url: &str, name: &str, value: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{name}={}", escape(value))
}

/// Percent-encodes a query value or a path segment.
pub fn escape(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b',').remove(b':');
    utf8_percent_encode(text, KEPT).to_string()
}

/// Returns the `self` and `alternate` links of a resource that is served in several formats.
pub fn self_and_alternates(url: &str, chosen: Format, offered: &[Format], json_type: &'static str) -> Vec<Link> {
    let media_type = |f: Format| if f == Format::Json { json_type } else { f.link_type() };
    let bare = without(url, "f");
    offered
        .iter()
        .map(|&f| {
            let rel = if f == chosen { "self" } else { "alternate" };
            let href = if f == chosen { url.to_owned() } else { in_format(&bare, f) };
            let title = if f == chosen { "This document".to_owned() } else { format!("This document as {}", f.word()) };
            link(href, rel, media_type(f), title)
        })
        .collect()
}

/// Returns the URL of a resource in a format, from one without `f`: also without `crs` where the format has CRS84 only.
pub fn in_format(bare: &str, format: Format) -> String {
    match format.is_crs84_only() {
        true => with(&without(bare, "crs"), "f", format.word()),
        false => with(bare, "f", format.word()),
    }
}

/// Returns a URL without one parameter of its query.
pub fn without(url: &str, name: &str) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|p| !p.is_empty() && p.split('=').next() != Some(name)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_and_taken_away() {
        let url = "http://h/items?limit=5&f=html";
        assert_eq!(without(url, "f"), "http://h/items?limit=5");
        assert_eq!(without("http://h/items?f=html", "f"), "http://h/items");
        assert_eq!(with("http://h/items", "token", "a b&c"), "http://h/items?token=a%20b%26c");
        let links = self_and_alternates(url, Format::Html, &[Format::Json, Format::Html], "application/json");
        assert_eq!(links[0].href, "http://h/items?limit=5&f=json");
        assert_eq!(links[1].media_type, "text/html");
        assert_eq!((&*links[1].rel, links[1].href.as_str()), ("self", url));
        assert_eq!(in_format("http://h/items?crs=c", Format::NdJson), "http://h/items?crs=c&f=ndjson");
        assert_eq!(in_format("http://h/items?crs=c", Format::Csv), "http://h/items?f=csv");
    }
}
