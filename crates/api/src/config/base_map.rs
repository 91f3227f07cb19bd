//! The base map that an operator configures in place of the built-in one.

use crate::protocol::web_origin::WebOrigin;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Path of the tile file on this server.
const TILES: &str = "/base-map.pmtiles";

/// The setting `server.base_map`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseMap {
    /// A PMTiles file on this machine.
    Tiles(PathBuf),
    /// URL of a style, or of a PMTiles file, that browsers load from another server.
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

    /// Returns the origin of the other server that hosts it; `None` if it is a local file.
    pub fn origin(&self) -> Option<WebOrigin> {
        match self {
            BaseMap::Tiles(_) => None,
            BaseMap::Url(url) => WebOrigin::of_url(url).ok(),
        }
    }
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
