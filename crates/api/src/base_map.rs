//! The base map that an operator configures in place of the built-in one: a style, or a tile file (PMTiles) served in
//! parts.

use crate::entry::Range;
use crate::guard::WebOrigin;
use crate::problem::{Kind, Problem, Result};
use crate::respond;
use crate::scope::Scope;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_backend::{Disk, OpenMode};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Path of the tile file.
const TILES: &str = "/base-map.pmtiles";

/// Max bytes of a part. A client that requests more gets the first bytes and reads on (RFC 9110, 15.3.7). Directories
/// and tiles are far smaller.
const PART_BYTES_MAX: u64 = 8 << 20;

/// The setting `server.base_map`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseMap {
    /// A PMTiles file on this machine.
    Tiles(PathBuf),
    /// URL of a style or a PMTiles file that browsers load from another server.
    Url(String),
}

impl FromStr for BaseMap {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<BaseMap, String> {
        if text.starts_with("http://") || text.starts_with("https://") {
            WebOrigin::of_url(text)?;
            let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '`');
            return match text.chars().all(plain) {
                true => Ok(BaseMap::Url(text.to_owned())),
                false => Err(format!("{text:?}: expected a URL without spaces, quotes and angle brackets")),
            };
        }
        match Path::new(text).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pmtiles")) {
            true => Ok(BaseMap::Tiles(PathBuf::from(text))),
            false => Err(format!("{text:?}: expected the URL of a style, or a file that ends in .pmtiles")),
        }
    }
}

impl fmt::Display for BaseMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseMap::Tiles(path) => write!(f, "{}", path.display()),
            BaseMap::Url(url) => f.write_str(url),
        }
    }
}

impl BaseMap {
    /// Returns the address from which the map page loads it.
    pub fn address(&self) -> &str {
        match self {
            BaseMap::Tiles(_) => TILES,
            BaseMap::Url(url) => url,
        }
    }

    /// Returns the origin of the other server that hosts it, if any.
    pub fn origin(&self) -> Option<WebOrigin> {
        match self {
            BaseMap::Tiles(_) => None,
            BaseMap::Url(url) => WebOrigin::of_url(url).ok(),
        }
    }
}

/// `GET /base-map.pmtiles`: serves a part of the file.
pub async fn get(state: Scope, headers: HeaderMap) -> Result<Response> {
    let Some(BaseMap::Tiles(path)) = &state.config.base_map else {
        return Err(Problem::not_found(
            "this server has no base map of its own: the setting server.base_map names one",
        ));
    };
    let asked = headers.get(header::RANGE).and_then(Range::of).ok_or_else(|| {
        Problem::parameter("Range", "the file is served in parts: expected one range such as bytes=0-16383")
    })?;
    let (disk, path) = (state.disk.clone(), path.clone());
    let read = tokio::task::spawn_blocking(move || read_part(&*disk, &path, asked));
    let part = read.await.map_err(Problem::internal)?;
    let (length, found) = part.map_err(|error| Problem::internal(format!("the base map cannot be read: {error}")))?;
    let Some(Part { from, bytes }) = found else {
        let detail = format!("the file has {length} bytes, none of them in the range");
        let whole = HeaderValue::from_str(&format!("bytes */{length}")).map_err(Problem::internal)?;
        return Err(Problem::new(Kind::RangeNotSatisfiable, detail).header(header::CONTENT_RANGE, whole));
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/vnd.pmtiles"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    let last = (from + bytes.len() as u64).saturating_sub(1);
    respond::insert(&mut headers, header::CONTENT_RANGE, &format!("bytes {from}-{last}/{length}"));
    Ok((StatusCode::PARTIAL_CONTENT, headers, bytes).into_response())
}

/// A part of a file.
struct Part {
    /// Its first byte.
    from: u64,
    bytes: Vec<u8>,
}

/// Reads the length of a file, and a part of it unless that lies beyond the end.
fn read_part(disk: &dyn Disk, path: &Path, asked: Range) -> io::Result<(u64, Option<Part>)> {
    let file = disk.open(path, OpenMode::Read)?;
    let length = file.len()?;
    let Some((from, to)) = asked.within(length) else { return Ok((length, None)) };
    let mut bytes = vec![0; (to - from).min(PART_BYTES_MAX) as usize];
    file.read_at(from, &mut bytes)?;
    Ok((length, Some(Part { from, bytes })))
}

#[cfg(test)]
mod tests {
    use super::BaseMap;

    #[test]
    fn a_base_map_is_a_url_or_a_file_of_tiles() {
        for (text, address, origin) in [
            ("/srv/planet.pmtiles", "/base-map.pmtiles", None),
            (
                "https://tiles.example/a/style.json?key=1",
                "https://tiles.example/a/style.json?key=1",
                Some("https://tiles.example"),
            ),
        ] {
            let map: BaseMap = text.parse().unwrap();
            assert_eq!(map.to_string(), text);
            assert_eq!(map.address(), address);
            assert_eq!(map.origin().map(|origin| origin.to_string()).as_deref(), origin);
        }
        for wrong in ["", "planet.mbtiles", "https://", "https://a.example/\"><script>", "ftp://a.example/x"] {
            assert!(wrong.parse::<BaseMap>().is_err(), "{wrong}");
        }
    }
}
