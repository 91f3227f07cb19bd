//! Coordinate reference systems: CRS84 inside, EPSG:4326 and EPSG:3857 at the edge.

use geo::MapCoords;
use geo_types::{Coord, Geometry};

/// A coordinate reference system of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Crs {
    /// WGS 84, longitude then latitude: the storage form of events.
    #[default]
    Crs84,
    /// WGS 84, latitude then longitude.
    Epsg4326,
    /// Spherical Mercator in metres.
    Epsg3857,
}

/// Radius of the sphere of EPSG:3857 in metres.
const MERCATOR_RADIUS_M: f64 = 6_378_137.0;
/// Latitude at which the Mercator square ends, in degrees.
pub const MERCATOR_LATITUDE_MAX: f64 = 85.051_128_779_806_59;

impl Crs {
    /// Every system, the storage system first.
    pub const ALL: [Crs; 3] = [Crs::Crs84, Crs::Epsg4326, Crs::Epsg3857];

    /// The OGC URI.
    pub fn uri(self) -> &'static str {
        match self {
            Crs::Crs84 => "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
            Crs::Epsg4326 => "http://www.opengis.net/def/crs/EPSG/0/4326",
            Crs::Epsg3857 => "http://www.opengis.net/def/crs/EPSG/0/3857",
        }
    }

    /// Authority and code, separated by a colon.
    pub fn curie(self) -> &'static str {
        match self {
            Crs::Crs84 => "OGC:CRS84",
            Crs::Epsg4326 => "EPSG:4326",
            Crs::Epsg3857 => "EPSG:3857",
        }
    }

    /// The system with this OGC URI or URN (of any version of its authority), `EPSG:4326` or `[EPSG:4326]`; `None`
    /// where it is unknown.
    pub fn from_name(text: &str) -> Option<Crs> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        let (rest, between) = if let Some(urn) = bare.strip_prefix("urn:ogc:def:crs:") {
            (urn, ':')
        } else {
            let uri = bare.strip_prefix("http://").or_else(|| bare.strip_prefix("https://"));
            match uri {
                Some(uri) => (uri.strip_prefix("www.opengis.net/def/crs/")?, '/'),
                None => return Crs::ALL.into_iter().find(|c| c.curie() == bare),
            }
        };
        let (authority, rest) = rest.split_once(between)?;
        // Any version is accepted: the axes and the datum of these systems do not differ between versions.
        let (_version, code) = rest.split_once(between)?;
        Crs::ALL.into_iter().find(|c| c.curie().split_once(':') == Some((authority, code)))
    }

    /// Converts longitude and latitude in degrees to this system's axes, in order.
    pub fn of_lon_lat(self, lon: f64, lat: f64) -> (f64, f64) {
        match self {
            Crs::Crs84 => (lon, lat),
            Crs::Epsg4326 => (lat, lon),
            Crs::Epsg3857 => {
                // Finite even at the poles, where the projection is infinite. No float equals a right angle exactly,
                // and the tangent of the nearest one is large but finite. So every latitude round-trips.
                let y = MERCATOR_RADIUS_M * lat.to_radians().tan().asinh();
                (MERCATOR_RADIUS_M * lon.to_radians(), y)
            }
        }
    }

    /// Converts this system's axes to longitude and latitude in degrees.
    #[inline]
    pub fn to_lon_lat(self, x: f64, y: f64) -> (f64, f64) {
        match self {
            Crs::Crs84 => (x, y),
            Crs::Epsg4326 => (y, x),
            Crs::Epsg3857 => {
                let lat = (y / MERCATOR_RADIUS_M).sinh().atan();
                ((x / MERCATOR_RADIUS_M).to_degrees(), lat.to_degrees())
            }
        }
    }

    /// Converts a position in this system to degrees.
    #[inline]
    pub fn position(self, x: f64, y: f64) -> Coord<f64> {
        let (x, y) = self.to_lon_lat(x, y);
        Coord { x, y }
    }

    /// Converts a geometry in degrees to this system.
    pub fn of_geometry(self, geometry: &Geometry<f64>) -> Geometry<f64> {
        geometry.map_coords(|Coord { x, y }| self.of_lon_lat(x, y).into())
    }

    /// Converts a geometry in this system to degrees.
    pub fn geometry_to_lon_lat(self, geometry: &Geometry<f64>) -> Geometry<f64> {
        geometry.map_coords(|Coord { x, y }| self.position(x, y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_come_back_from_every_system(lon in -180.0..=180.0f64, lat in -90.0..=90.0f64) {
            for crs in Crs::ALL {
                let (x, y) = crs.of_lon_lat(lon, lat);
                let back = crs.position(x, y);
                prop_assert!((back.x - lon).abs() < 1e-9 && (back.y - lat).abs() < 1e-9, "{:?} {:?}", crs, back);
            }
        }

        #[test]
        fn a_name_with_a_character_changed_is_another(at in any::<prop::sample::Index>(), put in "[a-zA-Z0-9:/]") {
            for crs in Crs::ALL {
                let at = at.index(crs.curie().len());
                let mut name = crs.curie().to_owned();
                name.replace_range(at..=at, &put);
                prop_assert_eq!(Crs::from_name(&name).is_some(), Crs::ALL.iter().any(|c| c.curie() == name), "{}", name);
            }
        }

        #[test]
        fn no_name_makes_the_reader_panic(text in "(urn:ogc:def:crs:|http://www.opengis.net/def/crs/|\\[)?\\PC{0,20}") {
            let _ = Crs::from_name(&text);
        }
    }

    #[test]
    fn latitudes_beyond_the_square_of_mercator_come_back_to_the_pole() {
        for lat in [MERCATOR_LATITUDE_MAX, 85.1, 87.5, 89.0, 89.999, 89.999_999_999, 90.0f64.next_down(), 90.0] {
            for lat in [lat, -lat] {
                let (x, y) = Crs::Epsg3857.of_lon_lat(12.0, lat);
                let (_, back) = Crs::Epsg3857.to_lon_lat(x, y);
                assert!(y.is_finite() && (back - lat).abs() < 1e-12 && back.abs() <= 90.0, "{lat}: {y} {back}");
            }
        }
        let y = |lat| Crs::Epsg3857.of_lon_lat(0.0, lat).1;
        assert!((y(89.0) - 30_240_971.958_386_15).abs() < 1e-6, "as PROJ has it: {}", y(89.0));
        assert_eq!((Crs::Epsg3857.to_lon_lat(0.0, 1e300).1, Crs::Epsg3857.to_lon_lat(0.0, y(90.0)).1), (90.0, 90.0));
    }

    #[test]
    fn mercator_comes_back() {
        let (x, y) = Crs::Epsg3857.of_lon_lat(180.0, MERCATOR_LATITUDE_MAX);
        assert!((x - 20_037_508.342_789_244).abs() < 1e-6 && (y - x).abs() < 1e-6, "{x} {y}");
        let (lon, lat) = Crs::Epsg3857.to_lon_lat(x, y);
        assert!((lon - 180.0).abs() < 1e-9 && (lat - MERCATOR_LATITUDE_MAX).abs() < 1e-9);
    }

    #[test]
    fn systems_are_known_by_their_whole_names_only() {
        for crs in Crs::ALL {
            assert_eq!(Crs::from_name(crs.uri()), Some(crs));
            assert_eq!(Crs::from_name(&crs.uri().replace("http:", "https:")), Some(crs));
            assert_eq!(Crs::from_name(&format!("[{}]", crs.curie())), Some(crs));
            assert_eq!(Crs::from_name(crs.curie()), Some(crs));
        }
        for name in [
            "urn:ogc:def:crs:EPSG::4326",
            "urn:ogc:def:crs:EPSG:9.8:4326",
            "http://www.opengis.net/def/crs/EPSG/9.8/4326",
        ] {
            assert_eq!(Crs::from_name(name), Some(Crs::Epsg4326), "{name}");
        }
        for name in
            ["EPSG:9999", "EPSG:43261", "x EPSG:4326", "[EPSG:4326", "ftp://www.opengis.net/def/crs/EPSG/0/4326", ""]
        {
            assert_eq!(Crs::from_name(name), None, "{name}");
        }
    }
}
